/* Whether the owner's browser trusts this computer, as it is found by having it load a page. */
import type { Bridge } from './bridge';
import type { TrustCheck } from './types';

const patience = 8; // seconds a question waits for its answer

/** 'idle' before anything was done, 'asking' while the system is asked to trust; then how the check stands. */
export type Standing = 'idle' | 'asking' | TrustCheck['state'];

export class Proof {
  standing = $state<Standing>('idle');
  /** Why it could not be tried, or nothing. */
  problem = $state('');
  browser = $state('');
  milliseconds = $state(0);
  #turn = 0; // of the newest try; an older one ends

  constructor(private readonly bridge: Bridge) {}

  /** Has the certificate trusted and a page opened that proves it, and follows that to its end. */
  async run() {
    const turn = ++this.#turn;
    this.problem = '';
    this.standing = 'asking';
    try {
      await this.bridge.desk.Trust(true);
      const begun = await this.bridge.ask('beginTrustCheck');
      await this.bridge.shell.OpenURL(begun.url ?? '');
      this.#take(turn, begun);
      await this.#follow(turn);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.standing = 'idle';
      this.problem = (error as Error).message;
    }
  }

  end() {
    this.#turn++;
  }

  async #follow(turn: number) {
    while (turn === this.#turn && (this.standing === 'waiting' || this.standing === 'opened')) {
      this.#take(turn, await this.bridge.ask('trustCheck', { was: this.standing, wait: patience }));
    }
  }

  #take(turn: number, now: TrustCheck) {
    if (turn !== this.#turn) return;
    this.standing = now.state;
    this.browser = now.browser;
    this.milliseconds = now.milliseconds ?? 0;
  }
}
