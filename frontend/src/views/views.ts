/*
 * The pages of the window, in the order of the sidebar. A new one is a component, a
 * row here and its name in strings.nav.
 */
import type { Component, ComponentProps, Snippet } from 'svelte';
import type { Account, OwnerState, Preferences } from '../lib/types';
import type Icon from '../ui/Icon.svelte';
import Activity from './Activity.svelte';
import Apps from './Apps.svelte';
import Clients from './Clients.svelte';
import Outbox from './Outbox.svelte';
import People from './People.svelte';
import Requests from './Requests.svelte';
import Settings from './Settings.svelte';

/** What a page is given; most take less. */
interface Props {
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
  icon: ComponentProps<typeof Icon>['name'];
  /** Whether there is such a page for an account, undefined while it is not known; always, where this is left out. */
  there?: (account: Account | undefined) => boolean;
}

export type View = 'apps' | 'people' | 'clients' | 'activity' | 'requests' | 'outbox' | 'settings';

export const views: Record<View, Row> = {
  apps: { page: Apps, icon: 'apps' },
  people: { page: People, icon: 'people' },
  clients: { page: Clients, icon: 'link' },
  activity: { page: Activity, icon: 'activity' },
  requests: { page: Requests, icon: 'list' },
  outbox: { page: Outbox, icon: 'mail', there: (account) => account?.local === true },
  settings: { page: Settings, icon: 'settings' },
};

/** The views there are for an account. */
export const viewsOf = (account: Account | undefined): View[] => (Object.keys(views) as View[]).filter((view) => views[view].there?.(account) ?? true);
