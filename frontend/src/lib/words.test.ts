import { expect, test } from 'vitest';
import { fold, initial, initials } from './labels';
import { codeOf, linkOf } from './mail';
import { plain } from './sentence';
import { strings } from './strings';
import { ago, dayOf, daysAgo, timeOf } from './time';
import type { Mail } from './types';

test.each([
  ['notes', 'N'],
  ['  spaced', 'S'],
  ['éclair', 'É'],
  ['e\u0301clair', 'E\u0301'],
  ['👩‍🚀 Orbit', '👩‍🚀'],
  ['\u202Eevil', 'E'],
  ['<script>', '<'],
  ['', ''],
  ['\u200b', ''],
])('the initial of %j', (label, letter) => expect(initial(label)).toBe(letter));

test.each([
  ['bob@example.com', 2, 'B'],
  ['carla.nunes@example.org', 2, 'CN'],
  ['carla.nunes@example.org', 1, 'C'],
  ['a.very.long.name@example.org', 2, 'AN'],
  ['.odd..@example.org', 2, 'O'],
  ['@example.org', 2, '@'],
  ['', 2, ''],
] as const)('the initials of %j, at most %i', (address, most, letters) => expect(initials(address, most)).toBe(letters));

test('folding sets case, accents and width aside', () => expect(fold('ÉCLAIR Ｎ')).toBe('eclair n'));

const mail = (more: Partial<Mail>): Mail => ({ to: 'bob@example.com', subject: '', text: '', links: [], at: '2026-11-21T10:00:00Z', ...more });

test.each([
  ['Your code: 123 456', '123 456'],
  ['Your code: 123456.', '123 456'],
  ['Your code: 123\u00a0456\n', '123 456'],
  ['Code 555 777', '555 777'],
  ['call 123 456', ''],
  ['Your code: 1234 5678', ''],
  ['no code', ''],
])('the code in %j', (text, code) => expect(codeOf(mail({ text }))).toBe(code));

test('only web addresses are links', () => {
  expect(linkOf(mail({ links: ['javascript:alert(1)', 'file:///etc/passwd', 'https://control.localhost:8443/x'] }))).toBe('https://control.localhost:8443/x');
  expect(linkOf(mail({ links: ['javascript:alert(1)'] }))).toBe('');
  expect(linkOf(mail({ links: null as unknown as string[] }))).toBe('');
});

const now = Date.parse('2026-11-21T12:00:00Z');
test.each([
  ['2026-11-21T11:59:30Z', 'just now'],
  ['2026-11-21T12:00:30Z', 'just now'], // a clock that runs ahead
  ['2026-11-21T11:59:00Z', '1 minute ago'],
  ['2026-11-21T11:00:01Z', '59 minutes ago'],
  ['2026-11-21T10:00:00Z', '2 hours ago'],
  ['2026-11-20T11:00:00Z', 'yesterday'],
  ['2026-11-11T11:00:00Z', '10 days ago'],
  ['0001-01-01T00:00:00Z', ''], // a Go time never set
  ['', ''],
])('%s was %j', (time, words) => expect(ago(time, now)).toBe(words));

test('times of day and days, with the year when it is another one', () => {
  const local = (year: number, month: number, day: number, hour = 9) => new Date(year, month - 1, day, hour, 5).toISOString();
  const at = new Date(2026, 10, 21, 12).getTime();
  expect(timeOf(local(2026, 11, 21))).toBe('09:05');
  expect(dayOf(local(2026, 10, 2), at)).toBe('2 October');
  expect(dayOf(local(2025, 12, 31), at)).toBe('31 December 2025');
  for (const never of ['0001-01-01T00:00:00Z', '', 'soon']) expect([timeOf(never), dayOf(never, at)]).toEqual(['', '']);
});

test('days are counted by the calendar, not by hours', () => {
  const at = (day: number, hour: number) => new Date(2026, 10, day, hour, 30);
  expect(daysAgo(at(21, 0).toISOString(), at(21, 23).getTime())).toBe(0);
  expect(daysAgo(at(20, 23).toISOString(), at(21, 0).getTime())).toBe(1);
  expect(daysAgo(at(1, 12).toISOString(), at(21, 12).getTime())).toBe(20);
  // Clocks go back an hour between these two in much of the world.
  expect(daysAgo(new Date(2026, 9, 24, 12).toISOString(), new Date(2026, 9, 26, 12).getTime())).toBe(2);
  expect(daysAgo(at(22, 1).toISOString(), at(21, 23).getTime())).toBe(-1); // a clock that runs ahead
});

test('lists are read as people say them', () => {
  const words = (labels: string[], more = 0) => plain(strings.people.mayOpenNow(labels, more)).replace(/[\u2068\u2069]/g, '');
  expect([words([]), words(['Notes']), words(['Notes', 'Photos']), words(['A', 'B', 'C']), words(['A', 'B', 'C'], 2000)]).toEqual([
    'Nothing', 'Notes', 'Notes and Photos', 'A, B and C', 'A, B, C and 2,000 more',
  ]);
});

test('a name in a sentence cannot turn what follows it', () => {
  expect(plain(strings.app.openApp('\u202Eevil'))).toBe('Open \u2068\u202Eevil\u2069');
});

test('connections are counted in words', () => {
  expect(strings.revoke.text(0)).toBe('Its address goes away. Who may open it is forgotten. The app itself keeps running.');
  expect(strings.revoke.text(1)).toContain('and 1 connection is closed.');
  expect(strings.revoke.text(1234)).toContain('and 1,234 connections are closed.');
  expect(plain(strings.toast.revoked('Notes', 0))).toBe('\u2068Notes\u2069 has no address any more.');
});
