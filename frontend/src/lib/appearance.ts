/*
 * The owner's choice of light or dark over the system's: the rules that ask for
 * a dark system are made to hold always, or never. So the colours stand in the
 * style sheet once.
 */
const darkSystem = '(prefers-color-scheme: dark)';

/** The rules found at the start, because their condition is what changes. */
let rules: CSSMediaRule[] | undefined;

/** appearance is "light", "dark", or "" to follow the system. */
export function appear(appearance: string, page: Document = document): void {
  rules ??= [...page.styleSheets]
    .flatMap((sheet) => [...sheet.cssRules])
    .filter((rule): rule is CSSMediaRule => rule instanceof CSSMediaRule && rule.media.mediaText.includes('prefers-color-scheme: dark'));
  const media = { light: 'not all', dark: 'all' }[appearance] ?? darkSystem;
  for (const rule of rules) rule.media.mediaText = media;
  page.documentElement.style.colorScheme = appearance === 'light' || appearance === 'dark' ? appearance : '';
}
