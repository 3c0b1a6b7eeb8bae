// People who are named together: by keyboard, with Undo, and found by the palette.
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { audit, called, focusName, go, open, section, shot, toast, told } from './page';
import type { Look } from './page';

const bob = 'bob@example.com';
const [photos, bobs] = [/^.?Photos.? f[oü]r Family$/, new RegExp(`^${bob} in .?Family.?$`)];

/** A group called Family, which opens Photos to bob, made by keyboard alone. */
async function family(look: Look = { scene: 'connected' }) {
  const page = await open(look);
  const german = look.language === 'de';
  await go(page, german ? 'Personen' : 'People');
  await page.getByRole('button', { name: german ? 'Neue Gruppe' : 'New group' }).press('Enter');
  await expect.poll(() => focusName(page)).toBe(german ? 'Name der Gruppe' : 'Name of the group');
  await page.keyboard.type('Family');
  await page.keyboard.press('Enter');
  const panel = page.getByRole('group', { name: german ? 'Apps für Family' : 'Apps for Family' });
  await panel.getByRole('switch', { name: photos }).press('Space');
  await panel.getByRole('switch', { name: bobs }).press('Space');
  await expect.poll(() => panel.getByRole('switch', { name: bobs }).isChecked()).toBe(true);
  return { page, panel };
}
const row = (page: Page) => section(page, 'Groups').getByRole('listitem');

test('a group is made, given an app and somebody, by keyboard alone', async () => {
  const { page, panel } = await family();
  expect(await called(page, 'addGroup')).toEqual([[{ name: 'Family' }]]);
  expect(await called(page, 'grantGroup')).toEqual([[{ id: 'group-0', app: 'Photos' }]]);
  expect(await called(page, 'joinGroup')).toEqual([[{ id: 'group-0', accountId: `acc-${bob}` }]]);
  await row(page).getByText('1 person').waitFor();
  await panel.getByLabel(/^Until when, .*Photos/).selectOption('today');
  await expect.poll(async () => row(page).first().textContent()).toMatch(/Photos.? until (today|midnight)/);
  await page.getByRole('button', { name: 'New group' }).click();
  await page.keyboard.press('Escape');
  await expect.poll(() => focusName(page)).toBe('New group');
});

test('what is taken away can be undone', async () => {
  const { page, panel } = await family();
  const undo = async (text: string) => {
    await told(page, text);
    await toast(page).getByRole('button', { name: 'Undo' }).click();
    await told(page, 'Undone.');
  };
  await panel.getByRole('switch', { name: bobs }).press('Space');
  await undo(`${bob} is out of Family.`);
  await expect.poll(() => panel.getByRole('switch', { name: bobs }).isChecked()).toBe(true);
  await panel.getByRole('switch', { name: photos }).press('Space');
  await undo('Family can’t open Photos any more.');
  await expect.poll(() => panel.getByRole('switch', { name: photos }).isChecked()).toBe(true);
  await page.getByRole('button', { name: 'Remove Family' }).click();
  await undo('Family can’t open anything any more.');
  await row(page).getByText('Family').waitFor();
});

test('a name that is taken is said, and stays to be changed', async () => {
  const { page } = await family();
  await page.getByRole('button', { name: 'New group' }).click();
  await page.keyboard.type('Family');
  await page.keyboard.press('Enter');
  await told(page, 'There is a group called "Family" already.');
  expect(await page.getByLabel('Name of the group').inputValue()).toBe('Family');
});

test('the palette finds it, and shows it open', async () => {
  const { page } = await family();
  await go(page, 'Apps');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('fami');
  await expect.poll(() => page.locator('[role="option"][aria-selected="true"] .text').textContent()).toContain('Family');
  await page.keyboard.press('Enter');
  await page.getByRole('group', { name: 'Apps for Family' }).waitFor();
});

test.each([
  ['light', {}], ['dark', { theme: 'dark' }], ['german', { language: 'de', width: 720 }], ['narrow', { width: 600 }],
] as [string, Look][])('it passes axe: %s', async (name, look) => {
  const { page } = await family({ scene: 'connected', ...look });
  expect(await audit(page)).toEqual([]);
  await shot(page, `groups-${name}`);
});
