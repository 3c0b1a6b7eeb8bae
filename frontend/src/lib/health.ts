/* What would help an app, as the window shows it. Pure functions. */
import { strings } from './strings';
import type { AppOptions, ChangedOptions, OwnerApp } from './types';

/** A change of options that the agent suggests, in words. */
interface Suggestion {
  change: ChangedOptions;
  /** What the options it names are now. */
  before: ChangedOptions;
  words: (typeof strings.suggest)[keyof typeof strings.suggest];
}

/** What the agent suggests for an app, unless it was done by now. */
export function suggestionOf({ healthOption, options }: Pick<OwnerApp, 'healthOption' | 'options'>): Suggestion | undefined {
  const change = healthOption ?? {};
  const names = (Object.keys(change) as (keyof ChangedOptions)[]).filter((name) => name in options);
  if (names.every((name) => change[name] === options[name])) return undefined;
  const before = Object.fromEntries(names.map((name) => [name, options[name]])) as ChangedOptions;
  return { change, before, words: wordsOf(change) };
}

function wordsOf(change: ChangedOptions): Suggestion['words'] {
  const all = strings.suggest;
  if (change.upstream === 'https') return all.https;
  if (change.upstream === 'h2c' || change.h2c) return all.h2c;
  if (change.upstream === 'http' || change.h2c === false) return all.http;
  if (change.localhostHost) return all.localhost;
  if (change.publicAddress) return all.publicAddress;
  return all.other;
}

/** What an app is spoken to in, as one choice; the path of a socket is apart. */
export type Reach = 'http' | 'https' | 'h2c' | 'socket';

export function reachOf({ upstream, h2c }: Pick<AppOptions, 'upstream' | 'h2c'>): Reach {
  if (upstream.startsWith(socketScheme)) return 'socket';
  return h2c || upstream === 'h2c' ? 'h2c' : upstream === 'https' ? 'https' : 'http';
}

/** Before the path of a socket. */
export const socketScheme = 'unix:';

/** The change after which an app is spoken to so, with what would contradict it turned off. */
export function reachBy(reach: Exclude<Reach, 'socket'>): ChangedOptions {
  return { upstream: reach === 'http' ? '' : reach, h2c: false, ...(reach === 'https' ? {} : { pin: false }) };
}

/** The same for the socket at a path. */
export const reachAt = (path: string): ChangedOptions => ({ upstream: socketScheme + path, pin: false });
