/*
 * The one place that touches what Wails puts on window: the Go structs bound for
 * the owner (window.go.ui.*) and the runtime's events. Everything else asks this
 * module, so that tests and a plain browser can stand in for Wails.
 *
 * Every call ends with its answer or throws an Error whose message is a
 * sentence for the owner; the Go side words it.
 */
import { strings } from './strings';
import type { Desk, Operations, OwnerState, Shell } from './types';

export type Operation = keyof Operations;

/** What an operation takes; left out where it takes nothing, or may. */
export type Takes<Name extends Operation> = {} extends Operations[Name]['takes'] ? [values?: Operations[Name]['takes']] : [values: Operations[Name]['takes']];

/** Carries out an operation of the agent, by its name in docs/openapi/loopback.yaml. */
export type Ask = <Name extends Operation>(operation: Name, ...values: Takes<Name>) => Promise<Operations[Name]['gives']>;

interface Agent {
  Ask(operation: Operation, values: object): Promise<unknown>;
}

interface Runtime {
  EventsOn(name: string, fn: (...data: never[]) => void): () => void;
  Quit(): void;
}

declare global {
  interface Window {
    go?: { ui?: { Agent?: Agent; Desk?: Partial<Desk>; Shell?: Partial<Shell> } };
    runtime?: Partial<Runtime>;
  }
}

/** What Go bound under a name. */
function bound<T extends Agent | Desk | Shell>(name: 'Agent' | 'Desk' | 'Shell'): T {
  const call = async (method: string, values: unknown[]) => {
    const go = window.go?.ui?.[name] as Record<string, (...values: unknown[]) => Promise<unknown>> | undefined;
    if (!go?.[method]) throw new Error(strings.bridge.missing);
    try {
      return await go[method](...values);
    } catch (cause) {
      throw new Error(sentence(cause), { cause });
    }
  };
  return new Proxy({} as T, { get: (_, method: string) => (...values: unknown[]) => call(method, values) });
}

/** Wails rejects with an Error or with a bare string, by version. */
function sentence(cause: unknown): string {
  const text = cause instanceof Error ? cause.message : typeof cause === 'string' ? cause : '';
  return text.trim() || strings.bridge.failed;
}

/** Calls fn at every event of that name until the returned function is called. */
const on = (name: string, fn: (...data: never[]) => void): (() => void) => window.runtime?.EventsOn?.(name, fn) ?? (() => {});

const agent = bound<Agent>('Agent');

export const bridge = {
  ask: ((operation, values = {}) => agent.Ask(operation, values)) as Ask,
  desk: bound<Desk>('Desk'),
  shell: bound<Shell>('Shell'),

  /** Closes the window, as its own button does: Wails asks the program, which hides it. */
  close: () => window.runtime?.Quit?.(),

  /** Calls fn with every new snapshot. */
  onState: (fn: (state: OwnerState) => void) => on('state', fn),
  /** Calls fn whenever there is a view to ask shell.Wanted for. */
  onShow: (fn: () => void) => on('show', fn),
  /** Calls fn whenever there is a look to ask shell.Looks for. */
  onLooks: (fn: () => void) => on('looks', fn),
};

export type Bridge = typeof bridge;
