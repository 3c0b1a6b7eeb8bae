/*
 * How the sentences of strings/ are put together. One that names an app is a list
 * of parts, the name kept apart: names come from other programs, so <Sentence>
 * isolates their direction and never reads them as markup. plain() is the same
 * sentence where only text fits.
 */
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

export const number = new Intl.NumberFormat('en');

export function count(n: number, one: string, many: string): string {
  return `${number.format(n)} ${n === 1 ? one : many}`;
}

/** "Notes, Photos and Wiki", or "Notes, Photos and 3 more". */
export function listed(labels: readonly string[], more = 0): Sentence {
  const joint = (i: number) => (i === labels.length - 1 && more === 0 ? ' and ' : ', ');
  return [...labels.flatMap((label, i): (string | Name)[] => (i === 0 ? [{ name: label }] : [joint(i), { name: label }])), ...(more > 0 ? [` and ${number.format(more)} more`] : [])];
}
