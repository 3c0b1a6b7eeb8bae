/* Where in the window one can go. */

/** A page of the window; what it looks like is in views/views.ts. */
export type View = 'apps' | 'add' | 'people' | 'invite' | 'clients' | 'activity' | 'requests' | 'outbox' | 'settings' | 'health';

/**
 * Goes to a view, and begins it anew where it shows already. The argument is what of
 * it is asked for: apps takes the name of an app, whose page opens; invite the name
 * of an app or an e-mail address, which the form begins with.
 */
export type Go = (view: View, argument?: string) => void;
