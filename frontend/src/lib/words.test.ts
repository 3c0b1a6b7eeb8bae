import { expect, test } from 'vitest';
import { fold, initial } from './labels';
import { codeOf, linkOf } from './mail';
import { plain, strings } from './strings';
import { ago } from './time';
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

test('a name in a sentence cannot turn what follows it', () => {
  expect(plain(strings.app.openApp('\u202Eevil'))).toBe('Open \u2068\u202Eevil\u2069');
});

test('connections are counted in words', () => {
  expect(strings.revoke.text(0)).toBe('Its address goes away. Who may open it is forgotten. The app itself keeps running.');
  expect(strings.revoke.text(1)).toContain('and 1 connection is closed.');
  expect(strings.revoke.text(1234)).toContain('and 1,234 connections are closed.');
  expect(plain(strings.toast.revoked('Notes', 0))).toBe('\u2068Notes\u2069 has no address any more.');
});
