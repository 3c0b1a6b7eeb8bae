/*
 * The people of this computer: not part of the snapshot, which only says when to
 * ask again, because there may be thousands.
 */
import type { Bridge } from './bridge';
import type { People as Listing, Person } from './types';

export class People {
  /** The last listing, or undefined before the first. */
  listing = $state.raw<Listing>();
  /** Why there is none, as a sentence; empty while all is well. */
  problem = $state('');

  readonly members = $derived(this.listing?.members ?? []);
  readonly labels = $derived(this.listing?.publishedApps ?? []);

  readonly #bridge: Pick<Bridge, 'people'>;
  #asked = 0;

  constructor(bridge: Pick<Bridge, 'people'>) {
    this.#bridge = bridge;
  }

  /** Asks again; of several questions under way the last one counts. */
  async read(): Promise<void> {
    const mine = ++this.#asked;
    try {
      const listing = await this.#bridge.people();
      if (mine !== this.#asked) return;
      this.listing = listing;
      this.problem = '';
    } catch (error) {
      if (mine === this.#asked) this.problem = (error as Error).message;
    }
  }
}

export const isOwner = (person: Person): boolean => person.role === 'owner';

/** The labels a person may open of those that can be handed over, and the others they have. */
export function labelsOf(person: Person, labels: readonly string[]): string[] {
  const others = person.apps.filter((label) => !labels.includes(label));
  return [...labels, ...others];
}

/** "Notes, Photos and 3 more": as many as fit a line. */
export function named(labels: readonly string[], most = 3): { labels: readonly string[]; more: number } {
  return labels.length <= most + 1 ? { labels, more: 0 } : { labels: labels.slice(0, most), more: labels.length - most };
}
