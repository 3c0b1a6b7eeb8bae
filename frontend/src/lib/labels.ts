/* Names as other programs give them: any script, any length, never trusted. */
import { strings } from './strings';
import type { Grant, Visitor } from './types';

const letters = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** The first letter as a person would name it: combining marks and emoji whole, what cannot be seen skipped. */
export function initial(label: string): string {
  const [first] = letters.segment(label.replace(/^[\s\p{Cc}\p{Cf}]+/u, ''));
  return first ? first.segment.toLocaleUpperCase() : '';
}

/**
 * At most so many letters for an address: of the first and the last word before
 * the @. "carla.nunes@example.org" is CN, "bob@example.com" B.
 */
export function initials(address: string, most: 1 | 2): string {
  const words = address.replace(/@.*/su, '').split(/[._+-]+/u).filter(Boolean);
  const [first = address] = words;
  const last = words.length > 1 && most > 1 ? initial(words.at(-1)!) : '';
  return initial(first) + last;
}

const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: 'base' });

/** The order of names in a list: "App 2" stands before "App 10". */
export const inOrder = (a: string, b: string): number => collator.compare(a, b);

/** Text as search compares it: case, accents and width set aside. */
export function fold(text: string): string {
  return text.normalize('NFKD').replace(/\p{Mn}/gu, '').toLowerCase();
}

/** What a connected app is called: by its host, where its name is only claimed. */
export const clientOf = (one: Grant): string => one.clientHost || one.clientName;

/** What a visitor is called: an app password is known by what it is for. */
export const visitorName = (one: Visitor): string => one.clientName || (one.you ? strings.passwords.unnamed : one.email);
