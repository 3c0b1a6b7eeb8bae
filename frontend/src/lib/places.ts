/* Where in the window one can go. */

import type { ofWindow } from './strings/window';

/** A page of the window, which has its name there; what it looks like is in views/views.ts. */
export type View = keyof typeof ofWindow.nav;

/**
 * Goes to a view, and begins it anew where it shows already. The argument is what of
 * it is asked for: apps takes the name of an app, whose page opens; invite the name
 * of an app or an e-mail address, which the form begins with.
 */
export type Go = (view: View, argument?: string) => void;
