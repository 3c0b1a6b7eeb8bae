/*
 * Addresses as people type and paste them: one after the other, a column of a table,
 * or a line of a mail with names around them. Which ones are good, the server says;
 * here it is only told what cannot be one, so that nobody sends by mistake.
 */

/** At once, as the server has it. */
export const mostAddresses = 50;

/** The addresses in a text, in their order; what is none comes out as it was written. */
export function addressesIn(text: string): string[] {
  const bare = text
    .replace(/(?:"[^"]*"\s*|[^<>,;"\n\t]*)<([^<>]*)>/g, ' $1 ') // Lena Müller <lena@example.com>
    .replace(/\bmailto:/gi, ' ');
  return bare
    .split(/[,;\n\r\t]+/)
    .flatMap((piece) => (piece.includes('@') ? piece.split(/\s+/).filter((word) => word.includes('@')) : [piece]))
    .map((one) => one.trim().replace(/^[("'<]+|[)"'>.]+$/g, ''))
    .filter((one) => one !== '');
}

/** Addresses with more of them, each once whatever its case. */
export function withMore(have: readonly string[], more: readonly string[]): string[] {
  const all = [...have];
  for (const one of more) if (!all.some((other) => other.toLowerCase() === one.toLowerCase())) all.push(one);
  return all;
}

/** Whether a text can be an address at all. */
export const isAddress = (text: string): boolean => /^[^\s@,;<>]+@[^\s@,;<>]+\.[^\s@,;<>.]+$/.test(text) && text.length <= 254;
