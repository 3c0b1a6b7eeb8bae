// @vitest-environment jsdom
import { expect, test, vi } from 'vitest';
import { bridge } from './bridge';
import { account, app, asked as agent, snapshot } from './samples';
import { Owner } from './state.svelte';
import type { OwnerState } from './types';

/** A bridge whose answers and events the test gives by hand. */
function hands() {
  let event: (state: OwnerState) => void = () => {};
  const asked: { answer: (state: OwnerState) => void; fail: (error: Error) => void }[] = [];
  const stopped = vi.fn();
  const owner = new Owner({
    ask: agent({ ownerState: () => new Promise((answer, fail) => asked.push({ answer, fail })) }),
    onState: (fn) => {
      event = fn;
      return stopped;
    },
  });
  return { owner, asked, stopped, emit: (state: OwnerState) => event(state) };
}

test('each event replaces the snapshot whole', async () => {
  const { owner, asked, emit } = hands();
  owner.start();
  asked[0]!.answer(snapshot(1, { apps: [app('a'), app('b', { status: 'pending' })] }));
  await vi.waitFor(() => expect(owner.snapshot?.seq).toBe(1));
  expect(owner.waiting).toBe(1);
  emit(snapshot(2, { apps: [app('c')] }));
  expect(owner.apps.map(({ name }) => name)).toEqual(['c']);
  expect(owner.waiting).toBe(0);
});

test('an answer older than an event is dropped', async () => {
  const { owner, asked, emit } = hands();
  owner.start();
  emit(snapshot(7));
  asked[0]!.answer(snapshot(6));
  await vi.waitFor(() => expect(owner.asking).toBe(false));
  expect(owner.snapshot?.seq).toBe(7);
});

test('an agent that began to count anew is believed', async () => {
  const { owner, asked, emit } = hands();
  owner.start();
  emit(snapshot(7));
  emit(snapshot(1));
  expect(owner.snapshot?.seq).toBe(1);
  asked[0]!.fail(new Error('The agent is restarting.'));
  await vi.waitFor(() => expect(owner.problem).toBe('The agent is restarting.'));
  void owner.refresh();
  asked[1]!.answer(snapshot(0));
  await vi.waitFor(() => expect(owner.snapshot?.seq).toBe(0));
  expect(owner.problem).toBe('');
});

test('a problem keeps the last picture and ends with the next event', async () => {
  const { owner, asked, emit } = hands();
  owner.start();
  emit(snapshot(1, { apps: [app('a')] }));
  asked[0]!.fail(new Error('No answer.'));
  await vi.waitFor(() => expect(owner.standing).toBe('away'));
  expect(owner.apps).toHaveLength(1);
  expect(owner.lit).toBe(false);
  emit(snapshot(2, { apps: [app('a')] }));
  expect([owner.problem, owner.standing, owner.lit]).toEqual(['', 'local', true]);
});

test('Go writes null for an empty list', () => {
  const { owner, emit } = hands();
  owner.start();
  emit({ ...snapshot(1), apps: null, notices: null } as unknown as OwnerState);
  expect([owner.snapshot?.apps, owner.snapshot?.notices]).toEqual([[], []]);
});

test.each([
  [{}, 'local'],
  [{ account: { ...account, local: false } }, 'connected'],
  [{ account: { ...account, connected: false }, reachable: false }, 'starting'],
  [{ account: { ...account, local: false }, trouble: 'No network.', reachable: false }, 'reconnecting'],
  [{ account: { ...account, local: false }, trouble: 'No certificate could be had.' }, 'certificate'],
  [{ trouble: 'Port 8443 is taken.', reachable: false }, 'unreachable'],
] as const)('standing of %j is %s', (more, standing) => {
  const { owner, emit } = hands();
  owner.start();
  emit(snapshot(1, more));
  expect(owner.standing).toBe(standing);
});

test('stopping lets go of the events', () => {
  const { owner, stopped } = hands();
  owner.start()();
  expect(stopped).toHaveBeenCalledOnce();
});

test('the bridge throws sentences, however Wails rejects', async () => {
  const Ask = vi.fn((operation: string) => Promise.reject(operation === 'deny' ? 'It is gone already.' : new Error('')));
  window.go = { ui: { Agent: { Ask } } };
  await expect(bridge.ask('deny', { name: 'a' })).rejects.toThrow('It is gone already.');
  await expect(bridge.ask('goDark')).rejects.toThrow('That did not work. Try again in a moment.');
  expect(Ask.mock.calls).toEqual([['deny', { name: 'a' }], ['goDark', {}]]);
  await expect(bridge.shell.Copy('a')).rejects.toThrow('opened outside Porchlight');
  delete window.go;
  await expect(bridge.ask('ownerState')).rejects.toThrow('opened outside Porchlight');
});
