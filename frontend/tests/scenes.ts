/*
 * What the window can be shown: each scene is a state of the agent, and what is asked
 * for besides. bridge.ts has it lived in.
 */
import type { Activity, Health, Mail, OwnerApp, OwnerState, Person, Preferences, Server, VisitorRequest } from '../src/lib/types';
import { nothing } from './nothing';

/** Some of it; undefined takes away. */
export type More<T> = { [Name in keyof T]?: T[Name] | undefined };

export const minutesAgo = (n: number) => new Date(Date.now() - n * 60_000).toISOString();

export const local = {
  connected: true, email: 'owner@maya.localhost', accountId: 'acc_1', name: 'maya',
  host: 'maya.localhost:8443', url: 'https://maya.localhost:8443', authUrl: 'https://control.localhost:8443', local: true,
};
const connected = { ...local, email: 'maya@example.com', host: 'maya.porch.example', url: 'https://maya.porch.example', authUrl: 'https://porch.example', local: false };

export const options = nothing.changeOptions;
export const app = (name: string, label: string, localPort: number, more: More<OwnerApp> = {}): OwnerApp => ({
  name, label, localPort, status: 'live', listener: { pid: 48211, program: 'node', user: 'maya' }, listensOn: '127.0.0.1', network: false, lit: true, health: 'answers', healthDetail: '',
  quiet: false, denials: 0, requestedAt: minutesAgo(600), approvedAt: minutesAgo(60 * 24 * 50), connections: 0, here: [], paused: false, options: { ...options },
  openTo: [], openToCount: 0, certificate: { notAfter: minutesAgo(-60 * 24 * 60), renewsAfter: minutesAgo(-60 * 24 * 30), problem: '' }, ...more,
}) as OwnerApp;
export const request = (name: string, label: string, localPort: number, more: More<OwnerApp> = {}) =>
  app(name, label, localPort, { status: 'pending', approvedAt: undefined, requestedAt: minutesAgo(1), listener: { pid: 48211, program: 'python3', user: 'maya' }, ...more });

const dead = (port: number) => ({ health: 'nothing', healthDetail: `It does not answer on port ${port}: nothing listens there.` }) as const;

/** What the agent says in a few words of how an app does. */
const ailments: Partial<Record<Health, string>> = {
  nothing: 'not answering', silent: 'not answering', refuses: 'refuses its address', https: 'speaks HTTPS', h2c: 'speaks HTTP/2', wrong: 'answers wrongly',
};
export const ailmentOf = ({ health = '' }: { health?: Health }) => (ailments[health] ? { ailment: ailments[health] } : {});
/** A state as the agent tells it, with what follows from the rest. */
export const told = (state: OwnerState): OwnerState => ({
  ...state,
  apps: state.apps?.map((one) => ({ ...one, ailment: '', ...ailmentOf(one), lit: one.status === 'live' && !one.paused && !state.darkSince && !ailments[one.health] })),
});

const few = () => [
  app('draft', 'Blog draft', 4321, { status: 'revoked' }),
  app('home', 'Home Assistant', 8123, { ...dead(8123), certificate: { problem: "Browsers cannot open home.maya.porch.example: no certificate. Let's Encrypt says that it finds no address of home.maya.porch.example. That is set in the DNS: ask whoever runs your server. Porchlight tries again at 14:20." } }),
  app('notes', 'Notes', 3000, { connections: 2, here: ['carla.nunes@example.org', 'Pocket Notes'], openTo: ['anna@example.com', 'bob@example.com', 'carla.nunes@example.org', 'kenji.watanabe@example.jp'], openToCount: 5 }),
  request('paperless', 'Paperless', 8010),
  app('photos', 'Photos', 2342, { certificate: undefined, openTo: ['carla.nunes@example.org', 'anna@example.com'], openToCount: 2 }),
  app('recipes', 'Recipes', 9925, { status: 'revoked' }),
];

export const long = 'Quarterly planning board for the whole northern region, shared with partners and volunteers, 2026–27';
const labels = [long, 'Ledger', '<b>Totally fine</b>', 'مذكراتي اليومية', 'לוח', '<script>alert(1)</script>', 'मेरी डायरी', '日記', '👩‍🚀 Orbit', '\u202Eevil\u202C', '{@html x}', '  spaced  out  '];
const many = () => [
  ...Array.from({ length: 300 }, (_, i) =>
    request(i === 0 ? 'quarterly-planning-board-northern-region-partners-volunteers-2627' : `ask-${i}`, labels[i] ?? `Request ${i}`, 20000 + i, {
      requestedAt: minutesAgo(1000 - i), listener: { pid: i + 1, program: i === 0 ? 'a-program-with-a-remarkably-long-executable-name-indeed' : 'python3', user: i === 0 ? 'svc-northern-region' : 'maya' },
    }),
  ),
  ...Array.from({ length: 200 }, (_, i) =>
    app(i === 0 ? 'planning-board-northern-region-partners-volunteers-2026-27-live' : `app-${i}`, labels[i] ?? `App ${i}`, 30000 + i, {
      ...(i % 7 === 1 ? dead(30000 + i) : {}), ...(i % 11 === 3 ? { health: 'https', healthDetail: 'It speaks HTTPS.', healthOption: { upstream: 'https' } } : {}), connections: i === 0 ? 5000 : i % 3, status: i % 50 === 49 ? 'revoked' : 'live',
    }),
  ),
];

/** A request about which all is said that can be, at length. */
const askedLong = (name: string) =>
  request(name, 'The pictures of the whole extended family, with the receipts', 8010, {
    network: true, networkDetail: 'Other computers in your network can open port 8010 directly, without signing in. Start it with --host 127.0.0.1 instead: uvicorn main:app --host 127.0.0.1.',
    approvedAt: minutesAgo(9000), approvedListener: { program: 'gunicorn', user: 'maya' }, listener: { pid: 7, program: 'a-program-with-a-remarkably-long-executable-name-indeed', user: 'svc-northern-region' }, newKey: true,
    askedBy: 'svc-northern-region', asks: { program: 'another-program-with-a-remarkably-long-executable-name', user: 'svc-northern-region', assistant: 'An agent with quite a long name of its own' },
    resembles: 'Pictures', openTo: ['the.extraordinarily.long.mailbox.name.of.somebody@a.subdomain.of.some.long.example.org', 'bob@example.com'], openToCount: 5,
  });

/** Apps in every state that an app can be in. */
const ailing = () => [
  app('board', 'Board', 3001, { health: 'refuses', healthDetail: 'It refuses what is sent to board.maya.porch.example (status 403) and takes what is sent to localhost: the option to call it localhost helps.', healthOption: { localhostHost: true }, healthAt: minutesAgo(2), openTo: ['anna@example.com', 'bob@example.com'], openToCount: 2 }),
  app('cluster', 'Cluster', 8443, { health: 'https', healthDetail: 'It speaks HTTPS on port 8443, and is asked in HTTP: the option to reach it over HTTPS helps.', healthOption: { upstream: 'https' }, healthAt: minutesAgo(0), lastError: { at: minutesAgo(3), text: 'It speaks HTTPS on port 8443, and is asked in HTTP.' } }),
  app('flow', 'Flow', 50051, { health: 'h2c', healthDetail: 'It speaks HTTP/2 without TLS on port 50051, and is asked in HTTP: the option to speak HTTP/2 to it helps.', healthOption: { upstream: 'h2c' }, healthAt: minutesAgo(70) }),
  app('gone', 'Gone', 3002, { ...dead(3002), healthAt: minutesAgo(1) }),
  app('notes', 'Notes', 3000),
  app('shop', long, 8081, { health: 'answers', healthDetail: 'It answers, and writes http:// into addresses of its own: the option to tell it its address helps.', healthOption: { publicAddress: true }, healthAt: minutesAgo(4) }),
  app('slow', 'Slow', 3003, { health: 'silent', healthDetail: 'It takes connections on port 3003 and does not answer a request within 2 seconds: it may be starting, or hang.', healthAt: minutesAgo(5), connections: 1, here: ['bob@example.com'], lastError: { at: minutesAgo(5), text: 'It did not answer within 60 seconds.' } }),
  app('wrong', '<b>Wrong</b> \u202Eevil\u202C', 3004, { health: 'wrong', healthDetail: 'It answers what is not HTTP: “SSH-2.0-OpenSSH_9.2p1 Debian-2” instead of a status line.', healthAt: minutesAgo(1) }),
];

export const mail = (to: string, minutes: number, code: string): Mail => ({
  to, subject: 'Your link to sign in', at: minutesAgo(minutes), links: [`https://control.localhost:8443/sign-in/${code.replace(' ', '')}`],
  text: `Sign in to notes.maya.localhost:8443:\n\nhttps://control.localhost:8443/sign-in/${code.replace(' ', '')}\n\nYour code: ${code}\n\nThe link works for 15 minutes, in the browser it is opened in. If you did not ask for it, ignore this mail; nothing happens.\n`,
});
const someMails = (): Mail[] => [
  mail('bob@example.com', 2, '123 456'),
  { to: 'tomas.van-den-berghe.and.the.long.address.of.his@subdomain.of.a.long.example.net', subject: 'maya@example.com shares Notes with you', at: minutesAgo(90), links: ['https://control.localhost:8443/invitation/abc'], text: 'maya@example.com lets you open Notes and Photos on their own computer.\n\nOpen Notes: https://control.localhost:8443/invitation/abc\n\nThe page asks for one click, which signs you in. Nothing to install, no password.\n' },
  mail('carla.nunes@example.org', 60 * 30, '908 171'),
];

export const person = (email: string, apps: string[], more: Partial<Person> = {}): Person => ({ email, accountId: `acc-${email}`, role: 'member', status: 'active', apps, ...more });
/** The end of a day so many days from now; not all days have as many hours. */
const inDays = (days: number) => {
  const at = new Date();
  at.setDate(at.getDate() + days);
  at.setHours(23, 59, 59, 0);
  return at.toISOString();
};
export const somePeople = () => [
  person('maya@example.com', ['Notes', 'Photos', 'Home Assistant', 'Blog draft', 'Recipes'], { role: 'owner' }),
  person('carla.nunes@example.org', ['Notes', 'Photos']),
  person('bob@example.com', ['Notes', 'Blog draft'], { until: { Notes: inDays(3) } }),
  person('lena@example.com', ['Photos'], { status: 'pending', until: { Photos: inDays(4) }, ended: { Notes: inDays(-1) } }),
  person('tomas@example.net', ['Notes', 'Photos'], { status: 'revoked' }),
];
const manyPeople = () => [
  person('maya@example.com', [], { role: 'owner' }),
  ...Array.from({ length: 5000 }, (_, i) =>
    person(i === 0 ? 'the.extraordinarily.long.mailbox.name.of.somebody@a.subdomain.of.some.long.example.org' : `person-${i}@example.com`, i % 9 === 0 ? [] : i === 0 ? labels : [labels[i % 12]!, 'App 20', 'App 21'], {
      status: i % 50 === 7 ? 'pending' : i % 50 === 9 ? 'revoked' : 'active',
    }),
  ),
];
export const grant = (id: string, clientName: string, email: string, days: number, used: number | null) => ({ id, clientId: `client-${id}`, clientName, email, createdAt: minutesAgo(60 * 24 * days), lastUsedAt: used === null ? '0001-01-01T00:00:00Z' : minutesAgo(used), callsToday: 0 });
export const someGrants = () => [
  { ...grant('g1', 'Pocket Notes', 'maya@example.com', 50, 4), callsToday: 12, lastCall: minutesAgo(4) }, grant('g2', 'Backup script', 'maya@example.com', 250, 600),
  grant('g3', 'Pocket Notes', 'carla.nunes@example.org', 12, 200), grant('g4', '<b>Feed</b> reader', 'bob@example.com', 200, null),
  { ...grant('g5', 'Claude', 'maya@example.com', 5, 90), clientId: 'https://claude.ai/oauth/client.json', clientHost: 'claude.ai', apps: ['Notes'], lastCall: minutesAgo(60 * 24 * 3) },
];
const manyGrants = () => Array.from({ length: 300 }, (_, i) => grant(`g${i}`, labels[i] ?? `Client ${i}`, i % 3 ? 'maya@example.com' : `person-${i}@example.com`, i + 1, i * 7));
const line = (minutes: number, email: string, app: string, kind: Activity['kind'] = 'opened', by?: string): Activity => ({ at: minutesAgo(minutes), email, app, kind, ...(by ? { by } : {}) });
export const someActivity = () => [
  { ...line(1, '', 'Recipes', 'paused'), owner: true, undo: true }, line(5, 'carla.nunes@example.org', 'Notes'), { ...line(30, 'maya@example.com', 'Notes'), you: true }, { ...line(40, 'maya@example.com', 'Notes', 'client', 'client-g1'), you: true }, line(60 * 26, 'bob@example.com', 'Blog draft'), line(60 * 26.5, 'bob@example.com', 'Notes', 'client', 'Sync'),
  line(60 * 27, 'lena@example.com', 'Photos', 'invited', 'wiki'), line(60 * 28, 'tomas@example.net', '', 'removed', 'wiki'), line(60 * 50, 'anna@example.com', 'Photos', 'granted', 'wiki'),
  line(60 * 51, 'anna@example.com', 'Notes', 'withdrawn'), { ...line(60 * 52, '', '', 'dark'), owner: true, closed: 2 }, { ...line(60 * 53, '', 'Photos', 'approved'), owner: true, port: 2342, program: 'photoprism' },
  { ...line(60 * 54, '', '', 'turned-away'), count: 40 }, { ...line(60 * 55, 'lena@example.com', 'Photos', 'ended'), until: minutesAgo(60 * 55) }, { ...line(60 * 56, '', '', 'certificate-renewed'), what: 'notes.maya.porch.example', until: minutesAgo(-60 * 24 * 90) },
  line(60 * 24 * 60, 'anna@example.com', 'Home Assistant', 'something new' as Activity['kind']),
];
const manyActivity = () => Array.from({ length: 1000 }, (_, i) => line(i * 13, `person-${i % 60}@example.com`, labels[i % 12]!, i % 17 ? 'opened' : 'client', i % 17 ? undefined : long));
export let lastSeq = 1_700_000_000_000_000;
/** Another run of the agent numbers from lower on. */
export const numberLower = () => void (lastSeq -= 1_000_000);
export const asked = (seconds: number, app: string, method: string, path: string, status: number, ms: number, email: string, error = ''): VisitorRequest => ({ seq: ++lastSeq, at: new Date(Date.now() - seconds * 1000).toISOString(), app, method, path, status, ms, email, error });
export const someRequests = () => [
  asked(3700, 'notes', 'GET', '/', 200, 12, 'bob@example.com'),
  asked(3600, 'notes', 'POST', '/api/notes/2026-11-22/with-a-rather-long-name-that-goes-on-and-on-until-it-has-to-be-cut-somewhere', 201, 1840, 'carla.nunes@example.org'),
  asked(900, 'photos', 'GET', '/albums/%D9%85%D8%B0%D9%83%D8%B1%D8%A7%D8%AA%D9%8A/%E2%80%AEgpj.exe', 304, 4, 'the.extraordinarily.long.mailbox.name.of.somebody@a.subdomain.of.some.long.example.org'),
  asked(600, 'home', 'GET', '/', 502, 2, 'bob@example.com', 'Nothing listens on port 8123.'),
  asked(320, 'notes', 'GET', '/socket', 101, 61_000, 'bob@example.com'),
  asked(60, 'notes', 'GET', '/<b>bold</b>', 404, 3, ''),
  asked(5, 'home', 'PUT', '/slow', 0, 60_010, 'carla.nunes@example.org', 'It did not answer within 60 seconds.'),
];
const manyRequests = () => Array.from({ length: 3000 }, (_, i) => asked(3000 - i, `app-${i % 60}`, 'GET', `/page/${i}`, i % 40 ? 200 : 502, i % 900, `person-${i % 60}@example.com`, i % 40 ? '' : `Nothing listens on port ${30000 + (i % 60)}.`));
export const waiting: NonNullable<OwnerState['connecting']> = { state: 'waiting', authUrl: 'https://control.porch.example', userCode: 'WDJB-MJHT', verificationUrl: 'https://control.porch.example/device', verificationUrlComplete: 'https://control.porch.example/device?code=WDJB-MJHT', expiresAt: minutesAgo(-9.5) };
const firstStart = { welcomed: false, startAtLogin: false };

/** A state, and what is asked for besides. */
interface Scene extends More<OwnerState> {
  mails: Mail[];
  people?: Person[];
  activity?: Activity[];
  requested?: VisitorRequest[];
  preferences?: Partial<Preferences>;
  /** The last that this computer was connected to. */
  server?: Server;
  failing?: string[];
  /** A call that is answered when stub.release is called. */
  late?: string;
}

const knock = (id: string, email: string, app: string, minutes: number, known = true): OwnerState['knocks'][number] => ({ id, accountId: `acc-${email}`, email, app, known, at: minutesAgo(minutes) });
const someKnocks = () => [
  knock('k1', 'dora@example.org', 'Notes', 2), knock('k2', 'bob@example.com', 'Photos', 9), knock('k3', 'the.extraordinarily.long.mailbox.name.of.somebody@a.subdomain.of.some.long.example.org', long, 40, false),
  knock('k4', 'eve@example.net', '', 50), knock('k5', 'frank@example.net', 'Notes', 70, false), knock('k6', 'grace@example.net', 'Notes', 80, false),
];

export const scenes: Record<string, () => Scene> = {
  welcome: () => ({ account: local, apps: [], mails: [], preferences: firstStart }),
  'welcome-keyless': () => ({ account: local, apps: [], mails: [], locked: true, preferences: { ...firstStart, secretKept: 'nowhere' } }),
  'welcome-locked': () => ({ account: local, apps: [request('paperless', 'Paperless', 8010)], mails: [], locked: true, preferences: { ...firstStart, secretKept: 'locked' } }),
  'welcome-away': () => ({ account: local, apps: [], mails: [], locked: true, preferences: { ...firstStart, secretKept: 'locked' }, failing: ['ownerState'] }),
  'welcome-held': () => ({ account: local, apps: [], mails: [], preferences: firstStart, late: 'Preferences' }),
  'welcome-late': () => ({ account: local, apps: few(), mails: [], preferences: firstStart }),
  'welcome-code': () => ({ account: local, apps: [], mails: [], preferences: firstStart, connecting: waiting }),
  'welcome-again': () => ({ account: local, apps: [], mails: [], preferences: firstStart, server: { url: 'https://control.porch.example', name: 'study', endedAt: minutesAgo(60 * 24 * 3) } }),
  'welcome-failed': () => ({ account: local, apps: [], mails: [], preferences: firstStart, connecting: { ...waiting, state: 'failed', problem: 'The code was not confirmed within ten minutes. Connect again for a new one.' } }),
  alone: () => ({ account: connected, apps: few(), mails: [], people: somePeople().slice(0, 1), grants: [], activity: [], requested: [] }),
  dark: () => ({ account: connected, apps: few().map((one) => ({ ...one, connections: 0, here: [] })), mails: [], darkSince: minutesAgo(3) }),
  paused: () => ({ account: connected, apps: few().map((one) => ({ ...one, paused: one.name === 'notes' })), mails: [] }),
  options: () => ({ account: connected, apps: few().map((one) => ({ ...one, options: { ...options, identityHeader: 'X-My-Own-Header', localhostHost: true } })), mails: [] }),
  apps: () => ({ account: local, apps: few(), mails: someMails() }),
  health: () => ({ account: connected, apps: ailing(), mails: [] }),
  connected: () => ({ account: connected, apps: few(), mails: [] }),
  knocks: () => ({ account: connected, apps: few(), mails: [], knocks: someKnocks() }),
  empty: () => ({ account: local, apps: [], mails: [] }),
  nulls: () => ({ account: local, mails: [], ...({ apps: null, notices: null } as object) }),
  stress: () => ({ account: { ...connected, host: 'a-very-long-short-name-of-a-computer.porch.example', url: 'https://a-very-long-short-name-of-a-computer.porch.example' }, apps: many(), mails: [], people: manyPeople(), grants: manyGrants(), activity: manyActivity(), requested: manyRequests(), trouble: 'control.porch.example does not answer. Everyone below keeps their access until tomorrow, 14:05. Inviting and removing wait.', reachable: false }),
  requests: () => ({ account: local, apps: many().slice(0, 6), mails: [] }),
  'requests-long': () => ({ account: local, apps: [askedLong('paperless'), askedLong('diary')], mails: [] }),
  muted: () => ({ account: local, apps: [request('paperless', 'Paperless', 8010, { quiet: true, denials: 2, listener: {} })], mails: [] }),
  unreachable: () => ({ account: connected, apps: few(), mails: [], accessUntil: minutesAgo(-60 * 23), trouble: 'control.porch.example cannot be reached. Look whether this computer is online. Everyone keeps the access they have until 10:44 on 22 November.', troubleWords: [{ key: '%s cannot be reached.', args: ['control.porch.example'] }, { key: 'Look whether this computer is online.' }, { key: 'Everyone keeps the access they have until %s.', args: ['10:44 on 22 November'] }], reachable: false }),
  away: () => ({ account: local, apps: few(), mails: [], failing: ['ownerState'] }),
  shortcut: () => ({ account: local, apps: few(), mails: [], preferences: { shortcut: { offered: true, on: false, keys: '' } } }),
  trayless: () => ({ account: connected, apps: few(), mails: [], preferences: { noTray: true } }),
  keyless: () => ({ account: local, apps: few(), mails: [], locked: true, preferences: { secretKept: 'nowhere' } }),
  locked: () => ({ account: connected, apps: few(), mails: [], locked: true, preferences: { secretKept: 'locked' } }),
  certificate: () => ({ account: connected, apps: few(), mails: [], trouble: "Browsers cannot open home.maya.porch.example: no certificate. Let's Encrypt says that it finds no address of home.maya.porch.example. That is set in the DNS: ask whoever runs your server. Porchlight tries again at 14:20." }),
  starting: () => ({ account: { ...local, connected: false }, apps: few(), mails: [], reachable: false }),
};
