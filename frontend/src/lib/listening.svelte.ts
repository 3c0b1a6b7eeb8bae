/*
 * What listens on this computer, for the owner to choose from: read again each second
 * for as long as a view shows it, with the titles and icons of what may be asked for
 * them, each once.
 */
import type { Bridge } from './bridge';
import { fold } from './labels';
import { strings } from './strings';
import type { Listening, Looked, OwnerApp } from './types';

const again = 1000; // ms
const patience = 1500; // ms for titles
const atOnce = 4;

/** One of them as it is offered. */
export interface Offer extends Listening {
  title: string;
  icon: string; // base64 of a PNG, or empty
  looked: boolean;
  /** Nobody listens there any more: it stands there for what is said of that. */
  over: boolean;
}

/** Which listener it is: another program on the same port is another one. */
const keyOf = (one: Pick<Listening, 'port' | 'since'>) => `${one.port} ${one.since}`;

export class Runs {
  #all = $state.raw<readonly Listening[]>();
  #looked = $state.raw<ReadonlyMap<string, Looked>>(new Map());
  #failed = $state.raw<readonly Offer[]>([]); // could not be shared
  problem = $state('');
  #asked = new Set<string>(); // keys, of what was looked at or is being
  #mute = $state.raw<ReadonlySet<string>>(new Set()); // keys, of what could not be asked
  #waiting: Listening[] = [];
  #looking = 0;
  #shown = false;
  #late = $state(false); // titles were waited for
  #ranks: Map<number, number> | undefined; // by port, as things stood when the list was shown

  constructor(private readonly bridge: Bridge) {}

  /** Reads until what it returns is called. */
  start(): () => void {
    this.#shown = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = setTimeout(() => (this.#late = true), patience);
    const turn = async () => {
      if (!document.hidden) await this.read();
      if (this.#shown) timer = setTimeout(() => void turn(), again);
    };
    void turn();
    return () => {
      this.#shown = false;
      clearTimeout(timer);
      clearTimeout(late);
    };
  }

  async read() {
    try {
      const all = (await this.bridge.ask('listening')) ?? [];
      this.#all = all;
      this.problem = '';
      this.#lookAt(all.filter((one) => one.looks));
    } catch (error) {
      this.problem = (error as Error).message;
    }
  }

  /** Whether anything is known yet. */
  get known(): boolean {
    return this.#all !== undefined;
  }

  /** Whether all that may be asked for its title has answered. */
  get lookedAt(): boolean {
    return (this.#all ?? []).every((one) => !one.looks || this.#looked.has(keyOf(one)) || this.#mute.has(keyOf(one)));
  }

  /** Whether there is a list to show: titles are waited for, a moment. */
  get ready(): boolean {
    return this.known && (this.#late || this.lookedAt);
  }

  /** What is likeliest first: what has a title is an app for sure, and what has listened for a while may be. What comes later moves nothing under the pointer. */
  inOrder(all: readonly Offer[]): Offer[] {
    if (this.ready) this.#ranks ??= new Map(all.map((one) => [one.port, one.title ? 0 : one.steady ? 1 : 2]));
    const rank = ({ port }: Offer) => this.#ranks?.get(port) ?? 3;
    return [...all].sort((a, b) => Number(b.own) - Number(a.own) || rank(a) - rank(b) || a.port - b.port);
  }

  /** What there is, as it is offered beside these apps: names that they have are not. */
  offers(apps: readonly OwnerApp[]): Offer[] {
    const all = this.#all ?? [];
    const gone = this.#failed.filter((one) => !all.some((other) => other.port === one.port)).map((one) => ({ ...one, over: true }));
    const there = all.map((one) => {
      const seen = this.#looked.get(keyOf(one));
      const { name, label } = one.app || !seen ? one : freeOf(seen, apps);
      return { ...one, name, label, title: seen?.title ?? '', icon: seen?.icon ?? '', looked: seen !== undefined, over: false };
    });
    return [...there, ...gone].sort((a, b) => a.port - b.port);
  }

  /** Asks a program of another user, because the owner said so; why it failed, or nothing. */
  async look(one: Listening): Promise<string> {
    try {
      this.#keep(one, await this.bridge.ask('look', { port: one.port, asked: true }));
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** Puts one at an address, as it was shown; why that failed, or nothing. */
  async share(one: Offer, name: string): Promise<string> {
    const seen = { localPort: one.port, program: one.program, user: one.user };
    try {
      if (one.status === 'pending' && one.app) await this.bridge.ask('approve', { name: one.app, label: one.label, ...seen });
      else await this.bridge.ask('share', { name, label: one.label, ...seen, listening: one.since !== '', others: !one.own, keep: true });
    } catch (error) {
      if (one.since) this.#failed = [...this.#failed.filter((other) => other.port !== one.port), one];
      return (error as Error).message;
    } finally {
      await this.read();
    }
    return '';
  }

  #keep(one: Listening, seen: Looked) {
    this.#looked = new Map([...this.#looked, [keyOf(one), seen]]);
  }

  #lookAt(all: readonly Listening[]) {
    for (const one of all) {
      if (this.#asked.has(keyOf(one))) continue;
      this.#asked.add(keyOf(one));
      this.#waiting.push(one);
    }
    while (this.#looking < atOnce && this.#waiting.length > 0) void this.#next();
  }

  async #next() {
    const one = this.#waiting.shift();
    if (!one) return;
    this.#looking++;
    try {
      this.#keep(one, await this.bridge.ask('look', { port: one.port }));
    } catch {
      this.#mute = new Set([...this.#mute, keyOf(one)]); // it has no title then
    }
    this.#looking--;
    if (this.#shown) void this.#next();
  }
}

/** The name and label with a number, where an app has them by now. */
function freeOf({ name, label }: Looked, apps: readonly OwnerApp[]): { name: string; label: string } {
  const taken = (n: string, l: string) => apps.some((app) => app.name === n || fold(app.label) === fold(l));
  for (let n = 1; ; n++) {
    const [tryName, tryLabel] = n === 1 ? [name, label] : [`${name}-${n}`, `${label} ${n}`];
    if (!taken(tryName, tryLabel)) return { name: tryName, label: tryLabel };
  }
}

/** Some program's helper, mostly, that is gone in a moment. */
export const passes = (one: Offer): boolean => one.passing === true && !one.title && !one.status && !one.over;

/** What it is called: by its program, where all else that is known is its port. */
export const titleOf = (one: Offer): string => (one.label === strings.add.port(one.port) && one.program) || one.label;

/** A port that the owner types, where nothing listens. */
export function typed(port: number): Offer {
  return {
    port, program: '', user: '', own: true, network: false, published: false, looks: false, since: '', title: '', icon: '', looked: false, over: false,
    name: `port-${port}`, label: strings.add.port(port),
  };
}

/** What is said of one below its name, in parts. Where all are the owner's own, who runs it is left out. */
export function about(one: Offer, host: string): string[] {
  const words = strings.add;
  const title = titleOf(one);
  const program = title === one.program ? '' : one.program;
  return [
    title !== words.port(one.port) && words.port(one.port),
    one.own ? program : words.runBy(program, one.user),
    one.status === 'pending' && words.asks,
    one.network && words.network,
    host && `${one.name}.${host}`,
  ].filter((part): part is string => !!part);
}

/** Whether one is found by what the owner types. */
export function matches(one: Offer, query: string): boolean {
  const wanted = fold(query.trim());
  return [titleOf(one), one.name, one.program, one.user, String(one.port)].some((text) => fold(text).includes(wanted));
}
