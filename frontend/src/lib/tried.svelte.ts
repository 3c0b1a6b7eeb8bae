/* What came of trying addresses from outside, for as long as the window is open. */
import { SvelteMap } from 'svelte/reactivity';
import type { Desk } from './desk';
import type { TriedAddress } from './types';

/** How long what was tried is told without trying again, in ms. */
const fresh = 60_000;

export class Tried {
  readonly #of = new SvelteMap<string, TriedAddress>();
  readonly #trying = new SvelteMap<string, true>();

  /** The last try of an app's address, by the name of the app. */
  of(name: string): TriedAddress | undefined {
    return this.#of.get(name);
  }

  trying(name: string): boolean {
    return this.#trying.has(name);
  }

  /** Tries, unless it worked a moment ago. */
  async look(desk: Desk, name: string): Promise<void> {
    const last = this.#of.get(name);
    if (!last?.works || Date.now() - Date.parse(last.at) > fresh) await this.again(desk, name);
  }

  /** Tries now; a failure of the agent itself is said. */
  async again(desk: Desk, name: string): Promise<void> {
    if (this.#trying.has(name)) return;
    this.#trying.set(name, true);
    await desk.have(async (bridge) => this.#of.set(name, await bridge.ask('tryAddress', { name })));
    this.#trying.delete(name);
  }
}
