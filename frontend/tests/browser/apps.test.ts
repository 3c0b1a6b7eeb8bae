// Approved apps: their rows, their menus and the page of one.
import { describe, expect, test } from 'vitest';
import { called, focusName, menuOf, open, section, toast } from './page';

describe('an approved app', () => {
  test('is revoked after a question that Esc keeps', async () => {
    const page = await open();
    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Revoke…' }).click();
    const dialog = page.getByRole('dialog', { name: /Revoke “.?Notes.?”\?/ });
    expect(await dialog.textContent()).toContain('Its address goes away and 2 connections are closed. Who may open it is forgotten. The app itself keeps running.');
    expect(await focusName(page)).toBe('Keep');
    await page.keyboard.press('Escape');
    expect(await dialog.count()).toBe(0);
    expect(await focusName(page)).toBe('More for Notes');
    expect(await called(page, 'revoke')).toEqual([]);

    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Revoke…' }).click();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect.poll(() => toast(page).textContent()).toContain('Notes has no address any more. 2 connections closed.');
    expect(await called(page, 'revoke')).toEqual([[{ name: 'notes' }]]);
    await page.getByText('notes.maya.localhost:8443').waitFor({ state: 'detached' });
    await expect.poll(() => focusName(page)).toBe('Apps');
  });

  test('counts what is open to it now', async () => {
    const page = await open();
    expect(await section(page, 'On').locator('.now').allInnerTexts()).toEqual(['Only you', '2 here now']);
  });

  test('is paused, keeps its place, and has Resume and no Stop', async () => {
    const page = await open();
    await menuOf(page, 'Notes').click();
    expect(await page.getByRole('menuitem').allTextContents()).toEqual(['Open', 'Copy link', 'Who may open it, options…', 'Pause', 'Revoke…']);
    await page.getByRole('menuitem', { name: 'Pause' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('Notes is paused. 2 connections closed.');
    await section(page, 'On').getByText('Paused', { exact: true }).waitFor();
    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Resume' }).click();
    await section(page, 'On').getByText('Paused', { exact: true }).waitFor({ state: 'detached' });
  });

  test('shows a tick for its copied address and says so', async () => {
    const page = await open();
    const done = page.locator('button.done');
    // The tick is there for two seconds, which a busy test may be late for.
    await Promise.all([done.waitFor(), page.getByRole('button', { name: /Copy link of .?Notes/ }).click()]);
    expect(await called(page, 'Copy')).toEqual([['https://notes.maya.localhost:8443']]);
    expect(await page.locator('.sr[role="status"]').last().textContent()).toContain('Copied');
    await done.waitFor({ state: 'detached' });
  });

  test('a question closes when its app went by another way', async () => {
    const page = await open();
    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Revoke…' }).click();
    await page.evaluate('stub.set({apps: []})');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await expect.poll(() => focusName(page)).toBe('Apps');
  });
});

for (const [how, scene, why] of [
  ['paused', 'paused', 'Nobody can open it while it is paused.'],
  ['dark', 'dark', 'Nobody can open it while it is dark.'],
] as const) {
  test(`while it is ${how}, nothing offers to open an app, and it is said why`, async () => {
    const page = await open({ scene });
    const button = page.getByRole('button', { name: /^Open .?Notes/ });
    if (how === 'paused') expect(await button.count()).toBe(0); // Resume has its place
    else expect([await button.isDisabled(), await button.getAttribute('title')]).toEqual([true, why]);
    await menuOf(page, 'Notes').click();
    const item = page.getByRole('menuitem', { name: 'Open', exact: true });
    expect([await item.getAttribute('aria-disabled'), await item.getAttribute('title')]).toEqual(['true', why]);
    await item.press('Enter');
    await item.click({ force: true });
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Notes', exact: true }).click();
    expect(await page.getByRole('button', { name: 'Open', exact: true }).isDisabled()).toBe(true);
    expect(await called(page, 'Open')).toEqual([]);
    await page.evaluate('stub.set({darkSince: undefined}); stub.change("notes", {paused: false})');
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    await expect.poll(() => called(page, 'Open')).toEqual([['notes']]);
  });
}
