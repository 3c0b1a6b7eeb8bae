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
    expect(await called(page, 'Revoke')).toEqual([]);

    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Revoke…' }).click();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect.poll(() => toast(page).textContent()).toContain('Notes has no address any more. 2 connections closed.');
    expect(await called(page, 'Revoke')).toEqual([['notes']]);
    await page.getByText('notes.maya.localhost:8443').waitFor({ state: 'detached' });
    await expect.poll(() => focusName(page)).toBe('Apps');
  });

  test('counts what is open to it now', async () => {
    const page = await open();
    expect(await section(page, 'On').locator('.now').allInnerTexts()).toEqual(['now: 2 connections']);
  });

  test('stops, keeps its row, and cannot be opened then', async () => {
    const page = await open();
    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Stop' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('Notes is stopped. 2 connections closed.');
    await section(page, 'Off').getByText('Notes', { exact: true }).waitFor();
    await menuOf(page, 'Notes').click();
    expect(await page.getByRole('menuitem').allTextContents()).toEqual(['Copy address', 'Who may open it, options…', 'Revoke…']);
  });

  test('shows a tick for its copied address and says so', async () => {
    const page = await open();
    await page.getByRole('button', { name: /Copy address of .?Notes/ }).click();
    expect(await called(page, 'Copy')).toEqual([['https://notes.maya.localhost:8443']]);
    const done = page.locator('button.done');
    await done.waitFor();
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
