/*
 * Stands in for Wails in a plain browser: window.go and window.runtime with an
 * agent behind them that keeps its word (approve makes an app live, and every
 * change arrives as a "state" event). The scene is chosen by ?scene=NAME.
 * window.stub lets a test look at the calls and make things happen.
 */
import type { Activity, AppHealth, AppPassword, Desk, Device, Examination, Group, Listening, Looked, Operations, OwnDomain, OwnerApp, OwnerState, Person, Preferences, Sender, Settings, Shell, TriedAddress, TrustCheck, Visitor } from '../src/lib/types';
import { untilOf } from '../src/lib/until';
import { nothing } from './nothing';
import { ailmentOf, app, asked, grant, lastSeq, local, long, mail, minutesAgo, type More, numberLower, options, person, request, scenes, someActivity, someGrants, somePeople, someRequests, told, waiting } from './scenes';

const address = new URLSearchParams(location.search);

const { mails: firstMails, people: firstPeople, activity: firstActivity, requested: firstRequests, preferences: firstPreferences, server = nothing.lookServer, failing: broken, late, ...shown } = scenes[address.get('scene') ?? 'apps']!();
let mails = firstMails;
let people = firstPeople ?? somePeople();
let activity = firstActivity ?? someActivity();
const password = (id: string, appName: string, app: string, name: string, email: string, days: number): AppPassword => ({ id, accountId: `acc-${email}`, email, app, appName, name, createdAt: minutesAgo(60 * 24 * days) });
let passwords = firstRequests?.length === 0 ? [] : [
  password('p1', 'notes', 'Notes', 'Calendar on my phone', 'maya@example.com', 3), password('p2', 'notes', 'Notes', '<b>git</b> on the laptop \u202Eevil\u202C', 'carla.nunes@example.org', 80),
  password('p3', 'photos', 'Photos', 'A backup client with a remarkably long name, one that goes on', 'the.extraordinarily.long.mailbox.name.of.somebody@a.subdomain.of.some.long.example.org', 400),
];
let senders: Sender[] = address.get('scene') !== 'connected' ? [] : [
  { id: 's1', name: 'GitHub', app: 'Notes', appName: 'notes', url: 'https://notes.maya.porch.example/push', path: '/push', kind: 'github', secrets: 1, createdAt: minutesAgo(60 * 24 * 9) },
];
const device = (id: string, appNames: string[], name: string, email: string): Device => ({ id, accountId: `acc-${email}`, email, name, appNames, apps: appNames.map((one) => byName(one).label), createdAt: minutesAgo(9), ends: minutesAgo(-60 * 24 * 365) });
let devices: Device[] = [];
let domains: OwnDomain[] = [];
const domain = (name: string, app: string, more: Partial<OwnDomain> = {}): OwnDomain => ({
  name, app, state: 'waiting', problem: `The DNS has no record TXT at _porchlight.${name}.`,
  records: [{ type: 'TXT', name: `_porchlight.${name}`, value: 'gq0Ws2d5f7h9k1m3p5r7tA' }, { type: 'CNAME', name, value: `${app}.${state.account.host}` }], ...more,
});
let requested = firstRequests ?? someRequests();
let heard = () => {}; // whoever waits for the next request
let clients: Visitor[] = [{ accountId: 'acc-maya@example.com', email: 'maya@example.com', you: true, grantId: 'g1', clientName: 'Pocket Notes', apps: ['Notes'], connections: 1 }];
/** What an invitation's owner hands over; every one has its own. */
const linkTo = (n: number) => ({ url: `https://control.porch.example/i/kq7d-mh2p-x4tn-w8r${'abcdefgh'[n % 8]}`, until: new Date(Date.parse(minutesAgo(0)) + 7 * 86_400_000).toISOString() });

/** Ids of the clients that assistants have here, by name. */
const assistantIDs: Record<string, string> = { 'Claude Code': 'k7dq2m4xp5vn3w8rk7dq2m4xp5' };

/** The kinds that are quiet at each level, as agentapi.QuietAt has them. */
const news = ['approved', 'capability', 'changed', 'ended', 'invitation', 'visit'];
const levels = { everything: [], waiting: news, nothing: [...news, 'connection'].sort() };
let settings: Settings = { ...nothing.settings, language: (sessionStorage.getItem('language') ?? '') as Settings['language'], failStaticHours: 24, probe: true, requests: true, titles: true, quiet: ['connection'] };
let preferences: Preferences = {
  welcomed: true, startAtLogin: true, appearance: '', panel: '', noTray: false, closed: false, trust: { possible: true, trusted: false, problem: '' }, shortcut: { offered: false, on: false, keys: '' }, secretKept: 'keychain',
  dataDir: '/home/maya/.local/share/porchlight', ...firstPreferences,
};
let state = {
  ...nothing.ownerState, language: settings.language, seq: 1, engineVersion: '0.1.0', api: '127.0.0.1:8765', reachable: true,
  outboxSize: mails.length, here: 2, peopleVersion: '1', peopleCount: people.length, grants: someGrants(),
  registrants: [{ appId: 'org.example.wiki', pid: 4711, program: 'wiki', user: 'maya', registeredAt: minutesAgo(90), lastSeenAt: minutesAgo(0) }], ...shown,
} as OwnerState;

const subscribers: Record<string, ((...data: never[]) => void)[]> = {};
const calls: unknown[][] = [];
const failing = new Map((broken ?? []).map((name) => [name, 'The agent is still starting.'])); // name → sentence
const doing = new Map<string, Partial<AppHealth>>(); // name → how an app does once it is approved
const trying = new Map<string, Partial<TriedAddress>>(); // name → what comes of trying its address
const slow = new Map<string, Promise<void>>(); // name → what to wait for

/** Where the owner asked to be in the menu or on a notification; one before the page was there is in ?wanted=VIEW. */
const place = address.has('wanted') ? [{ view: address.get('wanted')!, argument: '' }] : [];

/** What the desktop looks like, where the desktop app has to tell; "" where the page sees it. */
let desktop = '';

function emit() {
  state = { ...state, seq: state.seq + 1 };
  const wire = JSON.stringify(told(state));
  for (const fn of subscribers.state ?? []) (fn as (state: OwnerState) => void)(JSON.parse(wire));
}
function set(more: More<OwnerState>) {
  state = { ...state, ...more } as OwnerState;
  setTimeout(emit);
}
const done = nothing.unmute;
const change = (name: string, more: More<OwnerApp> | null) => {
  set({ apps: more === null ? state.apps.filter((a) => a.name !== name) : state.apps.map((a) => (a.name === name ? ({ ...a, ...more } as OwnerApp) : a)) });
  return done;
};
/** Answers as Wails does: later, with a copy, or by throwing. */
async function answer(name: string, values: unknown[], give: () => unknown) {
  calls.push([name, ...values]);
  await slow.get(name);
  if (failing.has(name)) throw new Error(failing.get(name));
  return JSON.parse(JSON.stringify((await give()) ?? null));
}
const byName = (name: string) => state.apps.find((a) => a.name === name)!;
const ending = (name: string, more: More<OwnerApp> | null) => {
  const closed = byName(name).connections;
  change(name, more);
  return { ok: true, closed, milliseconds: 12 };
};

const byAccount = (accountId: string) => people.find((one) => one.accountId === accountId)!;
const changePerson = (accountId: string, more: Partial<Person>) => {
  people = people.map((one) => (one.accountId === accountId ? { ...one, ...more } : one));
  set({ peopleVersion: state.peopleVersion + '+' });
  return { ok: true, person: byAccount(accountId), closed: 3, milliseconds: 40 };
};
// What was taken away and can be undone, by account and label ('' is all): as it was before.
const held = new Map<string, Partial<Person>>();
const hold = (accountId: string, label: string, more: Partial<Person>) => {
  const { apps, status } = byAccount(accountId);
  held.set(`${accountId} ${label}`, { apps, status });
  return { ...changePerson(accountId, more), heldUntil: new Date(Date.now() + 30_000).toISOString() };
};
const groupsNow = () => state.groups ?? [];
const groupNow = (id: string) => groupsNow().find((one) => one.id === id)!;
const changeGroup = (group: Group) => {
  set({ groups: [...groupsNow().filter((one) => one.id !== group.id), group] });
  return { ok: true, group, closed: 1, milliseconds: 3 } as const;
};
// Groups as they were before something was taken away, which the timeline tells and undoes.
const backs: Group[] = [];
const noteGroup = (kind: Activity['kind'], { id, name }: Group) => {
  activity = [{ at: minutesAgo(0), email: '', app: '', kind, what: name, group: id, owner: true, undo: true }, ...activity];
};
const visitors = () => {
  const all = new Map<string, Visitor>();
  for (const one of state.apps ?? [])
    for (const email of (one.here ?? []).filter((name) => name.includes('@'))) { // the others are below
      const who = all.get(email) ?? { accountId: `acc-${email}`, email, apps: [], connections: 0 };
      all.set(email, { ...who, apps: [...who.apps, one.label], connections: who.connections + Math.ceil(one.connections / one.here.length) });
    }
  const remote = state.darkSince ? [] : clients.filter((one) => state.grants.some((grant) => grant.id === one.grantId));
  return [...all.values(), ...remote];
};
const published = () => state.apps.filter((one) => one.status === 'live').map((one) => one.label);
const users = (id: string, standing: 'allowed' | 'denied') => {
  set({ users: state.users.map((one) => (one.id === id ? { ...one, standing } : one)) });
  return state.users.find((one) => one.id === id)!;
};

/** Everything that is looked at, with what the scene has wrong. */
function examined(): Examination {
  const { account, darkSince, undelivered, reachable } = state;
  const works = reachable && !darkSince;
  const findings: Examination['findings'] = [
    { check: 'data', state: 'ok', text: '/home/maya/.local/share/porchlight' },
    { check: 'disk', state: 'ok', text: '19 GB are free.' },
    { check: 'control plane', state: reachable ? 'ok' : 'wrong', text: reachable ? `${account.authUrl} answers, in 31 ms.` : 'porch.example did not answer within 4s.' },
    { check: 'clock', state: 'ok', text: 'This computer’s clock agrees with the control plane’s.' },
    { check: 'visit', state: works ? 'ok' : darkSince ? 'note' : 'wrong', text: works ? `A visitor gets through to ${account.url}, in 84 ms.` : 'maya.porch.example cannot be reached.' },
    { check: 'browsers', state: account.local ? 'note' : 'ok', text: 'Your browsers warn of this computer’s certificates.' },
    ...state.apps.map((one): Examination['findings'][number] => ({ check: `app ${one.name}`, state: one.health === 'answers' ? 'ok' : 'wrong', text: one.healthDetail || 'It answers.' })),
    ...undelivered.map((to): Examination['findings'][number] => ({ check: 'mail', state: 'wrong', text: `An invitation for ${to} was given up.` })),
  ];
  return {
    at: new Date().toISOString(), findings, report: 'Porchlight 0.1.0, protocol 1, desktop, linux/amd64\n\nok     disk          19 GB are free.\n',
    address: { at: new Date().toISOString(), host: account.host, works, milliseconds: 84, text: works ? '' : 'maya.porch.example cannot be reached.' },
  };
}
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAMAAACdt4HsAAAACVBMVEX////zdyb///8jQijFAAAAAXRSTlMAQObYZgAAAJFJREFUWMPt1jEOgDAMBMGY/z+aggIBcXzOFrFQrt+pInBre9Vn10h7D+Y5wrzBXCTMkGDxaD8UpH4giL0vUEDuHSHR9wUKpPqeQIFk/xUokO7fwt+Aw5sP2ARgG6gG4HdQ7SkvAdZ/0gp81gv82vjfucCBwW8kfqXxOzEmojwShL7ha90l9LxL5PKnMtXu6TsBG0MJYwu+DakAAAAASUVORK5CYII=';
const runs = (port: number, program: string, more: More<Listening> = {}) =>
  ({ port, program, user: 'maya', own: true, network: false, published: false, looks: true, name: `port-${port}`, label: `Port ${port}`, since: minutesAgo(5), ...more }) as Listening;
const titles: Record<number, Partial<Looked>> = {
  3001: { title: 'Notes', name: 'notes-2', label: 'Notes 2' },
  8888: { title: 'Jupyter Server', name: 'jupyter-server', label: 'Jupyter Server', icon: pixel },
  8384: { title: '<b>Sync</b> \u05d0\u05d1', name: 'sync', label: '<b>Sync</b> \u05d0\u05d1' },
  3003: { title: 'Grafana', name: 'grafana', label: 'Grafana' },
};
let listening: Listening[] = [
  runs(3000, 'node', { published: true, looks: false, app: 'notes', status: 'live', name: 'notes', label: 'Notes' }),
  runs(3001, 'node'), runs(8000, 'python3', { steady: true }), runs(8384, 'syncthing', { name: 'syncthing', label: 'Syncthing' }), runs(8888, 'python3'),
  runs(3003, 'grafana', { own: false, user: 'grafana', looks: false, name: 'grafana', label: 'Grafana' }),
  runs(8081, 'nginx', { own: false, user: 'root', looks: false, network: true }),
  runs(5432, 'postgres', { looks: false, notOffered: 'database' }), runs(22, 'sshd', { own: false, user: 'root', looks: false, notOffered: 'login' }),
  runs(631, 'cupsd', { own: false, user: 'root', looks: false, notOffered: 'printing' }), runs(8443, 'porchlight', { looks: false, notOffered: 'own' }),
];
let trust: TrustCheck['state'][] = ['opened', 'proven']; // as the check goes on

/** When an approval ends that was asked for until then. */
const endOf = (until: string) => (until === 'never' ? undefined : until === 'today' ? untilOf('today', Date.now()) : until) as string;

/** Those that change something; the others have nothing to tell. */
const operations: { [Name in keyof Operations]?: (values: Operations[Name]['takes']) => Operations[Name]['gives'] | Promise<Operations[Name]['gives']> } = {
  ownerState: () => told(state),
  approve: ({ name, alone, until, ...seen }) => {
    const { label, localPort, listener: { program = '', user = '' } } = byName(name);
    if (seen.label !== label || seen.localPort !== localPort || seen.program !== program || seen.user !== user) throw new Error('The request has changed meanwhile.');
    const host = `${name}.${state.account.host}`;
    const does = doing.get(name) ?? { health: 'answers' };
    change(name, { ...does, status: 'live', host, url: `https://${host}`, ...(alone ? { openTo: [], openToCount: 0 } : {}), ...(until ? { until: endOf(until) } : {}) });
    return { ...does, ...ailmentOf(does), status: 'live', host, url: `https://${host}` };
  },
  deny: ({ name }) => {
    const muted = byName(name).denials > 0;
    return { ...change(name, null), muted };
  },
  revoke: ({ name }) => ending(name, null),
  answerKnock: ({ id, answer }) => {
    const { email, app, known } = state.knocks.find((one) => one.id === id)!;
    set({ knocks: state.knocks.filter((one) => one.id !== id && (answer !== 'never' || one.email !== email)) });
    return { ok: true, email, app, ...(answer === 'today' || answer === 'always' ? { status: known ? ('active' as const) : ('pending' as const) } : {}) };
  },
  unmute: ({ name }) => change(name, { quiet: false, denials: 0 }),
  pause: ({ name }) => ending(name, { paused: true, connections: 0, here: [] }),
  resume: ({ name }) => change(name, { paused: false, status: 'live' }),
  changeOptions: ({ name, ...some }) => {
    const now = byName(name);
    const options = { ...now.options, ...some } as OwnerApp['options'];
    const helps = Object.entries(now.healthOption ?? {}).every(([option, value]) => options[option as keyof typeof options] === value);
    change(name, { options, ...(now.healthOption && helps ? { health: 'answers', healthDetail: '', healthOption: undefined, healthAt: minutesAgo(0) } : {}) });
    return options;
  },
  probe: ({ name }) => {
    const { health, healthDetail, healthNote, healthAt } = byName(name);
    return { health, healthDetail, ...ailmentOf({ health }), ...(healthNote && { healthNote }), ...(healthAt && { healthAt }) };
  },
  tryAddress: ({ name }) => ({ at: new Date().toISOString(), host: `${name}.${state.account.host}`, works: true, milliseconds: 84, text: '', ...trying.get(name) }),
  examine: () => examined(),
  listening: () =>
    listening.map((one) => {
      const app = state.apps.find((each) => each.localPort === one.port && each.status !== 'revoked');
      return app ? { ...one, app: app.name, status: app.status as 'live' | 'pending', published: app.status === 'live', name: app.name, label: app.label, looks: false } : one.port === 3000 ? runs(3000, 'node') : one;
    }),
  look: ({ port }) => ({ port, title: '', name: `port-${port}`, label: `Port ${port}`, ...titles[port] }),
  share: ({ name, label, localPort, listening: there }) => {
    if (there && !listening.some((one) => one.port === localPort)) throw new Error(`Port ${localPort} stopped listening.`);
    if (!/^[a-z0-9-]{1,63}$/.test(name)) throw new Error("An app's name has 1 to 63 characters: lower-case letters a to z, digits and hyphens. It becomes the first part of its address.");
    const host = `${name}.${state.account.host}`;
    set({ apps: [...state.apps, app(name, label, localPort, { host, url: `https://${host}` })] });
    return { status: 'live', host, url: `https://${host}` };
  },
  beginTrustCheck: () => ({ state: 'waiting', browser: 'Firefox', url: `https://check-abc.${state.account.host}/.porchlight/check/x` }),
  trustCheck: () => ({ state: trust.shift() ?? 'none', browser: 'Firefox', milliseconds: 38 }),
  goDark: () => (set({ darkSince: minutesAgo(0) }), { ok: true, closed: 3, milliseconds: 9 }),
  lightUp: () => (set({ darkSince: undefined }), done),
  outbox: () => mails,

  ownerPeople: () => ({ name: state.account.name, members: people, publishedApps: published() }),
  ownerInvite: ({ email, apps }) => {
    if (!/.@.+\../.test(email)) throw new Error('That does not look like an e-mail address.');
    const known = people.find((one) => one.email === email);
    if (!known) people = [...people, person(email, apps, { status: 'pending' })];
    else changePerson(known.accountId, { apps: [...new Set([...(known.status === 'revoked' ? [] : known.apps), ...apps])], status: known.status === 'revoked' ? 'pending' : known.status });
    return { email, status: 'pending', url: `https://notes.${state.account.host}` };
  },
  inviteAll: ({ emails, apps }) => ({
    invitations: emails.map((email) => {
      if (!/.@.+\../.test(email)) return { email, error: 'That does not look like an e-mail address.' };
      if (email.startsWith('full')) return { email, error: 'Several mails were asked for at that address. Links already sent still work; another mail can be asked for later.' };
      const known = people.find((one) => one.email === email);
      if (!known) people = [...people, person(email, apps, { status: 'pending' })];
      else changePerson(known.accountId, { apps: [...new Set([...(known.status === 'revoked' ? [] : known.apps), ...apps])], status: known.status === 'revoked' ? 'pending' : known.status });
      return { email, status: 'pending', accountId: `acc-${email}`, url: `https://notes.${state.account.host}`, link: linkTo(emails.indexOf(email)) };
    }),
  }),
  invitationLink: () => linkTo(0),
  ownerGrant: ({ accountId, app, granted, until = '' }) => {
    const { apps, until: ends, ended } = byAccount(accountId);
    const { [app]: _, ...others } = { ...ends };
    const { [app]: __, ...over } = { ...ended };
    const dated = until === '' ? ends : until === 'never' ? others : { ...others, [app]: until };
    if (granted) return changePerson(accountId, { apps: [...new Set([...apps, app])], until: { ...dated }, ended: over });
    return hold(accountId, app, { apps: apps.filter((one) => one !== app) });
  },
  addGroup: ({ name }) => {
    if (groupsNow().some((one) => one.name === name)) throw new Error(`There is a group called "${name}" already.`);
    return changeGroup({ id: `group-${groupsNow().length}`, name, apps: [], members: [] });
  },
  removeGroup: ({ id }) => {
    const group = groupNow(id);
    backs.push(group);
    set({ groups: groupsNow().filter((one) => one.id !== id) });
    noteGroup('group-removed', group);
    return { ok: true, group, closed: 1, milliseconds: 3 };
  },
  joinGroup: ({ id, accountId }) => changeGroup({ ...groupNow(id), members: [...groupNow(id).members, { accountId, email: byAccount(accountId).email, status: 'active' }] }),
  leaveGroup: ({ id, accountId }) => {
    backs.push(groupNow(id));
    noteGroup('group-left', groupNow(id));
    return changeGroup({ ...groupNow(id), members: groupNow(id).members.filter((one) => one.accountId !== accountId) });
  },
  grantGroup: ({ id, app, until = '' }) => {
    const { [app]: _, ...others } = { ...groupNow(id).until };
    return changeGroup({ ...groupNow(id), apps: [...new Set([...groupNow(id).apps, app])], until: until && until !== 'never' ? { ...others, [app]: until } : others });
  },
  withdrawGroup: ({ id, app }) => {
    backs.push(groupNow(id));
    noteGroup('group-withdrawn', groupNow(id));
    return changeGroup({ ...groupNow(id), apps: groupNow(id).apps.filter((one) => one !== app) });
  },
  ownerRemovePerson: ({ accountId }) => hold(accountId, '', { status: 'revoked' }),
  undoHeld: ({ accountId, app = '' }) => {
    const before = held.get(`${accountId} ${app}`);
    if (!before) throw new Error('It is too late to undo that. Invite them again to let them in.');
    held.delete(`${accountId} ${app}`);
    return changePerson(accountId, before);
  },
  settleHeld: ({ accountId, app = '' }) => (held.delete(`${accountId} ${app}`), done),
  visitors,
  disconnectVisitor: ({ accountId, grantId }) => {
    const one = visitors().find((each) => each.accountId === accountId && each.grantId === grantId);
    if (grantId) clients = clients.filter((each) => each.grantId !== grantId);
    set({ apps: state.apps.map((each) => (grantId || !each.here?.includes(one?.email ?? '') ? { ...each } : { ...each, here: each.here.filter((email) => email !== one?.email), connections: each.connections - 1 })) });
    return { ok: true, closed: one?.connections ?? 0, milliseconds: 3 };
  },
  revokeGrant: ({ id }) => (set({ grants: state.grants.filter((one) => one.id !== id) }), { ok: true, closed: 1, milliseconds: 3 }),
  assist: ({ name, path = '/mcp' }) => {
    if (!path.startsWith('/')) throw new Error('The path has to be as it stands in an address, such as /mcp.');
    const url = `https://${name}.${state.account.host}${path}`;
    const block = (list: string, more = {}) => JSON.stringify({ [list]: { [name]: { type: 'http', url, ...more } } }, null, 2);
    const one = (called: string, takes: 'address' | 'settings' | 'command', paste: string) => {
      const clientId = assistantIDs[called];
      return { name: called, takes, paste, elsewhere: takes === 'address', ...(clientId && { clientId }) };
    };
    return {
      url, authorizationServer: state.account.authUrl, mcpServers: { [name]: { type: 'http', url } }, command: '', local: state.account.local,
      ...(state.account.local && { rootCa: '/home/maya/.local/share/porchlight/ca/root.pem' }),
      assistants: [
        one('Claude', 'address', url), one('ChatGPT', 'address', url), one('Claude Code', 'command', `claude mcp add --transport http --client-id ${assistantIDs['Claude Code']} ${name} ${url}`),
        one('Cursor', 'settings', block('mcpServers', assistantIDs['Cursor'] && { auth: { CLIENT_ID: assistantIDs['Cursor'] } })), one('VS Code', 'settings', block('servers')), one('', 'settings', block('mcpServers')),
      ],
    };
  },
  addClient: ({ name }) => ({ clientId: (assistantIDs[name] = 'm2p9t6h4d7k3x5vnm2p9t6h4d7') }),
  passwords: () => passwords,
  makePassword: ({ app, name }) => {
    passwords = [password(`p${passwords.length + 9}`, app, byName(app).label, name, state.account.email, 0), ...passwords];
    return { id: passwords[0]!.id, password: 'plp_abcdefghijklmnopqrstuvwxyz234567' };
  },
  senders: () => senders,
  addSender: ({ app, name, path, kind, until }) => {
    const url = `https://${app}.${state.account.host}${path}`;
    senders = [...senders, { id: `s${senders.length + 9}`, name, app: byName(app).label, appName: app, url, path, kind: kind as Sender['kind'], secrets: 1, createdAt: minutesAgo(0), ...(until && { until }) }];
    return { id: senders.at(-1)!.id, url };
  },
  changeSenderSecret: ({ id, alone }) => {
    senders = senders.map((one) => (one.id === id ? { ...one, secrets: alone ? 1 : 2 } : one));
    return senders.find((one) => one.id === id)!;
  },
  revokeSender: ({ id }) => ((senders = senders.filter((one) => one.id !== id)), { ok: true, closed: 1, milliseconds: 3 }),
  revokePassword: ({ id }) => ((passwords = passwords.filter((one) => one.id !== id)), { ok: true, closed: 1, milliseconds: 3 }),
  devices: () => devices,
  makeDevice: ({ name, apps }) => {
    devices = [device(`d${devices.length + 9}`, apps, name, state.account.email), ...devices];
    return { id: devices[0]!.id, code: 'abcde-fghij-klmno-pqrst', url: `https://${state.account.host}/.porchlight/device#${'s'.repeat(43)}`, ends: devices[0]!.ends };
  },
  revokeDevice: ({ id }) => ((devices = devices.filter((one) => one.id !== id)), { ok: true, closed: 1, milliseconds: 3 }),
  ownDomains: () => domains,
  addDomain: ({ name, app }) => {
    const one = domain(name.toLowerCase(), app);
    domains = [...domains.filter((other) => other.name !== one.name), one];
    return one;
  },
  checkDomain: ({ name }) => {
    domains = domains.map((one) => (one.name === name ? domain(name, one.app, { state: 'proven', problem: '' }) : one));
    return domains.find((one) => one.name === name)!;
  },
  removeDomain: ({ name }) => ((domains = domains.filter((one) => one.name !== name)), done),
  activity: () => activity,
  activityPage: ({ limit = 200, before = 0, group = '', app = '', email = '', search = '' }) => {
    const groupOf = (kind: string) => (kind === 'opened' || kind === 'client' ? 'visits' : ['turned-away', 'certificate-renewed', 'server-away'].includes(kind) ? 'trouble' : 'decisions');
    const all = activity.map((one, i) => ({ ...one, id: activity.length - i })).filter((one) => before === 0 || one.id < before);
    const found = all.filter((one) => (!group || groupOf(one.kind) === group) && (!app || one.app === app) && (!email || one.email === email) && `${one.email} ${one.app} ${one.by ?? ''}`.toLowerCase().includes(search.toLowerCase()));
    const lines = found.slice(0, limit);
    return { lines, next: found.length > limit ? lines.at(-1)!.id : 0 };
  },
  undoActivity: ({ id }) => {
    const line = activity[activity.length - id];
    const back = line?.group && backs.findLast((one) => one.id === line.group);
    if (back) set({ groups: [...groupsNow().filter((one) => one.id !== back.id), back] });
    activity = activity.map((one, i) => (activity.length - i === id ? { ...one, undo: false } : one));
    set({ activityVersion: (state.activityVersion ?? 0) + 1 });
    return done;
  },
  clearActivity: () => ((activity = []), done),

  requests: async ({ app, after = 0, wait = 0 }) => {
    const found = () => (settings.requests ? requested.filter((one) => (!app || one.app === app) && one.seq > (after > lastSeq ? 0 : after)) : []);
    if (wait && settings.requests && found().length === 0) await new Promise<void>((resolve) => ((heard = resolve), setTimeout(resolve, wait * 1000)));
    return { on: settings.requests, seq: lastSeq, requests: found() };
  },

  settings: () => settings,
  changeSettings: (value) => {
    settings = { ...settings, ...(value as Partial<Settings>) };
    const quiet = value.quiet ?? (value.notify ? levels[value.notify] : settings.quiet);
    const { notify: _, ...others } = settings;
    const notify = (Object.keys(levels) as (keyof typeof levels)[]).find((level) => levels[level].join() === quiet.toSorted().join());
    settings = { ...others, quiet, ...(notify && { notify }) };
    if (!settings.requests) requested = [];
    if (value.language != null) {
      sessionStorage.setItem('language', value.language); // as the program around the page remembers it
      set({ language: value.language });
    }
    return settings;
  },
  allowUser: ({ id }) => users(id, 'allowed'),
  denyUser: ({ id }) => users(id, 'denied'),
  forgetUser: ({ id }) => (set({ users: state.users.filter((one) => one.id !== id) }), done),
  lookServer: ({ url }) => (url && url !== server.url ? { url, name: '' } : server),
  connect: ({ url }) => (set({ connecting: { ...waiting, authUrl: url } }), { ...waiting, authUrl: url }),
  cancelConnect: () => (set({ connecting: undefined }), done),
  recoverAccount: () => ({ url: `${state.account.authUrl}/signin/link?token=once`, expiresAt: '2026-11-28T12:15:00Z' }),
  disconnect: () => (set({ account: local }), done),
};

/** What a bound struct's methods give, without the wait. */
type Bound<T> = { [Name in keyof T]: T[Name] extends (...values: infer Values) => Promise<infer Answer> ? (...values: Values) => Answer : never };
function bind<T extends object>(methods: Bound<T>): T {
  const entries = Object.entries(methods) as [string, (...values: unknown[]) => unknown][];
  return Object.fromEntries(entries.map(([name, give]) => [name, (...values: unknown[]) => answer(name, values, () => give(...values))])) as T;
}
const prefer = (more: Partial<Preferences>) => void (preferences = { ...preferences, ...more });

window.runtime = {
  EventsOn: (name, fn) => {
    (subscribers[name] ??= []).push(fn);
    return () => (subscribers[name] = subscribers[name]!.filter((other) => other !== fn));
  },
};
window.go = {
  ui: {
    Agent: { Ask: (name, values) => answer(name, [values], () => (operations[name] as ((values: object) => unknown) | undefined)?.(values) ?? nothing[name]) },
    Desk: bind<Desk>({
      Preferences: () => preferences,
      Welcomed: () => prefer({ welcomed: true }),
      TrustOffered: () => {},
      StartAtLogin: (startAtLogin) => prefer({ startAtLogin }),
      Appearance: (appearance) => prefer({ appearance }),
      Panel: (panel) => prefer({ panel }),
      Shortcut: (on) => prefer({ shortcut: { offered: true, on, keys: on ? 'Ctrl+Alt+P' : '' } }),
      Trust: (trusted) => prefer({ trust: { ...preferences.trust, trusted } }),
      KeepInFile: () => (prefer({ secretKept: 'file' }), set({ locked: false })),
      Unlock: () => (prefer({ secretKept: 'keychain' }), set({ locked: false })),
      ShowData: () => {},
      Export: () => '/home/maya/porchlight.json',
      Open: () => {},
      Quit: () => {},
    }),
    Shell: bind<Shell>({ Copy: () => {}, OpenURL: () => {}, Version: () => '0.1.0', Speech: () => ({ language: sessionStorage.getItem('language') || (address.get('language') ?? 'en'), locale: address.get('locale') ?? 'en-GB' }), Wanted: () => place.splice(0)[0] ?? { view: '', argument: '' }, Looks: () => preferences.appearance || desktop, State: () => (new URLSearchParams(location.search).has('last') ? state : nothing.ownerState) }),
  },
};
/** Every text in a value that holds a letter or more. */
const textsIn = (value: unknown): string[] => (typeof value === 'string' ? [value] : value && typeof value === 'object' ? Object.values(value).flatMap(textsIn) : []);

const stub = {
  calls,
  /** Waits until something is so of the page, and goes on at once: before the next frame, which a busy machine is late with. */
  once: (so: () => unknown) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!so()) return;
        changes.disconnect();
        resolve();
      };
      const changes = new MutationObserver(look);
      changes.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
      look();
    }),
  /** Every text that the page is given: names, addresses, what the agent says. */
  texts: () => textsIn([state, people, activity, requested, mails, passwords, devices, domains, senders, preferences, visitors(), listening, titles]).filter((text) => text.length > 1),
  /** The options of an app that has none set. */
  options,
  /** Makes a call throw text; without one it works again. */
  fail: (name: string, text?: string) => (text ? failing.set(name, text) : failing.delete(name)),
  /** How own domains of an app stand. */
  domains: (app: string, all: Record<string, Partial<OwnDomain>>) => {
    domains = Object.entries(all).map(([name, more]) => domain(name, app, more));
    stub.set({ peopleVersion: state.peopleVersion + '+' });
  },
  /** Every app password ends. */
  endPasswords: () => {
    passwords = [];
    senders = [];
    stub.set({ peopleVersion: state.peopleVersion + '+' });
  },
  /** What a check of the browser's trust comes to. */
  trusts: (...states: TrustCheck['state'][]) => void (trust = states),
  /** Nothing listens on a port any more; without one, on none. */
  ends: (port?: number) => void (listening = listening.filter((one) => port !== undefined && one.port !== port)),
  /** A program begins to listen. */
  runs: (port: number, program: string, more: Partial<Listening> = {}) => void (listening = [...listening, runs(port, program, { ...more, since: minutesAgo(0) })]),
  /** A visitor asks for something. */
  request: (app: string, method: string, path: string, status: number, ms: number, email: string, error = '') => {
    requested = [...requested, asked(0, app, method, path, status, ms, email, error)];
    heard();
  },
  /** Another run of the agent: its numbers begin lower, and it has seen nothing. */
  restarted: () => {
    requested = [];
    numberLower();
    heard();
  },
  /** How an app turns out to do once it is approved. */
  does: (name: string, health: Partial<AppHealth>) => void doing.set(name, health),
  /** What comes of trying an app's address. */
  tries: (name: string, tried: Partial<TriedAddress>) => void trying.set(name, tried),
  /** Changes what the agent keeps of the owner's choices. */
  settings: (more: Partial<Settings>) => void (settings = { ...settings, ...more }),
  release: () => {},
  /** Holds a call's answer until stub.release is called. */
  hold: (name: string) => {
    let go = () => {};
    slow.set(name, new Promise((resolve) => (go = resolve)));
    stub.release = () => (slow.delete(name), go());
  },
  /** Changes the state and tells the window. */
  set: (more: More<OwnerState>) => {
    state = { ...state, ...more } as OwnerState;
    emit();
  },
  change,
  /** The owner asks for a view in the menu or on a notification. */
  wants: (view: string, argument = '') => {
    place.push({ view, argument });
    for (const fn of subscribers.show ?? []) fn();
  },
  /** Has the desktop be light or dark, and tells the window. */
  looks: (like: string) => {
    desktop = like;
    for (const fn of subscribers.looks ?? []) fn();
  },
  /** Changes what the desktop app keeps; the page asks for it when it needs it. */
  prefer,
  /** Changes a person as somebody else would: a new peopleVersion says so. */
  person: (accountId: string, more: Partial<Person>) => void changePerson(accountId, more),
  add: (more: Partial<OwnerApp> & { name: string; label: string }) =>
    stub.set({ apps: [...state.apps, request(more.name, more.label, more.localPort ?? 9000, { requestedAt: minutesAgo(0), ...more })] }),
  post: (to: string, code: string) => {
    mails = [mail(to, 0, code), ...mails];
    stub.set({ outboxSize: mails.length });
  },
};
Object.assign(window, { stub });
if (late) stub.hold(late);
