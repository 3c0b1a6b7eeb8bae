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
  await expect.poll(() => section(page, 'Here now').getByRole('listitem').count()).toBe(2);
  const words = (await page.locator('main').innerText()).replace(/[\u2068\u2069]/g, '').replace(/\s+/g, ' ');
  for (const line of [
    'carla.nunes@example.org opened Notes', 'You opened Notes', 'Pocket Notes opened Notes as you', 'bob@example.com opened Notes through Sync', 'bob@example.com opened Blog draft',
    'lena@example.com was invited by wiki to Photos', 'tomas@example.net was removed by wiki', 'anna@example.com was let into Photos by wiki',
    'anna@example.com was removed from Notes', 'Recipes was paused by you', 'Dark, by you. 2 connections closed', 'Photos was approved by you: port 2342, photoprism',
    'Somebody tried to open an app, not shared with them, 40 times', 'lena@example.com can’t open Photos any more: it ended', 'The certificate of notes.maya.porch.example renewed itself, fine until',
    'anna@example.com – Home Assistant', // a kind this window does not know yet
  ]) expect(words).toContain(line);
});

test('is read again when something happens, and not with every other snapshot', async () => {
  const page = await activity();
  await section(page, 'Here now').waitFor();
  const asked = async () => (await called(page, 'activityPage')).length;
  const before = await asked();
  await page.evaluate('stub.set({here: 2}); stub.change("photos", {here: ["bob@example.com"]})');
  await section(page, 'Here now').getByText('bob@example.com').waitFor();
  expect(await asked()).toBe(before);
  await page.evaluate('stub.set({activityVersion: 7})');
  await expect.poll(asked).toBe(before + 1);
});

test('takes back what it may, and shows the way where it may not', async () => {
  const page = await activity();
  const undo = page.getByRole('button', { name: /^Undo: .Recipes. was paused by you$/ });
  await undo.press('Enter');
  await told(page, 'Undone.');
  await undo.waitFor({ state: 'detached' });
  await expect.poll(() => focusName(page)).toBe('Activity');
  expect(await called(page, 'undoActivity')).toHaveLength(1);
  await page.getByRole('button', { name: 'Prolong… lena@example.com' }).click();
  await page.getByRole('heading', { name: 'Activity', level: 1 }).waitFor({ state: 'detached' });
});

test('who was removed, and is not back, is invited again from the line', async () => {
  const page = await activity();
  await page.getByRole('button', { name: 'Invite again tomas@example.net' }).click();
  await page.getByLabel('E-mail addresses').waitFor();
  expect((await page.locator('main').innerText())).toContain('tomas@example.net');
});

test('cuts one person off by one click', async () => {
  const page = await activity();
  const here = section(page, 'Here now');
  await here.getByRole('button', { name: 'Remove carla.nunes@example.org' }).click();
  await told(page, 'carla.nunes@example.org can’t open anything any more');
  expect((await called(page, 'ownerRemovePerson')).length).toBe(1);
  expect(await here.getByRole('button', { name: /^Remove (?!carla)/ }).count()).toBe(0); // a program of the owner's
});

test('a visitor is disconnected, and it is said that this keeps nobody out', async () => {
  const page = await activity();
  const here = section(page, 'Here now');
  await here.getByText('Disconnected, they can come back until removed or revoked.').waitFor();
  await page.evaluate('void stub.hold("disconnectVisitor")');
  const button = here.getByRole('button', { name: 'Disconnect carla.nunes@example.org' });
  await button.press('Enter');
  await expect.poll(() => button.innerText()).toBe('Disconnecting…');
  await button.press('Enter'); // once is enough
  await page.evaluate('stub.release()');
  await told(page, 'carla.nunes@example.org is disconnected. 1 connection closed. They can come back.');
  await button.waitFor({ state: 'detached' });
  await expect.poll(() => focusName(page)).toBe('Activity');
  await here.getByRole('button', { name: /^Disconnect .Pocket Notes.$/ }).click();
  await told(page, 'Pocket Notes is disconnected. 1 connection closed.');
  await expect.poll(() => here.getByRole('listitem').count()).toBe(0);
  expect(await called(page, 'disconnectVisitor')).toEqual([[{ accountId: 'acc-carla.nunes@example.org' }], [{ accountId: 'acc-maya@example.com', grantId: 'g1' }]]);
});

test('a visitor who stays says why', async () => {
  const page = await activity();
  await page.evaluate('stub.fail("disconnectVisitor", "Porchlight is not answering.")');
  const button = section(page, 'Here now').getByRole('button', { name: 'Disconnect carla.nunes@example.org' });
  await button.click();
  await told(page, 'Porchlight is not answering.');
  await expect.poll(() => button.isEnabled()).toBe(true);
});

test('narrows by kind, app, person and text', async () => {
  const page = await activity();
  const lines = page.locator('.line');
  await expect.poll(() => lines.count()).toBe(16);
  await page.getByRole('radio', { name: 'Visits' }).press('Space');
  await expect.poll(() => lines.count()).toBe(5);
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => lines.count()).toBe(9);
  await page.getByLabel('App', { exact: true }).selectOption({ label: 'Photos' });
  await expect.poll(() => lines.count()).toBe(4);
  await page.getByLabel('Person', { exact: true }).selectOption({ label: 'lena@example.com' });
  await expect.poll(() => lines.count()).toBe(2);
  await page.getByRole('searchbox').fill('wiki');
  await expect.poll(() => lines.count()).toBe(1);
  await page.getByRole('searchbox').fill('nobody like that');
  await page.getByText('Nothing matches').waitFor();
});

test('reads on as one scrolls, and draws what is in sight', async () => {
  const page = await activity('stress');
  const lines = page.locator('.line');
  await expect.poll(() => lines.count()).toBeGreaterThan(10);
  const asked = () => called(page, 'activityPage') as Promise<[{ before?: number }][]>;
  expect((await asked()).some(([ask]) => ask.before)).toBe(false);
  await expect
    .poll(async () => {
      await page.locator('main').evaluate((node) => node.scrollTo(0, node.scrollHeight));
      return page.getByRole('button', { name: /Show older|Reading/ }).count();
    })
    .toBe(0);
  const oldest = (await asked()).map(([ask]) => ask.before ?? Infinity);
  expect(Math.min(...oldest)).toBe(201);
  expect(await lines.count()).toBeLessThan(700); // of 1,000
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
  expect(await called(page, 'clearActivity')).toEqual([[{}]]);
  await expect.poll(() => focusName(page)).toBe('Activity');
  expect(await section(page, 'Here now').count()).toBe(1); // who is here is not a memory
});
