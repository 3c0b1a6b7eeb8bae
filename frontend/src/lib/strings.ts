/*
 * Every English sentence of the window. Short, plain, present tense; says what
 * happens and when.
 *
 * A sentence that names an app is a list of parts, the name kept apart: names
 * come from other programs, so <Sentence> isolates their direction and never
 * reads them as markup. plain() is the same sentence where only text fits.
 */
export interface Name {
  name: string;
}

export type Sentence = readonly (string | Name)[];

const FIRST_STRONG_ISOLATE = '\u2068';
const POP_DIRECTIONAL_ISOLATE = '\u2069';

/** The sentence as one string, names isolated by Unicode controls. */
export function plain(sentence: Sentence): string {
  return sentence
    .map((part) => (typeof part === 'string' ? part : FIRST_STRONG_ISOLATE + part.name + POP_DIRECTIONAL_ISOLATE))
    .join('');
}

const number = new Intl.NumberFormat('en');

function count(n: number, one: string, many: string): string {
  return `${number.format(n)} ${n === 1 ? one : many}`;
}

/** " 3 connections closed.", or nothing where none were open. */
function closed(n: number): string {
  return n > 0 ? ` ${count(n, 'connection', 'connections')} closed.` : '';
}

export const strings = {
  product: 'Porchlight',
  number: (n: number) => number.format(n),

  nav: {
    apps: 'Apps',
    outbox: 'Outbox',
    waiting: (n: number) => `${number.format(n)} waiting for you`,
    mails: (n: number) => count(n, 'mail', 'mails'),
  },

  standing: {
    connected: 'Connected',
    local: 'This computer only',
    starting: 'Starting…',
    reconnecting: 'Reconnecting…',
    unreachable: 'Not reachable',
    away: 'Not answering',
    copyRoot: 'Copy this computer’s address',
  },

  trouble: {
    awayTitle: 'Porchlight’s engine does not answer.',
    awayText: 'What you see may be out of date.',
    tryAgain: 'Try again',
    trying: 'Trying…',
  },

  find: { label: 'Search apps', placeholder: 'Search', clear: 'Clear search', none: (query: string): Sentence => ['Nothing matches “', { name: query }, '”.'] },

  sections: { waiting: 'Waiting for you', on: 'On', off: 'Off' },

  ask: {
    title: (label: string): Sentence => [{ name: label }, ' wants an address'],
    port: (port: number) => `port ${port}`,
    runBy: (program: string, user: string) => (program && user ? `${program}, run by ${user}` : program || (user && `run by ${user}`)),
    nobodySeen: 'no program seen there',
    approve: 'Approve',
    approving: 'Approving…',
    deny: 'Deny',
    denying: 'Denying…',
    approveApp: (label: string): Sentence => ['Approve ', { name: label }],
    denyApp: (label: string): Sentence => ['Deny ', { name: label }],
    onlyYou: 'Only you can open it.',
    details: 'Details',
    hideDetails: 'Hide details',
    unmute: 'Unmute',
    muted: 'You denied it twice, so it asks without a notification.',
    address: 'Address',
    comesFrom: 'Comes from',
    comesFromPort: (port: number) => `Port ${port} on this computer`,
    program: 'Program',
    programUnknown: 'None was seen on that port',
    process: (program: string, pid: number, user: string) =>
      [program || 'A program', pid ? `process ${pid}` : '', user ? `run by ${user}` : ''].filter(Boolean).join(', '),
    asked: 'Asked',
    askedWhen: (ago: string, denials: number) =>
      denials === 0 ? ago : `${ago}, after you denied it ${denials === 1 ? 'once' : denials === 2 ? 'twice' : `${number.format(denials)} times`}`,
    whoMayOpen: 'Who may open it',
    whoMayOpenText: 'Only you',
    more: (n: number) => `and ${number.format(n)} more`,
    showAll: 'Show all',
    showFewer: 'Show fewer',
    denyAll: 'Deny all…',
  },

  app: {
    open: 'Open',
    openApp: (label: string): Sentence => ['Open ', { name: label }],
    copy: 'Copy address',
    copyOf: (label: string): Sentence => ['Copy address of ', { name: label }],
    more: (label: string): Sentence => ['More for ', { name: label }],
    stop: 'Stop',
    revoke: 'Revoke…',
    notAnswering: 'Not answering',
    notAnsweringWhy: (port: number) => `Nothing accepted a connection on port ${port} the last time someone tried.`,
    stopped: 'Stopped',
    stoppedWhy: 'It is on again as soon as the app asks; you approved it before.',
    now: (n: number) => `now: ${number.format(n)}`,
    nowOf: (n: number) => (n === 1 ? 'connection' : 'connections'),
  },

  copied: 'Copied',
  copy: 'Copy',
  dismiss: 'Dismiss',

  toast: {
    approved: (label: string, host: string): Sentence => [{ name: label }, ` is on, at ${host}. Only you can open it.`],
    denied: (label: string): Sentence => [{ name: label }, ' stays off. If it asks again, you won’t hear of it for 10 minutes.'],
    deniedAgain: (label: string): Sentence => [{ name: label }, ' stays off. If it asks again, you won’t hear of it until you unmute it.'],
    deniedAll: (n: number): Sentence => [`${count(n, 'app stays', 'apps stay')} off. If they ask again, you won’t hear of them for at least 10 minutes.`],
    stopped: (label: string, n: number): Sentence => [{ name: label }, ` is stopped.${closed(n)} It is on again when the app asks.`],
    revoked: (label: string, n: number): Sentence => [{ name: label }, ` has no address any more.${closed(n)}`],
    unmuted: (label: string): Sentence => ['You hear of ', { name: label }, ' again when it asks.'],
    failed: (sentence: string): Sentence => [sentence],
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

  denyAll: {
    title: (n: number): Sentence => [`Deny all ${number.format(n)}?`],
    text: 'None of them gets an address. The apps themselves keep running.',
    keep: 'Keep',
    confirm: 'Deny all',
    busy: 'Denying…',
  },

  empty: {
    title: 'No apps yet',
    text: 'An app on this computer asks for an address. You decide here.',
    start: 'Start something on a port.',
    startText: 'Anything that answers HTTP: say, a dev server on port 3000.',
    ask: 'Ask for an address.',
    askText: 'Paste this into a terminal. Nothing is reachable yet.',
    command: 'Command',
    shorter: 'Shorter, the same:',
    approve: 'Approve it here.',
    approveText: (url: string) => `It gets ${url}, and only you can open it.`,
    approveAnywhere: 'It gets an address, and only you can open it.',
  },

  outbox: {
    lead: 'Nobody else can reach this computer yet, so no mail is sent. What would have been sent is kept here: open a link, or type its code, to sign in as that person in a browser on this computer.',
    emptyTitle: 'No mail yet',
    emptyText: 'When someone signs in to one of your apps, the mail with their link is kept here instead of being sent.',
    code: 'Code',
    copyCode: (address: string) => `Copy the code for ${address}`,
    openLink: 'Open link',
    openLinkOf: (address: string) => `Open link for ${address}`,
    copyLink: (address: string) => `Copy the link for ${address}`,
    showMail: 'Show mail',
    hideMail: 'Hide mail',
  },

  bridge: {
    missing: 'This window was opened outside Porchlight, so nothing can be done here.',
    failed: 'That did not work. Try again in a moment.',
  },
} as const;
