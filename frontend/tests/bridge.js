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

  const app = (name, label, localPort, more = {}) => ({
    name, label, localPort, status: 'live', listener: { pid: 48211, program: 'node', user: 'maya' }, answering: true,
    quiet: false, denials: 0, requestedAt: minutesAgo(600), connections: 0, ...more,
  });
  const request = (name, label, localPort, more = {}) =>
    app(name, label, localPort, { status: 'pending', requestedAt: minutesAgo(1), listener: { pid: 48211, program: 'python3', user: 'maya' }, ...more });

  const few = () => [
    app('draft', 'Blog draft', 4321, { status: 'revoked' }),
    app('home', 'Home Assistant', 8123, { answering: false }),
    app('notes', 'Notes', 3000, { connections: 2 }),
    request('paperless', 'Paperless', 8010),
    app('photos', 'Photos', 2342),
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

  const scenes = {
    apps: () => ({ account: local, apps: few(), mails: someMails() }),
    connected: () => ({ account: connected, apps: few(), mails: [] }),
    empty: () => ({ account: local, apps: [], mails: [] }),
    nulls: () => ({ account: local, apps: null, notices: null, mails: null }),
    stress: () => ({ account: { ...connected, host: 'a-very-long-short-name-of-a-computer.porch.example', url: 'https://a-very-long-short-name-of-a-computer.porch.example' }, apps: many(), mails: [], trouble: 'control.porch.example does not answer. Everyone below keeps their access until tomorrow, 14:05. Inviting and removing wait.' }),
    requests: () => ({ account: local, apps: many().slice(0, 6), mails: [] }),
    muted: () => ({ account: local, apps: [request('paperless', 'Paperless', 8010, { quiet: true, denials: 2, listener: {} })], mails: [] }),
    away: () => ({ account: local, apps: few(), mails: [], failing: ['State'] }),
    starting: () => ({ account: { ...local, connected: false }, apps: few(), mails: [] }),
  };

  const scene = scenes[new URLSearchParams(location.search).get('scene') ?? 'apps']();
  let mails = scene.mails;
  let state = {
    seq: 1, engineVersion: '0.1.0', mode: 'desktop', api: '127.0.0.1:8765', notices: [], trouble: '',
    outboxSize: mails?.length ?? 0, ...scene,
  };
  delete state.mails;
  delete state.failing;

  const subscribers = {};
  const calls = [];
  const failing = new Map((scene.failing ?? []).map((method) => [method, 'The agent is still starting.'])); // method → sentence
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

  window.runtime = {
    EventsOn: (name, fn) => {
      (subscribers[name] ??= []).push(fn);
      return () => (subscribers[name] = subscribers[name].filter((other) => other !== fn));
    },
  };
  window.go = {
    ui: {
      Apps: {
        State: bound('State', () => state),
        Approve: bound('Approve', (name, label, localPort) => {
          const now = byName(name);
          if (now.label !== label || now.localPort !== localPort) throw new Error('The request has changed meanwhile.');
          const host = `${name}.${state.account.host}`;
          change(name, { status: 'live', host, url: `https://${host}` });
          return { status: 'live', host, url: `https://${host}` };
        }),
        Deny: bound('Deny', (name) => change(name, null)),
        Stop: bound('Stop', (name) => ending(name, { status: 'revoked', connections: 0 })),
        Revoke: bound('Revoke', (name) => ending(name, null)),
        Open: bound('Open', () => {}),
        Unmute: bound('Unmute', (name) => change(name, { quiet: false, denials: 0 })),
        Outbox: bound('Outbox', () => mails),
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
