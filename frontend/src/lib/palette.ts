/*
 * What the palette finds: everything that can be opened, shown, done and set, made of
 * what the window has, and which of it is meant by what was typed. Pure functions;
 * views/Palette.svelte carries out.
 */
import { hostOf, shut, urlOf } from './apps';
import { match, searched, wordsOf, type Match, type Searched } from './fuzzy';
import { clientOf } from './labels';
import { isOwner, named } from './people.svelte';
import type { View } from './places';
import type { Sentence } from './sentence';
import { inviteWaits } from './state.svelte';
import { strings } from './strings';
import type { Grant, Group as Named, Knock, OwnerApp, OwnerState, Person } from './types';
import { dayWord } from './until';
import type { IconName } from '../ui/Icon.svelte';

/** What is done at once: it opens or shows something, and changes nothing. */
export type Act =
  | { does: 'open' | 'request'; app: OwnerApp }
  | { does: 'go'; view: View; argument?: string }
  | { does: 'setting'; title: string }
  | { does: 'knock'; knock: Knock }
  | { does: 'copy'; text: string }
  | { does: 'connect' | 'export' | 'launcher' | 'close' };

/** What cuts off or opens access: asked first. */
export type Deed =
  | { does: 'pause' | 'resume' | 'revoke'; app: OwnerApp }
  | { does: 'disconnect' | 'remove'; person: Person }
  | { does: 'client'; grant: Grant }
  | { does: 'dark' | 'light' | 'computer' };

export type Group = keyof typeof strings.palette.groups;

export interface Entry {
  id: string;
  group: Group;
  text: Sentence;
  /** What else it is found by. */
  also: string;
  /** What stands at the end of its line. */
  end?: Sentence;
  icon: IconName;
  /** A person, whose face stands in the icon's place. */
  email?: string;
  /** What Ctrl+C copies. */
  copy?: string;
  keys?: string;
  act?: Act;
  /** Asked first: what happens, and how its button is called. */
  ask?: { deed: Deed; text: string; confirm: string };
  /** What is found next is about that: the apps that somebody cannot open, or first who it is. */
  why?: Person | 'whom';
}

/** What the window has. */
export interface Around {
  snapshot: OwnerState;
  people: readonly Person[];
  views: readonly View[];
  now: number;
  mac: boolean;
  /** Whether the desktop offers keys that open it from anywhere. */
  shortcut?: boolean | undefined;
}

export interface Hit {
  entry: Entry;
  match: Match;
  /** The text that the marks are in. */
  text: string;
}

const most: Record<Group, number> = { apps: 8, people: 8, actions: 6, settings: 5, doors: 6 };
const mostNamed = 30; // apps and people that what can be done with them is listed for

/** How much surer something has to be meant to stand before an app; doors are last, but for settings that are less sure. */
const behind: Record<Group, number> = { apps: 0, people: 0.7, actions: 0.6, settings: 1.5, doors: 0 };

/** What is meant by a query, in groups as they are shown, the surest first in each. */
export function find(around: Around, query: string, why?: Entry['why']): { group: Group; hits: Hit[] }[] {
  const words = wordsOf(query);
  const entries = why === 'whom' ? whys(around) : why ? cannots(around, why) : words.length > 0 ? everything(around, words) : atFirst(around);
  const hits = entries
    .map((entry, at) => ({ entry, at, ready: ready(entry) }))
    .flatMap(({ entry, at, ready }) => {
      const found = match(words, ready);
      return found ? [{ entry, match: found, text: ready.text, at }] : [];
    })
    .sort((a, b) => a.match.score + behind[a.entry.group] - b.match.score - behind[b.entry.group] || a.at - b.at);
  const surest = (group: Group) => Math.min(...hits.filter(({ entry }) => entry.group === group).map(({ match }) => match.score));
  const last = (group: Group) => (group === 'doors' ? 1 : group === 'settings' && surest('doors') < surest('settings') ? 2 : 0);
  const groups = [...new Set(hits.map(({ entry }) => entry.group))].sort((a, b) => last(a) - last(b));
  const limit = (group: Group) => (why ? mostNamed : most[group]);
  return groups.map((group) => ({ group, hits: hits.filter(({ entry }) => entry.group === group).slice(0, limit(group)) }));
}

const ready = ({ text, also }: Entry): Searched => searched(text.map((part) => (typeof part === 'string' ? part : part.name)).join(''), also ? [also] : []);

/** What stands there before anything is typed: the apps opened most, and nothing that cuts off. */
function atFirst(around: Around): Entry[] {
  const openable = around.snapshot.apps.filter((app) => app.status === 'live').sort((a, b) => (b.visits ?? 0) - (a.visits ?? 0));
  return [...openable.flatMap((app) => ofApp(around, app).slice(0, 1)), ...actions(around)];
}

/** Everything; of many apps and people, with those alone that a word names. */
function everything(around: Around, words: string[]): Entry[] {
  const { snapshot, people } = around;
  const named = <Thing>(things: readonly Thing[], name: (thing: Thing) => string) => {
    if (things.length <= mostNamed) return things;
    return things
      .flatMap((thing) => {
        const it = searched(name(thing));
        const scores = words.flatMap((word) => match([word], it)?.score ?? []);
        return scores.length > 0 ? [{ thing, score: Math.min(...scores) }] : [];
      })
      .sort((a, b) => a.score - b.score)
      .slice(0, mostNamed)
      .map(({ thing }) => thing);
  };
  return [
    ...actions(around), // first: before what they are for one app
    ...named(snapshot.apps, (app) => `${app.label} ${app.name}`).flatMap((app) => ofApp(around, app)),
    ...named(people.filter((one) => !isOwner(one)), (one) => one.email).flatMap((one) => ofPerson(around, one)),
    ...(snapshot.groups ?? []).map(ofGroup),
    ...settings(around),
    ...named(snapshot.knocks ?? [], (knock) => `${knock.email} ${knock.app}`).map(ofKnock),
    ...snapshot.grants.map(ofClient),
    ...doors(around),
  ];
}

function ofApp({ snapshot }: Around, app: OwnerApp): Entry[] {
  const words = strings.palette;
  const copy = urlOf(app, snapshot.account);
  const end: Sentence = [hostOf(app, snapshot.account)];
  const entry = (does: string, more: Pick<Entry, 'text' | 'icon'> & Partial<Entry>): Entry => ({ id: `${does} ${app.name}`, group: 'apps', also: app.name, copy, ...more });
  if (app.status === 'pending') return [entry('approve', { group: 'doors', text: words.approve(app.label), icon: 'check', end: [words.approveEffect], also: `${app.name} ${words.also.approve}`, act: { does: 'request', app } })];
  const live = app.status === 'live';
  const show = entry('show', { text: words.show(app.label), icon: 'apps', end, also: `${app.name} ${words.also.show}`, act: { does: 'go', view: 'apps', argument: app.name } });
  const pause = app.paused || !live
    ? entry('resume', { group: 'doors', text: strings.app.resumeApp(app.label), icon: 'play', end: [words.resumeEffect], ask: ask({ does: 'resume', app }, words.resumeEffect, strings.app.resume) })
    : entry('pause', { group: 'doors', text: words.pause(app.label), icon: 'pause', end: [words.pauseEffect], also: `${app.name} ${words.also.pause}`, ask: ask({ does: 'pause', app }, strings.app.pausedWhy, strings.app.pause) });
  const revoke = entry('revoke', { group: 'doors', text: words.revoke(app.label), icon: 'x', end: [words.revokeEffect], also: `${app.name} ${words.also.revoke}`, ask: ask({ does: 'revoke', app }, strings.revoke.text(app.connections), words.revokeIt) });
  if (!live || shut(app, !!snapshot.darkSince)) return [show, pause, revoke];
  const open = entry('open', { text: strings.app.openApp(app.label), icon: 'out', end, also: `${app.name} ${words.also.open}`, act: { does: 'open', app } });
  const invite = entry('invite', { group: 'actions', text: words.inviteTo(app.label), icon: 'plus', also: `${app.name} ${words.also.invite}`, act: { does: 'go', view: 'invite', argument: app.name } });
  return [open, show, ...(inviteWaits(snapshot) ? [] : [invite]), pause, revoke];
}

function ofPerson({ snapshot, now }: Around, person: Person): Entry[] {
  const words = strings.palette;
  const { email } = person;
  const entry = (does: string, more: Pick<Entry, 'text' | 'icon'> & Partial<Entry>): Entry => ({ id: `${does} ${person.accountId}`, group: 'people', also: '', copy: email, ...more });
  const waits = inviteWaits(snapshot) !== '';
  if (person.status === 'revoked') return waits ? [] : [entry('again', { text: words.inviteAgain(email), icon: 'plus', also: words.also.invite, act: { does: 'go', view: 'invite', argument: email } })];
  const list = named(person.apps);
  const ends = list.labels.some((label) => person.until?.[label]);
  const may = ends ? strings.people.mayOpenUntil(list.labels.map((label) => ({ label, until: person.until?.[label] ? dayWord(person.until[label], now) : '' })), list.more) : strings.people.mayOpenNow(list.labels, list.more);
  const here = snapshot.apps.some((app) => app.here.includes(email));
  return [
    entry('person', { text: [{ name: email }], icon: 'people', email, end: may, act: { does: 'go', view: 'people', argument: email } }),
    ...(waits ? [] : [entry('invite', { text: words.inviteMore(email), icon: 'plus', also: words.also.invite, act: { does: 'go', view: 'invite', argument: email } })]),
    whyOf(person, snapshot),
    ...(here ? [entry('disconnect', { group: 'doors', text: words.disconnect(email), icon: 'leave', end: [words.disconnectEffect], also: words.also.disconnect, ask: ask({ does: 'disconnect', person }, words.disconnectEffect, words.disconnectIt) })] : []),
    entry('remove', { group: 'doors', text: words.remove(email), icon: 'x', end: [words.removeEffect(person.apps.length)], also: words.also.remove, ask: ask({ does: 'remove', person }, words.removeEffect(person.apps.length), words.removeIt) }),
  ];
}

const ofGroup = (group: Named): Entry => {
  const list = named(group.apps);
  return { id: `group ${group.id}`, group: 'people', text: [{ name: group.name }], icon: 'people', also: [strings.people.groups, ...group.apps].join(' '), end: strings.people.mayOpenNow(list.labels, list.more), act: { does: 'go', view: 'people', argument: group.id } };
};

/** Asks why somebody cannot open an app; also found by which. */
const whyOf = (person: Person, snapshot: OwnerState): Entry => ({
  id: `why ${person.accountId}`, group: 'people', text: strings.palette.why(person.email), icon: 'why', copy: person.email, why: person,
  also: [strings.palette.also.why, ...snapshot.apps.map((app) => app.label)].join(' '),
});

const whys = ({ people, snapshot }: Around): Entry[] => people.filter((one) => !isOwner(one)).map((one) => whyOf(one, snapshot));

/** Every app with what keeps a person from it; chosen, its page tells the rest and tries its address. */
function cannots({ snapshot, now }: Around, person: Person): Entry[] {
  return snapshot.apps
    .filter((app) => app.status !== 'pending')
    .map((app) => ({ id: `why ${app.name}`, group: 'apps', text: [{ name: app.label }], also: app.name, icon: 'apps', end: [cannot(person, app, snapshot, now)], act: { does: 'go', view: 'apps', argument: app.name } }));
}

/** What keeps a person from an app, the nearest cause first, as the end of a sentence about it. */
export function cannot(person: Person, app: OwnerApp, snapshot: OwnerState, now: number): string {
  const words = strings.palette.cannot;
  const ended = person.ended?.[app.label];
  if (!person.apps.includes(app.label)) return ended ? words.ended(dayWord(ended, now)) : words.notGiven;
  if (person.status === 'pending') return words.waits;
  if (app.status !== 'live') return words.off;
  if (app.paused) return words.paused;
  if (snapshot.darkSince) return words.dark;
  if (app.ailment) return app.ailment;
  if (snapshot.account.local) return words.local;
  if (!snapshot.reachable) return words.unreachable;
  return app.certificate?.problem || words.nothing;
}

function ofKnock(knock: Knock): Entry {
  const words = strings.palette;
  return { id: `knock ${knock.id}`, group: 'doors', text: words.letIn(knock.email), icon: 'door', also: `${knock.app} ${words.also.letIn}`, end: words.letInEffect(knock.app), copy: knock.email, act: { does: 'knock', knock } };
}

function ofClient(grant: Grant): Entry {
  const words = strings.palette;
  return {
    id: `client ${grant.id}`, group: 'doors', text: strings.clients.revokeOf(clientOf(grant)), icon: 'unlink', also: `${strings.nav.clients} ${words.also.revoke}`, end: [words.clientEffect],
    ask: { deed: { does: 'client', grant }, text: strings.revokeClient.text, confirm: strings.revokeClient.confirm },
  };
}

/** What the window does by itself, its views among it. */
function actions({ snapshot, views, mac }: Around): Entry[] {
  const words = strings.palette;
  const { account } = snapshot;
  const also = words.also as Record<string, string>;
  const invites = inviteWaits(snapshot) === '' && snapshot.apps.some((app) => app.status === 'live');
  const icons: Partial<Record<View, IconName>> = { add: 'plus', people: 'people', clients: 'link', activity: 'activity', outbox: 'mail', settings: 'settings', health: 'shield' };
  const entry = (id: string, text: string, icon: IconName, act: Act, more: Partial<Entry> = {}): Entry => ({ id, group: 'actions', text: [text], icon, also: also[id] ?? '', act, ...more });
  return [
    ...(invites ? [entry('invite', words.invite, 'plus', { does: 'go', view: 'invite' })] : []),
    entry('add', strings.add.button, 'plus', { does: 'go', view: 'add' }),
    { id: 'why', group: 'actions', text: [words.whyAnybody], icon: 'why', also: words.also.why, why: 'whom' },
    ...views.filter((view) => view !== 'add' && view !== 'invite').map((view) => entry(view, strings.nav[view], icons[view] ?? 'apps', { does: 'go', view })),
    ...(account.local ? [entry('connect', strings.welcome.connectTitle, 'server', { does: 'connect' })] : []),
    ...(account.url ? [entry('root', words.copyRoot, 'copy', { does: 'copy', text: account.url }, { copy: account.url, end: [account.host] }), entry('launcher', strings.settings.launcher, 'out', { does: 'launcher' }, { copy: account.url })] : []),
    entry('export', strings.settings.exportDo, 'download', { does: 'export' }),
    entry('close', words.close, 'x', { does: 'close' }, { keys: words.keys(mac, 'W') }),
  ];
}

/** What closes everything at once, or opens it again. */
function doors({ snapshot }: Around): Entry[] {
  const words = strings.palette;
  const light = snapshot.darkSince !== undefined;
  return [
    light
      ? { id: 'light', group: 'doors', text: [strings.dark.light], icon: 'play', also: words.also.light, end: [words.lightEffect], ask: ask({ does: 'light' }, words.lightEffect, strings.dark.light) }
      : { id: 'dark', group: 'doors', text: [strings.dark.title], icon: 'moon', also: words.also.dark, end: [words.darkEffect(snapshot.here)], ask: ask({ does: 'dark' }, strings.dark.text, strings.dark.title) },
    ...(snapshot.account.local ? [] : [{ id: 'computer', group: 'doors' as const, text: [words.computer], icon: 'unlink' as const, also: words.also.disconnect, end: [words.computerEffect], ask: { deed: { does: 'computer' as const }, text: strings.disconnect.text, confirm: strings.disconnect.confirm } }]),
  ];
}

/** Every setting, by the words that Settings has for it. */
export function settings({ snapshot: { account }, shortcut }: Around): Entry[] {
  const words = strings.settings;
  const shown: [title: string, ...also: string[]][] = [
    [words.login], [words.appearance, words.light, words.dark], [words.icon, words.lamp], [strings.invite.yourName, strings.invite.yourNameText],
    [words.language, words.languageText], ...Object.values(words.levels).map(([title, text]): [string, string, string] => [title, words.tell, text]), ...Object.values(words.kinds).map((title): [string, string] => [title, words.tell]),
    ...Object.values(words.toggles).flatMap((group): [string, string][] => Object.values(group).map(([title, text]) => [title, text])),
    account.local ? [words.clientHosts, words.clientHostsText] : [words.failStatic, words.failStaticText], [words.secret], ...(account.local ? [[words.trust] as [string]] : []),
    ...(shortcut ? [[words.shortcut, words.lamp] as [string, string]] : []), [words.dataTitle, words.dataShow, words.exportDo],
  ];
  return shown.map(([title, ...also]) => ({ id: `setting ${title}`, group: 'settings', text: [title], icon: 'settings', also: also.join(' '), act: { does: 'setting', title } }));
}

const capital = (text: string): string => text.charAt(0).toLocaleUpperCase() + text.slice(1);

/** A question about what happens, as a sentence. */
const ask = (deed: Deed, text: string, confirm: string): NonNullable<Entry['ask']> => ({ deed, text: /[.!?]$/u.test(text) ? text : `${capital(text)}.`, confirm });
