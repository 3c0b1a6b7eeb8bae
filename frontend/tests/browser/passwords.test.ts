// App passwords: made on the app's page and shown once, listed there and under
// Connected apps, and revoked.
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { called, focusName, go, open, section, told } from './page';

const secret = 'plp_abcdefghijklmnopqrstuvwxyz234567';
const passwords = (page: Page) => section(page, 'App passwords');
const connect = (page: Page) => page.getByRole('button', { name: 'Connect a program…' });
const row = (page: Page, name: string) => passwords(page).getByRole('listitem').filter({ hasText: name });

async function notes() {
  const page = await open({ scene: 'connected' });
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await row(page, 'Calendar on my phone').waitFor();
  return page;
}

/** Whether it is anywhere in the page: in its words, its fields or its attributes. */
const holds = (page: Page, text: string) =>
  page.evaluate((text) => document.documentElement.outerHTML.includes(text) || [...document.querySelectorAll('input')].some((one) => one.value.includes(text)), text);

test('one is made by the keyboard, shown once with what goes with it, and gone afterwards', async () => {
  const page = await notes();
  await connect(page).press('Enter');
  const field = page.getByRole('textbox', { name: 'What is it for?' });
  await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(true);
  await field.fill('  Backup  ');
  await field.press('Enter');
  await passwords(page).getByText('The password is shown only now').waitFor();
  expect(await called(page, 'makePassword')).toEqual([[{ app: 'notes', name: 'Backup' }]]);
  const shown = passwords(page).locator('form');
  for (const [label, text] of [['Address', 'https://notes.maya.porch.example'], ['User name', 'maya@example.com'], ['Password', secret]] as const) {
    const copy = shown.locator('.copy').filter({ has: page.getByRole('group', { name: label, exact: true }) });
    await copy.getByText(text, { exact: true }).waitFor();
    await copy.getByRole('button', { name: 'Copy' }).click();
    await expect.poll(async () => (await called(page, 'Copy')).at(-1)).toEqual([text]);
  }
  // Escape does not throw away what nobody can show again.
  await page.keyboard.press('Escape');
  await shown.getByRole('button', { name: 'Done' }).press('Enter');
  await shown.waitFor({ state: 'detached' });
  expect(await holds(page, secret)).toBe(false);
  await expect.poll(() => focusName(page)).toBe('Connect a program…');
  await row(page, 'Backup').getByText('As you').waitFor();
  await page.getByRole('button', { name: 'Back to Apps' }).click();
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await row(page, 'Backup').waitFor();
  expect(await holds(page, secret)).toBe(false);
});

test('what the agent says against one stands beside the field; Escape leaves', async () => {
  const page = await notes();
  await connect(page).click();
  await page.evaluate('stub.fail("makePassword", "You have 20 app passwords for Notes already. Revoke one that is not used any more.")');
  const field = page.getByRole('textbox', { name: 'What is it for?' });
  await field.fill('Another');
  await page.getByRole('button', { name: 'Make password' }).click();
  await passwords(page).getByRole('alert').getByText('You have 20 app passwords for Notes already.').waitFor();
  expect(await field.inputValue()).toBe('Another');
  await field.press('Escape');
  await field.waitFor({ state: 'detached' });
  await expect.poll(() => focusName(page)).toBe('Connect a program…');
});

test('the page of an app has its own, whosever they are', async () => {
  const page = await notes();
  expect(await passwords(page).getByRole('listitem').count()).toBe(2);
  await row(page, '<b>git</b>').getByText('carla.nunes@example.org').waitFor();
  expect(await page.locator('main b').count()).toBe(0);
  await row(page, 'Calendar on my phone').getByRole('button', { name: /^Revoke the password .?Calendar/ }).click();
  await page.getByRole('dialog').getByText('The program that has it is cut off at once').waitFor();
  expect(await focusName(page)).toBe('Keep');
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await told(page, 'The password Calendar on my phone opens nothing any more. 1 connection closed.');
  expect(await called(page, 'revokePassword')).toEqual([[{ id: 'p1' }]]);
  await row(page, 'Calendar on my phone').waitFor({ state: 'detached' });
});

test('all of the computer stand under Connected apps', async () => {
  const page = await open({ scene: 'connected' });
  await go(page, 'Connected apps');
  await expect.poll(() => passwords(page).getByRole('listitem').count()).toBe(3);
  await row(page, 'Calendar on my phone').getByText('Notes', { exact: true }).waitFor();
  await row(page, 'A backup client').getByText('Photos', { exact: true }).waitFor();
  // Nobody is made one here: it is for one app, on whose page it is made.
  expect(await connect(page).count()).toBe(0);
});

test('nobody listed: nothing to see anywhere, but the door to make one', async () => {
  const page = await open({ scene: 'alone' });
  await page.evaluate('stub.wants("clients")');
  await page.getByText('No connected apps').waitFor();
  expect(await passwords(page).count()).toBe(0);
  await go(page, 'Apps');
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await connect(page).waitFor();
  expect(await passwords(page).count()).toBe(0);
  await page.evaluate('stub.fail("passwords", "The server does not answer.")');
  await page.evaluate('stub.set({peopleVersion: "another"})');
  await passwords(page).getByText('The server does not answer.').waitFor();
});

test('they and the people are asked for again as the snapshot says, and not with every other one', async () => {
  const page = await notes();
  const asked = async () => [(await called(page, 'passwords')).length, (await called(page, 'ownerPeople')).length];
  expect(await asked()).toEqual([1, 1]);
  await page.evaluate('stub.change("notes", {here: Array.from({ length: 12 }, (_, i) => `here-${i}@example.com`)})');
  await page.getByText('12 here now').waitFor();
  await page.evaluate('stub.endPasswords()');
  await row(page, 'Calendar on my phone').waitFor({ state: 'detached' });
  await expect.poll(asked).toEqual([2, 2]);
});
