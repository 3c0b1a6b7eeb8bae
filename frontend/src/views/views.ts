/** The views there are, in the order of the sidebar. Outbox only in local mode. */
export type View = 'apps' | 'people' | 'clients' | 'activity' | 'outbox' | 'settings';
