/*
 * What the agent says, as it arrives in the window. Mirrors the structs of
 * agent/agentapi and desktop/ui by hand; types.test.ts fails when the two differ.
 * Times are RFC 3339 strings. A Go slice without elements may arrive as null:
 * state.svelte.ts levels that once.
 */

export type Status = 'pending' | 'live' | 'revoked';
export type Mode = 'desktop' | 'headless' | 'bundled';

export interface AppSummary {
  name: string;
  label: string;
  localPort: number;
  status: Status;
  host?: string;
  url?: string;
  /** The owner keeps everybody out; the app itself stays live. */
  paused: boolean;
}

/** What the owner looked at when approving. */
export interface Seen {
  label: string;
  localPort: number;
  program?: string;
  user?: string;
}

/** How it stands with an app after an approval; pending has no address yet. */
export interface Publication {
  status: Status;
  host?: string;
  url?: string;
}

/** Who listens on an app's port, as far as the operating system tells. */
export interface Listener {
  pid?: number;
  program?: string;
  user?: string;
  userId?: string;
}

export interface OwnerApp extends AppSummary {
  listener: Listener;
  /** Whom it was approved for, of one that waits because another user's program listens now. */
  approvedListener?: Listener;
  /** Whose program asks, where that is another user of this computer. */
  askedBy?: string;
  answering: boolean;
  quiet: boolean;
  denials: number;
  requestedAt: string;
  approvedAt?: string;
  connections: number;
  /** Whose connections those are; never all of many. */
  here: string[];
  options: AppOptions;
  /** Who may open the app, the owner aside; never all of many. */
  openTo: string[];
  openToCount: number;
  /** Of a live app, once something is known of it. */
  certificate?: Certificate;
}

export interface Certificate {
  notAfter?: string;
  renewsAfter?: string;
  /** Why it cannot be had or renewed, or empty. */
  problem: string;
}

export interface AppOptions {
  forwarded: boolean;
  localhostHost: boolean;
  identityHeader: string;
  identityValue: string;
  allowCrossOrigin: boolean;
  h2c: boolean;
}

export interface Account {
  connected: boolean;
  email: string;
  accountId: string;
  name: string;
  host: string;
  url: string;
  authUrl: string;
  local: boolean;
}

export interface Notice {
  id: number;
  at: string;
  kind: string;
  app?: string;
  text: string;
  user?: string;
  by?: string;
  undo?: boolean;
}

export interface OwnerState {
  seq: number;
  engineVersion: string;
  mode: Mode;
  api: string;
  account: Account;
  apps: OwnerApp[];
  notices: Notice[];
  noticesSeen: number;
  trouble: string;
  outboxSize: number;
  darkSince?: string;
  here: number;
  /** Changes whenever the people may have. */
  peopleVersion: string;
  peopleCount: number;
  /** Addresses that an invitation did not reach in the last seven days. */
  undelivered: string[];
  grants: OAuthGrant[];
  registrants: Registrant[];
  /** Other users of this computer that asked or were answered. */
  users: LocalUser[];
  accessUntil?: string;
  connecting?: Connecting;
  /** The keychain keeps the owner secret back: what gives something waits for it, taking away does not. */
  locked: boolean;
  /** The control plane answers and a relay sends visitors. */
  reachable: boolean;
}

export interface OAuthGrant {
  id: string;
  clientId: string;
  clientName: string;
  email: string;
  createdAt: string;
  lastUsedAt: string;
}

export interface Registrant {
  appId: string;
  pid: number;
  callerPid?: number;
  program?: string;
  user?: string;
  registeredAt: string;
  lastSeenAt: string;
}

/** A connection to a control plane that waits, has been made or has failed. */
export interface Connecting {
  state: string;
  authUrl: string;
  userCode: string;
  verificationUrl: string;
  verificationUrlComplete: string;
  expiresAt: string;
  problem?: string;
  note?: string;
}

export interface Person {
  email: string;
  accountId: string;
  role: string;
  status: string;
  apps: string[];
}

export interface People {
  name: string;
  members: Person[];
  publishedApps: string[];
}

export interface Invitation {
  email: string;
  status: string;
  url: string;
}

export interface PersonChanged {
  ok: boolean;
  person: Person;
  closed: number;
  milliseconds: number;
  /** Until when it can be undone with nothing lost. */
  heldUntil?: string;
}

/** Somebody with something open now: a person in their browsers, or a remote client of theirs. */
export interface Visitor {
  accountId: string;
  email: string;
  grantId?: string;
  clientName?: string;
  apps: string[];
  connections: number;
}

export interface Activity {
  at: string;
  email: string;
  app: string;
  kind: string;
  by?: string;
}

export interface LocalUser {
  id: string;
  name: string;
  standing: string;
  at: string;
}

export interface Settings {
  failStaticHours: number;
  askAgain: boolean;
  trustEverybody: boolean;
  quiet: string[];
}

export interface Preferences {
  welcomed: boolean;
  startAtLogin: boolean;
  appearance: string;
  trust: Trust;
  secretKept: string;
  dataDir: string;
}

export interface Trust {
  possible: boolean;
  trusted: boolean;
  problem: string;
}

export interface Closed {
  ok: boolean;
  closed: number;
  milliseconds: number;
}

export interface Mail {
  to: string;
  subject: string;
  text: string;
  links: string[];
  at: string;
}
