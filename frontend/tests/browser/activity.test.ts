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
  await expect.poll(() => section(page, 'Here now').getByRole('listitem').count()).toBe(3);
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
  const before = (await called(page, 'activity')).length;
  await page.evaluate('stub.set({here: 2}); stub.change("photos", {here: ["bob@example.com"]})');
  await section(page, 'Here now').getByText('bob@example.com').waitFor();
  await expect.poll(async () => (await called(page, 'activity')).length).toBe(before + 1);
});

test('a visitor is disconnected, and it is said that this keeps nobody out', async () => {
  const page = await activity();
  const here = section(page, 'Here now');
  await here.getByText('Remove the person, or revoke the connected app, to keep them out.').waitFor();
  await page.evaluate('void stub.hold("disconnectVisitor")');
  const button = here.getByRole('button', { name: 'Disconnect carla.nunes@example.org' });
  await button.press('Enter');
  await expect.poll(() => button.innerText()).toBe('Disconnecting…');
  await button.press('Enter'); // once is enough
  await page.evaluate('stub.release()');
  await told(page, 'carla.nunes@example.org is disconnected. 1 connection closed. They can come back.');
  await button.waitFor({ state: 'detached' });
  await expect.poll(() => focusName(page)).toBe('Activity');
  await here.getByRole('button', { name: /^Disconnect .Pocket Notes. of maya@example.com$/ }).click();
  await told(page, 'Pocket Notes is disconnected. 1 connection closed.');
  await expect.poll(() => here.getByRole('listitem').count()).toBe(1);
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
  expect(await called(page, 'clearActivity')).toEqual([[{}]]);
  await expect.poll(() => focusName(page)).toBe('Activity');
  expect(await section(page, 'Here now').count()).toBe(1); // who is here is not a memory
});
