/* Snapshots, and an agent that answers, for the tests of this directory. */
import { vi, type Mock } from 'vitest';
import type { Ask, Operation } from './bridge';
import { nothing } from '../../tests/nothing';
import type { Account, Operations, OwnerApp, OwnerState } from './types';

export const account: Account = {
  connected: true, email: 'owner@maya.localhost', accountId: 'acc_1', name: 'maya', host: 'maya.localhost:8443',
  url: 'https://maya.localhost:8443', authUrl: 'https://control.localhost:8443', local: true,
};

export const options = nothing.changeOptions;

/** What operations answer: with a value, by failing, or by and by. */
export type Answers = { [Name in Operation]?: Operations[Name]['gives'] | Error | (() => Promise<Operations[Name]['gives']>) };

/** Stands in for the agent; what has no answer has nothing to tell. */
export function asked(answers: Answers): Ask & Mock {
  const ask = async (operation: Operation) => {
    const answer = answers[operation] ?? nothing[operation];
    if (answer instanceof Error) throw answer;
    return typeof answer === 'function' ? answer() : answer;
  };
  return vi.fn(ask) as Mock as Ask & Mock;
}

export const app = (name: string, more: Partial<OwnerApp> = {}): OwnerApp => ({
  name, label: name, localPort: 3000, status: 'live', health: 'answers', healthDetail: '', network: false, listener: {}, listensOn: '127.0.0.1', lit: true, quiet: false, denials: 0,
  requestedAt: '2026-11-21T10:00:00Z', connections: 0, here: [], paused: false, options, openTo: [], openToCount: 0, ...more,
});

export const snapshot = (seq: number, more: Partial<OwnerState> = {}): OwnerState => ({
  ...nothing.ownerState, seq, engineVersion: '0.1.0', api: '127.0.0.1:8765', account, reachable: true, peopleVersion: '1', ...more,
});
