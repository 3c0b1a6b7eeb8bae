// The window by keyboard alone.
import { describe, expect, test } from 'vitest';
import { called, focusName, menuOf, open } from './page';

describe('keyboard alone', () => {
  test('reaches everything in order, each stop with its ring', async () => {
    const page = await open();
    const stops: string[] = [];
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press('Tab');
      const name = await focusName(page);
      if (stops.length > 3 && name === stops[0]) break;
      if (await page.evaluate(() => document.activeElement === document.body)) break;
      stops.push(name);
      expect(await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle), name).toBe('solid');
    }
    expect(stops.filter((stop) => stop !== '')).toEqual([
      'Apps 11 waiting for you', 'People', 'Activity', 'Settings', 'Connected apps', 'Outbox 33 mails', 'Health', 'Copy this computer’s address', 'This computer only, 2 things wrong', 'Go dark',
      'Find or doCtrl K', 'Add an app…', 'Approve', 'For today', 'Deny', 'Details',
      'Home Assistant', 'Copy link of Home Assistant', 'Open Home Assistant', 'More for Home Assistant',
      'Notes', 'Copy link of Notes', '5 people may open Notes AB +3', 'Open Notes', 'More for Notes',
      'Photos', 'Copy link of Photos', '2 people may open Photos CA', 'Open Photos', 'More for Photos',
      'Blog draft', 'Copy link of Blog draft', 'Resume Blog draft', 'More for Blog draft', 'Recipes', 'Copy link of Recipes', 'Resume Recipes', 'More for Recipes',
    ]);
  });

  test('works a menu: arrows, ends, letters, Esc, Tab', async () => {
    const page = await open();
    await menuOf(page, 'Notes').focus();
    await page.keyboard.press('ArrowDown');
    expect(await focusName(page)).toBe('Open');
    await page.keyboard.press('ArrowUp');
    expect(await focusName(page)).toBe('Revoke…');
    await page.keyboard.press('ArrowDown');
    expect(await focusName(page)).toBe('Open');
    await page.keyboard.press('End');
    expect(await focusName(page)).toBe('Revoke…');
    await page.keyboard.press('Home');
    await page.keyboard.press('p');
    expect(await focusName(page)).toBe('Pause');
    await page.keyboard.press('Escape');
    expect(await focusName(page)).toBe('More for Notes');
    expect(await page.getByRole('menu').count()).toBe(0);
    await page.keyboard.press('ArrowUp');
    expect(await focusName(page)).toBe('Revoke…');
    await page.keyboard.press('Tab');
    expect(await page.getByRole('menu').count()).toBe(0);
    expect(await focusName(page)).toBe('Photos');
  });

  test('deciding leads to the next request, then to the title', async () => {
    const page = await open({ scene: 'requests' });
    await page.evaluate('stub.set({apps: []}); stub.add({name: "a", label: "First"}); stub.add({name: "b", label: "Second"})');
    await page.locator('.btn.primary').press('Enter');
    await expect.poll(() => focusName(page)).toBe('Second wants an address');
    await page.keyboard.press('Tab');
    expect(await focusName(page)).toBe('Approve');
    for (const next of ['For today', 'Deny']) {
      await page.keyboard.press('Tab');
      expect(await focusName(page)).toBe(next);
    }
    await page.keyboard.press('Enter');
    await expect.poll(() => focusName(page)).toBe('Apps');
    expect(await called(page, 'approve')).toEqual([[{ name: 'a', label: 'First', localPort: 9000, program: 'python3', user: 'maya' }]]);
    expect(await called(page, 'deny')).toEqual([[{ name: 'b' }]]);
  });
});
