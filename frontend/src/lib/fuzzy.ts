/*
 * Fuzzy search: whether what was typed is meant by a text, how surely, and which of
 * its letters say so. Case, accents and apostrophes are set aside; "ue" finds "ü", and
 * so does "u". Every word typed has to be found, in any order.
 */

/** How surely a text is meant, best first: of a word typed, what it is of the text. */
const exact = 0; // a word of it
const begins = 1; // how a word of it begins
const holds = 3; // within a word
const spread = 5; // its letters in order, the first at a word's beginning
const besides = 2; // more, where it is not the text, but what is also said of it

export interface Match {
  /** The smaller, the surer. */
  score: number;
  /** What of the text was typed, as [from, to) in letters of it. */
  marks: [number, number][];
}

/** A text made ready to be searched, once for many searches. */
export interface Searched {
  text: string;
  /** Each way to write it, with the place in text that each letter is from. */
  ways: { letters: string; from: number[] }[];
  also: string[];
}

const umlauts: Record<string, string> = { ä: 'ae', ö: 'oe', ü: 'ue', å: 'aa', ø: 'oe', æ: 'ae', ß: 'ss' };
const plainly: Record<string, string> = { ø: 'o', æ: 'ae', ł: 'l', đ: 'd', ı: 'i', ß: 'ss' };
const skipped = /['’‘ʼ`´\u2060\u2066-\u2069\u202A-\u202E\u200B-\u200F]/u;

/** One letter without case and accents; written out where German and Danish do. */
function folded(letter: string, written: boolean): string {
  const small = letter.normalize('NFKC').toLowerCase();
  return [...small].map((one) => (written && umlauts[one.normalize('NFC')]) || plainly[one] || one.normalize('NFKD').replace(/\p{Mn}/gu, '')).join('');
}

function way(text: string, written: boolean): Searched['ways'][number] {
  let letters = '';
  const from: number[] = [];
  let at = 0;
  for (const letter of text) {
    if (!skipped.test(letter)) {
      for (const one of folded(letter, written)) {
        letters += one;
        for (let unit = 0; unit < one.length; unit++) from.push(at);
      }
    }
    at += letter.length;
  }
  from.push(at);
  return { letters, from };
}

/** Makes a text ready; also is what it is found by besides, such as other words for it. */
export function searched(text: string, also: readonly string[] = []): Searched {
  // Accents that are letters of their own belong to the one before them.
  const composed = text.normalize('NFC');
  const [bare, written] = [way(composed, false), way(composed, true)];
  return { text: composed, ways: written.letters === bare.letters ? [bare] : [bare, written], also: also.flatMap((one) => [way(one, false).letters, way(one, true).letters]) };
}

/** The words of what was typed. */
export function wordsOf(query: string): string[] {
  return way(query.normalize('NFC'), false).letters.split(/\s+/u).filter(Boolean);
}

const isLetter = (letter: string | undefined) => letter !== undefined && /[\p{L}\p{N}]/u.test(letter);
/** Whether a word begins there: also a number within one, and not what an address is at, which it has in common with many. */
const beginsAt = (letters: string, at: number) => (!isLetter(letters[at - 1]) && letters[at - 1] !== '@') || (/\p{N}/u.test(letters[at]!) && !/\p{N}/u.test(letters[at - 1]!));
const endsAt = (letters: string, at: number) => !isLetter(letters[at]);

/** Where a word is in some letters, and how surely. */
function within(word: string, letters: string): { score: number; at: [number, number][] } | undefined {
  let best: { score: number; at: [number, number][] } | undefined;
  for (let at = letters.indexOf(word); at >= 0; at = letters.indexOf(word, at + 1)) {
    const end = at + word.length;
    // A letter alone is the beginning of something, and rarely the article that it is, too.
    const score = beginsAt(letters, at) ? (endsAt(letters, end) && (word.length > 1 || !/\p{L}/u.test(word)) ? exact : begins) : holds;
    if (score < (best?.score ?? Infinity) && (score < holds || word.length > 1)) best = { score, at: [[at, end]] };
    if (best?.score === exact) break;
  }
  return best ?? (word.length > 1 ? spreadOver(word, letters) : undefined);
}

/** The letters of a word in order: each follows the one before it, or begins a word. */
function spreadOver(word: string, letters: string): { score: number; at: [number, number][] } | undefined {
  const at: [number, number][] = [];
  let from = 0;
  let gaps = 0;
  for (let i = 0; i < word.length; i++) {
    let found = i > 0 && letters[from] === word[i] ? from : -1;
    for (let next = from; found < 0 && next < letters.length; next++) if (letters[next] === word[i] && beginsAt(letters, next)) found = next;
    // Within the word that was begun, a letter may be left out.
    if (found < 0 && i > 0 && isLetter(letters[from]) && letters[from + 1] === word[i]) found = from + 1;
    if (found < 0) return undefined;
    if (i > 0 && found !== from) gaps++;
    const last = at.at(-1);
    if (last?.[1] === found) last[1] = found + 1;
    else at.push([found, found + 1]);
    from = found + 1;
  }
  return { score: spread + gaps / 10, at };
}

/** How surely a text is meant by words that were typed (see wordsOf), undefined where it is not. */
export function match(words: readonly string[], { ways, also }: Searched): Match | undefined {
  let score = 0;
  const marks: [number, number][] = [];
  for (const word of words) {
    let best = Infinity;
    let marked: [number, number][] = [];
    for (const { letters, from } of ways) {
      const found = within(word, letters);
      if (!found || found.score >= best) continue;
      best = found.score;
      marked = found.at.map(([a, b]) => [from[a]!, from[b] === from[b - 1] ? (from.find((place) => place > from[b]!) ?? from.at(-1)!) : from[b]!]);
    }
    for (const letters of also) {
      const found = within(word, letters);
      if (found && found.score < spread && found.score + besides < best) [best, marked] = [found.score + besides, []];
    }
    if (best === Infinity) return undefined;
    score += best;
    marks.push(...marked);
  }
  return { score: words.length > 0 ? score / words.length : 0, marks: joined(marks) };
}

/** Marks in order, with those joined that touch. */
function joined(marks: [number, number][]): [number, number][] {
  const out: [number, number][] = [];
  for (const [from, to] of [...marks].sort((a, b) => a[0] - b[0])) {
    const last = out.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else out.push([from, to]);
  }
  return out;
}
