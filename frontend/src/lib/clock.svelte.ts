import { createSubscriber } from 'svelte/reactivity';

const every = 20_000; // ms; the finest word shown is a minute

const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, every);
  return () => clearInterval(timer);
});

/** Now, in ms since the epoch; what reads it in a template is drawn again as time passes. */
export function now(): number {
  subscribe();
  return Date.now();
}
