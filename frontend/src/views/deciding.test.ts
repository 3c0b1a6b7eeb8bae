// A press that was meant for what stood there a moment ago decides nothing.
import { beforeEach, expect, test, vi } from 'vitest';
import type { Desk } from '../lib/desk';
import { app } from '../lib/samples';
import { Deciding } from './deciding.svelte';

let now = 1000;
beforeEach(() => {
  now = 1000;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});

/** A click at a moment; detail 0 is the keyboard's. */
const click = (at: number, detail = 1) => ({ timeStamp: at, detail }) as MouseEvent;

function setup() {
  let finish: (done: boolean) => void = () => {};
  const approve = vi.fn(() => new Promise<boolean>((resolve) => { finish = resolve; }));
  const deny = vi.fn(async () => true);
  const deciding = new Deciding({ approve, deny } as unknown as Desk);
  return { deciding, approve, deny, finish: () => finish(true) };
}

test('a press of the mouse counts once the request has stood for 400 ms', async () => {
  const { deciding, deny } = setup();
  await deciding.deny(app('notes'), click(1399));
  expect(deny).not.toHaveBeenCalled();
  await deciding.deny(app('notes'), click(1400));
  expect(deny).toHaveBeenCalledTimes(1);
});

test('what moved or came to say something else has to stand anew', async () => {
  const { deciding, deny } = setup();
  now = 5000;
  deciding.moved();
  await deciding.deny(app('notes'), click(5399));
  expect(deny).not.toHaveBeenCalled();
});

test('the keyboard counts at once, the second half of a double click never', async () => {
  const { deciding, deny } = setup();
  await deciding.deny(app('notes'), click(9000, 2));
  expect(deny).not.toHaveBeenCalled();
  await deciding.deny(app('notes'), click(1000, 0));
  expect(deny).toHaveBeenCalledTimes(1);
});

test('while one is decided, no second press counts', async () => {
  const { deciding, approve, deny, finish } = setup();
  const first = deciding.approve(app('notes'), click(2000));
  expect(deciding.doing).toBe('approve');
  await deciding.approve(app('notes'), click(3000));
  await deciding.deny(app('notes'), click(3000, 0));
  expect([approve.mock.calls.length, deny.mock.calls.length]).toEqual([1, 0]);
  finish();
  await first;
  expect(deciding.doing).toBeUndefined();
  await deciding.deny(app('notes'), click(4000));
  expect(deny).toHaveBeenCalledTimes(1);
});
