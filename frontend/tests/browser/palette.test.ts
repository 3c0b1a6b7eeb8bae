// The palette: everything by a few keys.
import { describe, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { settings } from '../../src/lib/palette';
import type { OwnerState } from '../../src/lib/types';
import { audit, called, focusName, open, shot } from './page';

const palette = (page: Page) => page.locator('dialog [role="combobox"]');
const options = async (page: Page) => (await page.getByRole('option').allTextContents()).map((text) => text.replace(/\s+/g, ' ').trim());
const selected = async (page: Page) => (await page.locator('[role="option"][aria-selected="true"] .text').textContent())?.trim();

async function type(page: Page, text: string) {
  await page.keyboard.press('Control+k');
  await palette(page).waitFor();
  await page.keyboard.type(text);
}

describe('the palette', () => {
  test('opens an app, and the focus goes back to where it was', async () => {
    const page = await open();
    await page.getByRole('button', { name: /^Open .?Notes/ }).focus();
    await type(page, 'no');
    await expect.poll(() => selected(page)).toBe('Open Notes');
    expect(await palette(page).getAttribute('aria-activedescendant')).toBe(await page.locator('[aria-selected="true"]').getAttribute('id'));
    await shot(page, 'palette-app');
    await page.keyboard.press('Enter');
    await expect.poll(() => called(page, 'Open')).toEqual([['notes']]);
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(await focusName(page)).toBe('Open Notes');
  });

  test('the button in a view’s head opens it; Esc and a click beside it close it', async () => {
    const page = await open();
    const button = page.getByRole('button', { name: 'Find or do' });
    expect(await button.getAttribute('aria-keyshortcuts')).toBe('Control+K');
    await button.click();
    await palette(page).waitFor();
    await page.keyboard.press('Escape');
    await palette(page).waitFor({ state: 'detached' });
    expect(await focusName(page)).toBe('Find or doCtrl K');
    await button.click();
    await page.mouse.click(5, 5);
    await palette(page).waitFor({ state: 'detached' });
  });

  test('the keyboard moves within it and nowhere else', async () => {
    const page = await open();
    await type(page, 'notes');
    const all = await options(page);
    expect(all[0]).toContain('Open Notes');
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => selected(page)).toBe('Show Notes');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    await expect.poll(async () => all.at(-1)).toContain(await selected(page)); // around the end
    expect(await page.evaluate(() => document.activeElement?.getAttribute('role'))).toBe('combobox');
    await page.keyboard.type('xyz');
    await page.getByText('Nothing matches').waitFor();
    await page.keyboard.press('Enter'); // nothing to do
    expect(await palette(page).count()).toBe(1);
  });

  test.each([
    ['go dark', 'goDark', 'Go dark'],
    ['revoke notes', 'revoke', 'Revoke'],
    ['pause notes', 'pause', 'Pause'],
    ['remove bob', 'ownerRemovePerson', 'Remove'],
    ['disconnect carla', 'disconnectVisitor', 'Disconnect'],
    ['resume blog', 'resume', 'Resume'],
    ['revoke pocket', 'revokeGrant', 'Revoke'],
  ] as const)('%s is asked first, and no number of Enters does it', async (typed, operation, confirm) => {
    const page = await open();
    await type(page, typed);
    await page.locator('[role="option"]').first().waitFor();
    await expect.poll(async () => (await options(page)).length).toBeGreaterThan(0);
    for (let i = 0; i < 3; i++) await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await called(page, operation)).toEqual([]);
    await type(page, typed);
    await page.locator('[aria-selected="true"]').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: confirm, exact: true }).waitFor();
    expect(await audit(page)).toEqual([]);
    await shot(page, `palette-${operation}`);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect.poll(async () => (await called(page, operation)).length).toBe(1);
  });

  test('a request and a knock are shown, not answered', async () => {
    const page = await open({ scene: 'knocks' });
    await type(page, 'knock');
    const email = ((await selected(page)) ?? '').replace(/^Let | in…$/g, '');
    expect(email).toContain('@');
    await page.keyboard.press('Enter');
    await expect.poll(() => focusName(page)).toContain(email);
    expect(await called(page, 'answerKnock')).toEqual([]);
    const other = await open({ scene: 'requests' });
    await type(other, 'approve ledger');
    const label = ((await selected(other)) ?? '').replace(/^Approve |…$/g, '');
    await other.keyboard.press('Enter');
    await expect.poll(() => other.evaluate(() => document.activeElement?.textContent?.replace(/[\u2068\u2069]/g, ''))).toContain(label);
    await other.keyboard.press('Enter');
    expect(await called(other, 'approve')).toEqual([]);
  });

  test('what cuts off comes last, with its effect at the end of the line', async () => {
    const page = await open();
    await type(page, 'carla');
    await expect.poll(async () => (await options(page)).at(-1)).toMatch(/^Remove carla\.nunes@example\.org ?from \d+ apps?; Undo for 8 s/);
    const all = await options(page);
    const first = all.findIndex((text) => text.startsWith('Disconnect'));
    expect(all.slice(first).every((text) => /^(Disconnect|Remove|Revoke)/.test(text))).toBe(true);
    await shot(page, 'palette-person');
    expect(await audit(page)).toEqual([]);
  });

  test('why somebody cannot open an app', async () => {
    const page = await open();
    await type(page, "why can't lena");
    await expect.poll(() => selected(page)).toBe('Why can’t lena@example.com open…');
    await page.keyboard.press('Enter');
    await page.getByRole('combobox', { name: 'Why can’t lena@example.com open…' }).waitFor();
    await expect.poll(() => options(page)).toContainEqual(expect.stringContaining('Recipes'));
    await shot(page, 'palette-why');
    expect(await audit(page)).toEqual([]);
    await page.keyboard.press('Backspace'); // back, as nothing is typed
    await palette(page).waitFor();
    await page.keyboard.type('why');
    await page.keyboard.press('Enter');
    await page.keyboard.type('lena');
    await page.keyboard.press('Enter');
    await page.keyboard.type('home');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Home Assistant' }).waitFor(); // its page, which tells the rest
  });

  test('settings, views and people are found where they are', async () => {
    const page = await open();
    await type(page, 'language');
    await page.keyboard.press('Enter');
    await expect.poll(() => focusName(page)).toContain('Language');
    await type(page, 'hidden'); // nothing is called so
    await page.keyboard.press('Escape');
    await type(page, 'health');
    await page.keyboard.press('Enter');
    await expect.poll(() => focusName(page)).toBe('Health');
    await type(page, 'bob@');
    await expect.poll(() => selected(page)).toBe('bob@example.com');
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Apps for bob@example.com' }).or(page.getByLabel('Apps for bob@example.com')).first().waitFor();
    await type(page, 'invite bob');
    await page.keyboard.press('Enter');
    await expect.poll(async () => page.getByText('bob@example.com').count()).toBeGreaterThan(0);
  });

  test.each(['apps', 'connected', 'shortcut'])('every setting is found where it is, in %s', async (scene) => {
    const page = await open({ scene });
    const all = settings({ snapshot: { account: { local: scene !== 'connected' } } as OwnerState, people: [], views: [], now: 0, mac: false, shortcut: scene === 'shortcut' }).map(({ text }) => text.join(''));
    await type(page, all.at(-1)!);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate(() => document.activeElement?.closest<HTMLElement>('[data-setting]')?.dataset['setting'])).toBeTruthy(); // More is open for it
    const there = await page.evaluate(() => [...document.querySelectorAll<HTMLElement>('[data-setting]')].map((one) => one.dataset['setting']));
    expect(all.filter((title) => !there.includes(title))).toEqual([]);
  });

  test('copies the link or the address of what is chosen', async () => {
    const page = await open();
    await type(page, 'photos');
    await expect.poll(() => selected(page)).toBe('Open Photos');
    await page.keyboard.press('Control+c');
    await expect.poll(() => called(page, 'Copy')).toEqual([['https://photos.maya.localhost:8443']]);
    expect(await palette(page).count()).toBe(1);
  });

  test('a press of the mouse leaves the keyboard where it was', async () => {
    const page = await open();
    await type(page, 'why');
    await page.getByRole('option', { name: /somebody/ }).click();
    await page.keyboard.type('lena');
    await expect.poll(() => selected(page)).toBe('Why can’t lena@example.com open…');
    await page.locator('dialog .foot').click();
    await page.keyboard.press('Enter');
    await page.getByRole('combobox', { name: 'Why can’t lena@example.com open…' }).waitFor();
  });

  test('Enter held down, or that ends composing, presses nothing', async () => {
    const page = await open();
    await type(page, 'everything porchlight keeps');
    await expect.poll(() => selected(page)).toBe('Everything Porchlight keeps');
    await palette(page).evaluate((field) => field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true })));
    expect(await palette(page).count()).toBe(1);
    await page.keyboard.down('Enter');
    await expect.poll(() => focusName(page)).toBe('Show in files');
    await page.keyboard.down('Enter');
    await page.keyboard.down('Enter');
    await page.keyboard.up('Enter');
    expect(await called(page, 'ShowData')).toEqual([]);
    await page.keyboard.press('Enter');
    await expect.poll(() => called(page, 'ShowData')).toHaveLength(1);
  });

  test('asked for while something else has the window, it does not come after it', async () => {
    const page = await open();
    await type(page, 'connect to');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Not now' }).waitFor();
    await page.evaluate('stub.wants("find")');
    await page.getByRole('button', { name: 'Not now' }).click();
    await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
    expect(await palette(page).count()).toBe(0);
  });

  test('the menu opens it', async () => {
    const page = await open();
    await page.evaluate('stub.wants("find")');
    await palette(page).waitFor();
    await shot(page, 'palette-empty');
  });

  test('every look is in order', async () => {
    for (const look of [{ theme: 'dark' }, { language: 'de', width: 720, height: 480 }, { theme: 'dark', language: 'de' }, { forcedColors: true }, { scene: 'stress' }, { language: 'en-XA', width: 720, height: 480 }] as const) {
      const page = await open(look);
      for (const text of ['', 'a', 'e']) {
        await type(page, text);
        await page.locator('[role="option"]').first().waitFor();
        await shot(page, `palette-${Object.values(look).join('-')}-${text || 'empty'}`);
        expect(await audit(page), `${JSON.stringify(look)} ${text}`).toEqual([]);
        expect(await page.evaluate(() => [...document.querySelectorAll('dialog *')].filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === 'visible' && one.clientWidth > 0).map((one) => one.className)), JSON.stringify(look)).toEqual([]);
        await page.keyboard.press('Escape');
      }
    }
  });

  test('hundreds of apps and people: by at most six keys, each with its own', async () => {
    const page = await open({ scene: 'stress' });
    await type(page, '123'); // Ctrl, K, three digits, Enter
    await expect.poll(() => selected(page)).toBe('Open App 123');
    await page.keyboard.press('Enter');
    await expect.poll(() => called(page, 'Open')).toEqual([['app-123']]);
  });
});
