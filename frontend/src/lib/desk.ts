/*
 * What the owner can do, once for all views: ask the bridge, say what happened.
 * Handed to the components by context.
 */
import { getContext, setContext } from 'svelte';
import { hostOf } from './apps';
import type { Bridge } from './bridge';
import type { Owner } from './state.svelte';
import { strings, type Sentence } from './strings';
import type { Toasts } from './toasts.svelte';
import type { OwnerApp } from './types';

export class Desk {
  constructor(
    readonly owner: Owner,
    readonly toasts: Toasts,
    readonly bridge: Bridge,
  ) {}

  approve(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.approve(app.name, app.label, app.localPort),
      () => {
        const account = this.owner.account;
        const host = account ? hostOf(app, account) : app.name;
        this.toasts.show(strings.toast.approved(app.label, host), { label: strings.app.open, run: () => void this.open(app) });
      },
    );
  }

  deny(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.deny(app.name),
      () => this.#tell(app.denials > 0 || app.quiet ? strings.toast.deniedAgain(app.label) : strings.toast.denied(app.label)),
    );
  }

  /** Denies one after the other and stops at the first that fails. */
  denyAll(apps: readonly OwnerApp[]): Promise<boolean> {
    return this.#try(
      async () => {
        for (const app of apps) await this.bridge.deny(app.name);
      },
      () => this.#tell(strings.toast.deniedAll(apps.length)),
    );
  }

  stop(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.stop(app.name),
      ({ closed }) => this.#tell(strings.toast.stopped(app.label, closed)),
    );
  }

  revoke(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.revoke(app.name),
      ({ closed }) => this.#tell(strings.toast.revoked(app.label, closed)),
    );
  }

  unmute(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.unmute(app.name),
      () => this.#tell(strings.toast.unmuted(app.label)),
    );
  }

  open(app: OwnerApp): Promise<boolean> {
    return this.#try(() => this.bridge.open(app.name));
  }

  openURL(url: string): Promise<boolean> {
    return this.#try(() => this.bridge.openURL(url));
  }

  /** Copies text and says so to screen readers; the control shows a tick. */
  copy(text: string): Promise<boolean> {
    return this.#try(
      () => this.bridge.copy(text),
      () => this.toasts.say(strings.copied),
    );
  }

  #tell(sentence: Sentence) {
    this.toasts.show(sentence);
  }

  async #try<T>(call: () => Promise<T>, done?: (answer: T) => void): Promise<boolean> {
    try {
      const answer = await call();
      done?.(answer);
      return true;
    } catch (error) {
      this.#tell(strings.toast.failed((error as Error).message));
      return false;
    }
  }
}

const key = Symbol('desk');

export const provideDesk = (desk: Desk): Desk => setContext(key, desk);
export const useDesk = (): Desk => getContext<Desk>(key);
