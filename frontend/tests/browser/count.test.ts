// How much the window says and asks: entries of the sidebar, switches of the settings before
// anything is unfolded, and words over every view with all of it unfolded. What others wrote (names, addresses,
// sentences of the agent) is left out. COUNT=1 prints it by view.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { strings } from '../../src/lib/strings';
import type { View } from '../../src/lib/places';
import { open } from './page';

/** What is the most it may come to: of words two thirds of caf002bc's; see docs/measured/words.md. */
const most = { connected: { entries: 6, switches: 1, words: 880 }, apps: { entries: 7, switches: 1, words: 944 }, german: { entries: 6, switches: 1, words: 905 } };

/** The words that a part of the page shows, of the window's own. */
const wordsIn = (page: Page, part: string) =>
  page.evaluate((part) => {
    const given = (window as unknown as { stub: { texts(): string[] } }).stub.texts().sort((a, b) => b.length - a.length);
    let all = '';
    const walk = document.createTreeWalker(document.querySelector(part)!, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      const parent = node.parentElement!;
      if (parent.closest('script, style, code, time, .sr') || !(parent.closest('select') ?? parent).checkVisibility()) continue;
      let text = node.textContent ?? '';
      for (const one of given) text = text.replaceAll(one, ' ');
      all += ` ${text.replace(/\S+@\S+|\S*[.:/]\S*[a-z0-9]/g, ' ')}`;
    }
    return all.match(/\p{L}{2,}/gu)?.length ?? 0;
  }, part);

/** Waits until a view shows all that it asks for: nothing more comes. */
const still = (page: Page) =>
  page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        let last = setTimeout(done, 250);
        const changes = new MutationObserver(() => {
          clearTimeout(last);
          last = setTimeout(done, 250);
        });
        changes.observe(document.body, { subtree: true, childList: true, characterData: true });
        function done() {
          changes.disconnect();
          resolve();
        }
      }),
  );

/** Opens all that is folded, and what is folded in it. */
async function unfold(page: Page) {
  const folded = page.locator('main details:not([open])');
  while ((await folded.count()) > 0) await folded.first().evaluate((one: HTMLDetailsElement) => (one.open = true));
  await still(page);
}

async function count(scene: keyof typeof most) {
  const page = await open(scene === 'german' ? { scene: 'connected', language: 'de' } : { scene });
  const found: Record<string, number> = { sidebar: await wordsIn(page, 'aside') };
  const entries = await page.getByRole('navigation').getByRole('button').count();
  let switches = 0;
  const views = (Object.keys(strings.nav) as View[]).filter((view) => view !== 'outbox' || scene === 'apps');
  for (const [view, argument] of [...views.map((view) => [view, ''] as const), ['apps', 'notes'] as const]) {
    await page.evaluate(([view, argument]) => (window as unknown as { stub: { wants(view: string, argument: string): void } }).stub.wants(view, argument), [view, argument] as const);
    await still(page);
    if (view === 'settings') switches = await page.locator('main').getByRole('switch').count();
    await unfold(page);
    found[argument || view] = await wordsIn(page, 'main');
  }
  return { entries, switches, words: Object.values(found).reduce((sum, n) => sum + n, 0), found };
}

test.each(Object.keys(most) as (keyof typeof most)[])('the window says and asks no more than it may: %s', async (scene) => {
  const { found, ...all } = await count(scene);
  if (process.env.COUNT) console.log(scene, JSON.stringify(all), JSON.stringify(found));
  expect(all.entries).toBeLessThanOrEqual(most[scene].entries);
  expect(all.switches).toBeLessThanOrEqual(most[scene].switches);
  expect(all.words).toBeLessThanOrEqual(most[scene].words);
});
