/*
 * What the agent says, as it arrives in the window. Mirrors the structs of
 * agent/agentapi/agentapi.go by hand; types.test.ts fails when the two differ.
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
}

/** Who listens on an app's port, as far as the operating system tells. */
export interface Listener {
  pid?: number;
  program?: string;
  user?: string;
}

export interface OwnerApp extends AppSummary {
  listener: Listener;
  answering: boolean;
  quiet: boolean;
  denials: number;
  requestedAt: string;
  approvedAt?: string;
  connections: number;
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
}

export interface OwnerState {
  seq: number;
  engineVersion: string;
  mode: Mode;
  api: string;
  account: Account;
  apps: OwnerApp[];
  notices: Notice[];
  trouble: string;
  outboxSize: number;
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
