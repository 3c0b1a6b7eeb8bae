import { flushSync } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { Ask } from './bridge';
import { failed, VisitorRequests } from './requests.svelte';
import type { Operations, VisitorRequest } from './types';

const one = (seq: number, more: Partial<VisitorRequest> = {}): VisitorRequest => ({ seq, at: '', app: 'notes', method: 'GET', path: '/', status: 200, ms: 1, email: '', error: '', ...more });

type Answer = Operations['requests']['gives'] | Error;

let stop = () => {};
afterEach(() => {
  stop();
  vi.useRealTimers();
});

/** Follows an agent that gives these answers, one after the other, and then says nothing more. */
async function followed(answers: Answer[], most = 100, held = false) {
  vi.useFakeTimers();
  const asked: unknown[] = [];
  const ask = (async (_: string, values: unknown) => {
    asked.push(values);
    const answer = answers.shift();
    if (!answer) return new Promise(() => {});
    if (answer instanceof Error) throw answer;
    return answer;
  }) as Ask;
  const lines = new VisitorRequests(ask, most);
  if (held) lines.hold(true);
  stop = lines.follow('notes');
  await vi.advanceTimersByTimeAsync(60_000);
  flushSync();
  return { lines, asked };
}

const seqs = (lines: VisitorRequests) => lines.rows?.map(({ seq }) => seq);

test('newest first, each once, and no more than wanted', async () => {
  const { lines, asked } = await followed([{ on: true, seq: 12, requests: [one(11), one(12)] }, { on: true, seq: 14, requests: [one(13), one(14)] }], 3);
  expect(seqs(lines)).toEqual([14, 13, 12]);
  // The first answer is wanted at once, the next when there is something to tell.
  expect(asked).toEqual([{ app: 'notes', after: 0, wait: 0 }, { app: 'notes', after: 12, wait: 8 }, { app: 'notes', after: 14, wait: 8 }]);
});

test('another run of the agent has seen nothing of before', async () => {
  const { lines } = await followed([{ on: true, seq: 20, requests: [one(20)] }, { on: true, seq: 5, requests: [one(4), one(5)] }]);
  expect(seqs(lines)).toEqual([5, 4]);
});

test('turned off, all is forgotten here too', async () => {
  const { lines } = await followed([{ on: true, seq: 2, requests: [one(2)] }, { on: false, seq: 2, requests: [] }]);
  expect([lines.on, seqs(lines)]).toEqual([false, []]);
});

test('a failure is said, keeps what is known, and passes', async () => {
  const { lines, asked } = await followed([{ on: true, seq: 2, requests: [one(2)] }, new Error('The agent is busy.')]);
  expect([lines.problem, seqs(lines), asked.length]).toEqual(['The agent is busy.', [2], 3]);
});

test('held back, what comes is counted and then shown', async () => {
  const { lines } = await followed([{ on: true, seq: 2, requests: [one(2)] }, { on: true, seq: 4, requests: [one(3), one(4)] }], 100, true);
  expect([lines.waiting, seqs(lines)]).toEqual([2, [2]]);
  lines.hold(false);
  expect([lines.waiting, seqs(lines)]).toEqual([0, [4, 3, 2]]);
});

test.each([
  [{}, false],
  [{ status: 404 }, false],
  [{ status: 500 }, true],
  [{ status: 0 }, true],
  [{ status: 200, error: 'The answer broke off.' }, true],
])('%j failed: %s', (more, bad) => expect(failed(one(1, more))).toBe(bad));
