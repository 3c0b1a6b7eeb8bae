/* The pseudo-locale: English with accents, two fifths longer, in brackets. What lacks them was not said through strings/. */
import type { Sentence } from '../sentence';

const accents: Record<string, string> = { a: 'å', c: 'ç', e: 'é', i: 'î', n: 'ñ', o: 'ö', s: 'š', u: 'û', y: 'ý', A: 'Å', C: 'Ç', E: 'É', I: 'Î', N: 'Ñ', O: 'Ö', S: 'Š', U: 'Û', Y: 'Ý' };

const accented = (text: string) => text.replace(/[a-zA-Z]/g, (letter) => accents[letter] ?? letter);
const longer = (letters: number) => (letters > 4 ? ` ${'~'.repeat(Math.floor((letters * 2) / 5) - 1)}` : '');

function sentence(parts: Sentence): Sentence {
  const letters = parts.map((part) => (typeof part === 'string' ? part.length : 0)).reduce((sum, n) => sum + n, 0);
  return ['[', ...parts.map((part) => (typeof part === 'string' ? accented(part) : part)), `${longer(letters)}]`];
}

const isSentence = (value: readonly unknown[]) => value.some((part) => typeof part === 'object') || value.length < 2;

/** The same words in the pseudo-locale; what functions make too. */
export function pseudo(words: unknown): unknown {
  if (typeof words === 'string') return words === '' ? '' : `[${accented(words)}${longer(words.length)}]`;
  if (typeof words === 'function') return (...given: unknown[]) => pseudo((words as (...given: unknown[]) => unknown)(...given));
  if (Array.isArray(words)) return isSentence(words) ? sentence(words as Sentence) : words.map(pseudo);
  return Object.fromEntries(Object.entries(words as object).map(([name, value]) => [name, pseudo(value)]));
}
