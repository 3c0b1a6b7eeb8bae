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

/** "Notes, Photos and Wiki", or "Notes, Photos and 3 more". */
function listed(labels: readonly string[], more = 0): Sentence {
  const joint = (i: number) => (i === labels.length - 1 && more === 0 ? ' and ' : ', ');
  return [...labels.flatMap((label, i): (string | Name)[] => (i === 0 ? [{ name: label }] : [joint(i), { name: label }])), ...(more > 0 ? [` and ${number.format(more)} more`] : [])];
}

/** "ben@example.com and 2 others can open it again." */
function whoCanOpen(openTo: readonly string[], n: number): Sentence {
  const [first, second] = openTo;
  if (n === 0 || first === undefined) return ['Only you can open it.'];
  const more: Sentence = n === 1 ? [] : n === 2 && second !== undefined ? [' and ', { name: second }] : [` and ${count(n - 1, 'other', 'others')}`];
  return [{ name: first }, ...more, ' can open it again.'];
}

export const strings = {
  product: 'Porchlight',
  number: (n: number) => number.format(n),

  nav: {
    apps: 'Apps',
    people: 'People',
    clients: 'Connected apps',
    activity: 'Activity',
    settings: 'Settings',
    outbox: 'Outbox',
    waiting: (n: number) => `${number.format(n)} waiting for you`,
    mails: (n: number) => count(n, 'mail', 'mails'),
  },

  standing: {
    connected: 'Connected',
    local: 'This computer only',
    dark: 'Dark. Nobody gets in',
    starting: 'Starting…',
    reconnecting: 'Reconnecting…',
    unreachable: 'Not reachable',
    away: 'Not answering',
    certificate: 'Certificate not in order',
    copyRoot: 'Copy this computer’s address',
  },

  trouble: {
    awayTitle: 'Porchlight’s engine does not answer.',
    awayText: 'What you see may be out of date.',
    tryAgain: 'Try again',
    trying: 'Trying…',
    locked: 'Your keychain is locked. You can look and take access away; approving, inviting and opening wait until it is open.',
    noKeychain: 'There is no keychain here, and Porchlight keeps its owner secret in one. You can look and take access away; the rest waits. Install one, or have the secret kept in a file only you can read.',
    unlock: 'Unlock…',
    keepInFile: 'Keep it in a file',
    keeping: 'Keeping it…',
  },

  dark: {
    title: 'Go dark',
    since: (time: string) => `Dark since ${time}.`,
    text: 'Nobody can open anything. Your apps keep running; who may open them is kept.',
    light: 'Light up again',
    lighting: 'Lighting up…',
  },

  access: {
    until: (when: string) => `Everyone keeps their access until ${when}. Inviting waits.`,
    waits: 'Inviting waits.',
  },

  find: { label: 'Search apps', placeholder: 'Search', clear: 'Clear search', none: (query: string): Sentence => ['Nothing matches “', { name: query }, '”.'] },

  sections: { waiting: 'Waiting for you', on: 'On', offWhileDark: 'Off while dark', off: 'Off' },

  ask: {
    title: (label: string, again: boolean): Sentence => [{ name: label }, again ? ' has changed' : ' wants an address'],
    askedBy: (user: string): Sentence => ['Asked for by ', { name: user }, ', another user of this computer.'],
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
    comesFromPort: (port: number) => `Port ${port} on this computer`,
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

  app: {
    open: 'Open',
    shutPaused: 'Nobody can open it while it is paused.',
    shutDark: 'Nobody can open it while it is dark.',
    openApp: (label: string): Sentence => ['Open ', { name: label }],
    copy: 'Copy address',
    copyOf: (label: string): Sentence => ['Copy address of ', { name: label }],
    more: (label: string): Sentence => ['More for ', { name: label }],
    pause: 'Pause',
    resume: 'Resume',
    details: 'Who may open it, options…',
    show: (label: string): Sentence => ['Show ', { name: label }],
    back: 'Back to Apps',
    revoke: 'Revoke…',
    paused: 'Paused',
    pausedWhy: 'Nobody gets in until you resume it. Who may open it is kept.',
    openTo: (n: number, label: string): Sentence => [`${count(n, 'person', 'people')} may open `, { name: label }],
    hereNow: (n: number) => `now: ${count(n, 'connection', 'connections')}`,
    qr: 'QR code',
    hideQR: 'Hide QR code',
    qrOf: (host: string) => `QR code of https://${host}`,
    who: 'Who may open it',
    whoNobody: 'Only you. Invite someone to let them in.',
    whoNow: 'Here now',
    whoOpened: (ago: string) => `Opened it ${ago}`,
    whoNever: 'No visit on record',
    options: 'Options',
    identity: 'Tell the app who is there',
    identityText: 'For apps that know a sign-in header of their own.',
    identityStandard: 'Standard headers',
    identityOther: 'Another header…',
    identityName: 'Header name',
    identityValue: 'The header holds',
    identityEmail: 'the e-mail address',
    identityID: 'the account id',
    host: 'Name the app sees',
    hostText: 'Some development servers insist on localhost.',
    hostPublic: 'The public address',
    hostLocal: 'localhost',
    forwarded: 'Pass on the visitor’s network address',
    forwardedText: 'Adds X-Forwarded-For, -Proto and -Host.',
    crossOrigin: 'Let your other apps act on it',
    crossOriginText: 'Otherwise a page of another app can link here, but not show this app in a frame, read it or change anything with a visitor’s sign-in.',
    h2c: 'Speak HTTP/2 to the app',
    h2cText: 'For apps that take HTTP/2 without encryption, gRPC for one.',
    state: 'State',
    certificate: 'Certificate',
    certificateUntil: (date: string) => `Fine until ${date}, renews itself.`,
    certificateFine: 'Fine',
    certificateLater: 'Made when somebody first opens the app.',
    certificateProblem: 'Not in order',
    behind: 'Behind it',
    behindText: (port: number, who: string) => `Port ${port}${who ? `: ${who}` : ''}.`,
    answering: 'Answering',
    approval: 'Approval',
    approvedOn: (date: string) => (date ? `Given on ${date}.` : 'Given.'),
    save: 'Save',
    saving: 'Saving…',
    noAddress: 'No address yet',
    noAddressWhy: 'It gets its address once this computer is connected.',
    notAnswering: 'Not answering',
    notAnsweringWhy: (port: number) => `Nothing on port ${port} takes connections.`,
    stopped: 'Stopped',
    stoppedWhy: 'The app took itself off. It is on again as soon as it asks; you approved it before.',
    now: (n: number) => `now: ${number.format(n)}`,
    nowOf: (n: number) => (n === 1 ? 'connection' : 'connections'),
  },

  copied: 'Copied',
  copy: 'Copy',
  dismiss: 'Dismiss',

  toast: {
    undone: ['Undone.'] as Sentence,
    approved: (label: string, host: string, who: Sentence): Sentence => [{ name: label }, ` is on, at ${host}. `, ...who],
    approvedLater: (label: string): Sentence => [{ name: label }, ' is approved. It gets its address once this computer is connected.'],
    denied: (label: string): Sentence => [{ name: label }, ' stays off. If it asks again, you won’t hear of it for 10 minutes.'],
    deniedAgain: (label: string): Sentence => [{ name: label }, ' stays off. If it asks again, you won’t hear of it until you unmute it.'],
    deniedAll: (n: number): Sentence => [`${count(n, 'app stays', 'apps stay')} off. If they ask again, you won’t hear of them for at least 10 minutes.`],
    revoked: (label: string, n: number): Sentence => [{ name: label }, ` has no address any more.${closed(n)}`],
    paused: (label: string, n: number): Sentence => [{ name: label }, ` is paused.${closed(n)} Who may open it is kept.`],
    resumed: (label: string): Sentence => [{ name: label }, ' is open again to whom you chose.'],
    dark: (n: number): Sentence => [`Nobody can open anything now.${closed(n)}`],
    light: ['The light is on again.'] as Sentence,
    exported: (path: string): Sentence => ['Saved as ', { name: path }, '.'],
    invited: (email: string, local: boolean): Sentence => [{ name: email }, local ? ' is invited. The mail is in the outbox.' : ' is invited. The mail is on its way.'],
    withdrawn: (email: string, label: string, n: number): Sentence => [{ name: email }, ' can’t open ', { name: label }, ` any more.${closed(n)}`],
    givenBack: (email: string, label: string): Sentence => [{ name: email }, ' can open ', { name: label }, ' again.'],
    removed: (email: string, n: number): Sentence => [{ name: email }, ` can’t open anything any more.${closed(n)}`],
    putBack: (email: string): Sentence => [{ name: email }, ' is back, with everything as it was. No mail was sent.'],
    disconnected: (name: string, n: number, client: boolean): Sentence => [
      { name },
      n === 0 ? ' had nothing open any more.' : ` is disconnected.${closed(n)}${client ? '' : ' They can come back.'}`,
    ],
    clientRevoked: (name: string, n: number): Sentence => [{ name }, ` can’t open anything any more.${closed(n)}`],
    cleared: ['The activity is cleared.'] as Sentence,
    trusted: ['Your browsers trust addresses on this computer. Restart one that is open.'] as Sentence,
    distrusted: ['Your browsers no longer trust addresses on this computer.'] as Sentence,
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

  people: {
    changes: (n: number) => (n === 1 ? 'A program changed who may come in' : `Programs made ${n} changes of who may come in`),
    changeUndo: 'Undo',
    changesKeep: 'Leave the rest as it is',
    changesMore: (n: number) => `And ${n} more below these, once they are answered.`,
    find: 'Search people',
    invite: 'Invite',
    inviteSomeone: 'Invite someone',
    close: 'Close',
    email: 'E-mail address',
    placeholder: 'name@example.com',
    mayOpen: 'May open',
    hint: (apps: readonly string[]): Sentence =>
      apps.length === 0
        ? ['Choose at least one app.']
        : [
            'They get one mail. One click opens ',
            ...listed(apps),
            ', nothing else. The link works for 7 days.',
          ],
    send: 'Send invitation',
    sending: 'Sending…',
    mayComeIn: 'May come in',
    removed: 'Removed',
    you: 'You, the owner',
    everything: 'Everything',
    invited: 'Invited',
    invitedWhy: 'They have not clicked the link in the mail yet.',
    hereNow: 'here now',
    lastHere: (ago: string) => (ago === 'just now' ? 'Here just now' : `Last here ${ago}`),
    openNow: 'open now',
    stopped: 'stopped',
    appsFor: (email: string) => `Apps for ${email}`,
    appFor: (label: string, email: string): Sentence => [{ name: label }, ` for ${email}`],
    switchHint: 'Switching off closes what they have open.',
    resend: 'Send the mail again',
    remove: 'Remove…',
    removeOf: (email: string) => `Remove ${email}`,
    inviteAgain: 'Invite again',
    undoOf: (email: string) => `Undo: ${email} comes back as before`,
    inviteAgainOf: (email: string) => `Invite again: ${email}`,
    waitsLocked: 'Inviting waits until your keychain is unlocked.',
    waitsAway: 'Inviting waits until the server answers.',
    emptyTitle: 'Nobody but you',
    emptyText: 'Invite someone by e-mail to an app. One click in the mail lets them in, and only there.',
    noApps: 'No app is on. Approve one first; then you can invite people to it.',
    local: 'Nobody else can reach this computer until it is connected to a server. Mails stay in the outbox.',
    none: (query: string): Sentence => ['Nobody matches “', { name: query }, '”.'],
    undo: 'Undo',
    couldOpen: (labels: readonly string[]): Sentence => (labels.length > 0 ? ['Could open ', ...listed(labels)] : ['Could open nothing']),
    mayOpenNow: (labels: readonly string[], more: number): Sentence => (labels.length > 0 ? listed(labels, more) : ['Nothing']),
    showAllApps: (n: number) => `Show all ${number.format(n)} apps`,
  },

  removePerson: {
    title: (email: string): Sentence => ['Remove ', { name: email }, '?'],
    text: 'They can’t open anything any more, and what they have open is closed. You can undo it for a few seconds; after that it takes a new invitation.',
    keep: 'Keep',
    confirm: 'Remove',
    busy: 'Removing…',
  },

  clients: {
    lead: 'Apps elsewhere that you let in: a phone, a script, a web client. Each can open what its person may open, and nothing more. It can’t invite, approve or change settings.',
    yours: 'Yours',
    others: 'Other people’s',
    opensAs: (email: string) => `Opens apps as ${email}`,
    opensAsYou: 'Opens apps as you',
    used: (ago: string) => (ago ? `Used ${ago}` : 'Never used'),
    since: (date: string) => `since ${date}`,
    revoke: 'Revoke…',
    revokeOf: (name: string): Sentence => ['Revoke ', { name }],
    emptyTitle: 'No connected apps',
    emptyText: 'A phone app or a script that wants to open your apps asks you first, in your browser. You see it here, and can end it.',
    none: (query: string): Sentence => ['Nothing matches “', { name: query }, '”.'],
    find: 'Search connected apps',
  },

  revokeClient: {
    title: (name: string): Sentence => ['Revoke ', { name }, '?'],
    text: 'It stops working within seconds. You can allow it again later.',
    keep: 'Keep',
    confirm: 'Revoke',
    busy: 'Revoking…',
  },

  activity: {
    find: 'Search activity',
    app: 'App',
    allApps: 'All apps',
    hereNow: 'Here now',
    hasOpen: (labels: readonly string[], email: string): Sentence => [...listed(labels), ...(email ? [', as ', { name: email }] : [])],
    connections: (n: number) => count(n, 'connection', 'connections'),
    disconnect: 'Disconnect',
    disconnecting: 'Disconnecting…',
    disconnectOf: (email: string, client?: string): Sentence => (client ? ['Disconnect ', { name: client }, ` of ${email}`] : [`Disconnect ${email}`]),
    disconnectHint: 'Disconnect ends what is open now. Remove the person, or revoke the connected app, to keep them out.',
    today: 'Today',
    yesterday: 'Yesterday',
    did: {
      opened: (app: string): Sentence => [' opened ', { name: app }],
      client: (app: string, by: string): Sentence => [' opened ', { name: app }, ...(by ? [' through ', { name: by }] : [])],
      invited: (app: string, by: string): Sentence => [' was invited to ', { name: app }, ...(by ? [' by ', { name: by }] : [])],
      granted: (app: string, by: string): Sentence => [' was given ', { name: app }, ...(by ? [' by ', { name: by }] : [])],
      withdrawn: (app: string, by: string): Sentence => [' lost ', { name: app }, ...(by ? [' by ', { name: by }] : [])],
      removed: (_: string, by: string): Sentence => [' was removed', ...(by ? [' by ', { name: by }] : [])],
      other: (app: string): Sentence => [' – ', { name: app }],
    },
    clear: 'Clear…',
    emptyTitle: 'Nobody came by yet',
    emptyText: 'Who opens which app is listed here, on this computer only, for 90 days.',
    none: (query: string): Sentence => ['Nothing matches “', { name: query }, '”.'],
  },

  clearActivity: {
    title: ['Clear the activity?'] as Sentence,
    text: 'Who opened what and when is forgotten. It was kept on this computer only.',
    keep: 'Keep',
    confirm: 'Clear',
    busy: 'Clearing…',
  },

  settings: {
    general: 'General',
    login: 'Start at login',
    loginText: 'The lamp is in the menu bar as soon as you are.',
    appearance: 'Appearance',
    system: 'Like the system',
    light: 'Light',
    dark: 'Dark',
    tell: 'Tell me when',
    kinds: {
      request: 'An app asks for an address',
      invitation: 'Someone accepts an invitation',
      capability: 'An app invites or removes someone',
      client: 'A connected app is let in',
      access: 'Access was taken away',
      connection: 'The connection is lost for a minute',
      changed: 'An app changes its port or name',
    },
    safety: 'Safety',
    failStatic: 'When the server can’t be reached',
    failStaticText: 'People you know keep their access for this long. New sign-ins wait.',
    hours: (n: number) => (n === 0 ? 'Nobody keeps access' : count(n, 'hour', 'hours')),
    askAgain: 'Ask me again when an app moves',
    askAgainText: 'An app that comes back on another port waits for you.',
    secret: 'Owner secret',
    secretKeychain: 'In the system’s keychain.',
    secretFile: 'In a file only you can read, as you asked for.',
    trust: 'Local certificates',
    trustText: 'So that your browsers trust addresses on this computer.',
    trusted: 'Trusted',
    trustDo: 'Trust',
    trustUndo: 'Remove',
    trusting: 'Asking…',
    account: 'Account',
    localOnly: 'This computer only',
    localText: (host: string) => `Its addresses, under ${host}, work on this computer alone.`,
    connectDo: 'Connect…',
    connectedTo: (host: string, auth: string) => `This computer is ${host}, at ${auth}`,
    connected: 'Connected',
    disconnect: 'Disconnect…',
    data: 'Data',
    dataTitle: 'Everything Porchlight keeps',
    dataShow: 'Show in files',
    export: 'Export',
    exportText: 'Account, apps, people, connected apps, activity and settings in one JSON file. No secret is in it.',
    exportDo: 'Export…',
    exporting: 'Exporting…',
    about: 'About',
    version: (version: string) => `Porchlight ${version}`,
    engine: (version: string, mode: string) => `Engine ${version}, ${mode}`,
    copyVersions: 'Copy versions',
    everybody: 'Everybody on this computer is trusted',
    everybodyText: 'Programs of its other users count as yours: they take addresses over, and see and change who may open your apps.',
    users: 'Other users of this computer',
    user: { asks: 'A program of this user wants to see and change who may open your apps.', allowed: 'Programs of this user see and change who may open your apps.', denied: 'Programs of this user stay out, and you are not asked again.' } as Record<string, string>,
    allowUser: 'Allow',
    denyUser: 'Don’t allow',
    forgetUser: 'Forget',
    userAsks: (name: string) => `A program of ${name}, another user of this computer, wants to see and change who may open your apps.`,
    attached: 'Programs attached to the engine',
    attachedNone: 'None. An app that bundles Porchlight’s engine attaches here.',
  },

  disconnect: {
    title: ['Disconnect this computer?'] as Sentence,
    text: 'Its address stops working for everybody else, and the people you invited lose their access. The apps you approved stay approved, for this computer alone.',
    keep: 'Keep',
    confirm: 'Disconnect',
    busy: 'Disconnecting…',
  },

  welcome: {
    title: 'Leave the porch light on',
    lede: 'Your apps stay on this computer. The people you choose can open them, and only them.',
    tryTitle: 'Try it on this computer',
    tryText: 'No account, no server. Your apps get addresses that work in your own browser.',
    trust: 'Have my browsers trust them',
    tryDo: 'Try it',
    trying: 'One moment…',
    connectTitle: 'Connect to a server',
    connectText: 'Your apps get addresses that work everywhere, for people you invite.',
    server: 'Server address',
    serverPlaceholder: 'control.example.net',
    connect: 'Connect',
    connecting: 'Connecting…',
    later: 'You can change this later in Settings.',
    codeTitle: 'Confirm this computer',
    codeLede: (host: string) => `Sign in at ${host} and check that it shows the same code.`,
    code: 'Code',
    copyCode: 'Copy code',
    openServer: (host: string) => `Open ${host}`,
    waiting: (minutes: number) => `Waiting for you to confirm. ${minutes} min left`,
    expired: 'The code has expired. Connect again for a new one.',
    another: 'Use another server',
    waits: 'A server waits for you to confirm this computer.',
    showCode: 'Show the code',
    cancel: 'Not now',
    keeps: 'The apps you approved stay approved. People you invited on this computer alone do not come along.',
  },

  bridge: {
    missing: 'This window was opened outside Porchlight, so nothing can be done here.',
    failed: 'That did not work. Try again in a moment.',
  },
} as const;
