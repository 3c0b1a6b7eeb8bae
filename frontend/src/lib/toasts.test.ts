import { afterEach, beforeEach, expect, test, vi } from 'vitest';
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
  toasts.hold(true);
  vi.advanceTimersByTime(60_000);
  expect(toasts.current).toBeDefined();
  toasts.hold(false);
  vi.advanceTimersByTime(7999);
  expect(toasts.current).toBeDefined();
  vi.advanceTimersByTime(1);
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
