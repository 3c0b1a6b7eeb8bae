/* The people of this computer: not part of the snapshot, for there may be thousands. */
import { Asked } from './asked.svelte';
import type { Ask } from './bridge';
import { inOrder } from './labels';
import type { People as Listing, Person } from './types';

export class People extends Asked<Listing> {
  readonly members = $derived(this.answer?.members ?? []);
  readonly labels = $derived([...(this.answer?.publishedApps ?? [])].sort(inOrder));

  constructor(ask: Ask) {
    super(() => ask('ownerPeople'));
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
