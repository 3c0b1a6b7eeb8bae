/* Until when somebody is invited: a choice of days, and what was chosen last. */
import { made } from './language';
import { untilDate, untilOf, type Until } from './until';

export const choices = ['today', 'week', 'date', 'always'] as const;
export type Choice = Until | 'date';

/** What the agent takes for a choice; empty for a day that is none or over. */
export const endOf = (choice: Choice, day: string, now: number): string => (choice === 'date' ? untilDate(day, now) : untilOf(choice, now));

const full = () => made('fullDay', (locale) => new Intl.DateTimeFormat(locale, { weekday: 'long', day: 'numeric', month: 'long' }));
const fullOfYear = () => made('fullDayOfYear', (locale) => new Intl.DateTimeFormat(locale, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' }));

/** The day of an end in full: "Saturday 28 November", with the year when it is another one; empty for none. */
export function fullDay(end: string, now: number): string {
  const at = new Date(end);
  if (Number.isNaN(at.getTime())) return '';
  return (at.getFullYear() === new Date(now).getFullYear() ? full() : fullOfYear()).format(at);
}

const kept = 'porchlight.until';
let last: Choice | undefined;

/** What was chosen last, a week at first. A date of then is over soon, so it is none to begin with. */
export function lastChoice(): Choice {
  try {
    last ??= localStorage.getItem(kept) as Choice;
  } catch {
    // Without a store it is remembered for as long as the window lives.
  }
  return last && last !== 'date' && choices.includes(last) ? last : 'week';
}

export function remember(choice: Choice): void {
  last = choice;
  try {
    localStorage.setItem(kept, choice);
  } catch {
    // See lastChoice.
  }
}
