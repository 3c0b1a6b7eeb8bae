/*
 * When a share ends: at the end of a day as this computer counts days. What is kept is
 * a moment, as everywhere; what is shown is its day.
 */
import { strings } from './strings';
import { dayOf, daysAgo, timeOf, weekdayOf } from './time';

/** What one can choose without a calendar. */
export type Until = 'today' | 'week' | 'always';

const days: Record<Exclude<Until, 'always'>, number> = { today: 0, week: 7 };

/** The last second of the day so many days after now's, as the agent takes it. */
function endOfDay(now: number, after = 0): string {
  const at = new Date(now);
  at.setHours(23, 59, 59, 0);
  at.setDate(at.getDate() + after);
  return at.toISOString();
}

/** What the agent takes for a choice. */
export const untilOf = (choice: Until, now: number): string => (choice === 'always' ? 'never' : endOfDay(now, days[choice]));

/** The end of a day written YYYY-MM-DD; empty for what is no day from now's on. */
export function untilDate(day: string, now: number): string {
  const [, year, month, date] = /^(\d{4})-(\d{1,2})-(\d{1,2})$/.exec(day.trim()) ?? [];
  if (!year) return '';
  const at = new Date(Number(year), Number(month) - 1, Number(date), 23, 59, 59);
  return at.getMonth() === Number(month) - 1 && at.getDate() === Number(date) && at.getTime() > now ? at.toISOString() : '';
}

/** A day as a field for one holds it. */
export function dateOf(time: string | number): string {
  const at = new Date(time);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/**
 * The day of an end, in words: today and tomorrow by name, then the weekday within six
 * days, then the date. Midnight is the end of the day before it.
 */
export function dayWord(time: string, now: number): string {
  const last = new Date(Date.parse(time) - 1000).toISOString();
  const away = -daysAgo(last, now);
  if (away === 0) return endsDay(time) ? strings.until.midnight : strings.until.todayWord;
  if (away === 1) return strings.until.tomorrow;
  if (away === -1) return strings.until.yesterday;
  return Math.abs(away) <= 6 ? weekdayOf(last) : dayOf(last, now);
}

/** The same with the time of day, where it is not the end of the day. */
export function endWord(time: string, now: number): string {
  return endsDay(time) ? dayWord(time, now) : `${dayWord(time, now)}, ${timeOf(time)}`;
}

function endsDay(time: string): boolean {
  const at = new Date(time);
  const clock = `${at.getHours()}:${at.getMinutes()}`;
  return clock === '23:59' || clock === '0:0';
}
