import { describe, expect, test } from 'vitest';
import { addressesIn, isAddress, withMore } from './addresses';

describe('addresses as they are pasted', () => {
  test.each<[string, string[]]>([
    ['lena@example.com', ['lena@example.com']],
    ['  lena@example.com ', ['lena@example.com']],
    ['lena@example.com, jonas@example.de;anna@example.org', ['lena@example.com', 'jonas@example.de', 'anna@example.org']],
    ['lena@example.com jonas@example.de', ['lena@example.com', 'jonas@example.de']],
    ['lena@example.com\r\njonas@example.de\n\n', ['lena@example.com', 'jonas@example.de']],
    ['lena@example.com\tjonas@example.de', ['lena@example.com', 'jonas@example.de']],
    ['Lena Müller <lena@example.com>, "Müller, Jonas" <jonas@example.de>', ['lena@example.com', 'jonas@example.de']],
    ['<lena@example.com>; mailto:jonas@example.de', ['lena@example.com', 'jonas@example.de']],
    ['(lena@example.com)', ['lena@example.com']],
    ['Write to lena@example.com.', ['lena@example.com']],
    ['lena', ['lena']],
    ['Lena Müller', ['Lena Müller']],
    [' ,;\n', []],
  ])('%j', (text, want) => expect(addressesIn(text)).toEqual(want));

  test('each is there once, however it is written', () => {
    expect(withMore(['lena@example.com'], ['LENA@example.com', 'bob@example.com', 'bob@example.com'])).toEqual(['lena@example.com', 'bob@example.com']);
  });

  test('what cannot be one is known', () => {
    expect(['a@b.c', 'lena.m+x@sub.example.com', 'jürgen@müller.de'].every(isAddress)).toBe(true);
    expect(['', 'lena', 'lena@', '@example.com', 'lena@example', 'lena@example.', 'le na@example.com', 'a@b@c.de', `${'a'.repeat(250)}@b.de`].some(isAddress)).toBe(false);
  });

  test('ten thousand pasted are read in a moment', () => {
    const many = Array.from({ length: 10_000 }, (_, n) => `Person ${n} <p${n}@example.com>`).join(', ');
    expect(addressesIn(many)).toHaveLength(10_000);
  });
});
