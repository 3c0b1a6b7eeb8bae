/* Where in the window one can go. */

/** The pages of the window, in the order of the sidebar, by what each is called; what one looks like is in views/views.ts. */
export const places = {
  apps: { en: 'Apps', de: 'Apps' },
  add: { en: 'Add an app', de: 'App hinzufügen' },
  people: { en: 'People', de: 'Personen' },
  invite: { en: 'Invite', de: 'Einladen' },
  activity: { en: 'Activity', de: 'Verlauf' },
  settings: { en: 'Settings', de: 'Einstellungen' },
  // These come where there is something to see.
  clients: { en: 'Connected apps', de: 'Verbundene Apps' },
  outbox: { en: 'Outbox', de: 'Postausgang' },
  health: { en: 'Health', de: 'Zustand' },
};

export type View = keyof typeof places;

/** What each is called in a language. */
export const placesIn = (language: 'en' | 'de') => Object.fromEntries(Object.entries(places).map(([view, names]) => [view, names[language]])) as Record<View, string>;

/**
 * Goes to a view, and begins it anew where it shows already. The argument is what of
 * it is asked for: apps takes the name of an app, whose page opens; invite the name
 * of an app or an e-mail address, which the form begins with; people an address, whose
 * panel opens. The name of an app that asks has its request take the focus.
 */
export type Go = (view: View, argument?: string) => void;
