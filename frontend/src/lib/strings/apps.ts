/* The words about apps: asking for an address, what is on, how each does and is reached. */
import type { Toggle } from '../apps';
import type { Reach } from '../health';
import { count, number, type Sentence } from '../sentence';

/** How many people a snapshot names of each app (Named in loopback.yaml). */
export const mostNamed = 15;

/** "ben@example.com and 2 others can open it again." */
function whoCanOpen(openTo: readonly string[], n: number): Sentence {
  const [first, second] = openTo;
  if (n === 0 || first === undefined) return ['Only you can open it.'];
  const more: Sentence = n === 1 ? [] : n === 2 && second !== undefined ? [' and ', { name: second }] : [` and ${count(n - 1, 'other', 'others')}`];
  return [{ name: first }, ...more, ' can open it again.'];
}

export const ofApps = {
  sections: { waiting: 'Waiting for you', on: 'On', offWhileDark: 'Off while dark', off: 'Off' },
  find: { label: 'Search apps', placeholder: 'Search', clear: 'Clear search', none: (query: string): Sentence => ['Nothing matches “', { name: query }, '”.'] },

  empty: {
    title: 'No apps yet',
    text: 'Pick a program that runs on this computer, and it gets an address. You decide who opens it.',
    or: 'Or an app asks for one by itself:',
    start: 'Start something on a port.',
    startText: 'Anything that answers HTTP: say, a dev server on port 3000.',
    ask: 'Ask for an address.',
    askText: 'Paste this into a terminal. Nothing is reachable yet.',
    command: 'Command',
    approve: 'Approve it here.',
    approveText: (url: string) => `It gets ${url}, which only you can open.`,
    approveAnywhere: 'It gets an address that only you can open.',
  },

  ask: {
    title: (label: string, again: boolean): Sentence => [{ name: label }, again ? ' has changed' : ' wants an address'],
    askedBy: (program: string, user: string, another: boolean): Sentence => [
      'Asked for by ', ...(program ? [{ name: program }, ', run by '] : []), { name: user }, another ? ', another user of this computer.' : '.',
    ],
    assistant: (name: string): Sentence => ['A coding agent asks. It calls itself “', { name }, '”.'],
    alike: (label: string): Sentence => ['Its name looks like that of another app, ', { name: label }, '.'],
    alikeBadge: 'Looks like another',
    port: (port: number) => `port ${port}`,
    runBy: (program: string, user: string) => (program && user ? `${program}, run by ${user}` : program || (user && `run by ${user}`)),
    nobodySeen: 'no program seen there',
    otherUser: (label: string, port: number, was: string, program: string, user: string): Sentence => [
      { name: label },
      ' was approved for ',
      was ? { name: was } : 'a program that could not be seen',
      '; now ',
      ...(program && user ? [{ name: program }, ', run by ', { name: user }, ','] : user ? ['a program of ', { name: user }] : [program ? { name: program } : 'a program that cannot be seen']),
      ` listens on port ${port}.`,
    ],
    approve: 'Approve',
    approving: 'Approving…',
    waits: 'Approving waits for your keychain.',
    approveAlone: 'Approve for me alone',
    alone: 'For me alone',
    approveAppAlone: (label: string): Sentence => ['Approve ', { name: label }, ' for me alone'],
    deny: 'Deny',
    denying: 'Denying…',
    approveApp: (label: string): Sentence => ['Approve ', { name: label }],
    denyApp: (label: string): Sentence => ['Deny ', { name: label }],
    /** Of an app that asks again: who keeps it. Of a new one, nobody has it. */
    whoCanOpen,
    details: 'Details',
    hideDetails: 'Hide details',
    unmute: 'Unmute',
    muted: 'You denied it twice, so it asks without a notification.',
    address: 'Address',
    comesFrom: 'Comes from',
    comesFromPort: (port: number, address: string) => `Port ${port} on this computer${address === '::1' ? ', at ::1' : ''}`,
    newKey: 'Over HTTPS it shows another key than the one that was kept. Nobody gets in until you approve it.',
    program: 'Program',
    programUnknown: 'None was seen on that port',
    process: (program: string, pid: number, user: string) =>
      [program || 'A program', pid ? `process ${pid}` : '', user ? `run by ${user}` : ''].filter(Boolean).join(', '),
    asked: 'Asked',
    askedWhen: (ago: string, denials: number) =>
      denials === 0 ? ago : `${ago}, after you denied it ${denials === 1 ? 'once' : denials === 2 ? 'twice' : `${number.format(denials)} times`}`,
    whoMayOpen: 'Who may open it',
    more: (n: number) => `and ${number.format(n)} more`,
    showAll: 'Show all',
    showFewer: 'Show fewer',
    denyAll: 'Deny all…',
  },

  denyAll: {
    title: (n: number): Sentence => [`Deny all ${number.format(n)}?`],
    text: 'None of them gets an address. The apps themselves keep running.',
    keep: 'Keep',
    confirm: 'Deny all',
    busy: 'Denying…',
  },

  app: {
    open: 'Open',
    shutPaused: 'Nobody can open it while it is paused.',
    shutDark: 'Nobody can open it while it is dark.',
    openApp: (label: string): Sentence => ['Open ', { name: label }],
    fixFor: (button: string, label: string): Sentence => [`${button}: `, { name: label }],
    copy: 'Copy address',
    copyOf: (label: string): Sentence => ['Copy address of ', { name: label }],
    more: (label: string): Sentence => ['More for ', { name: label }],
    pause: 'Pause',
    pausing: 'Pausing…',
    resume: 'Resume',
    resuming: 'Resuming…',
    resumeApp: (label: string): Sentence => ['Resume ', { name: label }],
    onlyYou: 'Only you',
    network: 'Open to your network',
    details: 'Who may open it, options…',
    back: 'Back to Apps',
    revoke: 'Revoke…',
    paused: 'Paused',
    pausedWhy: 'Nobody gets in until you resume it. Who may open it is kept.',
    openTo: (n: number, label: string): Sentence => [`${count(n, 'person', 'people')} may open `, { name: label }],
    nobodyNow: 'Nobody here now',
    qr: 'QR code',
    hideQR: 'Hide QR code',
    qrOf: (host: string) => `QR code of https://${host}`,
    who: 'Who may open it',
    whoNobody: 'Only you.',
    whoNobodyHere: 'At its address, only you.',
    addPeople: 'Add people…',
    findWho: 'Search who may open it',
    findKnown: 'Search people you know',
    known: 'People you know',
    letIn: 'Let in',
    letInOf: (email: string): Sentence => ['Let ', { name: email }, ' in'],
    removeFrom: (email: string, label: string): Sentence => ['Remove ', { name: email }, ' from ', { name: label }],
    removeFromApp: (label: string): Sentence => ['Remove from ', { name: label }],
    ended: 'Ended',
    endedFirst: (email: string, day: string) => `${email}, until ${day}`,
    endedOn: (day: string) => `Could open it until ${day}.`,
    prolongOf: (email: string): Sentence => ['Prolong for ', { name: email }],
    whoNow: 'Here now',
    whoOpened: (ago: string) => `Opened it ${ago}`,
    whoNever: 'No visit on record',
    developers: 'For developers',
    identity: 'Tell the app who is there',
    identityText: 'For apps that know a sign-in header of their own.',
    identityStandard: 'Standard headers',
    identityOther: 'Another header…',
    identityName: 'Header name',
    identityValue: 'The header holds',
    identityEmail: 'the e-mail address',
    identityID: 'the account id',
    toggles: {
      forwarded: ['Pass on the visitor’s network address', 'Adds X-Forwarded-For, -Proto and -Host.'],
      publicAddress: ['Tell the app its public address', 'Adds X-Forwarded-Proto and -Host, for apps whose links begin with http://.'],
      allowCrossOrigin: [
        'Let your other apps act on it',
        'Otherwise a page of another app can link here, but not show this app in a frame, read it or change anything with a visitor’s sign-in.',
      ],
      h2c: ['Speak HTTP/2 there', 'For apps that take HTTP/2 without encryption, gRPC for one.'],
      pin: ['Ask me when its key changes', 'The key it shows first is kept. With another one, nobody gets in until you say yes.'],
      noHsts: [
        'Do not keep browsers to HTTPS',
        'Otherwise a browser opens this address by HTTPS only: for a day at a time, for a year once it is 30 days old. It is said under a publicly trusted certificate.',
      ],
    } satisfies Record<Toggle, [title: string, text: string]>,
    state: 'State',
    certificate: 'Certificate',
    certificateProblem: 'Not in order',
    on: 'On',
    behindText: (port: number, who: string) => `Port ${port}${who ? `: ${who}` : ''}.`,
    approvedOn: (date: string) => (date ? `Approved on ${date}` : 'Approved'),
    revokeText: 'Revoking takes the address away and forgets who may open it.',
    save: 'Save',
    saving: 'Saving…',
    noAddress: 'No address yet',
    noAddressWhy: 'It gets its address once this computer is connected.',
    off: 'Off',
    offWhy: 'The app took itself off. It is on again as soon as it asks, or when you resume it.',
    lastError: 'Last error a visitor met',
    /** The people here: no more than so many are named. */
    now: (n: number) => `now: ${number.format(n)}${n >= mostNamed ? '+' : ''}`,
    nowOf: (n: number) => (n === 1 ? 'person' : 'people'),
  },

  /** How an app does when it is asked. */
  health: {
    title: 'How it does',
    better: 'It could do better',
    noted: 'It answers, and not as it should',
    tryNow: 'Try now',
    trying: 'Trying…',
    works: (ms: number) => `Works from the internet, ${number.format(ms)} ms`,
    worksHere: (ms: number) => `Works on this computer, ${number.format(ms)} ms`,
    untried: 'Its address was not tried yet.',
    notReachable: 'Visitors do not reach this computer right now.',
    dark: 'Nobody can open it while it is dark.',
    tried: (ago: string) => `Tried ${ago}.`,
    taking: 'One moment…',
  },

  /** What the agent suggests: its button, the option it changes as the app's page names it, and what came of it. */
  suggest: {
    https: { button: 'Reach it over HTTPS', does: ['Sets “The app speaks” to HTTPS.'], done: ' is reached over HTTPS now.' },
    http: { button: 'Reach it over HTTP', does: ['Sets “The app speaks” to HTTP.'], done: ' is reached over HTTP now.' },
    h2c: { button: 'Speak HTTP/2 to it', does: ['Sets “The app speaks” to HTTP/2 without TLS.'], done: ' is spoken to in HTTP/2 now.' },
    localhost: { button: 'Call it localhost', does: ['Sets “Name the app sees” to localhost.'], done: ' sees localhost as its name now.' },
    publicAddress: { button: 'Tell it its address', does: ['Turns on “Tell the app its public address”.'], done: ' is told its public address now.' },
    other: { button: 'Change its options', does: ['Changes options of this app.'], done: ' has other options now.' },
  } satisfies Record<string, { button: string; does: Sentence; done: string }>,

  reach: {
    asMost: 'As most apps need it',
    told: 'told its address',
    speaks: 'The app speaks',
    speaksText: 'Most speak HTTP on their port.',
    reaches: { http: 'HTTP', https: 'HTTPS', h2c: 'HTTP/2 without TLS', socket: 'HTTP at a unix socket…' } satisfies Record<Reach, string>,
    atSocket: 'at a unix socket',
    socket: 'Path of the socket',
    host: 'Name the app sees',
    hostText: 'Some development servers insist on localhost.',
    hostPublic: 'The public address',
    hostLocal: 'localhost',
    hostOther: 'Another name…',
    hostName: 'Name to send as Host',
    patience: 'A page waits for its first word',
    patienceText: 'After that, the visitor is told that the app does not answer.',
    seconds: (n: number) => (n % 3600 === 0 ? count(n / 3600, 'hour', 'hours') : n % 60 === 0 ? count(n / 60, 'minute', 'minutes') : count(n, 'second', 'seconds')),
    waits: (time: string) => `waits ${time}`,
  },

  revoke: {
    title: (label: string): Sentence => ['Revoke “', { name: label }, '”?'],
    text: (connections: number) =>
      `Its address goes away${connections > 0 ? ` and ${count(connections, 'connection is', 'connections are')} closed` : ''}. ` +
      'Who may open it is forgotten. The app itself keeps running.',
    keep: 'Keep',
    confirm: 'Revoke',
    busy: 'Revoking…',
  },
} as const;
