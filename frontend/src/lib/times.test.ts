// @vitest-environment jsdom
// The script of the pages that a server renders, which says their times in the reader's own.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const script = readFileSync('../assets/style/times.js', 'utf8'); // tests run in frontend/

test('a time is said in the reader’s own, the end of a day as that day', () => {
  const at = (hour: number, minute: number, second = 0) => new Date(2031, 11, 5, hour, minute, second).toISOString();
  document.documentElement.lang = 'de';
  document.body.innerHTML = [at(18, 5), at(23, 59, 59), new Date(2031, 11, 6).toISOString()].map((time) => `<time datetime="${time}">5 December 2031, 17:05 UTC</time>`).join('');
  new Function(script)();
  expect([...document.querySelectorAll('time')].map((time) => time.textContent)).toEqual(['5. Dezember 2031 um 18:05', '5. Dezember 2031', '5. Dezember 2031']);
  document.body.innerHTML = [at(0, 0), at(23, 59, 30)].map((time) => `<time data-since datetime="${time}"></time>`).join('');
  new Function(script)();
  expect([...document.querySelectorAll('time')].map((time) => time.textContent)).toEqual(['5. Dezember 2031 um 00:00', '5. Dezember 2031 um 23:59']);
  const today = new Date();
  today.setHours(12, 5);
  document.body.innerHTML = `<time datetime="${today.toISOString()}"></time>`;
  new Function(script)();
  expect(document.querySelector('time')?.textContent).toBe('12:05');
});
