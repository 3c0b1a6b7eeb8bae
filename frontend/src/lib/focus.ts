/*
 * Where the keyboard goes when what had the focus is gone: an approved request
 * leaves, a revoked app's row and menu with it. To the next request if the last
 * stop was a request, else to the view's title; never back to the page's start.
 */
let last: { element: Element; inRequest: boolean } | undefined;

/** Remembers the focus; to be called for every focusin. */
export function noteFocus(event: FocusEvent): void {
  const element = event.target as Element;
  last = { element, inRequest: element.closest('#waiting') !== null };
}

/** Puts the focus to a sensible place if it was lost since the last call. */
export function keepFocus(): void {
  if (!last || last.element.isConnected || (document.activeElement && document.activeElement !== document.body)) return;
  const next = (last.inRequest && document.querySelector<HTMLElement>('[data-request]')) || document.querySelector<HTMLElement>('h1');
  next?.focus({ preventScroll: true });
}

const patience = 3000; // ms for what a view has to ask for

/** Puts the focus on what a view shows in a moment, once it has what it is made of; nothing where that does not come. */
export function focusOn(look: () => HTMLElement | null | undefined): void {
  const found = () => {
    const element = look();
    if (!element) return false;
    if (element.tabIndex < 0) element.tabIndex = -1; // what is no stop by itself
    element.scrollIntoView({ block: 'center' });
    element.focus({ preventScroll: true });
    return true;
  };
  document.querySelector<HTMLElement>('h1')?.focus();
  if (found()) return;
  const watch = new MutationObserver(() => {
    if (found()) watch.disconnect();
  });
  watch.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => watch.disconnect(), patience);
}

/** The same on a setting, by its title; what is folded away is opened for it. */
export function focusSetting(title: string): void {
  focusOn(() => {
    const row = [...document.querySelectorAll<HTMLElement>('main [data-setting]')].find((one) => one.dataset['setting'] === title);
    if (!row) for (const fold of document.querySelectorAll<HTMLDetailsElement>('main details:not([open])')) fold.open = true;
    return row?.querySelector<HTMLElement>('input, select, button') ?? row;
  });
}
