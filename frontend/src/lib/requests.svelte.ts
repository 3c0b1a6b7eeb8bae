/*
 * What visitors ask of the apps, followed as it happens: each question waits at the
 * agent for what comes next. Nothing of it outlives the view that shows it.
 */
import { untrack } from 'svelte';
import type { Ask } from './bridge';
import type { VisitorRequest } from './types';

/** How long the agent waits for something to tell, in seconds. */
const patience = 8;

/** The least time between two questions, in ms, so that a busy app does not keep the window drawing. */
const breath = 400;

/** The time until it is asked again, in ms, where it failed or is off. */
const later = 3000;

export class VisitorRequests {
  /** Newest first; undefined before the first answer. */
  rows = $state.raw<VisitorRequest[]>();
  /** What the setting says. */
  on = $state(true);
  /** Why there is none, as a sentence; empty while all is well. */
  problem = $state('');
  /** How many came while they are held back. */
  waiting = $state(0);

  readonly #ask: Ask;
  readonly #most: number;
  #held = false;
  #newest: VisitorRequest[] = []; // all that is known, also what is held back
  #after = 0;

  /** Keeps at most so many. */
  constructor(ask: Ask, most: number) {
    this.#ask = ask;
    this.#most = most;
  }

  /** Follows those of one app; returns how to stop. */
  follow(app: string): () => void {
    let stopped = false;
    let wake = () => {};
    const pause = (ms: number) =>
      new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, ms);
      });
    const run = async () => {
      while (!stopped) {
        const rest = await this.#next(app, () => stopped);
        if (!stopped) await pause(rest);
      }
    };
    untrack(() => void run()); // it reads what it changes
    return () => {
      stopped = true;
      wake();
    };
  }

  /** While somebody reads further down, what comes is counted and not shown. */
  hold(held: boolean) {
    this.#held = held;
    if (!held && this.rows) this.#show();
  }

  /** Asks once and takes the answer; returns how long to rest, in ms. */
  async #next(app: string, stopped: () => boolean): Promise<number> {
    try {
      const answer = await this.#ask('requests', { app, after: this.#after, wait: this.rows && this.on ? patience : 0 });
      if (stopped()) return 0;
      this.problem = '';
      this.on = answer.on;
      // A smaller number is another run of the agent, which knows nothing of before.
      const before = !answer.on || answer.seq < this.#after ? [] : this.#newest;
      this.#after = answer.seq;
      this.#newest = [...answer.requests.toReversed(), ...before].slice(0, this.#most);
      if (!this.#held || before.length === 0) this.#show();
      else this.waiting = Math.min(this.#most, this.waiting + answer.requests.length);
      return answer.on ? breath : later;
    } catch (error) {
      if (!stopped()) this.problem = (error as Error).message;
      return later;
    }
  }

  #show() {
    if (this.rows !== this.#newest) this.rows = this.#newest;
    this.waiting = 0;
  }
}

/** What a request is found by in a search. */
export const textOf = (one: VisitorRequest): string => `${one.method} ${one.path} ${one.status} ${one.email} ${one.error}`;

/** Whether a visitor did not get what they came for, by the app's fault. */
export const failed = (one: VisitorRequest): boolean => one.error !== '' || one.status === 0 || one.status >= 500;
