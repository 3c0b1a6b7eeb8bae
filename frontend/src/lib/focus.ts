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
