// The window in other languages: the pseudo-locale finds what no language can say
// otherwise, and what its length breaks. German is looked at in both themes, by axe too,
// and pictures are written for people to look at (see shot).
import { expect, test } from 'vitest';
import { speak, strings } from '../../src/lib/strings';
import { audit, open, shot, wrong, type Look } from './page';
import type { Page } from 'playwright-core';

type Tongue = 'de' | 'en-XA';

/** What each text of the page, said in English, is in another language; a text about a person is one about lena. */
function dictionary(tongue: Tongue): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  const said = (value: unknown) => (typeof value === 'function' ? tried(() => value('lena@example.com')) : value);
  const walk = (from: unknown, to: unknown) => {
    const [english, other] = [said(from), said(to)];
    if (typeof english === 'string' && typeof other === 'string') found.set(english, (found.get(english) ?? new Set()).add(other));
    else if (typeof english === 'object' && english && typeof other === 'object' && other) for (const name in english) walk(english[name as never], other[name as never]);
  };
  speak('en');
  const english = strings;
  speak(tongue);
  walk(english, strings);
  speak('en');
  return found;
}

/** What is made of something else than a name is not looked up. */
function tried(make: () => unknown): unknown {
  try {
    return make();
  } catch {
    return undefined;
  }
}

const dictionaries = { de: dictionary('de'), 'en-XA': dictionary('en-XA') };

/** Every text that a person reads and that was not said through strings/: one of ours has no plain vowel. */
const unsaid = (page: Page) =>
  page.evaluate((asItIs) => {
    const given = [...(window as unknown as { stub: { texts(): string[] } }).stub.texts(), ...asItIs].sort((a, b) => b.length - a.length);
    const found = new Set<string>();
    const note = (text: string | null) => {
      let plain = text ?? '';
      for (const one of given) plain = plain.replaceAll(one, ' ');
      plain = plain.replace(/https?:\/\/\S+|\S+@\S+|[\w-]+(\.[\w-]+)+(:\d+)?/g, ' '); // addresses and hosts are put together
      if (/[aeiou]/.test(plain)) found.add(plain.trim());
    };
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode())
      if (!node.parentElement!.closest('style, script, time, code')) note(node.textContent);
    for (const one of document.querySelectorAll('[aria-label], [placeholder], [title], [alt]'))
      for (const name of ['aria-label', 'placeholder', 'title', 'alt']) note(one.getAttribute(name));
    return [...found];
  }, [...months, 'English', 'Deutsch', ...theAgents]);

/** What the agent says: the program around the page says that in its language. And what it calls an app without a title. */
const theAgents = ['19 GB are free.', 'Your browsers warn of this computer’s certificates.', 'Several mails were asked for at that address. Links already sent still work; another mail can be asked for later.', 'Port 3000', 'Port 8000', 'port-3000',
  'Not answering', 'Refuses its address', 'Speaks HTTPS', 'Speaks HTTP/2', 'Answers wrongly', 'Claude Code', 'Claude', 'ChatGPT', 'Cursor', 'VS Code'];

const months = Array.from({ length: 12 }, (_, month) => new Date(2026, month, 1).toLocaleDateString('en', { month: 'long' }));

/** Whether anything stands out at the side. */
const overflow = (page: Page) =>
  page.evaluate(() => {
    const out = [...document.querySelectorAll<HTMLElement>('main, nav, main *, nav *')].filter((one) => {
      const box = one.getBoundingClientRect();
      for (let above = one.parentElement; above && above !== document.body; above = above.parentElement) if (getComputedStyle(above).overflowX !== 'visible') return false; // is cut there, and says so
      return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1) && getComputedStyle(one).position !== 'fixed';
    });
    return [document.documentElement.scrollWidth > innerWidth ? 'the page scrolls sideways' : '', ...out.map((one) => `${one.tagName}.${one.className}: ${one.innerText.slice(0, 40)}`)].filter(Boolean);
  });

const scenes = ['welcome', 'welcome-code', 'apps', 'connected', 'dark', 'paused', 'health', 'empty', 'alone', 'unreachable', 'locked', 'keyless', 'muted', 'requests', 'knocks'];

/** A step on the way to a view; a name in it is the English one. */
type Step = (page: Page, say: (name: string) => RegExp) => Promise<unknown>;

/** Presses what is called so in English. */
const press = (name: string): Step => (page, say) => page.getByRole('button', { name: say(name) }).first().click();
const apps = (page: Page) => page.getByRole('navigation').getByRole('button').first().click();
const checkup = async (page: Page) => {
  await page.locator('.foot .state').click();
  await page.locator('#report, .lead').first().waitFor({ state: 'attached' });
};

/** What no entry of the sidebar leads to, by the scene it is looked at in: each the presses that lead there. */
const beyond: Record<string, [name: string, ...way: Step[]][]> = {
  welcome: [['trust', press('Start')], ['the first app', press('Not now'), (page) => page.getByText('Jupyter Server').waitFor()]],
  connected: [
    ['adding an app', apps, press('Add an app…'), (page) => page.getByText('Jupyter Server').waitFor(), (page) => page.locator('details summary, .fold button').first().click()],
    ['an app', apps, (page) => page.getByRole('button', { name: 'Notes' }).first().click(), press('QR code')],
    ['its people', press('Add people…')],
    ['its password', press('Connect a program…')],
    ['its assistant', press('Connect an assistant…'), (page, say) => page.getByRole('radio', { name: say('Another') }).check()],
    [
      'links', (page) => page.getByRole('navigation').getByRole('button').nth(1).click(), press('Invite'), (page) => page.getByLabel('Photos').check(),
      (page, say) => page.getByLabel(say('E-mail addresses')).fill('lena@example.com, full@example.com'), press('Copy links…'), press('QR code for lena@example.com'),
    ],
    ['health', checkup],
    ['all settings', (page) => page.getByRole('navigation').getByRole('button').nth(3).click(), (page) => page.locator('#more summary').click()],
  ],
  knocks: [['somebody who knocks at an app', apps, (page) => page.getByRole('button', { name: 'Notes' }).first().click()]],
  health: [['what is wrong', checkup], ['an app that ails', apps, (page) => page.getByRole('button', { name: 'Cluster' }).first().click()]],
  locked: [['health', checkup]],
};

/** Shows each view of a scene, one after the other. */
async function eachView({ scene, language, ...how }: Look & { scene: string; language: Tongue }, look: (page: Page, name: string) => Promise<unknown>) {
  const page = await open({ scene, language, ...how });
  const say = (name: string) => {
    const said = dictionaries[language].get(name);
    if (!said) throw new Error(`nothing of the window is called ${name}`);
    return new RegExp(`^(${[...said].map((one) => one.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})$`);
  };
  const views = page.getByRole('navigation').getByRole('button');
  for (let i = 0, n = Math.max(1, await views.count()); i < n; i++) {
    if (await views.nth(i).isVisible()) await views.nth(i).click();
    await page.locator('main[aria-busy="false"]').waitFor();
    await look(page, `view ${i}`);
  }
  for (const [name, ...way] of beyond[scene] ?? []) {
    for (const step of way) await step(page, say);
    await look(page, name);
  }
  expect(wrong()).toEqual([]);
}

test.each(scenes)('every view of %s, in the pseudo-locale at 720 px', async (scene) => {
  const all: Record<string, unknown> = {};
  await eachView({ scene, width: 720, height: 900, language: 'en-XA' }, async (page, name) => {
    const found = { unsaid: await unsaid(page), overflow: await overflow(page) };
    if (found.unsaid.length + found.overflow.length > 0) all[name] = found;
  });
  expect(all).toEqual({});
});

/** How else a window may stand than at 960 px on a fine screen: what stands out is looked for in each, and with VIEWS=1 (make test-views) axe looks at each. */
const cells = [
  { width: 720, scale: 2, theme: 'light' },
  { width: 720, scale: 1, theme: 'dark' },
  { width: 960, scale: 1, theme: 'light' },
] as const;

async function eachCell(page: Page, scene: string, name: string): Promise<string[]> {
  const found: string[] = [];
  const screen = await page.context().newCDPSession(page);
  for (const { width, scale, theme } of cells) {
    await page.setViewportSize({ width, height: 2600 });
    await screen.send('Emulation.setDeviceMetricsOverride', { width, height: 2600, deviceScaleFactor: scale, mobile: false });
    await page.emulateMedia({ colorScheme: theme });
    expect(await page.evaluate(() => [innerWidth, devicePixelRatio])).toEqual([width, scale]);
    const cell = `${width} px at ${scale}×, ${theme}`;
    found.push(...[...(await overflow(page)), ...(process.env.VIEWS ? await audit(page) : [])].map((wrong) => `${cell}: ${wrong}`));
    if (width === 720) await shot(page, `de-${scene}-${name.replaceAll(' ', '-')}-720-${theme}`);
  }
  await screen.detach();
  await page.setViewportSize({ width: 960, height: 2600 });
  await page.emulateMedia({ colorScheme: 'light' });
  return found;
}

test.each(['welcome', 'connected', 'health', 'knocks', 'locked', 'stress'])('every view of %s in German', async (scene) => {
  const all: Record<string, unknown> = {};
  // As high as that: to axe, what is scrolled out of sight has no words.
  await eachView({ scene, height: 2600, language: 'de' }, async (page, name) => {
    const found = [...(await overflow(page)), ...(await audit(page))];
    await shot(page, `de-${scene}-${name.replaceAll(' ', '-')}-light`);
    await page.emulateMedia({ colorScheme: 'dark' });
    found.push(...(await audit(page, 'color-contrast')));
    await shot(page, `de-${scene}-${name.replaceAll(' ', '-')}-dark`);
    found.push(...(await eachCell(page, scene, name)));
    if (found.length > 0) all[name] = found;
  });
  expect(all).toEqual({});
});
