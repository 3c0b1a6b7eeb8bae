/* What the Apps view derives from a snapshot: pure functions, no state. */
import { fold } from './labels';
import type { Sentence } from './sentence';
import { strings } from './strings';
import type { Account, AppOptions, OwnerApp } from './types';

/** An option that is on or off; the name an app is asked by reads as a choice of two. */
export type Toggle = Exclude<{ [Name in keyof AppOptions]: AppOptions[Name] extends boolean ? Name : never }[keyof AppOptions], 'localhostHost'>;

/** Those about how requests reach an app, and who does, which stand apart. */
export const reachToggles: readonly Toggle[] = ['onlyPasskey', 'publicAddress', 'forwarded', 'h2c', 'pin'];

interface Shelves {
  /** Requests, longest waiting first, so that a new one never moves another. */
  waiting: OwnerApp[];
  on: OwnerApp[];
  off: OwnerApp[];
}

/**
 * Whether it is known that nobody else can open an app: what other computers in the network
 * will be able to shows only when something listens.
 */
export function onlyYours(app: OwnerApp): boolean {
  const listens = app.status === 'live' ? app.health !== 'nothing' : !!(app.listener.program || app.listener.pid || app.listener.user);
  return app.openToCount === 0 && !app.network && listens;
}

/** Sorts a snapshot's apps into the three sections, each in the agent's order, those matching query only. */
export function shelve(apps: readonly OwnerApp[], account: Account, query = ''): Shelves {
  const wanted = fold(query.trim());
  const shelves: Shelves = { waiting: [], on: [], off: [] };
  for (const app of apps) {
    if (wanted && !fold(app.label).includes(wanted) && !fold(hostOf(app, account)).includes(wanted)) continue;
    if (app.status === 'pending') shelves.waiting.push(app);
    else if (app.status === 'live') shelves.on.push(app);
    else shelves.off.push(app);
  }
  shelves.waiting.sort((a, b) => Date.parse(a.requestedAt) - Date.parse(b.requestedAt));
  return shelves;
}

/** The app's host as its address will be, also while it has none yet. */
export function hostOf(app: OwnerApp, account: Account): string {
  return app.host || (account.host ? `${app.name}.${account.host}` : app.name);
}

export function urlOf(app: OwnerApp, account: Account): string {
  return app.url || `https://${hostOf(app, account)}`;
}

/** Whether an app that was approved before waits for another yes. */
export function asksAgain(app: Pick<OwnerApp, 'status' | 'approvedAt'>): boolean {
  return app.status === 'pending' && app.approvedAt !== undefined;
}

/**
 * What program of which user sent a request, unless it is just the one that listens, and that a
 * coding agent is behind it.
 */
export function whoAsks(app: Pick<OwnerApp, 'askedBy' | 'asks' | 'listener'>): Sentence[] {
  const { program = '', user = '', assistant } = app.asks ?? {};
  const another = app.askedBy ?? '';
  return [
    ...(another || (program && (program !== app.listener.program || assistant)) ? [strings.ask.askedBy(program, another || user, another !== '')] : []),
    ...(assistant ? [strings.ask.assistant(assistant)] : []),
  ];
}

/** What of a request the owner looks at before approving. */
export function seenOf(app: OwnerApp) {
  return { label: app.label, localPort: app.localPort, program: app.listener.program ?? '', user: app.listener.user ?? '', ...(app.tcp && { tcp: true }) };
}

/** A shell command that publishes an app named notes; api is host:port. */
export function publishCommand(api: string): string {
  return `porchlight publish notes --label Notes --port 3000${api === defaultAPI ? '' : ` --api ${api}`}`;
}

/** Where the loopback API listens unless told otherwise. */
export const defaultAPI = '127.0.0.1:8765';

/** Why nobody can open an app now, its owner included, as a sentence; empty when they can. */
export function shut(app: Pick<OwnerApp, 'paused'>, dark: boolean): string {
  return dark ? strings.app.shutDark : app.paused ? strings.app.shutPaused : '';
}
