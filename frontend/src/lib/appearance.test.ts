// @vitest-environment jsdom
// jsdom keeps the rules of media queries, and does not apply them: what they come
// to look like is tested in a browser (settings.test.ts).
import { beforeEach, expect, test, vi } from 'vitest';

const media = () => [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).map((rule) => (rule as CSSMediaRule).media.mediaText);

beforeEach(() => {
  vi.resetModules(); // the rules are found once
  document.head.innerHTML = '<style>@media (prefers-color-scheme: dark) { a { color: red } } @media (max-width: 840px) { a { color: blue } }</style>';
});

test('the owner’s choice is made to hold, and given back to the system', async () => {
  const { appear } = await import('./appearance');
  const seen = (appearance: string) => {
    appear(appearance);
    return [media()[0], document.documentElement.style.colorScheme];
  };
  expect(seen('dark')).toEqual(['all', 'dark']);
  expect(seen('light')).toEqual(['not all', 'light']);
  expect(seen('')).toEqual(['(prefers-color-scheme: dark)', '']);
  expect(seen('dark')).toEqual(['all', 'dark']); // found again by what it was
  expect(seen('sepia')).toEqual(['(prefers-color-scheme: dark)', '']); // no such thing
  expect(media()[1]).toBe('(max-width: 840px)');
});
