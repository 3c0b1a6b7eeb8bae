import type { Desk } from '../lib/desk';
import type { OwnerApp } from '../lib/types';

/** How long a request must have stood under the pointer before a press counts, in ms. */
const settles = 400;

/**
 * Deciding on what waits: approving and denying a request, answering a knock. They come
 * and go by themselves, so a press that was meant for what stood there a moment ago must
 * not decide this one: presses of the mouse count only once it has stood long enough to be
 * read, and the second half of a double click never. The keyboard is exempt: its focus
 * does not move to a request by itself.
 */
export class Deciding {
  doing = $state<string>();

  readonly #desk: Desk;

  /** Whether what lets somebody in waits for the keychain; a no can be said all the same. */
  readonly waits = $derived.by(() => this.#desk.owner.snapshot?.locked ?? false);
  #since = performance.now();

  /** To be made while the request's component is set up. */
  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** To be called when the request came to stand somewhere else, or to say something else. */
  moved() {
    this.#since = performance.now();
  }

  approve(app: OwnerApp, event: MouseEvent, how?: Parameters<Desk['approve']>[1]) {
    return this.decide('approve', event, () => this.#desk.approve(app, how));
  }

  deny(app: OwnerApp, event: MouseEvent) {
    return this.decide('deny', event, () => this.#desk.deny(app));
  }

  /** Has the owner decide something, by a press that was meant for it. */
  async decide(what: string, event: MouseEvent, call: () => Promise<boolean>) {
    const pointed = event.detail > 0;
    if (this.doing || event.detail > 1 || (pointed && event.timeStamp - this.#since < settles)) return;
    this.doing = what;
    await call();
    this.doing = undefined;
  }
}
