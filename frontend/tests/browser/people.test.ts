// Who may come in: inviting, switching, removing.
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { called, focusName, go, open, section, toast, told } from './page';
import type { Look } from './page';

async function people(look: Look = { scene: 'connected' }) {
  const page = await open(look);
  await go(page, 'People');
  await page.getByRole('button', { name: 'Invite', exact: true }).waitFor();
  return page;
}
async function remove(page: Page, email: string) {
  await page.getByRole('button', { name: `Remove ${email}` }).click();
  await told(page, `${email} can’t open anything any more.`);
}
const panel = (email: string) => `Apps for ${email}`;
const carla = 'carla.nunes@example.org';
const bob = 'bob@example.com';

describe('inviting', () => {
  test('by keyboard alone, to the apps chosen', async () => {
    const page = await people();
    await page.getByRole('button', { name: 'Invite', exact: true }).press('Enter');
    expect(await page.getByLabel('E-mail address').evaluate((field) => field === document.activeElement)).toBe(true);
    await page.keyboard.type('nina@example.com');
    const send = page.getByRole('button', { name: 'Send invitation' });
    expect(await send.isDisabled()).toBe(true); // no app yet
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Space'); // Notes
    await page.getByText('One click opens Notes, nothing else.').waitFor();
    await page.getByLabel('E-mail address').press('Enter');
    await told(page, 'nina@example.com is invited. The mail is on its way.');
    expect(await called(page, 'ownerInvite')).toEqual([[{ email: 'nina@example.com', apps: ['Notes'] }]]);
    await section(page, 'May come in').getByText('nina@example.com').waitFor();
    await expect.poll(() => focusName(page)).toBe('Invite');
  });

  test('what was typed and chosen stays when it fails, and the field has the focus', async () => {
    const page = await people();
    await page.evaluate('stub.fail("ownerInvite", "The invitations of today are spent. Try again tomorrow.")');
    await page.getByRole('button', { name: 'Invite', exact: true }).click();
    const field = page.getByLabel('E-mail address');
    await field.fill('nina@example.com');
    await page.getByLabel('Photos').check();
    await page.getByRole('button', { name: 'Send invitation' }).click();
    await told(page, 'The invitations of today are spent. Try again tomorrow.');
    expect(await field.inputValue()).toBe('nina@example.com');
    expect(await page.getByLabel('Photos').isChecked()).toBe(true);
    await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(true);
    await page.evaluate('stub.fail("ownerInvite")');
    await page.keyboard.press('Enter');
    await told(page, 'nina@example.com is invited.');
  });

  test('says that it is sending, and sends once', async () => {
    const page = await people();
    await page.evaluate('void stub.hold("ownerInvite")');
    await page.getByRole('button', { name: 'Invite', exact: true }).click();
    await page.getByLabel('E-mail address').fill('nina@example.com');
    await page.getByLabel('Notes').check();
    await page.getByLabel('E-mail address').press('Enter');
    await page.getByRole('button', { name: 'Sending…' }).press('Enter');
    await page.getByLabel('E-mail address').press('Enter');
    await page.evaluate('stub.release()');
    await toast(page).waitFor();
    expect(await called(page, 'ownerInvite')).toHaveLength(1);
  });

  test('Esc leaves it, and the focus returns to its button', async () => {
    const page = await people();
    await page.getByRole('button', { name: 'Invite', exact: true }).click();
    await page.getByLabel('E-mail address').press('Escape');
    await expect.poll(() => focusName(page)).toBe('Invite');
    expect(await called(page, 'ownerInvite')).toEqual([]);
  });

  test('in local mode the mail is in the outbox, and it is said who can reach this', async () => {
    const page = await people({});
    await page.getByText('Nobody else can reach this computer').waitFor();
    await page.getByRole('button', { name: 'Invite', exact: true }).click();
    await page.getByLabel('E-mail address').fill('nina@example.com');
    await page.getByLabel('Notes').check();
    await page.getByLabel('E-mail address').press('Enter');
    await told(page, 'The mail is in the outbox.');
  });
});

describe('the apps of one person', () => {
  test('open by a click anywhere in the row, and say until when', async () => {
    const page = await people();
    const row = section(page, 'May come in').getByRole('listitem').filter({ hasText: bob });
    await row.getByText(/^Notes until \w+day, Blog draft always$/).waitFor();
    await row.locator('.text').click({ position: { x: 400, y: 30 } });
    const until = page.getByRole('combobox', { name: /Until when, .?Notes.? for bob@example.com/ });
    await until.selectOption({ label: 'Always' });
    await expect.poll(() => called(page, 'ownerGrant')).toEqual([[{ accountId: `acc-${bob}`, app: 'Notes', granted: true, until: 'never' }]]);
    await row.getByText('Notes and Blog draft').waitFor();
    await row.locator('.text').first().click({ position: { x: 400, y: 30 } });
    expect(await page.getByRole('switch', { name: /Notes for bob/ }).count()).toBe(0);
  });

  test('are given and taken at once, and taking can be undone', async () => {
    const page = await people();
    await page.getByRole('button', { name: panel(carla) }).press('Enter');
    const apps = page.getByRole('group', { name: panel(carla) });
    const notes = apps.getByRole('switch', { name: /Notes/ });
    expect(await notes.isChecked()).toBe(true);
    await notes.press('Space');
    await told(page, `${carla} can’t open Notes any more. 3 connections closed.`);
    await expect.poll(() => notes.isChecked()).toBe(false);
    await apps.getByRole('switch', { name: /Home Assistant/ }).click();
    await expect.poll(async () => (await called(page, 'ownerGrant')).length).toBe(2);
    await notes.press('Space');
    await notes.press('Space');
    await toast(page).getByRole('button', { name: 'Undo' }).click();
    await expect.poll(() => notes.isChecked()).toBe(true);
    const grant = (app: string, granted: boolean) => [{ accountId: `acc-${carla}`, app, granted, ...(granted ? {} : { holdSeconds: 30 }) }];
    expect(await called(page, 'ownerGrant')).toEqual([grant('Notes', false), grant('Home Assistant', true), grant('Notes', true), grant('Notes', false)]);
    expect(await called(page, 'undoHeld')).toEqual([[{ accountId: `acc-${carla}`, app: 'Notes' }]]);
    expect(await called(page, 'settleHeld')).toEqual([]); // switched on again, there was nothing left to settle
  });

  test('a change that fails turns back and says why; meanwhile the switch is busy', async () => {
    const page = await people();
    await page.getByRole('button', { name: panel(carla) }).click();
    const notes = page.getByRole('switch', { name: /Notes/ });
    await page.evaluate('stub.fail("ownerGrant", "The server does not answer. Try again in a moment."); void stub.hold("ownerGrant")');
    await notes.click();
    await expect.poll(() => notes.getAttribute('aria-busy')).toBe('true');
    expect([await notes.isChecked(), await notes.isDisabled()]).toEqual([false, true]);
    await page.evaluate('stub.release()');
    await told(page, 'The server does not answer.');
    await expect.poll(() => notes.isChecked()).toBe(true);
    expect(await notes.isEnabled()).toBe(true);
  });

  test('a stopped app can be taken away and not given', async () => {
    const page = await people();
    await page.getByRole('button', { name: panel(bob) }).click();
    const draft = page.getByRole('switch', { name: /Blog draft/ });
    await page.getByText('off', { exact: true }).waitFor();
    await draft.click();
    await told(page, 'can’t open Blog draft any more.');
    await expect.poll(() => draft.isChecked()).toBe(false);
    expect(await draft.isDisabled()).toBe(true);
  });

  test('are read anew when they changed elsewhere', async () => {
    const page = await people();
    await page.getByRole('button', { name: panel(carla) }).click();
    await page.evaluate(`stub.person("acc-${carla}", { apps: ["Photos"] })`);
    await expect.poll(() => page.getByRole('switch', { name: /Notes/ }).isChecked()).toBe(false);
    expect(await page.getByRole('switch', { name: /Photos/ }).isChecked()).toBe(true);
  });
});

describe('removing', () => {
  test('acts at once, without a question, and tells what it closed', async () => {
    const page = await people();
    await page.getByRole('button', { name: `Remove ${carla}` }).press('Enter');
    await told(page, `${carla} can’t open anything any more. 3 connections closed.`);
    expect(await page.getByRole('dialog').count()).toBe(0);
    await section(page, 'Removed').getByText(carla).waitFor();
    expect(await called(page, 'ownerRemovePerson')).toEqual([[{ accountId: `acc-${carla}`, holdSeconds: 30 }]]);
    await expect.poll(() => focusName(page)).toBe('People');
  });

  for (const [where, undo] of [
    ['toast', (page: Page) => toast(page).getByRole('button', { name: 'Undo' })],
    ['row', (page: Page) => section(page, 'Removed').getByRole('button', { name: `Undo: ${carla} comes back as before` })],
  ] as const) {
    test(`is undone by the ${where}, and nobody is mailed`, async () => {
      const page = await people();
      await remove(page, carla);
      await undo(page).press('Enter');
      await told(page, `${carla} is back, with everything as it was. No mail was sent.`);
      await section(page, 'May come in').getByText(carla).waitFor();
      expect([await called(page, 'undoHeld'), await called(page, 'ownerInvite'), await called(page, 'settleHeld')]).toEqual([[[{ accountId: `acc-${carla}` }]], [], []]);
      await page.getByRole('button', { name: panel(carla) }).click();
      expect(await page.getByRole('switch', { name: /Photos/ }).isChecked()).toBe(true);
    });
  }

  test('is settled when the offer to undo it leaves; the row then offers an invitation', async () => {
    const page = await people();
    await remove(page, carla);
    await toast(page).getByRole('button', { name: 'Dismiss' }).click();
    await expect.poll(() => called(page, 'settleHeld')).toEqual([[{ accountId: `acc-${carla}` }]]);
    await section(page, 'Removed').getByRole('button', { name: `Invite again: ${carla}` }).click();
    await expect.poll(() => called(page, 'ownerInvite')).toEqual([[{ email: carla, apps: ['Notes', 'Photos'] }]]);
    await section(page, 'May come in').getByText(carla).waitFor();
  });

  test('the newest removal is the one that can be undone', async () => {
    const page = await people();
    await remove(page, carla);
    await remove(page, bob);
    await expect.poll(() => called(page, 'settleHeld')).toEqual([[{ accountId: `acc-${carla}` }]]);
    await section(page, 'Removed').getByRole('button', { name: `Invite again: ${carla}` }).waitFor();
    await section(page, 'Removed').getByRole('button', { name: `Undo: ${bob} comes back as before` }).waitFor();
  });

  test('whoever was removed is invited again to what they had', async () => {
    const page = await people();
    await page.getByRole('button', { name: 'Invite again: tomas@example.net' }).click();
    await told(page, 'tomas@example.net is invited.');
    expect(await called(page, 'ownerInvite')).toEqual([[{ email: 'tomas@example.net', apps: ['Notes', 'Photos'] }]]);
    await section(page, 'Removed').waitFor({ state: 'detached' });
  });
});

test('who was here when is said beside who is here', async () => {
  const page = await people();
  const row = (email: string) => section(page, 'May come in').getByRole('listitem').filter({ hasText: email });
  expect(await row(carla).innerText()).toContain('here now');
  await row(bob).getByText('Last here yesterday').waitFor();
  expect(await row('lena@example.com').innerText()).not.toContain('Last here');
});

test('a listing that cannot be had is said, and the view works again when it can', async () => {
  const page = await people();
  await page.evaluate('stub.fail("ownerPeople", "The server does not answer. People are shown again when it does."); stub.set({peopleVersion: "x"})');
  await page.getByText('The server does not answer.').waitFor();
  expect(await section(page, 'May come in').getByText(carla).count()).toBe(1); // what was known stays
  await page.evaluate('stub.fail("ownerPeople"); stub.set({peopleVersion: "y"})');
  await page.getByText('The server does not answer.').waitFor({ state: 'detached' });
});

test('nobody but the owner: the view teaches', async () => {
  const page = await people({ scene: 'alone' });
  await page.getByRole('heading', { name: 'Nobody but you' }).waitFor();
  await page.evaluate('stub.set({apps: [], peopleVersion: "z"})');
  await page.getByText('No app is on. Approve one first').waitFor();
  expect(await page.getByRole('button', { name: 'Invite', exact: true }).count()).toBe(0);
});
