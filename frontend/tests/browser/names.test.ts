// What a screen reader is given: the names and roles of each view, as Chromium
// works them out. Kept as snapshots, so that a change is read before it is taken.
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { allSettings, go, open, show } from './page';

const view = async (page: Page, name: string) => {
  await go(page, name);
  await page.getByRole('heading', { level: 1, name }).waitFor();
};
/** The tree of a part of the page, without what the clock changes. */
const tree = async (page: Page, part: string) =>
  (await page.locator(part).ariaSnapshot())
    .replace(/[\u2068\u2069]/g, '')
    .replace(/\d\d:\d\d/g, 'TIME')
    .replace(/\b\d{1,2} (January|February|March|April|May|June|July|August|September|October|November|December)( \d{4})?/g, 'DAY')
    .replace(/\b(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b/g, 'DAY');

test('the sidebar', async () => {
  expect(await tree(await open({ scene: 'connected' }), 'aside')).toMatchSnapshot();
});

test('Apps, and the page of one', async () => {
  const page = await open({ scene: 'connected' });
  expect(await tree(page, 'main')).toMatchSnapshot();
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await page.getByText('Here now', { exact: true }).waitFor();
  await page.getByText(/^Opened it/).first().waitFor();
  await page.getByRole('button', { name: 'QR code' }).click();
  expect(await tree(page, 'main')).toMatchSnapshot();
});

test('People, inviting and one person’s apps', async () => {
  const page = await open({ scene: 'connected' });
  await view(page, 'People');
  await page.getByRole('button', { name: 'Apps for carla.nunes@example.org' }).click();
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  await page.getByText('Here ').first().waitFor();
  expect(await tree(page, 'main')).toMatchSnapshot();
});

test('Connected apps, and the question before one goes', async () => {
  const page = await open({ scene: 'connected' });
  await view(page, 'Connected apps');
  expect(await tree(page, 'main')).toMatchSnapshot();
  await page.getByRole('button', { name: /Revoke .?Backup/ }).click();
  expect(await tree(page, 'dialog')).toMatchSnapshot();
});

test('Activity', async () => {
  const page = await open({ scene: 'connected' });
  await view(page, 'Activity');
  await page.locator('.line').first().waitFor();
  // On which day something was depends on when the test runs.
  const lines = (await tree(page, 'main')).replace(/"(Today|Yesterday|DAY)"/g, '"DAY"');
  for (const part of ['searchbox "Search activity"', 'combobox "App"', 'region "Here now"', 'carla.nunes@example.org opened Notes', 'button "Clear…"']) expect(lines).toContain(part);
});

test('Outbox', async () => {
  const page = await open();
  await view(page, 'Outbox');
  await page.getByText('bob@example.com').waitFor();
  expect(await tree(page, 'main')).toMatchSnapshot();
});

test('Settings', async () => {
  const page = await open({ scene: 'connected' });
  await allSettings(page);
  await page.getByRole('switch', { name: 'Ask me again when an app changes port' }).waitFor();
  expect(await tree(page, 'main')).toMatchSnapshot();
});

test('Welcome, and the code', async () => {
  const page = await open({ scene: 'welcome' });
  await page.getByRole('heading', { level: 1, name: 'Leave the porch light on' }).waitFor();
  expect(await tree(page, 'main')).toMatchSnapshot();
  await show(page, 'apps');
  await go(page, 'Settings');
  await page.getByRole('button', { name: 'Connect…' }).click();
  await page.getByRole('textbox', { name: 'Address of the server' }).fill('control.porch.example');
  await page.keyboard.press('Enter');
  await page.getByText('WDJB-MJHT').waitFor();
  expect(await tree(page, 'main')).toMatchSnapshot();
});
