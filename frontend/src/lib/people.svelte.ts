/*
 * The people of this computer: not part of the snapshot, which only says when to
 * ask again, because there may be thousands.
 */
import type { Ask } from './bridge';
import type { People as Listing, Person } from './types';

export class People {
  /** The last listing, or undefined before the first. */
  listing = $state.raw<Listing>();
  /** Why there is none, as a sentence; empty while all is well. */
  problem = $state('');

  readonly members = $derived(this.listing?.members ?? []);
  readonly labels = $derived(this.listing?.publishedApps ?? []);

  readonly #ask: Ask;
  #asked = 0;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** Asks again; of several questions under way the last one counts. */
  async read(): Promise<void> {
    const mine = ++this.#asked;
    try {
      const listing = await this.#ask('ownerPeople');
      if (mine !== this.#asked) return;
      this.listing = listing;
      this.problem = '';
    } catch (error) {
      if (mine === this.#asked) this.problem = (error as Error).message;
    }
  }
}

export const isOwner = (person: Person): boolean => person.role === 'owner';

/**
 * Every label a person has or could be given. Few keep their order, whoever they
 * are shown for; of many, those the person has come first.
 */
export function labelsOf(has: readonly string[], labels: readonly string[], many = 12): string[] {
  if (labels.length > many) return [...has, ...labels.filter((label) => !has.includes(label))];
  return [...labels, ...has.filter((label) => !labels.includes(label))];
}

/** "Notes, Photos and 3 more": as many as fit a line. */
export function named(labels: readonly string[], most = 3): { labels: readonly string[]; more: number } {
  return labels.length <= most + 1 ? { labels, more: 0 } : { labels: labels.slice(0, most), more: labels.length - most };
}
