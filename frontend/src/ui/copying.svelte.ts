import { onDestroy } from 'svelte';

const shown = 2000; // ms

/** Copies by the function given and holds done for the two seconds of a tick. */
export class Copying {
  done = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #copy: (text: string) => Promise<boolean>;

  /** To be made while a component is set up: its tick ends with it. */
  constructor(copy: (text: string) => Promise<boolean>) {
    this.#copy = copy;
    onDestroy(() => clearTimeout(this.#timer));
  }

  async run(text: string) {
    if (!(await this.#copy(text))) return;
    clearTimeout(this.#timer);
    this.done = true;
    this.#timer = setTimeout(() => (this.done = false), shown);
  }
}
