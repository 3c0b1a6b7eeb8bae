/*
 * The window's one picture of the agent: a snapshot, replaced whole by each
 * event. Nothing in the window changes an app by itself; it asks the bridge and
 * waits for the next snapshot.
 */
import type { Bridge } from './bridge';
import { strings } from './strings';
import type { OwnerState } from './types';

/** How the owner's address is doing, as the sidebar words it. */
export type Standing = 'connected' | 'local' | 'dark' | 'starting' | 'reconnecting' | 'unreachable' | 'certificate' | 'away';

/**
 * The one place that says how the connection is: the sidebar, the account and
 * inviting all ask here.
 */
export function standingOf(snapshot: OwnerState): Standing {
  const { account, trouble } = snapshot;
  if (snapshot.darkSince) return 'dark';
  if (!snapshot.reachable) return !account.connected && !trouble ? 'starting' : account.local ? 'unreachable' : 'reconnecting';
  if (trouble) return 'certificate'; // the way stands, and something else is not in order
  return account.local ? 'local' : 'connected';
}

/** Why nobody can be invited now, as a sentence; empty when somebody can. */
export function inviteWaits(snapshot: OwnerState): string {
  if (snapshot.locked) return strings.people.waitsLocked;
  return snapshot.accessUntil ? strings.people.waitsAway : '';
}

export class Owner {
  /** The last snapshot, or undefined before the first. */
  snapshot = $state.raw<OwnerState>();
  /** Why no snapshot could be had, as a sentence; empty while all is well. */
  problem = $state('');
  /** True while a snapshot is asked for. */
  asking = $state(false);

  readonly apps = $derived(this.snapshot?.apps ?? []);
  readonly account = $derived(this.snapshot?.account);
  readonly waiting = $derived(this.apps.filter((app) => app.status === 'pending').length + (this.snapshot?.knocks?.length ?? 0));
  readonly standing = $derived.by((): Standing => {
    if (this.problem) return 'away';
    return this.snapshot ? standingOf(this.snapshot) : 'starting';
  });
  /** Something of the owner's can be opened right now. */
  readonly lit = $derived(
    (this.standing === 'connected' || this.standing === 'local') && this.apps.some((app) => app.lit),
  );

  readonly #bridge: Pick<Bridge, 'ask' | 'onState'>;

  constructor(bridge: Pick<Bridge, 'ask' | 'onState'>) {
    this.#bridge = bridge;
  }

  /** Begins with what was known last, if anything was. */
  begin(last: OwnerState | undefined): void {
    if (last && last.seq > 0) this.#take(last);
  }

  /** Listens for snapshots and asks for the first; returns how to stop. */
  start(): () => void {
    const stop = this.#bridge.onState((state) => this.#take(state));
    void this.refresh();
    return stop;
  }

  /** Asks for a snapshot; an answer older than what an event brought is dropped. */
  async refresh(): Promise<void> {
    this.asking = true;
    try {
      const state = await this.#bridge.ask('ownerState');
      if (!this.snapshot || this.problem || state.seq >= this.snapshot.seq) this.#take(state);
    } catch (error) {
      this.problem = (error as Error).message;
    } finally {
      this.asking = false;
    }
  }

  #take(state: OwnerState) {
    this.problem = '';
    this.snapshot = {
      ...state,
      apps: (state.apps ?? []).map((app) => ({ ...app, here: app.here ?? [], openTo: app.openTo ?? [] })),
      notices: state.notices ?? [],
      grants: state.grants ?? [],
      registrants: state.registrants ?? [],
      users: state.users ?? [],
    };
  }
}
