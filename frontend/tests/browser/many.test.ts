// Lists that grow: only rows in sight are drawn, and everything can be found.
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import type { OwnerState } from '../../src/lib/types';
import { called, focusName, go, menuOf, open, section } from './page';

describe('many apps', () => {
  test('only rows in sight are drawn, and all can be reached', async () => {
    const page = await open({ scene: 'stress' });
    const drawn = () => page.locator('[role="listitem"]').count();
    expect(await drawn()).toBeLessThan(60);
    await page.getByRole('button', { name: 'Show all' }).click();
    expect(await drawn()).toBeLessThan(60);
    await page.locator('main').evaluate((main) => main.scrollTo(0, main.scrollHeight));
    await page.getByText('App 199', { exact: true }).waitFor();
    expect(await drawn()).toBeLessThan(60);
    const list = section(page, 'On').locator('[role="listitem"]').last();
    expect(await list.getAttribute('aria-setsize')).toBe('196');
    expect(await list.getAttribute('aria-posinset')).toBe('196');
  });

  test('the row with the focus stays when it is scrolled away', async () => {
    const page = await open({ scene: 'stress' });
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('button', { name: /Deny .?Ledger/ }).first().focus();
    await page.locator('main').evaluate((main) => main.scrollTo(0, 9000));
    await page.getByText('Request 160', { exact: true }).waitFor();
    expect(await focusName(page)).toBe('Deny Ledger');
    await page.keyboard.press('Enter');
    expect(await called(page, 'deny')).toEqual([[{ name: 'ask-1' }]]);
  });

  test('Tab walks on through rows that were not drawn before', async () => {
    const page = await open({ scene: 'stress' });
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('button', { name: /Deny .?Ledger/ }).first().focus();
    for (let i = 0; i < 60; i++) await page.keyboard.press('Tab');
    expect(await focusName(page)).toBe('Deny Request 31');
  });

  test('search narrows by label and address, accents and case aside, and Esc clears', async () => {
    const page = await open({ scene: 'stress' });
    await page.keyboard.press('Control+f');
    await page.keyboard.type('REQUEST 29');
    await expect.poll(() => section(page, 'Waiting for you').locator('.num').first().textContent()).toBe('11');
    expect(await section(page, 'On').count()).toBe(0);
    await page.keyboard.press('Escape');
    await section(page, 'On').waitFor();
    await page.keyboard.type('nothing like it');
    await page.getByText('Nothing matches').waitFor();
    await page.getByRole('button', { name: 'Clear search' }).click();
    await section(page, 'On').waitFor();
    expect(await page.getByRole('searchbox').inputValue()).toBe('');
  });

  test('there is no search for a handful', async () => {
    const page = await open();
    expect(await page.getByRole('searchbox').count()).toBe(0);
  });

  test('labels are text, whatever is in them', async () => {
    const page = await open({ scene: 'stress' });
    expect(await page.locator('main b:has-text("Totally fine"), main script').count()).toBe(0);
    const row = section(page, 'On').locator('bdi', { hasText: '<script>alert(1)</script>' });
    expect(await row.getAttribute('dir')).toBe('auto');
    expect(await row.locator('..').getAttribute('title')).toBe('<script>alert(1)</script>');
    const rtl = section(page, 'On').locator('bdi', { hasText: 'לוח' });
    expect(await rtl.evaluate((element) => getComputedStyle(element).direction)).toBe('rtl');
  });

  test('a menu near the foot opens upwards', async () => {
    const page = await open({ height: 640 });
    await menuOf(page, 'Recipes').click();
    const menu = (await page.getByRole('menu').boundingBox())!;
    expect(menu.y + menu.height).toBeLessThanOrEqual(640);
  });
});

describe('5,000 people', () => {
  const drawn = (page: Page) => page.locator('main [role="listitem"]').count();

  test('are drawn as far as they are in sight, and found', async () => {
    const page = await open({ scene: 'stress' });
    await go(page, 'People');
    await page.getByText('person-1@example.com', { exact: true }).waitFor();
    expect(await drawn(page)).toBeLessThan(60);
    // 4,900 may come in, 100 were removed; the owner is one of the first.
    expect(await section(page, 'May come in').getByRole('listitem').first().getAttribute('aria-setsize')).toBe('4901');
    await page.locator('main').evaluate((main) => main.scrollTo(0, main.scrollHeight));
    await page.getByText('person-4959@example.com', { exact: true }).waitFor();
    expect(await drawn(page)).toBeLessThan(60);
    await page.getByRole('searchbox').fill('person-4321');
    await page.getByText('person-4321@example.com', { exact: true }).waitFor();
    expect(await drawn(page)).toBe(1);
  });

  test('one is opened above the list, where rows have one height', async () => {
    const page = await open({ scene: 'stress' });
    await go(page, 'People');
    await page.getByRole('button', { name: 'Apps for person-1@example.com' }).click();
    const apps = page.getByRole('group', { name: 'Apps for person-1@example.com' });
    expect(await apps.getByRole('switch').count()).toBe(12);
    await apps.getByRole('button', { name: /^Show all \d+ apps$/ }).click();
    expect(await apps.getByRole('switch').count()).toBeGreaterThan(190);
  });
});

test('10,000 snapshots leave nothing behind', { timeout: 300_000 }, async () => {
  const page = await open({ scene: 'apps' });
  const devtools = await page.context().newCDPSession(page);
  const heap = async () => {
    for (let i = 0; i < 3; i++) await devtools.send('HeapProfiler.collectGarbage');
    return ((await devtools.send('Runtime.getHeapUsage')) as { usedSize: number }).usedSize;
  };
  // Apps come, change and go; people come and go; each snapshot is drawn.
  const events = (n: number) =>
    page.evaluate(async (n) => {
      const { stub } = window as unknown as { stub: { set(more: object): void; calls: unknown[] } };
      const { apps } = (await window.go!.ui!.Agent!.Ask('ownerState', {})) as OwnerState;
      for (let i = 0; i < n; i++) {
        const more = { ...apps[1]!, name: `more-${i % 7}`, label: `More ${i}`, connections: i % 5, here: i % 3 ? [`person-${i}@example.com`] : [] };
        stub.set({ apps: i % 2 ? apps : [...apps, more], here: i % 4, outboxSize: i });
        if (i % 10 === 0) await new Promise((resolve) => requestAnimationFrame(resolve));
      }
      stub.set({ apps, here: 0, outboxSize: 0 });
      stub.calls.length = 0;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }, n);
  await events(1000); // what is compiled and cached once
  const before = await heap();
  await events(10_000);
  const grown = (await heap()) - before;
  // A leaked snapshot is some 4 kB; 10,000 of them would be 40 MB.
  expect(grown).toBeLessThan(1 << 20);
});
