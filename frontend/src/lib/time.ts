/* Times for people, in the window's language. */
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

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
  if (seconds < 60) return 'just now';
  for (const [limit, size, unit] of steps) if (seconds < limit) return relative.format(-Math.floor(seconds / size), unit);
  return '';
}
