/*
 * The one place that touches what Wails puts on window: the Go methods bound
 * for the owner (window.go.ui.*) and the runtime's events. Everything else asks
 * this module, so that tests and a plain browser can stand in for Wails.
 *
 * Every call ends with its answer or throws an Error whose message is a
 * sentence for the owner; the Go side words it.
 */
import { strings } from './strings';
import type { Activity, AppOptions, Closed, Connecting, Invitation, Mail, OwnerState, People, PersonChanged, Preferences, Publication, Seen, Settings, Visitor } from './types';

interface AppsBinding {
  State(): Promise<OwnerState>;
  Approve(name: string, seen: Seen): Promise<Publication>;
  ApproveAlone(name: string, seen: Seen): Promise<Publication>;
  Deny(name: string): Promise<void>;
  Revoke(name: string): Promise<Closed>;
  Open(name: string): Promise<void>;
  Outbox(): Promise<Mail[] | null>;
  Unmute(name: string): Promise<void>;
  Pause(name: string): Promise<Closed>;
  Resume(name: string): Promise<void>;
  ChangeOptions(name: string, change: Partial<AppOptions>): Promise<AppOptions>;
  GoDark(): Promise<Closed>;
  LightUp(): Promise<void>;
}

interface PeopleBinding {
  List(): Promise<People>;
  Invite(email: string, apps: string[]): Promise<Invitation>;
  Grant(accountId: string, app: string, granted: boolean): Promise<PersonChanged>;
  Remove(accountId: string): Promise<PersonChanged>;
  UndoHeld(accountId: string, app: string): Promise<PersonChanged>;
  Settle(accountId: string, app: string): Promise<void>;
  Visitors(): Promise<Visitor[] | null>;
  Disconnect(accountId: string, grantId: string): Promise<Closed>;
  Undo(notice: number): Promise<void>;
  See(notice: number): Promise<void>;
  RevokeClient(id: string): Promise<Closed>;
  Activity(): Promise<Activity[] | null>;
  ClearActivity(): Promise<void>;
}

interface SettingsBinding {
  Get(): Promise<Settings>;
  Set(settings: Settings): Promise<Settings>;
  AllowUser(id: string): Promise<void>;
  DenyUser(id: string): Promise<void>;
  ForgetUser(id: string): Promise<void>;
  Preferences(): Promise<Preferences>;
  Welcomed(): Promise<void>;
  StartAtLogin(on: boolean): Promise<void>;
  Appearance(appearance: string): Promise<void>;
  Trust(trusted: boolean): Promise<void>;
  KeepInFile(): Promise<void>;
  Unlock(): Promise<void>;
  ShowData(): Promise<void>;
  Export(): Promise<string>;
  Connect(url: string, name: string): Promise<Connecting>;
  CancelConnect(): Promise<void>;
  Disconnect(): Promise<void>;
}

interface ShellBinding {
  Copy(text: string): Promise<void>;
  OpenURL(url: string): Promise<void>;
  Version(): Promise<string>;
  Wanted(): Promise<string>;
}

interface Runtime {
  EventsOn(name: string, fn: (...data: never[]) => void): () => void;
}

declare global {
  interface Window {
    go?: {
      ui?: { Apps?: Partial<AppsBinding>; People?: Partial<PeopleBinding>; Settings?: Partial<SettingsBinding>; Shell?: Partial<ShellBinding> };
    };
    runtime?: Partial<Runtime>;
  }
}

async function ask<T>(call: () => Promise<T> | undefined): Promise<T> {
  let answer: Promise<T> | undefined;
  try {
    answer = call();
    if (answer === undefined) throw new Error(strings.bridge.missing);
    return await answer;
  } catch (cause) {
    throw new Error(sentence(cause), { cause });
  }
}

/** Wails rejects with an Error or with a bare string, by version. */
function sentence(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : typeof cause === 'string' ? cause : '';
  return text.trim() || strings.bridge.failed;
}

const apps = () => window.go?.ui?.Apps;
const people = () => window.go?.ui?.People;
const settings = () => window.go?.ui?.Settings;
const shell = () => window.go?.ui?.Shell;

export const bridge = {
  state: () => ask(() => apps()?.State?.()),
  /** Refused when the app asks for something else by now, or another program is on its port. */
  approve: (name: string, seen: Seen) => ask(() => apps()?.Approve?.(name, seen)),
  /** Takes the app from everybody else who could open it before. */
  approveAlone: (name: string, seen: Seen) => ask(() => apps()?.ApproveAlone?.(name, seen)),
  deny: (name: string) => ask(() => apps()?.Deny?.(name)),
  /** Takes the app off the network, its approval kept. */
  /** Forgets the approval and who may open the app. */
  revoke: (name: string) => ask(() => apps()?.Revoke?.(name)),
  /** Opens the app in the owner's browser, signed in by a one-time link. */
  open: (name: string) => ask(() => apps()?.Open?.(name)),
  unmute: (name: string) => ask(() => apps()?.Unmute?.(name)),
  /** Keeps everybody out of a live app until it is resumed. */
  pause: (name: string) => ask(() => apps()?.Pause?.(name)),
  resume: (name: string) => ask(() => apps()?.Resume?.(name)),
  /** Leaves the options that are not named. */
  changeOptions: (name: string, change: Partial<AppOptions>) => ask(() => apps()?.ChangeOptions?.(name, change)),
  /** Closes everything at once and keeps every approval. */
  goDark: () => ask(() => apps()?.GoDark?.()),
  lightUp: () => ask(() => apps()?.LightUp?.()),

  /** Everybody with a row on this computer, removed people included. */
  people: async (): Promise<People> => {
    const { name, members, publishedApps } = await ask(() => people()?.List?.());
    return { name, members: (members ?? []).map((one) => ({ ...one, apps: one.apps ?? [] })), publishedApps: publishedApps ?? [] };
  },
  invite: (email: string, labels: string[]) => ask(() => people()?.Invite?.(email, labels)),
  /** Withdrawing closes at once, and is held like a removal. */
  grant: (accountId: string, label: string, granted: boolean) => ask(() => people()?.Grant?.(accountId, label, granted)),
  /** Closes everything at once; the server is not told until it is settled, or until heldUntil. */
  remove: (accountId: string) => ask(() => people()?.Remove?.(accountId)),
  /** Takes back what is held, a removal or (by its label) one app: all is as before. */
  undoHeld: (accountId: string, label: string) => ask(() => people()?.UndoHeld?.(accountId, label)),
  /** Carries out what is held: nobody is offered to undo it any more. */
  settle: (accountId: string, label: string) => ask(() => people()?.Settle?.(accountId, label)),
  /** Takes back what a notice of the snapshot tells of. */
  undo: (notice: number) => ask(() => people()?.Undo?.(notice)),
  /** Lets be what the notices up to this one tell of. */
  see: (notice: number) => ask(() => people()?.See?.(notice)),
  revokeClient: (id: string) => ask(() => people()?.RevokeClient?.(id)),
  /** Who has something open now: people in their browsers, and remote clients. */
  visitors: async () => ((await ask(() => people()?.Visitors?.())) ?? []).map((one) => ({ ...one, apps: one.apps ?? [] })),
  /** Closes what one visitor has open; "" for a person's browsers, or the id of a client's grant. */
  disconnectVisitor: (accountId: string, grantId: string) => ask(() => people()?.Disconnect?.(accountId, grantId)),
  activity: async () => (await ask(() => people()?.Activity?.())) ?? [],
  clearActivity: () => ask(() => people()?.ClearActivity?.()),

  settings: async (): Promise<Settings> => {
    const answer = await ask(() => settings()?.Get?.());
    return { ...answer, quiet: answer.quiet ?? [] };
  },
  setSettings: (value: Settings) => ask(() => settings()?.Set?.(value)),
  /** Lets programs of another user of this computer register. */
  allowUser: (id: string) => ask(() => settings()?.AllowUser?.(id)),
  denyUser: (id: string) => ask(() => settings()?.DenyUser?.(id)),
  /** Takes an answer back: the next attempt asks again. */
  forgetUser: (id: string) => ask(() => settings()?.ForgetUser?.(id)),
  preferences: () => ask(() => settings()?.Preferences?.()),
  welcomed: () => ask(() => settings()?.Welcomed?.()),
  startAtLogin: (on: boolean) => ask(() => settings()?.StartAtLogin?.(on)),
  /** "" follows the system. */
  appearance: (appearance: string) => ask(() => settings()?.Appearance?.(appearance)),
  trust: (trusted: boolean) => ask(() => settings()?.Trust?.(trusted)),
  /** Has the keychain ask for its password. */
  unlock: () => ask(() => settings()?.Unlock?.()),
  /** Keeps the owner secret in a file where there is no keychain. */
  keepInFile: () => ask(() => settings()?.KeepInFile?.()),
  showData: () => ask(() => settings()?.ShowData?.()),
  /** Asks the owner where to save what is kept for them; "" when they rather not. */
  export: () => ask(() => settings()?.Export?.()),
  connect: (url: string, name: string) => ask(() => settings()?.Connect?.(url, name)),
  cancelConnect: () => ask(() => settings()?.CancelConnect?.()),
  disconnect: () => ask(() => settings()?.Disconnect?.()),

  /** The mails of the local outbox, newest first. */
  outbox: async () => (await ask(() => apps()?.Outbox?.())) ?? [],
  copy: (text: string) => ask(() => shell()?.Copy?.(text)),
  version: () => ask(() => shell()?.Version?.()),
  /** The view the menu or a notification asked for since the last call, or "". */
  wanted: () => ask(() => shell()?.Wanted?.()),
  /** Opens one of Porchlight's own addresses, a mailed link say, in the owner's browser. */
  openURL: (url: string) => ask(() => shell()?.OpenURL?.(url)),

  /** Calls fn with every new snapshot until the returned function is called. */
  onState(fn: (state: OwnerState) => void): () => void {
    return window.runtime?.EventsOn?.('state', fn as (...data: never[]) => void) ?? (() => {});
  },
  /** Calls fn with why there are no snapshots, whenever that becomes known. */
  onProblem(fn: (problem: string) => void): () => void {
    return window.runtime?.EventsOn?.('problem', fn as (...data: never[]) => void) ?? (() => {});
  },
  /** Calls fn whenever there is a view to ask `wanted` for. */
  onShow(fn: () => void): () => void {
    return window.runtime?.EventsOn?.('show', fn) ?? (() => {});
  },
};

export type Bridge = typeof bridge;
