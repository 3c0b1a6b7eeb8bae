// Certificates of devices: made on the app's page and shown once, listed there and under
// Connected apps, and revoked.
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { called, focusName, go, open, section, told } from './page';

const code = 'abcde-fghij-klmno-pqrst';
const devices = (page: Page) => section(page, 'Devices');
const connect = (page: Page) => page.getByRole('button', { name: 'Connect a device…' });
const row = (page: Page, name: string) => devices(page).getByRole('listitem').filter({ hasText: name });

async function notes() {
  const page = await open({ scene: 'connected' });
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await connect(page).waitFor();
  return page;
}

async function made(page: Page, name: string) {
  await connect(page).press('Enter');
  const field = page.getByRole('textbox', { name: 'Which device?' });
  await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(true);
  await field.fill(name);
  await field.press('Enter');
  await devices(page).getByText('Both are shown only now').waitFor();
}

test('one is made by the keyboard, its link and code are shown once, and it is revoked', async () => {
  const page = await notes();
  await made(page, '  <b>Phone</b>  ');
  expect(await called(page, 'makeDevice')).toEqual([[{ name: '<b>Phone</b>', apps: ['notes'], link: true }]]);
  const shown = devices(page).locator('form');
  for (const [label, text] of [['Link', `https://maya.porch.example/.porchlight/device#${'s'.repeat(43)}`], ['Code', code]] as const) {
    const copy = shown.locator('.copy').filter({ has: page.getByRole('group', { name: label, exact: true }) });
    await copy.getByText(text, { exact: true }).waitFor();
    await copy.getByRole('button', { name: 'Copy' }).click();
    await expect.poll(async () => (await called(page, 'Copy')).at(-1)).toEqual([text]);
  }
  await shown.getByRole('img', { name: 'The link as a QR code' }).waitFor();
  // Escape does not throw away what nobody can show again.
  await page.keyboard.press('Escape');
  await shown.getByRole('button', { name: 'Done' }).press('Enter');
  await shown.waitFor({ state: 'detached' });
  expect(await page.evaluate((text) => document.documentElement.outerHTML.includes(text), code)).toBe(false);
  await expect.poll(() => focusName(page)).toBe('Connect a device…');
  expect(await page.locator('main b').count()).toBe(0);
  await go(page, 'Connected apps');
  await row(page, '<b>Phone</b>').getByText('Notes, as you').waitFor();
  await row(page, '<b>Phone</b>').getByRole('button', { name: /^Revoke the device/ }).click();
  await page.getByRole('dialog').getByText('needs a new certificate to come back').waitFor();
  expect(await focusName(page)).toBe('Keep');
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await told(page, 'The device <b>Phone</b> opens nothing any more. 1 connection closed.');
  expect(await called(page, 'revokeDevice')).toEqual([[{ id: 'd9' }]]);
  await row(page, '<b>Phone</b>').waitFor({ state: 'detached' });
});

test('what the agent says against one stands beside the field; Escape leaves', async () => {
  const page = await notes();
  await connect(page).click();
  await page.evaluate('stub.fail("makeDevice", "This computer has 200 devices, which is as many as it can have. Revoke one first.")');
  const field = page.getByRole('textbox', { name: 'Which device?' });
  await field.fill('Another');
  await page.getByRole('button', { name: 'Make certificate' }).click();
  await devices(page).getByRole('alert').getByText('This computer has 200 devices').waitFor();
  expect(await field.inputValue()).toBe('Another');
  await field.press('Escape');
  await field.waitFor({ state: 'detached' });
  await expect.poll(() => focusName(page)).toBe('Connect a device…');
});
