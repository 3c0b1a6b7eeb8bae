import { expect, test } from 'vitest';
import { match, searched, wordsOf } from './fuzzy';

const marked = (query: string, text: string, also: string[] = []) => {
  const found = match(wordsOf(query), searched(text, also));
  return found && found.marks.map(([from, to]) => text.normalize('NFC').slice(from, to));
};

/** The texts that are meant, surest first; as sure ones in the order they have. */
const order = (query: string, ...texts: string[]) =>
  texts
    .map((text) => ({ text, found: match(wordsOf(query), searched(text)) }))
    .filter(({ found }) => found)
    .sort((a, b) => a.found!.score - b.found!.score)
    .map(({ text }) => text);

test.each([
  ['notes', 'Open Notes', ['Notes']],
  ['open no', 'Open Notes', ['Open', 'No']],
  ['notes open', 'Open Notes', ['Open', 'Notes']], // in any order
  ['ote', 'Open Notes', ['ote']],
  ['ha', 'Open Home Assistant', ['H', 'A']], // initials
  ['homass', 'Open Home Assistant', ['Hom', 'Ass']],
  ['nts', 'Open Notes', ['N', 't', 's']], // letters left out
  ['ber', 'Bernd und Änne', ['Ber']],
  ['uber', 'Über uns', ['Über']],
  ['ueber', 'Über uns', ['Über']],
  ['Über', 'uber alles', ['uber']],
  ['aenne', 'Bernd und Änne', ['Änne']],
  ['anne', 'Bernd und A\u0308nne', ['Änne']], // an accent of its own
  ['strasse', 'Hauptstraße', ['straße']],
  ['schlüsselbund', 'Schlüsselbund entsperren', ['Schlüsselbund']],
  ['schluessel', 'Schlüsselbund entsperren', ['Schlüssel']],
  ['bund', 'Schlüsselbund entsperren', ['bund']], // within a German word
  ['ruckgangig', 'Rückgängig', ['Rückgängig']],
  ['zustaendig', 'Wer ist zuständig?', ['zuständig']],
  ['creme', 'Crème brûlée', ['Crème']],
  ['lodz', 'Łódź', ['Łódź']],
  ['smorre', 'Smørrebrød', ['Smørre']],
  ["why can't bob", 'Why can’t bob@example.com open…', ['Why', 'can’t', 'bob']],
  ['cant', 'Why can’t bob open', ['can’t']],
  ['ben', 'Remove \u2068ben@example.com\u2069', ['ben']],
  ['example', 'ben@example.com', ['example']],
  ['7', 'App7', ['7']], // a number begins what it counts
  ['日', '日記', ['日']],
  ['', 'Anything', []],
])('%j means %j by %j', (query, text, marks) => expect(marked(query, text)).toEqual(marks));

test.each([
  ['x', 'Notes'],
  ['e', 'ben@example.com'], // of many
  ['o', 'Notes'], // one letter within a word is nobody's wish
  ['notes x', 'Open Notes'], // every word has to be found
  ['seton', 'Notes'],
  ['ossa', 'Home Assistant'], // no word begins so
])('%j does not mean %j', (query, text) => expect(marked(query, text)).toBeUndefined());

test('a word is surer than how one begins, than a part of one, than its letters', () => {
  expect(order('note', 'Nice open tea', 'Keynotes', 'Notes', 'Note')).toEqual(['Note', 'Notes', 'Keynotes', 'Nice open tea']);
  expect(order('5', 'Notes 56', 'Notes 15', 'Notes 5')).toEqual(['Notes 5', 'Notes 56']);
  expect(order('a', 'Why can’t a person', 'Add an app')).toEqual(['Why can’t a person', 'Add an app']); // as sure as each other
  expect(order('uber', 'Guber', 'Über')).toEqual(['Über', 'Guber']);
});

test('other words for it count less than its own, and mark nothing', () => {
  const also = match(wordsOf('dunkel'), searched('Appearance', ['Dunkel']))!;
  expect(also.marks).toEqual([]);
  expect(also.score).toBeGreaterThan(match(wordsOf('appear'), searched('Appearance'))!.score);
  expect(match(wordsOf('oeffnen'), searched('Notes', ['Öffnen']))).toBeDefined();
  expect(match(wordsOf('dkl'), searched('Appearance', ['Dunkel']))).toBeUndefined(); // spread letters of them mean nothing
});
