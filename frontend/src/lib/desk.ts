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
import type { AppOptions, OAuthGrant, OwnerApp, Person, Settings } from './types';

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

  pause(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.pause(app.name),
      ({ closed }) => this.toasts.show(strings.toast.paused(app.label, closed), { label: strings.app.resume, run: () => void this.resume(app) }),
    );
  }

  resume(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.resume(app.name),
      () => this.#tell(strings.toast.resumed(app.label)),
    );
  }

  setOptions(app: OwnerApp, options: AppOptions): Promise<boolean> {
    return this.#try(() => this.bridge.setOptions(app.name, options));
  }

  dark(on: boolean): Promise<boolean> {
    if (!on) return this.#try(() => this.bridge.lightUp(), () => this.#tell(strings.toast.light));
    return this.#try(
      () => this.bridge.goDark(),
      ({ closed }) => this.#tell(strings.toast.dark(closed)),
    );
  }

  invite(email: string, labels: readonly string[]): Promise<boolean> {
    return this.#try(
      () => this.bridge.invite(email, [...labels]),
      (answer) => this.#tell(strings.toast.invited(answer.email, this.owner.account?.local ?? false)),
    );
  }

  grant(person: Person, label: string, granted: boolean): Promise<boolean> {
    return this.#try(
      () => this.bridge.grant(person.accountId, label, granted),
      ({ closed }) => {
        if (granted) return;
        this.toasts.show(strings.toast.withdrawn(person.email, label, closed), {
          label: strings.people.undo,
          run: () => void this.grant(person, label, true),
        });
      },
    );
  }

  /** What was taken cannot be put back without asking them: Undo is a new invitation. */
  remove(person: Person): Promise<boolean> {
    return this.#try(
      () => this.bridge.remove(person.accountId),
      ({ closed }) => {
        const labels = person.apps;
        const again = labels.length > 0 ? { label: strings.people.inviteAgain, run: () => void this.invite(person.email, labels) } : undefined;
        this.toasts.show(strings.toast.removed(person.email, closed), again);
      },
    );
  }

  revokeClient(grant: OAuthGrant): Promise<boolean> {
    return this.#try(
      () => this.bridge.revokeClient(grant.id),
      ({ closed }) => this.#tell(strings.toast.clientRevoked(grant.clientName, closed)),
    );
  }

  clearActivity(): Promise<boolean> {
    return this.#try(
      () => this.bridge.clearActivity(),
      () => this.#tell(strings.toast.cleared),
    );
  }

  setSettings(settings: Settings): Promise<boolean> {
    return this.#try(() => this.bridge.setSettings(settings));
  }

  startAtLogin(on: boolean): Promise<boolean> {
    return this.#try(() => this.bridge.startAtLogin(on));
  }

  appearance(appearance: string): Promise<boolean> {
    return this.#try(() => this.bridge.appearance(appearance));
  }

  trust(on: boolean): Promise<boolean> {
    return this.#try(
      () => this.bridge.trust(on),
      () => this.#tell(on ? strings.toast.trusted : strings.toast.distrusted),
    );
  }

  showData(): Promise<boolean> {
    return this.#try(() => this.bridge.showData());
  }

  export(): Promise<boolean> {
    return this.#try(
      () => this.bridge.export(),
      (path) => path && this.#tell(strings.toast.exported(path)),
    );
  }

  connect(url: string): Promise<boolean> {
    return this.#try(() => this.bridge.connect(url, ''));
  }

  cancelConnect(): Promise<boolean> {
    return this.#try(() => this.bridge.cancelConnect());
  }

  disconnect(): Promise<boolean> {
    return this.#try(() => this.bridge.disconnect());
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
