/*
 * The language of the window and the locale of its dates and numbers: chosen once,
 * before anything is shown (see main.ts). Until then, and in tests of the logic, it
 * is English as written in Britain.
 */

export const languages = ['en', 'de', 'en-XA'] as const;

/** en-XA is English with accents, brackets and more letters: what has none is written in the code, not in strings/. */
export type Language = (typeof languages)[number];

/** What each that can be chosen calls itself. */
export const names: { readonly [Tag in Language]?: string } = { en: 'English', de: 'Deutsch' };

export let language: Language = 'en';

/** Whose dates and numbers: "de-AT". */
export let locale = 'en-GB';

export function speak(chosen: Language, where = '') {
  language = chosen;
  locale = where && where.split('-')[0] === chosen.split('-')[0] ? where : chosen === 'de' ? 'de' : 'en-GB';
  formats.clear();
}

const formats = new Map<string, unknown>();

/** What is made for the locale of the moment, and kept under a name. */
export function made<Format>(name: string, make: (locale: string) => Format): Format {
  if (!formats.has(name)) formats.set(name, make(locale));
  return formats.get(name) as Format;
}
