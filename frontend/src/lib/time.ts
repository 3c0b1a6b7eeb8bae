/* Times for people, in the window's language. */
import { made } from './language';
import { strings } from './strings';

const relative = () => made('relative', (locale) => new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }));

const steps: readonly [limit: number, size: number, unit: Intl.RelativeTimeFormatUnit][] = [
  [3600, 60, 'minute'],
  [86_400, 3600, 'hour'],
  [Infinity, 86_400, 'day'],
];

/**
 * How long before now an RFC 3339 time was: "just now", "5 minutes ago",
 * "yesterday". Empty for a time that was never set.
 */
export function ago(time: string, now: number): string {
  const at = Date.parse(time);
  if (Number.isNaN(at) || at <= 0) return '';
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 60) return strings.justNow;
  for (const [limit, size, unit] of steps) if (seconds < limit) return relative().format(-Math.floor(seconds / size), unit);
  return '';
}

const format = (name: string, how: Intl.DateTimeFormatOptions) => () => made(name, (locale) => new Intl.DateTimeFormat(locale, how));
const clock = format('clock', { hour: '2-digit', minute: '2-digit' });
const seconds = format('seconds', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = format('day', { day: 'numeric', month: 'long' });
const weekday = format('weekday', { weekday: 'long' });
const dayOfYear = format('dayOfYear', { day: 'numeric', month: 'long', year: 'numeric' });

/** The time of day of an RFC 3339 time: "14:05". Empty for one never set. */
export function timeOf(time: string): string {
  return set(time) ? clock().format(new Date(time)) : '';
}

/** The same with its seconds: "14:05:07". */
export function secondOf(time: string): string {
  return set(time) ? seconds().format(new Date(time)) : '';
}

/** The day of an RFC 3339 time: "2 October", with the year when it is another one. */
export function dayOf(time: string, now: number): string {
  if (!set(time)) return '';
  const at = new Date(time);
  return (at.getFullYear() === new Date(now).getFullYear() ? day() : dayOfYear()).format(at);
}

/** The day of the week of an RFC 3339 time: "Sunday". */
export function weekdayOf(time: string): string {
  return set(time) ? weekday().format(new Date(time)) : '';
}

/** The moment itself, for who wants to know exactly: "28 November 2026, 23:59". */
export function momentOf(time: string): string {
  return set(time) ? `${dayOfYear().format(new Date(time))}, ${timeOf(time)}` : '';
}

/** How many days before now's day a time was, by the calendar: 0 is today. */
export function daysAgo(time: string, now: number): number {
  const midnight = (at: number) => {
    const date = new Date(at);
    return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  };
  return Math.round((midnight(now) - midnight(Date.parse(time))) / 86_400_000);
}

function set(time: string): boolean {
  const at = Date.parse(time);
  return !Number.isNaN(at) && at > 0;
}
