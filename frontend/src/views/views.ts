/*
 * The pages of the window, in the order of the sidebar. A new one is a component, a
 * row here, and its name in lib/places.ts.
 */
import type { Component, ComponentProps, Snippet } from 'svelte';
import { wrongs } from '../lib/checkup';
import type { View } from '../lib/places';
import type { Account, OwnerState, Preferences } from '../lib/types';
import type Icon from '../ui/Icon.svelte';
import Activity from './Activity.svelte';
import AddApp from './AddApp.svelte';
import Apps from './Apps.svelte';
import Clients from './Clients.svelte';
import Health from './Health.svelte';
import Outbox from './Outbox.svelte';
import People from './People.svelte';
import Settings from './Settings.svelte';

/** What a page is given; most take less. */
interface Props {
  /** Which of the views a page shows, where it shows more than one. */
  view: View;
  /** What of the view is asked for, empty for all of it: see Go in lib/places.ts. */
  argument: string;
  snapshot: OwnerState;
  preferences: Preferences | undefined;
  version: string;
  /** What is to be said above everything else. */
  notice: Snippet;
  /** Something of the desktop app's own has changed: ask it again. */
  onpreferences: () => Promise<void>;
  onconnect: () => void;
}

interface Row {
  page: Component<Props>;
  /** In the sidebar; one without is reached from elsewhere. */
  icon?: ComponentProps<typeof Icon>['name'];
  /** It has its entry only where this is so, and while it shows itself; always, where this is left out. */
  when?: (snapshot: OwnerState) => boolean;
  /** The entry of the sidebar that a view without one belongs to. */
  within?: View;
  /** Whether there is such a page for an account, undefined while it is not known; always, where this is left out. */
  there?: (account: Account | undefined) => boolean;
}

export const views: Record<View, Row> = {
  apps: { page: Apps, icon: 'apps' },
  add: { page: AddApp, within: 'apps' },
  people: { page: People, icon: 'people' },
  invite: { page: People, within: 'people' },
  activity: { page: Activity, icon: 'activity' },
  settings: { page: Settings, icon: 'settings' },
  clients: { page: Clients, icon: 'link', when: ({ grants }) => grants.length > 0 },
  outbox: { page: Outbox, icon: 'mail', there: (account) => account?.local === true, when: ({ outboxSize }) => outboxSize > 0 },
  health: { page: Health, icon: 'alert', when: (snapshot) => wrongs(snapshot) > 0 },
};

/** The views there are for an account. */
export const viewsOf = (account: Account | undefined): View[] => (Object.keys(views) as View[]).filter((view) => views[view].there?.(account) ?? true);
