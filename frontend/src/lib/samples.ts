/* Snapshots, and an agent that answers, for the tests of this directory. */
import { vi, type Mock } from 'vitest';
import type { Ask, Operation } from './bridge';
import type { Account, AppOptions, Operations, OwnerApp, OwnerState } from './types';

export const account: Account = {
  connected: true, email: 'owner@maya.localhost', accountId: 'acc_1', name: 'maya', host: 'maya.localhost:8443',
  url: 'https://maya.localhost:8443', authUrl: 'https://control.localhost:8443', local: true,
};

export const options: AppOptions = {
  forwarded: false, localhostHost: false, identityHeader: '', identityValue: 'email', allowCrossOrigin: false, h2c: false,
};

/** What operations answer: with a value, by failing, or by and by. */
export type Answers = { [Name in Operation]?: Operations[Name]['gives'] | Error | (() => Promise<Operations[Name]['gives']>) };

/** Stands in for the agent; what has no answer is done. */
export function asked(answers: Answers): Ask & Mock {
  const ask = async (operation: Operation) => {
    const answer = answers[operation] ?? { ok: true };
    if (answer instanceof Error) throw answer;
    return typeof answer === 'function' ? answer() : answer;
  };
  return vi.fn(ask) as Mock as Ask & Mock;
}

export const app = (name: string, more: Partial<OwnerApp> = {}): OwnerApp => ({
  name, label: name, localPort: 3000, status: 'live', listener: {}, answering: true, quiet: false, denials: 0,
  requestedAt: '2026-11-21T10:00:00Z', connections: 0, here: [], paused: false, options, openTo: [], openToCount: 0, ...more,
});

export const snapshot = (seq: number, more: Partial<OwnerState> = {}): OwnerState => ({
  seq, engineVersion: '0.1.0', mode: 'desktop', api: '127.0.0.1:8765', account, apps: [], notices: [], noticesSeen: 0, trouble: '', reachable: true, locked: false, outboxSize: 0,
  here: 0, peopleVersion: '1', peopleCount: 0, undelivered: [], grants: [], registrants: [], users: [], ...more,
});
