import { expect, test } from 'vitest';
import { hostOf, onlyYours, publishCommand, shelve, shut, urlOf } from './apps';
import { account, app } from './samples';

const names = (apps: readonly { name: string }[]) => apps.map(({ name }) => name);

test('each app stands on its shelf, labels in the order given', () => {
  const shelves = shelve([app('a'), app('b', { status: 'revoked' }), app('c'), app('d', { status: 'pending' })], account);
  expect([names(shelves.waiting), names(shelves.on), names(shelves.off)]).toEqual([['d'], ['a', 'c'], ['b']]);
});

test('apps on stand in the agent’s order, as in the menu', () => {
  expect(names(shelve([app('z'), app('app-10'), app('app-2')], account).on)).toEqual(['z', 'app-10', 'app-2']);
});

test('the longest waiting request is first, whatever its label', () => {
  const at = (minute: number) => ({ status: 'pending' as const, requestedAt: `2026-11-21T10:${minute}:00Z` });
  expect(names(shelve([app('a', at(30)), app('b', at(10)), app('c', at(20))], account).waiting)).toEqual(['b', 'c', 'a']);
});

test.each([
  ['cafe', ['cafe']], // accents aside
  ['CAFÉ', ['cafe']],
  [' notes ', ['notes']],
  ['maya.localhost', ['cafe', 'notes', 'arab']], // by address
  ['يومية', ['arab']],
  ['ＮＯＴＥＳ', ['notes']], // full-width letters
  ['nothing', []],
  ['', ['cafe', 'notes', 'arab']],
])('search for "%s"', (query, found) => {
  const apps = [app('cafe', { label: 'Café' }), app('notes', { label: 'Notes' }), app('arab', { label: 'مذكراتي اليومية' })];
  expect(names(shelve(apps, account, query).on)).toEqual(found);
});

test('an app without an address yet shows the one it would get', () => {
  const waiting = app('notes', { status: 'pending' });
  expect(hostOf(waiting, account)).toBe('notes.maya.localhost:8443');
  expect(urlOf(waiting, account)).toBe('https://notes.maya.localhost:8443');
  expect(hostOf(waiting, { ...account, host: '' })).toBe('notes');
  expect(hostOf(app('notes', { host: 'other.example' }), account)).toBe('other.example');
});

test.each([
  [false, false, ''],
  [true, false, 'Nobody can open it while it is paused.'],
  [false, true, 'Nobody can open it while it is dark.'],
  [true, true, 'Nobody can open it while it is dark.'],
])('paused %s, dark %s', (paused, dark, why) => {
  expect(shut({ paused }, dark)).toBe(why);
});

test('the command shown is one line, and names the agent where it is not at the usual address', () => {
  expect(publishCommand('127.0.0.1:8765')).toBe('porchlight publish notes --label Notes --port 3000');
  expect(publishCommand('127.0.0.1:9000')).toBe('porchlight publish notes --label Notes --port 3000 --api 127.0.0.1:9000');
});

// Weakness: "only you" was promised of a port where nothing listened yet, which the network could open later.
test.each([
  [{ listener: { program: 'node' } }, true],
  [{ health: 'nothing' }, false],
  [{ network: true }, false],
  [{ openToCount: 1 }, false],
  [{ status: 'pending', listener: { user: 'maya' } }, true],
  [{ status: 'pending' }, false],
] as const)('%j: only yours is known: %s', (more, known) => expect(onlyYours(app('a', more))).toBe(known));
