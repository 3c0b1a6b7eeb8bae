import { mount } from 'svelte';
import { bridge } from './lib/bridge';
import { appear } from './lib/appearance';
import { languages, type Language } from './lib/language';
import { speak } from './lib/strings';
import '../../assets/style/tokens.css';
import './styles/base.css';

/** The language that the desktop app speaks; English where it cannot say. */
async function listen() {
  const { language, locale } = await bridge.shell.Speech();
  if (languages.includes(language as Language)) speak(language as Language, locale);
  document.documentElement.lang = language;
}

/** Light or dark from the first frame on; what the page sees itself where the desktop app cannot say. */
const dressed = bridge.shell.Looks().then(appear, () => {});

/** What the program around the page knew last: nothing in its first moments. */
const lately = bridge.shell.State().catch(() => undefined);

await listen().catch(() => {});
const last = await lately;
await dressed;
// What is evaluated from here on finds the language chosen.
const { default: App } = await import('./App.svelte');
mount(App, { target: document.getElementById('app')!, props: { bridge, last } });
