/*
 * When each person last came, and to which app: read from the activity, which is
 * kept for 90 days, unless the owner clears it. A line less, where it cannot be
 * read.
 */
import { Asked } from './asked.svelte';
import type { Ask } from './bridge';
import type { Activity } from './types';

/** How many lines are asked for. */
const activityShown = 1000;

export class Visits extends Asked<Activity[]> {
  /** True once the activity was read: what is not in it did not happen lately. */
  readonly known = $derived(this.answer !== undefined);

  // The newest line is first, so the first of each is the last visit.
  readonly #last = $derived.by(() => {
    const last = new Map<string, string>();
    for (const { kind, email, app, at } of this.answer ?? []) {
      if (kind !== 'opened' && kind !== 'client') continue;
      for (const key of [email, `${email}\n${app}`]) if (!last.has(key)) last.set(key, at);
    }
    return last;
  });

  constructor(ask: Ask) {
    super(async () => (await ask('activityPage', { limit: activityShown, group: 'visits' })).lines);
  }

  /** When a person last opened an app, by its label, or any of them. Empty when there is no such line. */
  last(email: string, app?: string): string {
    return this.#last.get(app === undefined ? email : `${email}\n${app}`) ?? '';
  }
}
