/*
 * What the agent is asked for again and again: not part of the snapshot, which only
 * says when to ask anew.
 */
export class Asked<Answer> {
  /** The last answer, or undefined before the first. */
  answer = $state.raw<Answer>();
  /** Why there is none, as a sentence; empty while all is well. */
  problem = $state('');

  readonly #ask: () => Promise<Answer>;
  #asked = 0;

  constructor(ask: () => Promise<Answer>) {
    this.#ask = ask;
  }

  /** Asks again; of several questions under way the last one counts. */
  async read(): Promise<void> {
    const mine = ++this.#asked;
    try {
      const answer = await this.#ask();
      if (mine !== this.#asked) return;
      this.answer = answer;
      this.problem = '';
    } catch (error) {
      if (mine === this.#asked) this.problem = (error as Error).message;
    }
  }
}
