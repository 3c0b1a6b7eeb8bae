/*
 * What the window says after something happened: one toast, replaced by the
 * next, and words for screen readers alone.
 */
import type { Sentence } from './sentence';

interface Action {
  label: string;
  run: () => void;
}

export interface Toast {
  text: Sentence;
  action?: Action;
  /** What else one may do next. */
  further?: readonly Action[];
  held?: Held;
}

/** What can be undone only while the toast is there. */
interface Held {
  /** What it is, so that others can offer the same. */
  key: string;
  /** When it cannot be undone any more, in ms since 1970: the toast leaves before, whatever rests on it. */
  until: number;
  /** Called once when the toast leaves and its action was not taken. */
  gone: () => void;
}

const lasts = 8000; // ms
const slack = 1000; // ms that an action still needs to be carried out

export class Toasts {
  current = $state.raw<Toast>();
  /** The last moment told only to screen readers ("Copied"). */
  spoken = $state('');

  #timer: ReturnType<typeof setTimeout> | undefined;
  #held = new Set<'pointer' | 'keyboard'>(); // what rests on the toast

  show(text: Sentence, action?: Action, held?: Held, further?: readonly Action[]) {
    const before = this.current?.held;
    this.current = { text, ...(action && { action }), ...(held && { held }), ...(further && { further }) };
    this.#schedule();
    before?.gone();
  }

  dismiss() {
    const held = this.#take()?.held;
    held?.gone();
  }

  /** Takes the toast's action, or another of what it offers. */
  act(other?: Action) {
    const was = this.#take();
    (other ?? was?.action)?.run();
  }

  /** Takes the toast about something held away, where it is about that: it was undone, or done anew, by another way. */
  forget(key: string) {
    if (this.current?.held?.key === key) this.#take();
  }

  /** A toast on which the pointer or the keyboard rests stays until neither does. */
  hold(by: 'pointer' | 'keyboard', rests: boolean) {
    if (rests) this.#held.add(by);
    else this.#held.delete(by);
    this.#schedule();
  }

  say(text: string) {
    // A repeated text is announced again only when it differs.
    this.spoken = this.spoken === text ? text + '\u00a0' : text;
  }

  #take(): Toast | undefined {
    const was = this.current;
    clearTimeout(this.#timer);
    this.#held.clear();
    this.current = undefined;
    return was;
  }

  #schedule() {
    clearTimeout(this.#timer);
    const left = (this.current?.held?.until ?? Infinity) - slack - Date.now();
    const time = this.#held.size > 0 ? left : Math.min(lasts, left);
    if (this.current && time < Infinity) this.#timer = setTimeout(() => this.dismiss(), Math.max(0, time));
  }
}
