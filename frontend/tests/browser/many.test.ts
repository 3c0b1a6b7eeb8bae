// Lists that grow: only rows in sight are drawn, and everything can be found.
import { describe, expect, test } from 'vitest';
import { called, focusName, menuOf, open, section } from './page';

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
    expect(await called(page, 'Deny')).toEqual([['ask-1']]);
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
