import { expect, test } from 'vitest';
import { endOf, fullDay, lastChoice, remember, type Choice } from './inviting';

const now = new Date(2026, 10, 22, 14, 30).getTime(); // a Sunday
const iso = (...at: [number, number, number, number, number, number]) => new Date(...at).toISOString();

test.each<[Choice, string, string]>([
  ['always', '', 'never'],
  ['today', '', iso(2026, 10, 22, 23, 59, 59)],
  ['week', '', iso(2026, 10, 29, 23, 59, 59)],
  ['date', '2026-11-22', iso(2026, 10, 22, 23, 59, 59)],
  ['date', '2028-02-29', iso(2028, 1, 29, 23, 59, 59)],
  ['date', '2026-11-21', ''],
  ['date', '2026-02-30', ''],
  ['date', 'soon', ''],
])('%s %s', (choice, day, want) => expect(endOf(choice, day, now)).toBe(want));

test('a day in full', () => {
  expect(fullDay(endOf('week', '', now), now)).toBe('Sunday 29 November');
  expect(fullDay(iso(2027, 0, 2, 23, 0, 0), now)).toBe('Saturday, 2 January 2027');
  expect([fullDay('never', now), fullDay('', now)]).toEqual(['', '']);
});

test('the last choice is the next one, but for a date', () => {
  expect(lastChoice()).toBe('week');
  remember('always');
  expect(lastChoice()).toBe('always');
  remember('date');
  expect(lastChoice()).toBe('week');
});
