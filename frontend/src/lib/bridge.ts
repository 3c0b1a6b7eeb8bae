/*
 * The one place that touches what Wails puts on window: the Go methods bound
 * for the owner (window.go.ui.*) and the runtime's events. Everything else asks
 * this module, so that tests and a plain browser can stand in for Wails.
 *
 * Every call ends with its answer or throws an Error whose message is a
 * sentence for the owner; the Go side words it.
 */
import { strings } from './strings';
import type { Closed, Mail, OwnerState } from './types';

interface AppsBinding {
  State(): Promise<OwnerState>;
  Approve(name: string, label: string, localPort: number): Promise<unknown>;
  Deny(name: string): Promise<void>;
  Stop(name: string): Promise<Closed>;
  Revoke(name: string): Promise<Closed>;
  Open(name: string): Promise<void>;
  Outbox(): Promise<Mail[] | null>;
  Unmute(name: string): Promise<void>;
}

interface ShellBinding {
  Copy(text: string): Promise<void>;
  OpenURL(url: string): Promise<void>;
  Version(): Promise<string>;
}

interface Runtime {
  EventsOn(name: string, fn: (...data: never[]) => void): () => void;
}

declare global {
  interface Window {
    go?: { ui?: { Apps?: Partial<AppsBinding>; Shell?: Partial<ShellBinding> } };
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
const shell = () => window.go?.ui?.Shell;

export const bridge = {
  state: () => ask(() => apps()?.State?.()),
  /** Refused when the app no longer asks for this label and port. */
  approve: (name: string, label: string, localPort: number) => ask(() => apps()?.Approve?.(name, label, localPort)),
  deny: (name: string) => ask(() => apps()?.Deny?.(name)),
  /** Takes the app off the network, its approval kept. */
  stop: (name: string) => ask(() => apps()?.Stop?.(name)),
  /** Forgets the approval and who may open the app. */
  revoke: (name: string) => ask(() => apps()?.Revoke?.(name)),
  /** Opens the app in the owner's browser, signed in by a one-time link. */
  open: (name: string) => ask(() => apps()?.Open?.(name)),
  unmute: (name: string) => ask(() => apps()?.Unmute?.(name)),
  /** The mails of the local outbox, newest first. */
  outbox: async () => (await ask(() => apps()?.Outbox?.())) ?? [],
  copy: (text: string) => ask(() => shell()?.Copy?.(text)),
  version: () => ask(() => shell()?.Version?.()),
  /** Opens one of Porchlight's own addresses, a mailed link say, in the owner's browser. */
  openURL: (url: string) => ask(() => shell()?.OpenURL?.(url)),

  /** Calls fn with every new snapshot until the returned function is called. */
  onState(fn: (state: OwnerState) => void): () => void {
    return window.runtime?.EventsOn?.('state', fn as (...data: never[]) => void) ?? (() => {});
  },
};

export type Bridge = typeof bridge;
