/*
 * Stands in for Wails in a plain browser: window.go and window.runtime with an
 * agent behind them that keeps its word (approve makes an app live, and every
 * change arrives as a "state" event). The scene is chosen by ?scene=NAME.
 * window.stub lets a test look at the calls and make things happen.
 */
(() => {
  const minutesAgo = (n) => new Date(Date.now() - n * 60_000).toISOString();

  const local = {
    connected: true, email: 'owner@maya.localhost', accountId: 'acc_1', name: 'maya',
    host: 'maya.localhost:8443', url: 'https://maya.localhost:8443', authUrl: 'https://control.localhost:8443', local: true,
  };
  const connected = { ...local, email: 'maya@example.com', host: 'maya.porch.example', url: 'https://maya.porch.example', authUrl: 'https://porch.example', local: false };

  const options = { forwarded: false, localhostHost: false, identityHeader: '', identityValue: 'email', allowCrossOrigin: false, h2c: false };
  const app = (name, label, localPort, more = {}) => ({
    name, label, localPort, status: 'live', listener: { pid: 48211, program: 'node', user: 'maya' }, answering: true,
    quiet: false, denials: 0, requestedAt: minutesAgo(600), approvedAt: minutesAgo(60 * 24 * 50), connections: 0, here: [], paused: false, options: { ...options },
    openTo: [], openToCount: 0, certificate: { notAfter: minutesAgo(-60 * 24 * 60), renewsAfter: minutesAgo(-60 * 24 * 30), problem: '' }, ...more,
  });
  const request = (name, label, localPort, more = {}) =>
    app(name, label, localPort, { status: 'pending', approvedAt: undefined, requestedAt: minutesAgo(1), listener: { pid: 48211, program: 'python3', user: 'maya' }, ...more });

  const few = () => [
    app('draft', 'Blog draft', 4321, { status: 'revoked' }),
    app('home', 'Home Assistant', 8123, { answering: false, certificate: { problem: 'No certificate could be had for home.maya.porch.example, so browsers cannot open it. Porchlight keeps trying.' } }),
    app('notes', 'Notes', 3000, { connections: 2, here: ['carla.nunes@example.org', 'maya@example.com'], openTo: ['anna@example.com', 'bob@example.com', 'carla.nunes@example.org', 'kenji.watanabe@example.jp'], openToCount: 5 }),
    request('paperless', 'Paperless', 8010),
    app('photos', 'Photos', 2342, { certificate: undefined, openTo: ['carla.nunes@example.org', 'anna@example.com'], openToCount: 2 }),
    app('recipes', 'Recipes', 9925, { status: 'revoked' }),
  ];

  const long = 'Quarterly planning board for the whole northern region, shared with partners and volunteers, 2026–27';
  const labels = [long, 'Ledger', '<b>Totally fine</b>', 'مذكراتي اليومية', 'לוח', '<script>alert(1)</script>', 'मेरी डायरी', '日記', '👩‍🚀 Orbit', '\u202Eevil\u202C', '{@html x}', '  spaced  out  '];
  const many = () => [
    ...Array.from({ length: 300 }, (_, i) =>
      request(i === 0 ? 'quarterly-planning-board-northern-region-partners-volunteers-2627' : `ask-${i}`, i < labels.length ? labels[i] : `Request ${i}`, 20000 + i, {
        requestedAt: minutesAgo(1000 - i), listener: { pid: i + 1, program: i === 0 ? 'a-program-with-a-remarkably-long-executable-name-indeed' : 'python3', user: i === 0 ? 'svc-northern-region' : 'maya' },
      }),
    ),
    ...Array.from({ length: 200 }, (_, i) =>
      app(i === 0 ? 'planning-board-northern-region-partners-volunteers-2026-27-live' : `app-${i}`, i < labels.length ? labels[i] : `App ${i}`, 30000 + i, {
        answering: i % 7 !== 1, connections: i === 0 ? 5000 : i % 3, status: i % 50 === 49 ? 'revoked' : 'live',
      }),
    ),
  ];

  const mail = (to, minutes, code) => ({
    to, subject: 'Your link to sign in', at: minutesAgo(minutes), links: [`https://control.localhost:8443/sign-in/${code.replace(' ', '')}`],
    text: `Sign in to notes.maya.localhost:8443:\n\nhttps://control.localhost:8443/sign-in/${code.replace(' ', '')}\n\nYour code: ${code}\n\nThe link works for 15 minutes, in the browser it is opened in. If you did not ask for it, ignore this mail; nothing happens.\n`,
  });
  const someMails = () => [
    mail('bob@example.com', 2, '123 456'),
    { to: 'tomas.van-den-berghe.and.the.long.address.of.his@subdomain.of.a.long.example.net', subject: 'maya@example.com shares Notes with you', at: minutesAgo(90), links: ['https://control.localhost:8443/invitation/abc'], text: 'maya@example.com lets you open Notes and Photos on their own computer.\n\nOpen Notes: https://control.localhost:8443/invitation/abc\n\nThe page asks for one click, which signs you in. Nothing to install, no password.\n' },
    mail('carla.nunes@example.org', 60 * 30, '908 171'),
  ];

  const person = (email, apps, more = {}) => ({ email, accountId: `acc-${email}`, role: 'member', status: 'active', apps, ...more });
  const somePeople = () => [
    person('maya@example.com', ['Notes', 'Photos', 'Home Assistant', 'Blog draft', 'Recipes'], { role: 'owner' }),
    person('carla.nunes@example.org', ['Notes', 'Photos']),
    person('bob@example.com', ['Notes', 'Blog draft']),
    person('lena@example.com', ['Photos'], { status: 'pending' }),
    person('tomas@example.net', ['Notes', 'Photos'], { status: 'revoked' }),
  ];
  const manyPeople = () => [
    person('maya@example.com', [], { role: 'owner' }),
    ...Array.from({ length: 5000 }, (_, i) =>
      person(i === 0 ? 'the.extraordinarily.long.mailbox.name.of.somebody@a.subdomain.of.some.long.example.org' : `person-${i}@example.com`, i % 9 === 0 ? [] : i === 0 ? labels : [labels[i % 12], 'App 20', 'App 21'], {
        status: i % 50 === 7 ? 'pending' : i % 50 === 9 ? 'revoked' : 'active',
      }),
    ),
  ];
  const grant = (id, clientName, email, days, used) => ({ id, clientId: `client-${id}`, clientName, email, createdAt: minutesAgo(60 * 24 * days), lastUsedAt: used === null ? '0001-01-01T00:00:00Z' : minutesAgo(used) });
  const someGrants = () => [
    grant('g1', 'Pocket Notes', 'maya@example.com', 50, 4), grant('g2', 'Backup script', 'maya@example.com', 250, 600),
    grant('g3', 'Pocket Notes', 'carla.nunes@example.org', 12, 200), grant('g4', '<b>Feed</b> reader', 'bob@example.com', 200, null),
  ];
  const manyGrants = () => Array.from({ length: 300 }, (_, i) => grant(`g${i}`, i < labels.length ? labels[i] : `Client ${i}`, i % 3 ? 'maya@example.com' : `person-${i}@example.com`, i + 1, i * 7));
  const line = (minutes, email, app, kind = 'opened', by) => ({ at: minutesAgo(minutes), email, app, kind, ...(by ? { by } : {}) });
  const someActivity = () => [
    line(5, 'carla.nunes@example.org', 'Notes'), line(40, 'maya@example.com', 'Notes', 'client', 'client-g1'), line(60 * 26, 'bob@example.com', 'Blog draft'),
    line(60 * 27, 'lena@example.com', 'Photos', 'invited', 'wiki'), line(60 * 28, 'tomas@example.net', '', 'removed', 'wiki'), line(60 * 50, 'anna@example.com', 'Photos', 'granted', 'wiki'),
    line(60 * 51, 'anna@example.com', 'Notes', 'withdrawn'), line(60 * 24 * 60, 'anna@example.com', 'Home Assistant', 'something new'),
  ];
  const manyActivity = () => Array.from({ length: 1000 }, (_, i) => line(i * 13, `person-${i % 60}@example.com`, labels[i % 12], i % 17 ? 'opened' : 'client', i % 17 ? undefined : long));
  const waiting = { state: 'waiting', authUrl: 'https://control.porch.example', userCode: 'WDJB-MJHT', verificationUrl: 'https://control.porch.example/device', verificationUrlComplete: 'https://control.porch.example/device?code=WDJB-MJHT', expiresAt: minutesAgo(-9.5) };
  const firstStart = { welcomed: false, startAtLogin: false };

  const scenes = {
    welcome: () => ({ account: local, apps: [], mails: [], preferences: firstStart }),
    'welcome-code': () => ({ account: local, apps: [], mails: [], preferences: firstStart, connecting: waiting }),
    'welcome-failed': () => ({ account: local, apps: [], mails: [], preferences: firstStart, connecting: { ...waiting, state: 'failed', problem: 'The code was not confirmed within ten minutes. Connect again for a new one.' } }),
    alone: () => ({ account: connected, apps: few(), mails: [], people: somePeople().slice(0, 1), grants: [], activity: [] }),
    dark: () => ({ account: connected, apps: few().map((one) => ({ ...one, connections: 0, here: [] })), mails: [], darkSince: minutesAgo(3) }),
    paused: () => ({ account: connected, apps: few().map((one) => ({ ...one, paused: one.name === 'notes' })), mails: [] }),
    options: () => ({ account: connected, apps: few().map((one) => ({ ...one, options: { ...options, identityHeader: 'X-My-Own-Header', localhostHost: true } })), mails: [] }),
    apps: () => ({ account: local, apps: few(), mails: someMails() }),
    connected: () => ({ account: connected, apps: few(), mails: [] }),
    empty: () => ({ account: local, apps: [], mails: [] }),
    nulls: () => ({ account: local, apps: null, notices: null, mails: null }),
    stress: () => ({ account: { ...connected, host: 'a-very-long-short-name-of-a-computer.porch.example', url: 'https://a-very-long-short-name-of-a-computer.porch.example' }, apps: many(), mails: [], people: manyPeople(), grants: manyGrants(), activity: manyActivity(), trouble: 'control.porch.example does not answer. Everyone below keeps their access until tomorrow, 14:05. Inviting and removing wait.', reachable: false }),
    requests: () => ({ account: local, apps: many().slice(0, 6), mails: [] }),
    muted: () => ({ account: local, apps: [request('paperless', 'Paperless', 8010, { quiet: true, denials: 2, listener: {} })], mails: [] }),
    unreachable: () => ({ account: connected, apps: few(), mails: [], accessUntil: minutesAgo(-60 * 23), trouble: 'The control plane does not answer. Everyone keeps the access they have until 10:44 on 22 November.', reachable: false }),
    away: () => ({ account: local, apps: few(), mails: [], failing: ['State'] }),
    keyless: () => ({ account: local, apps: few(), mails: [], locked: true, preferences: { secretKept: 'nowhere' } }),
    locked: () => ({ account: connected, apps: few(), mails: [], locked: true, preferences: { secretKept: 'locked' } }),
    certificate: () => ({ account: connected, apps: few(), mails: [], trouble: 'No certificate could be had for home.maya.porch.example, so browsers cannot open it. Porchlight keeps trying.' }),
    starting: () => ({ account: { ...local, connected: false }, apps: few(), mails: [], reachable: false }),
  };

  const scene = scenes[new URLSearchParams(location.search).get('scene') ?? 'apps']();
  let mails = scene.mails;
  let people = scene.people ?? somePeople();
  let activity = scene.activity ?? someActivity();
  let clients = scene.clients ?? [{ accountId: 'acc-maya@example.com', email: 'maya@example.com', grantId: 'g1', clientName: 'Pocket Notes', apps: ['Notes'], connections: 1 }];
  let settings = { failStaticHours: 24, askAgain: false, quiet: ['connection'] };
  let preferences = {
    welcomed: true, startAtLogin: true, appearance: '', trust: { possible: true, trusted: false, problem: '' }, secretKept: 'keychain',
    dataDir: '/home/maya/.local/share/porchlight', ...scene.preferences,
  };
  let state = {
    seq: 1, engineVersion: '0.1.0', mode: 'desktop', api: '127.0.0.1:8765', notices: [], trouble: '', locked: false, reachable: true,
    outboxSize: mails?.length ?? 0, here: 2, peopleVersion: '1', peopleCount: people.length, grants: someGrants(),
    registrants: [{ appId: 'org.example.wiki', pid: 4711, program: 'wiki', user: 'maya', registeredAt: minutesAgo(90), lastSeenAt: minutesAgo(0) }], ...scene,
  };
  for (const key of ['mails', 'people', 'activity', 'clients', 'preferences']) delete state[key];
  delete state.failing;
  delete state.sentence;

  const subscribers = {};
  const calls = [];
  const failing = new Map((scene.failing ?? []).map((method) => [method, scene.sentence ?? 'The agent is still starting.'])); // method → sentence
  const slow = new Map(); // method → promise to wait for

  function emit() {
    state = { ...state, seq: state.seq + 1 };
    const wire = JSON.stringify(state);
    for (const fn of subscribers.state ?? []) fn(JSON.parse(wire));
  }
  const change = (name, more) => {
    state = { ...state, apps: more === null ? state.apps.filter((a) => a.name !== name) : state.apps.map((a) => (a.name === name ? { ...a, ...more } : a)) };
    setTimeout(emit);
  };
  const bound = (method, fn) => async (...args) => {
    calls.push([method, ...args]);
    await slow.get(method);
    if (failing.has(method)) throw new Error(failing.get(method));
    return JSON.parse(JSON.stringify(fn(...args) ?? null));
  };
  const byName = (name) => state.apps.find((a) => a.name === name);
  const ending = (name, more) => {
    const closed = byName(name).connections;
    change(name, more);
    return { ok: true, closed, milliseconds: 12 };
  };

  const changePerson = (accountId, more) => {
    people = people.map((one) => (one.accountId === accountId ? { ...one, ...more } : one));
    state = { ...state, peopleVersion: state.peopleVersion + '+' };
    setTimeout(emit);
    return { ok: true, person: people.find((one) => one.accountId === accountId), closed: 3, milliseconds: 40 };
  };
  // What was taken away and can be undone, by account and label ('' is all): as it was before.
  const held = new Map();
  const hold = (accountId, label, more) => {
    const { apps, status } = people.find((one) => one.accountId === accountId);
    held.set(`${accountId} ${label}`, { apps, status });
    return { ...changePerson(accountId, more), heldUntil: new Date(Date.now() + 30_000).toISOString() };
  };
  const visitors = () => {
    const all = new Map();
    for (const one of state.apps ?? [])
      for (const email of one.here ?? []) {
        const who = all.get(email) ?? { accountId: `acc-${email}`, email, apps: [], connections: 0 };
        all.set(email, { ...who, apps: [...who.apps, one.label], connections: who.connections + Math.ceil(one.connections / one.here.length) });
      }
    const remote = state.darkSince ? [] : clients.filter((one) => state.grants.some((grant) => grant.id === one.grantId));
    return [...all.values(), ...remote];
  };
  const published = () => state.apps.filter((one) => one.status === 'live').map((one) => one.label);
  const set = (more) => {
    state = { ...state, ...more };
    setTimeout(emit);
  };

  window.runtime = {
    EventsOn: (name, fn) => {
      (subscribers[name] ??= []).push(fn);
      return () => (subscribers[name] = subscribers[name].filter((other) => other !== fn));
    },
  };
  /** Approves what still is as it was seen. */
  function approve(name, seen, more = {}) {
    const { label, localPort, listener: { program = '', user = '' } } = byName(name);
    if (seen.label !== label || seen.localPort !== localPort || seen.program !== program || seen.user !== user) throw new Error('The request has changed meanwhile.');
    const host = `${name}.${state.account.host}`;
    change(name, { status: 'live', host, url: `https://${host}`, ...more });
    return { status: 'live', host, url: `https://${host}` };
  }

  window.go = {
    ui: {
      Apps: {
        State: bound('State', () => state),
        Approve: bound('Approve', (name, seen) => approve(name, seen)),
        ApproveAlone: bound('ApproveAlone', (name, seen) => approve(name, seen, { openTo: [], openToCount: 0 })),
        Deny: bound('Deny', (name) => change(name, null)),
        Revoke: bound('Revoke', (name) => ending(name, null)),
        Open: bound('Open', () => {}),
        Unmute: bound('Unmute', (name) => change(name, { quiet: false, denials: 0 })),
        Outbox: bound('Outbox', () => mails),
        Pause: bound('Pause', (name) => ending(name, { paused: true, connections: 0, here: [] })),
        Resume: bound('Resume', (name) => change(name, { paused: false })),
        ChangeOptions: bound('ChangeOptions', (name, some) => {
          const options = { ...byName(name).options, ...some };
          change(name, { options });
          return options;
        }),
        GoDark: bound('GoDark', () => (set({ darkSince: minutesAgo(0) }), { ok: true, closed: 3, milliseconds: 9 })),
        LightUp: bound('LightUp', () => set({ darkSince: undefined })),
      },
      People: {
        List: bound('List', () => ({ name: state.account.name, members: people, publishedApps: published() })),
        Invite: bound('Invite', (email, apps) => {
          if (!/.@.+\../.test(email)) throw new Error('That does not look like an e-mail address.');
          const known = people.find((one) => one.email === email);
          if (!known) people = [...people, person(email, apps, { status: 'pending' })];
          else changePerson(known.accountId, { apps: [...new Set([...(known.status === 'revoked' ? [] : known.apps), ...apps])], status: known.status === 'revoked' ? 'pending' : known.status });
          return { email, status: 'pending', url: `https://notes.${state.account.host}` };
        }),
        Grant: bound('Grant', (id, label, granted) => {
          const { apps } = people.find((one) => one.accountId === id);
          if (granted) return changePerson(id, { apps: [...apps, label] });
          return hold(id, label, { apps: apps.filter((one) => one !== label) });
        }),
        Remove: bound('Remove', (id) => hold(id, '', { status: 'revoked' })),
        UndoHeld: bound('UndoHeld', (id, label) => {
          const before = held.get(`${id} ${label}`);
          if (!held.delete(`${id} ${label}`)) throw new Error('It is too late to undo that. Invite them again to let them in.');
          return changePerson(id, before);
        }),
        Settle: bound('Settle', (id, label) => void held.delete(`${id} ${label}`)),
        Visitors: bound('Visitors', visitors),
        Disconnect: bound('Disconnect', (id, grantId) => {
          const one = visitors().find((each) => each.accountId === id && (each.grantId ?? '') === grantId);
          if (grantId) clients = clients.filter((each) => each.grantId !== grantId);
          set({ apps: state.apps.map((each) => (grantId || !each.here?.includes(one.email) ? { ...each } : { ...each, here: each.here.filter((email) => email !== one.email), connections: each.connections - 1 })) });
          return { ok: true, closed: one?.connections ?? 0, milliseconds: 3 };
        }),
        Undo: bound('Undo', () => {}),
        RevokeClient: bound('RevokeClient', (id) => (set({ grants: state.grants.filter((one) => one.id !== id) }), { ok: true, closed: 1, milliseconds: 3 })),
        Activity: bound('Activity', () => activity),
        ClearActivity: bound('ClearActivity', () => void (activity = [])),
      },
      Settings: {
        Get: bound('Get', () => settings),
        Set: bound('Set', (value) => (settings = value)),
        Preferences: bound('Preferences', () => preferences),
        Welcomed: bound('Welcomed', () => void (preferences = { ...preferences, welcomed: true })),
        StartAtLogin: bound('StartAtLogin', (on) => void (preferences = { ...preferences, startAtLogin: on })),
        Appearance: bound('Appearance', (appearance) => void (preferences = { ...preferences, appearance })),
        Trust: bound('Trust', (trusted) => void (preferences = { ...preferences, trust: { ...preferences.trust, trusted } })),
        KeepInFile: bound('KeepInFile', () => {
          preferences = { ...preferences, secretKept: 'file' };
          set({ locked: false });
        }),
        Unlock: bound('Unlock', () => {
          preferences = { ...preferences, secretKept: 'keychain' };
          set({ locked: false });
        }),
        ShowData: bound('ShowData', () => {}),
        Export: bound('Export', () => '/home/maya/porchlight.json'),
        Connect: bound('Connect', (url) => (set({ connecting: { ...waiting, authUrl: url } }), { ...waiting, authUrl: url })),
        CancelConnect: bound('CancelConnect', () => set({ connecting: undefined })),
        Disconnect: bound('Disconnect', () => set({ account: local })),
      },
      Shell: { Copy: bound('Copy', () => {}), OpenURL: bound('OpenURL', () => {}), Version: bound('Version', () => '0.1.0') },
    },
  };
  window.stub = {
    calls,
    /** Makes a method throw sentence; without one it works again. */
    fail: (method, text) => (text ? failing.set(method, text) : failing.delete(method)),
    /** Holds a method's answer until the returned function is called. */
    hold: (method) => {
      let go;
      slow.set(method, new Promise((resolve) => (go = resolve)));
      return (window.stub.release = () => (slow.delete(method), go()));
    },
    /** Changes the state and tells the window. */
    set: (more) => {
      state = { ...state, ...more };
      emit();
    },
    change: (name, more) => change(name, more),
    /** Changes what the desktop app keeps; the page asks for it when it needs it. */
    prefer: (more) => void (preferences = { ...preferences, ...more }),
    /** Changes a person as somebody else would: a new peopleVersion says so. */
    person: (accountId, more) => void changePerson(accountId, more),
    add: (more) => {
      state = { ...state, apps: [...state.apps, request(more.name, more.label, more.localPort ?? 9000, { requestedAt: minutesAgo(0), ...more })] };
      emit();
    },
    post: (to, code) => {
      mails = [mail(to, 0, code), ...mails];
      state = { ...state, outboxSize: mails.length };
      emit();
    },
  };
})();
