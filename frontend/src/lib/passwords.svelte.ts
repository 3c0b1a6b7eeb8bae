/*
 * What the app passwords of this computer are called, never the passwords: not part
 * of the snapshot, whose peopleVersion says when to ask again.
 */
import type { Ask } from './bridge';
import type { AppPassword } from './types';

export class Passwords {
  /** The last listing, or undefined before the first. */
  all = $state.raw<AppPassword[]>();
  /** Why there is none, as a sentence; empty while all is well. */
  problem = $state('');

  readonly #ask: Ask;
  #asked = 0;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** Asks again; of several questions under way the last one counts. */
  async read(): Promise<void> {
    const mine = ++this.#asked;
    try {
      const all = await this.#ask('passwords');
      if (mine !== this.#asked) return;
      this.all = all;
      this.problem = '';
    } catch (error) {
      if (mine === this.#asked) this.problem = (error as Error).message;
    }
  }
}
