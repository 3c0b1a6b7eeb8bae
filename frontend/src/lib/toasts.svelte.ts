/*
 * What the window says after something happened: one toast, replaced by the
 * next, and words for screen readers alone.
 */
import type { Sentence } from './strings';

export interface Toast {
  text: Sentence;
  action?: { label: string; run: () => void };
}

const lasts = 8000; // ms

export class Toasts {
  current = $state.raw<Toast>();
  /** The last moment told only to screen readers ("Copied"). */
  spoken = $state('');

  #timer: ReturnType<typeof setTimeout> | undefined;
  #held = false;

  show(text: Sentence, action?: Toast['action']) {
    this.current = action ? { text, action } : { text };
    this.#schedule();
  }

  dismiss() {
    clearTimeout(this.#timer);
    this.#held = false;
    this.current = undefined;
  }

  /** A toast that is hovered or focused stays until it no longer is. */
  hold(held: boolean) {
    this.#held = held;
    this.#schedule();
  }

  say(text: string) {
    // A repeated text is announced again only when it differs.
    this.spoken = this.spoken === text ? text + '\u00a0' : text;
  }

  #schedule() {
    clearTimeout(this.#timer);
    if (this.current && !this.#held) this.#timer = setTimeout(() => this.dismiss(), lasts);
  }
}
