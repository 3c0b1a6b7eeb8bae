/*
 * How the sentences of strings/ are put together. One that names an app is a list
 * of parts, the name kept apart: names come from other programs, so <Sentence>
 * isolates their direction and never reads them as markup. plain() is the same
 * sentence where only text fits.
 */
import { language, made, type Language } from './language';

export interface Name {
  name: string;
}

export type Sentence = readonly (string | Name)[];

const FIRST_STRONG_ISOLATE = '\u2068';
const POP_DIRECTIONAL_ISOLATE = '\u2069';

/** The sentence as one string, names isolated by Unicode controls. */
export function plain(sentence: Sentence): string {
  return sentence
    .map((part) => (typeof part === 'string' ? part : FIRST_STRONG_ISOLATE + part.name + POP_DIRECTIONAL_ISOLATE))
    .join('');
}

/** Numbers as the window's locale writes them. */
export const number = { format: (n: number): string => made('number', (locale) => new Intl.NumberFormat(locale)).format(n) };

/** What the agent says in a few words, where it stands alone. */
export const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

export function count(n: number, one: string, many: string): string {
  return `${number.format(n)} ${n === 1 ? one : many}`;
}

/** What is said of those that are left out of a list. */
const others: Record<Language, string> = { en: 'more', de: 'weitere', 'en-XA': '[möré ~]' };

/** "Notes, Photos and Wiki", or "Notes, Photos and 3 more". */
export function listed(labels: readonly string[], more = 0): Sentence {
  const rest = more > 0 ? [`${number.format(more)} ${others[language]}`] : [];
  const list = made('list', (locale) => new Intl.ListFormat(locale === 'en-US' ? 'en-GB' : locale, { type: 'conjunction' }));
  let element = 0;
  return list.formatToParts([...labels, ...rest]).map(({ type, value }) => (type === 'element' && element++ < labels.length ? { name: value } : value));
}
