/*
 * What happened, as far as it was read: the newest lines of what is asked for, and older
 * ones page by page.
 */
import type { Ask } from './bridge';
import { plain } from './sentence';
import { strings } from './strings';
import type { Line, Told } from './strings/activity';
import type { Activity } from './types';
import { dayWord, endWord } from './until';
import type { IconName } from '../ui/Icon.svelte';

/** How many lines are asked for at a time, and how often in a row where few are found. */
const pageSize = 200;
const maxAsks = 10;

export type Group = '' | 'visits' | 'decisions' | 'trouble';

/** What is asked for; what is empty asks for all. */
export interface Filter {
  group: Group;
  app: string;
  email: string;
  search: string;
}

export class Timeline {
  /** Newest first; undefined before the first answer. */
  lines = $state.raw<Activity[]>();
  /** Whether there is more to read. */
  more = $state(false);
  reading = $state(false);
  problem = $state('');

  readonly #ask: Ask;
  #next = 0;
  #filter: Filter = { group: '', app: '', email: '', search: '' };
  #asked = 0;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** Reads the newest lines. What was read of older ones stays, unless something else is asked for. */
  async read(filter: Filter): Promise<void> {
    const same = JSON.stringify(filter) === JSON.stringify(this.#filter);
    this.#filter = filter;
    const before = same ? (this.lines ?? []) : [];
    await this.#page(0, (lines, next) => {
      const oldest = lines.at(-1)?.id ?? 0;
      const older = next === 0 ? [] : before.filter((one) => (one.id ?? 0) < oldest);
      this.lines = [...lines, ...older];
      if (older.length === 0) this.#goesOn(next);
    });
  }

  /** Reads what comes before the oldest line. */
  async older(): Promise<void> {
    if (this.#next === 0 || this.reading) return;
    await this.#page(this.#next, (lines, next) => {
      this.lines = [...(this.lines ?? []), ...lines];
      this.#goesOn(next);
    });
  }

  #goesOn(next: number) {
    this.#next = next;
    this.more = next > 0;
  }

  // No more than some thousand lines are looked at for one answer, so one can have few
  // lines, or none, though there are more.
  async #page(before: number, take: (lines: Activity[], next: number) => void) {
    const mine = ++this.#asked;
    this.reading = true;
    try {
      const lines: Activity[] = [];
      let next = before;
      for (let asks = 0; asks < maxAsks && lines.length < pageSize; asks++) {
        const answer = await this.#ask('activityPage', asking(this.#filter, next));
        if (mine !== this.#asked) return;
        lines.push(...answer.lines);
        next = answer.next;
        if (next === 0) break;
      }
      take(lines, next);
      this.problem = '';
    } catch (error) {
      if (mine === this.#asked) this.problem = (error as Error).message;
    } finally {
      if (mine === this.#asked) this.reading = false;
    }
  }
}

function asking({ group, app, email, search }: Filter, before: number) {
  return {
    limit: pageSize,
    ...(before > 0 ? { before } : {}),
    ...(group ? { group } : {}),
    ...(app ? { app } : {}),
    ...(email ? { email } : {}),
    ...(search ? { search } : {}),
  };
}

/** A line in words; clients are told apart by ids, and known by their names. */
export function told(one: Activity, clients: ReadonlyMap<string, string>, now: number): Told {
  const line: Line = {
    email: one.email,
    app: one.app,
    by: clients.get(one.by ?? '') ?? one.by ?? '',
    owner: one.owner ?? false,
    you: one.you ?? false,
    what: one.what ?? '',
    until: one.until ? (one.app && !one.email ? endWord : dayWord)(one.until, now) : '',
    port: String(one.port ?? ''),
    program: one.program ?? '',
    closed: one.closed ?? 0,
    times: one.count ?? 1,
  };
  const known = strings.activity.did as Record<string, (line: Line) => Told>;
  return (known[one.kind] ?? known['other']!)(line);
}

/** The same as one text. */
export const said = ([who, did]: Told): string => plain([{ name: who }, ...did]);

const marks: Record<string, IconName> = {
  invited: 'mail', granted: 'check', until: 'clock', ended: 'clock', withdrawn: 'x', removed: 'x', cut: 'unlink', restored: 'back', left: 'door',
  knocked: 'door', 'knock-refused': 'door', 'knock-muted': 'door',
  'group-added': 'people', 'group-removed': 'x', 'group-joined': 'plus', 'group-left': 'x', 'group-granted': 'check', 'group-withdrawn': 'x', 'group-ended': 'clock', 'group-filled': 'people',
  approved: 'plus', denied: 'x', paused: 'pause', resumed: 'play', stopped: 'x', revoked: 'x', options: 'settings', renamed: 'settings', 'port-changed': 'settings', 'program-changed': 'settings',
  'client-in': 'link', 'client-out': 'link', 'domain-added': 'link', 'domain-removed': 'link', 'password-made': 'link', 'password-revoked': 'link', 'device-made': 'link', 'device-revoked': 'link', delivered: 'link', 'sender-added': 'link', 'sender-changed': 'link', 'sender-revoked': 'link', 'sender-ended': 'clock', 'delivery-refused': 'warn',
  dark: 'moon', light: 'moon', connected: 'laptop', disconnected: 'laptop', 'connect-failed': 'warn', settings: 'settings', 'user-allowed': 'people', 'user-denied': 'people',
  'server-away': 'server', 'server-back': 'server', 'certificate-trouble': 'shield', 'certificate-renewed': 'shield', 'clock-ahead': 'clock', 'password-refused': 'warn',
};

/** The mark of a decision; a visit has the person's letters, and none of these. */
export const markOf = (one: Activity): IconName | undefined => marks[one.kind] ?? (one.email ? undefined : 'activity');
