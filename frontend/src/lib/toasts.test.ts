import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Toasts } from './toasts.svelte';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a toast leaves after eight seconds, and the newest replaces', () => {
  const toasts = new Toasts();
  toasts.show(['one']);
  vi.advanceTimersByTime(7000);
  toasts.show(['two']);
  vi.advanceTimersByTime(7999);
  expect(toasts.current?.text).toEqual(['two']);
  vi.advanceTimersByTime(1);
  expect(toasts.current).toBeUndefined();
});

test('it stays while it is held, and then its full time', () => {
  const toasts = new Toasts();
  toasts.show(['one']);
  toasts.hold('pointer', true);
  vi.advanceTimersByTime(60_000);
  expect(toasts.current).toBeDefined();
  toasts.hold('pointer', false);
  vi.advanceTimersByTime(7999);
  expect(toasts.current).toBeDefined();
  vi.advanceTimersByTime(1);
  expect(toasts.current).toBeUndefined();
});

// Weakness: a pointer that passed over it took it away from the keyboard.
test('it stays for the keyboard, whatever the pointer does', () => {
  const toasts = new Toasts();
  toasts.show(['one']);
  toasts.hold('keyboard', true);
  toasts.hold('pointer', true);
  toasts.hold('pointer', false);
  vi.advanceTimersByTime(60_000);
  expect(toasts.current).toBeDefined();
  toasts.hold('keyboard', false);
  vi.advanceTimersByTime(8000);
  expect(toasts.current).toBeUndefined();
});

test('the same words are announced again', () => {
  const toasts = new Toasts();
  toasts.say('Copied');
  const first = toasts.spoken;
  toasts.say('Copied');
  expect(toasts.spoken).not.toBe(first);
  expect(toasts.spoken.trim()).toBe('Copied');
});

describe('what can be undone only while the toast is there', () => {
  const held = (key: string, gone: () => void, seconds = 30) => ({ key, until: Date.now() + seconds * 1000, gone });
  const undo = () => ({ label: 'Undo', run: vi.fn() });

  test.each([
    ['its time is over', () => void vi.advanceTimersByTime(8000)],
    ['it is dismissed', (toasts: Toasts) => toasts.dismiss()],
    ['another takes its place', (toasts: Toasts) => toasts.show(['two'])],
  ])('is over when %s, once', (_, leave) => {
    const toasts = new Toasts();
    const gone = vi.fn();
    const action = undo();
    toasts.show(['one'], action, held('bob', gone));
    expect(gone).not.toHaveBeenCalled();
    leave(toasts);
    vi.advanceTimersByTime(60_000);
    toasts.dismiss();
    expect([gone.mock.calls.length, action.run.mock.calls.length]).toEqual([1, 0]);
  });

  test('is not over when it was undone', () => {
    const toasts = new Toasts();
    const gone = vi.fn();
    const action = undo();
    toasts.show(['one'], action, held('bob', gone));
    toasts.act();
    vi.advanceTimersByTime(60_000);
    expect([gone.mock.calls.length, action.run.mock.calls.length, toasts.current]).toEqual([0, 1, undefined]);
  });

  test('stays while it is rested on, but never longer than it can be undone', () => {
    const toasts = new Toasts();
    const gone = vi.fn();
    toasts.show(['one'], undo(), held('bob', gone, 30));
    toasts.hold('pointer', true);
    vi.advanceTimersByTime(28_999);
    expect(gone).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect([gone.mock.calls.length, toasts.current]).toEqual([1, undefined]);
  });

  test('is forgotten by its key, without being over', () => {
    const toasts = new Toasts();
    const gone = vi.fn();
    toasts.show(['one'], undo(), held('bob', gone));
    toasts.forget('carla');
    expect(toasts.current).toBeDefined();
    toasts.forget('bob');
    vi.advanceTimersByTime(60_000);
    expect([gone.mock.calls.length, toasts.current]).toEqual([0, undefined]);
  });
});
