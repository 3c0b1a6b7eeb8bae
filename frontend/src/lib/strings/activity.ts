/* What happened, in sentences. Each kind of activity has one, of the words of Line. */
import { count, listed, number, type Sentence } from '../sentence';

/** A line of activity, in words that are ready to be said. */
export interface Line {
  email: string;
  app: string;
  /** The program, the client or the person that did it; empty for nobody in particular. */
  by: string;
  /** The owner did it. */
  owner: boolean;
  /** The address is the owner's. */
  you: boolean;
  what: string;
  /** A day, of what is about no person with its time, or empty. */
  until: string;
  port: string;
  program: string;
  closed: number;
  /** How often; 1 for once. */
  times: number;
}

/** Whom or what it is about, which leads; and what became of it. */
export type Told = readonly [who: string, did: Sentence];

type Part = Sentence[number];

const by = (l: Line): Part[] => (l.owner ? [' by you'] : l.by ? [' by ', { name: l.by }] : []);
/** The person, within a sentence. */
const person = (l: Line): Part => (l.you ? 'you' : { name: l.email });
const comma = (l: Line): Part[] => (l.owner || l.by ? [',', ...by(l)] : []);
const till = (l: Line): Part[] => (l.until ? [`, until ${l.until}`] : []);
const closed = (l: Line): Part[] => (l.closed > 0 ? [`. ${count(l.closed, 'connection', 'connections')} closed`] : []);
const times = (l: Line): Part[] => (l.times > 1 ? [`, ${number.format(l.times)} times`] : []);
const an = (app: string): Part[] => (app ? [{ name: app }] : ['an app']);
const port = (l: Line): Part[] => (l.port ? [`: port ${l.port}`, ...(l.program ? [', ', { name: l.program }] : [])] : []);

export const ofActivity = {
  activity: {
    find: 'Search activity',
    show: 'Show',
    groups: { all: 'Everything', visits: 'Visits', decisions: 'Decisions', trouble: 'Trouble' },
    app: 'App',
    allApps: 'All apps',
    person: 'Person',
    everybody: 'Everybody',
    you: 'You',
    export: 'Export…',
    hereNow: 'Here now',
    hasOpen: (labels: readonly string[], email: string, you = false): Sentence => [...listed(labels), ...(you ? [', as you'] : email ? [', as ', { name: email }] : [])],
    connections: (n: number) => count(n, 'connection', 'connections'),
    disconnect: 'Disconnect',
    disconnecting: 'Disconnecting…',
    disconnectOf: (email: string, client?: string, you = false): Sentence => (client ? ['Disconnect ', { name: client }, ...(you ? [] : [` of ${email}`])] : [`Disconnect ${email}`]),
    disconnectHint: 'Disconnected, they can come back until removed or revoked.',
    remove: 'Remove',
    removing: 'Removing…',
    removeOf: (email: string) => `Remove ${email}`,
    today: 'Today',
    yesterday: 'Yesterday',
    undo: 'Undo',
    undoing: 'Undoing…',
    undoOf: (sentence: string) => `Undo: ${sentence}`,
    prolong: 'Prolong…',
    revoke: 'Revoke…',
    older: 'Show older',
    reading: 'Reading…',
    did: {
      opened: (l: Line): Told => [l.you ? 'You' : l.email, [' opened ', ...an(l.app)]],
      client: (l: Line): Told =>
        l.you ? [l.by || 'A program', [' opened ', ...an(l.app), ' as you']] : [l.email, [' opened ', ...an(l.app), ...(l.by ? [' through ', { name: l.by }] : [])]],
      invited: (l: Line): Told => [l.email, [' was invited', ...by(l), ...(l.app ? [' to ', { name: l.app }] : []), ...till(l), ...times(l)]],
      granted: (l: Line): Told => [l.email, [' was let into ', ...an(l.app), ...by(l), ...till(l), ...times(l)]],
      withdrawn: (l: Line): Told => [l.email, [' was removed from ', ...an(l.app), ...by(l), ...times(l), ...closed(l)]],
      removed: (l: Line): Told => [l.email, [' was removed', ...by(l), ...times(l), ...closed(l)]],
      cut: (l: Line): Told => [(l.you && l.what) || l.email, [' was disconnected', ...by(l), ...(l.what && !l.you ? [', through ', { name: l.what }] : []), ...times(l), ...closed(l)]],
      restored: (l: Line): Told => [l.email, l.app ? [' has ', { name: l.app }, ' back as it was', ...comma(l)] : [' is back as before', ...comma(l)]],
      accepted: (l: Line): Told => [l.email, [' accepted your invitation', ...times(l)]],
      until: (l: Line): Told => [l.email, [' can open ', ...an(l.app), ...(l.until ? [` until ${l.until}`] : [' without an end']), ...comma(l)]],
      ended: (l: Line): Told =>
        l.email ? [l.email, [' can’t open ', ...an(l.app), ' any more: it ended', ...closed(l)]] : [l.app, [` was approved until ${l.until}, and is revoked`, ...closed(l)]],
      left: (l: Line): Told => [l.email, [' has left, and can’t open anything any more']],
      browser: (l: Line): Told => [l.you ? 'You' : l.email, [' signed in with a new browser', ...(l.what ? [' at ', { name: l.what }] : []), ...times(l)]],
      passkey: (l: Line): Told => ['You', l.by ? [' sign in with ', { name: l.by }, ' now'] : [' added the passkey ', { name: l.what }]],
      recovering: (l: Line): Told => ['The server’s operator', [' was told that you lost your passkeys', ...(l.until ? [`, which stay until ${l.until}`] : [])]],
      'knock-refused': (l: Line): Told => [l.email, [' was not let into ', ...an(l.app), ...by(l)]],
      'knock-muted': (l: Line): Told => [l.email, [' was not let in', ...by(l), ', and can’t ask again']],
      'group-added': (l: Line): Told => [l.what, [' was made', ...by(l)]],
      'group-removed': (l: Line): Told => [l.what, [' was removed', ...by(l), ...closed(l)]],
      'group-joined': (l: Line): Told => [l.email, [' joined ', { name: l.what }, ...comma(l)]],
      'group-left': (l: Line): Told => [l.email || 'Somebody', [' left ', { name: l.what }, ...comma(l), ...closed(l)]],
      'group-granted': (l: Line): Told => [l.what, [' was let into ', ...an(l.app), ...by(l), ...till(l), ...closed(l)]],
      'group-withdrawn': (l: Line): Told => [l.what, [' was removed from ', ...an(l.app), ...by(l), ...closed(l)]],
      'group-filled': (l: Line): Told => [l.what, [' is filled', ...by(l)]],
      'group-ended': (l: Line): Told => [l.what, [' can’t open ', ...an(l.app), ' any more: it ended']],
      approved: (l: Line): Told => [l.app, [' was approved', ...by(l), ...till(l), ...port(l)]],
      denied: (l: Line): Told => [l.app, [' was denied', ...by(l)]],
      paused: (l: Line): Told => [l.app, [' was paused', ...by(l), ...closed(l)]],
      resumed: (l: Line): Told => [l.app, [' was resumed', ...by(l)]],
      stopped: (l: Line): Told => [l.app, [' is not shared any more', ...comma(l), ...closed(l)]],
      revoked: (l: Line): Told => [l.app, [' was revoked', ...by(l), ...closed(l)]],
      options: (l: Line): Told => [l.app, [' has other options', ...comma(l)]],
      renamed: (l: Line): Told => [l.app, [' has another name', ...(l.what ? [' now. Before, it was ', { name: l.what }] : []), ...times(l)]],
      'port-changed': (l: Line): Told => [l.app, [` now answers on port ${l.port}`, ...times(l)]],
      'program-changed': (l: Line): Told => [l.app, [' is now answered by ', ...(l.program ? [{ name: l.program }] : ['another program']), ...times(l)]],
      'client-in': (l: Line): Told => [l.what || 'A connected app', [' was let in', ...(l.email ? [' by ', person(l)] : []), ...times(l)]],
      'client-out': (l: Line): Told => [l.what || 'A connected app', l.owner ? [' was revoked by you', ...(l.email && !l.you ? [', for ', { name: l.email }] : []), ...closed(l)] : [' was let go', ...(l.email ? [' by ', person(l)] : []), ...times(l)]],
      'domain-added': (l: Line): Told => ['An own domain', [' was added', ' for ', ...an(l.app), ...(l.what ? [': ', { name: l.what }] : []), ...times(l)]],
      'domain-removed': (l: Line): Told => ['An own domain', [' was removed', ...(l.what ? [': ', { name: l.what }] : []), ...times(l)]],
      'password-made': (l: Line): Told => [l.owner ? 'An app password' : l.email, [l.owner ? ' was made by you' : ' made an app password', ' for ', ...an(l.app), ...(l.what ? [': ', { name: l.what }] : []), ...times(l)]],
      'password-revoked': (l: Line): Told => ['An app password', [...(l.email && !l.you ? [' of ', { name: l.email }] : []), ' was revoked', ...by(l), ...(l.what ? [': ', { name: l.what }] : []), ...times(l), ...closed(l)]],
      'device-made': (l: Line): Told => [l.owner ? 'A device' : l.email, [l.owner ? ' got a certificate' : ' made a certificate', ' for ', ...an(l.app), ...(l.what ? [': ', { name: l.what }] : []), ...times(l)]],
      'device-revoked': (l: Line): Told => ['A device', [...(l.email && !l.you ? [' of ', { name: l.email }] : []), ' was revoked', ...by(l), ...(l.what ? [': ', { name: l.what }] : []), ...times(l), ...closed(l)]],
      dark: (l: Line): Told => ['Dark', [...comma(l), ...closed(l)]],
      light: (l: Line): Told => ['Light again', comma(l)],
      connected: (l: Line): Told => ['This computer', [' was connected to ', { name: l.what }, ...by(l)]],
      disconnected: (l: Line): Told => ['This computer', [' was disconnected from ', { name: l.what }, ...by(l)]],
      'connect-failed': (l: Line): Told => ['Connecting', [' to ', { name: l.what }, ' failed']],
      settings: (l: Line): Told => ['The settings', [' were changed', ...by(l)]],
      'user-allowed': (l: Line): Told => [l.what, [', another user of this computer, was allowed to change who may come in', ...comma(l)]],
      'user-denied': (l: Line): Told => [l.what, [', another user of this computer, may not change who may come in', ...comma(l)]],
      'server-away': (l: Line): Told => [l.what, [' did not answer any more', ...times(l)]],
      'server-back': (l: Line): Told => [l.what, [' answered again', ...times(l)]],
      'certificate-trouble': (l: Line): Told => ['No certificate', [...(l.what ? [' for ', { name: l.what }] : []), ', so browsers could not open it', ...times(l)]],
      'certificate-renewed': (l: Line): Told => ['The certificate', [...(l.what ? [' of ', { name: l.what }] : []), ' renewed itself', ...(l.until ? [`, fine until ${l.until}`] : [])]],
      'clock-ahead': (_: Line): Told => ['The clock', [' of this computer is ahead: shares with a date may end too early']],
      knocked: (l: Line): Told => [l.email || 'Somebody', [' asked ', ...(l.app ? ['for ', { name: l.app }] : ['to be let in']), ...times(l)]],
      'turned-away': (l: Line): Told => [l.email || 'Somebody', [' tried to open ', ...an(l.app), ', not shared with them', ...times(l)]],
      delivered: (l: Line): Told => [l.what, [' sent something to ', { name: l.app }]],
      'sender-added': (l: Line): Told => [l.what, [' may send to ', { name: l.app }, ...comma(l)]],
      'sender-changed': (l: Line): Told => [l.what, [' has another secret for ', { name: l.app }, ...comma(l)]],
      'sender-revoked': (l: Line): Told => [l.what, [' was revoked for ', { name: l.app }, ...comma(l), ...closed(l)]],
      'sender-ended': (l: Line): Told => [l.what, [' can’t send to ', { name: l.app }, ' any more: it ended']],
      'delivery-refused': (l: Line): Told => ['Something', [' that no sender signed was refused', ...(l.app ? [' at ', { name: l.app }] : []), ...times(l)]],
      'password-refused': (l: Line): Told => ['A wrong app password', [' was refused', ...(l.app ? [' at ', { name: l.app }] : []), ...times(l)]],
      other: (l: Line): Told => [l.email || l.app || l.what, l.email && l.app ? [' – ', { name: l.app }] : []],
    },
    kept: 'Kept here only, for 90 days.',
    clear: 'Clear…',
    emptyTitle: 'Nothing has happened yet',
    emptyText: 'Who opens which app, and what you and your apps decide, is listed here, on this computer only, for 90 days.',
    none: (query: string): Sentence => (query ? ['Nothing matches “', { name: query }, '”.'] : ['There is nothing of this kind.']),
  },

  clearActivity: {
    title: ['Clear the activity?'] as Sentence,
    text: 'Who opened what and when, and what was decided, is forgotten. It was kept on this computer only.',
    keep: 'Keep',
    confirm: 'Clear',
    busy: 'Clearing…',
  },
};
