import { expect, test } from 'vitest';
import { reachAt, reachBy, reachOf, suggestionOf } from './health';
import { options } from './samples';

test.each([
  [{ upstream: 'https' }, 'Reach it over HTTPS'],
  [{ upstream: 'http', h2c: false, pin: false }, 'Reach it over HTTP'],
  [{ upstream: 'h2c' }, 'Speak HTTP/2 to it'],
  [{ h2c: true }, 'Speak HTTP/2 to it'],
  [{ localhostHost: true }, 'Call it localhost'],
  [{ publicAddress: true }, 'Tell it its address'],
  [{ firstByte: 300 }, 'Change its options'],
])('%j is suggested in words', (healthOption, button) => expect(suggestionOf({ healthOption, options })?.words.button).toBe(button));

test('a suggestion keeps what was before, and goes once it is taken', () => {
  const taken = { ...options, upstream: 'http', h2c: true };
  expect(suggestionOf({ healthOption: { upstream: 'https', h2c: false }, options: taken })?.before).toEqual({ upstream: 'http', h2c: true });
  expect(suggestionOf({ healthOption: { upstream: 'http', h2c: true }, options: taken })).toBeUndefined();
  expect(suggestionOf({ options })).toBeUndefined();
  // An option of a later version is not promised.
  expect(suggestionOf({ healthOption: { later: true } as object, options })).toBeUndefined();
});

test.each(['http', 'https', 'h2c'] as const)('%s is one choice, there and back', (reach) => {
  const chosen = { ...options, h2c: true, pin: true, ...reachBy(reach) } as typeof options;
  expect([reachOf(chosen), chosen.h2c, chosen.pin]).toEqual([reach, false, reach === 'https']);
});

test('older choices of the same read alike', () => {
  expect(reachOf({ upstream: '', h2c: true })).toBe('h2c');
  expect(reachOf({ upstream: 'http', h2c: false })).toBe('http');
  expect(reachOf({ upstream: 'unix:/run/app.sock', h2c: true })).toBe('socket');
  expect(reachAt('/run/app.sock')).toEqual({ upstream: 'unix:/run/app.sock', pin: false });
});
