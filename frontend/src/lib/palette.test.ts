import { afterEach, expect, test } from 'vitest';
import { nothing } from '../../tests/nothing';
import { app, request } from '../../tests/scenes';
import { cannot, find, type Around, type Entry } from './palette';
import { speak } from './strings';
import type { OwnerApp, OwnerState, Person } from './types';

afterEach(() => speak('en'));

const account = { connected: true, email: 'maya@example.com', accountId: 'acc_1', name: 'maya', host: 'maya.porch.example', url: 'https://maya.porch.example', authUrl: 'https://porch.example', local: false };
const person = (email: string, apps: string[], more: Partial<Person> = {}): Person => ({ accountId: `acc-${email}`, email, apps, role: 'member', status: 'active', ...more });
const snapshot = (more: Partial<OwnerState> = {}): OwnerState => ({
  ...nothing.ownerState, account, reachable: true, apps: [app('notes', 'Notes', 3000), app('bench', 'Benchmarks', 3001), request('paperless', 'Paperless', 8010)], grants: [], knocks: [], users: [], notices: [], ...more,
});
const around = (more: Partial<OwnerState> = {}, people: Person[] = [person('ben@example.com', ['Notes'])]): Around => ({ snapshot: snapshot(more), people, views: ['apps', 'add', 'people', 'invite', 'activity', 'settings', 'health'], now: 0, mac: false });
const text = ({ text }: Entry) => text.map((part) => (typeof part === 'string' ? part : part.name)).join('');
const found = (query: string, at = around(), why?: Entry['why']) => find(at, query, why).flatMap(({ hits }) => hits.map(({ entry }) => entry));
const first = (query: string, at = around()) => text(found(query, at)[0]!);

test.each([
  ['open notes', 'Open Notes'],
  ['notes', 'Open Notes'],
  ['invite', 'Invite someone…'],
  ['invite ben', 'Invite ben@example.com to another app…'],
  ["why can't ben", 'Why can’t ben@example.com open…'],
  ['why can ben not open notes', 'Why can’t ben@example.com open…'],
  ["why can't ben open notes", 'Why can’t ben@example.com open…'],
  ['dark', 'Go dark'],
  ['remove', 'Remove ben@example.com'],
  ['appear', 'Appearance'],
  ['go dark', 'Go dark'],
  ['settings', 'Settings'],
  ['language', 'Language'],
  ['approve paperless', 'Approve Paperless…'],
  ['trouble', 'Health'],
])('%s finds %s first', (query, wanted) => expect(first(query)).toBe(wanted));

test.each([
  ['oeffnen notes', 'Notes öffnen'],
  ['einladen', 'Jemanden einladen…'],
  ['warum kann ben', 'Warum kann ben@example.com nicht öffnen…'],
  ['licht aus', 'Licht aus'],
  ['sprache', 'Sprache'],
  ['verlauf', 'Verlauf'],
  ['dunkel', 'Aussehen'],
  ['hinzufugen', 'App hinzufügen…'],
])('in German %s finds %s first', (query, wanted) => {
  speak('de');
  expect(first(query)).toBe(wanted);
});

test('what cuts off or opens access is never done by choosing it, and comes last but for settings', () => {
  const at = around({ apps: [app('notes', 'Notes', 3000, { here: ['ben@example.com'] }), app('draft', 'Blog draft', 4321, { paused: true }), request('paperless', 'Paperless', 8010)], grants: [{ id: 'g1', clientId: 'c', clientName: 'Notes reader', email: 'ben@example.com', callsToday: 0, createdAt: '', lastUsedAt: '' }], knocks: [{ id: 'k', accountId: 'a', app: 'Notes', at: '', email: 'eve@example.com', known: false }] });
  const cuts = /^(Go dark|Light|Pause|Resume|Revoke|Disconnect|Remove|Approve|Let)/;
  for (const query of ['n', 'e', 'notes', 'ben', 'blog', 'pap', 'revoke', 'go dark', 'disconnect', 'let in', 'resume', 'eve']) {
    const all = find(at, query).filter(({ group }) => group !== 'settings').flatMap(({ hits }) => hits.map(({ entry }) => entry));
    const doors = all.filter((entry) => cuts.test(text(entry)));
    expect(doors, query).not.toEqual([]);
    expect(all.slice(-doors.length), query).toEqual(doors);
    for (const entry of doors) {
      expect(entry.end, text(entry)).toBeDefined(); // its effect
      // Asked first, or shown where it is answered.
      expect(entry.ask !== undefined || entry.act?.does === 'request' || entry.act?.does === 'knock', text(entry)).toBe(true);
    }
    for (const entry of all.slice(0, -doors.length)) expect(entry.ask, text(entry)).toBeUndefined();
  }
  expect(found('').some((entry) => cuts.test(text(entry)))).toBe(false);
});

test('before anything is typed, the apps opened most are first', () => {
  const apps = Array.from({ length: 20 }, (_, i) => app(`n${i}`, `Notes ${i}`, 3000 + i, i > 15 ? { visits: i } : {}));
  expect(found('', around({ apps })).slice(0, 5).map(text)).toEqual(['Open Notes 19', 'Open Notes 18', 'Open Notes 17', 'Open Notes 16', 'Open Notes 0']);
});

test('any app opens by six keys at most, with sixty of them', () => {
  const names = ['Home Assistant', 'Paperless', 'Photos', 'Grafana', 'Jellyfin', 'Nextcloud', 'Notebook', 'Wiki', 'Blog draft', 'Quarterly planning board', 'Änderungen', 'Über uns'];
  const apps: OwnerApp[] = Array.from({ length: 60 }, (_, i) => app(`app-${i}`, i < names.length ? names[i]! : `Notes ${i}`, 3000 + i));
  const at = around({ apps }, Array.from({ length: 300 }, (_, i) => person(`person-${i}@example.com`, [])));
  for (const one of apps) {
    const words = one.label.normalize('NFKD').replace(/\p{Mn}/gu, '').toLowerCase().split(' ');
    // Ctrl, K and Enter leave three letters.
    const tries = [...words.map((word) => word.slice(0, 3)), words.map((word) => word[0]).join('').slice(0, 3), words[0]!.slice(0, 1) + words.at(-1)!.slice(0, 2)];
    expect(tries.some((query) => found(query, at)[0]?.id === `open ${one.name}`), one.label).toBe(true);
  }
});

test('a dark or paused app is shown, and not opened', () => {
  expect(found('notes', around({ darkSince: '2026-11-24T14:00:00Z' }))[0]!.act).toEqual({ does: 'go', view: 'apps', argument: 'notes' });
  expect(first('light', around({ darkSince: '2026-11-24T14:00:00Z' }))).not.toBe('Go dark');
});

test('nobody is invited while that waits', () => {
  expect(found('invite ben', around({ locked: true }))).toEqual([]);
  expect(text(found('ben', around({}, [person('ben@example.com', [], { status: 'revoked' })]))[0]!)).toBe('Invite ben@example.com again…');
});

test('among thousands of people everybody is found', () => {
  const at = around({}, Array.from({ length: 5000 }, (_, i) => person(`person-${i}@example.com`, [])));
  expect(first('person-4711', at)).toBe('person-4711@example.com');
  expect(first('4711', at)).toBe('person-4711@example.com');
});

test('what keeps somebody out, the nearest cause first', () => {
  const ben = person('ben@example.com', ['Notes']);
  const notes = app('notes', 'Notes', 3000);
  const now = new Date(2026, 10, 24, 12).getTime(); // wherever the test runs
  const why = (one: Person, of: OwnerApp, more: Partial<OwnerState> = {}) => cannot(one, of, snapshot(more), now);
  expect(why(ben, notes)).toBe('nothing keeps them out; tries its address');
  expect(why(person('eve@example.com', []), { ...notes, paused: true })).toBe('may not open it');
  expect(why(person('eve@example.com', [], { ended: { Notes: new Date(2026, 10, 23, 23, 59, 59).toISOString() } }), notes)).toBe('could open it until yesterday');
  expect(why({ ...ben, status: 'pending' }, notes)).toBe('has not clicked the link in the mail yet');
  expect(why(ben, { ...notes, paused: true }, { darkSince: '2026-11-24T11:00:00Z' })).toBe('is paused');
  expect(why(ben, { ...notes, status: 'revoked' })).toBe('is off');
  expect(why(ben, notes, { darkSince: '2026-11-24T11:00:00Z' })).toBe('everything is dark');
  expect(why(ben, { ...notes, ailment: 'not answering' })).toBe('not answering');
  expect(why(ben, notes, { reachable: false })).toBe('this computer is not reachable');
  expect(why(ben, notes, { account: { ...account, local: true } })).toBe('works on this computer only');
  expect(why(ben, { ...notes, certificate: { problem: 'The certificate has ended.' } })).toBe('The certificate has ended.');
  expect(found('', around(), ben).map(text)).toEqual(['Notes', 'Benchmarks']);
  expect(found('ben', around(), 'whom').map(text)).toEqual(['Why can’t ben@example.com open…']);
});
