// Who is here and who came: searching, filtering, forgetting.
import { expect, test } from 'vitest';
import { called, focusName, go, open, section, told } from './page';

async function activity(scene = 'connected') {
  const page = await open({ scene });
  await go(page, 'Activity');
  return page;
}

test('tells who is here, and what happened by day, in words', async () => {
  const page = await activity();
  expect(await section(page, 'Here now').getByRole('listitem').count()).toBe(2);
  const words = (await page.locator('main').innerText()).replace(/[\u2068\u2069]/g, '').replace(/\s+/g, ' ');
  for (const line of [
    'carla.nunes@example.org opened Notes', 'maya@example.com opened Notes through Pocket Notes', 'bob@example.com opened Blog draft',
    'lena@example.com was invited to Photos by wiki', 'tomas@example.net was removed by wiki', 'anna@example.com was given Photos by wiki',
    'anna@example.com lost Notes', 'anna@example.com – Home Assistant', // a kind this window does not know yet
  ]) expect(words).toContain(line);
});

test('is read again when somebody comes, and not with every other snapshot', async () => {
  const page = await activity();
  await section(page, 'Here now').waitFor();
  const before = (await called(page, 'Activity')).length;
  await page.evaluate('stub.set({here: 2}); stub.change("photos", {here: ["bob@example.com"]})');
  await section(page, 'Here now').getByText('bob@example.com').waitFor();
  await expect.poll(async () => (await called(page, 'Activity')).length).toBe(before + 1);
});

test('narrows by app and by text', async () => {
  const page = await activity();
  const lines = page.locator('.line');
  await expect.poll(() => lines.count()).toBe(8);
  await page.getByLabel('App', { exact: true }).selectOption({ label: 'Photos' });
  await expect.poll(() => lines.count()).toBe(2);
  await page.getByRole('searchbox').fill('anna');
  await expect.poll(() => lines.count()).toBe(1);
  await page.getByRole('searchbox').fill('nobody like that');
  await page.getByText('Nothing matches').waitFor();
});

test('is cleared after a question', async () => {
  const page = await activity();
  await page.getByRole('button', { name: 'Clear…' }).click();
  expect(await focusName(page)).toBe('Keep');
  await page.keyboard.press('Escape');
  await expect.poll(() => focusName(page)).toBe('Clear…');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Clear' }).click();
  await told(page, 'The activity is cleared.');
  await expect.poll(() => page.locator('.line').count()).toBe(0);
  expect(await called(page, 'ClearActivity')).toEqual([[]]);
  await expect.poll(() => focusName(page)).toBe('Activity');
  expect(await section(page, 'Here now').count()).toBe(1); // who is here is not a memory
});
