/* Names as other programs give them: any script, any length, never trusted. */

const letters = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** The first letter as a person would name it: combining marks and emoji whole, what cannot be seen skipped. */
export function initial(label: string): string {
  const [first] = letters.segment(label.replace(/^[\s\p{Cc}\p{Cf}]+/u, ''));
  return first ? first.segment.toLocaleUpperCase() : '';
}

/** Text as search compares it: case, accents and width set aside. */
export function fold(text: string): string {
  return text.normalize('NFKD').replace(/\p{Mn}/gu, '').toLowerCase();
}
