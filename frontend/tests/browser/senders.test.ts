// Senders: those of an app stand on its page, and are revoked there.
import { expect, test } from 'vitest';
import { called, focusName, open, section, told } from './page';

test('a sender is shown with where it posts to, and revoked', async () => {
  const page = await open({ scene: 'connected' });
  await page.getByRole('button', { name: 'Photos', exact: true }).click();
  await page.getByRole('button', { name: 'Back to Apps' }).waitFor();
  await expect.poll(() => called(page, 'senders')).toHaveLength(1);
  expect(await section(page, 'Senders').count()).toBe(0); // it is another app's
  await page.getByRole('button', { name: 'Back to Apps' }).click();
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  const row = section(page, 'Senders').getByRole('listitem').filter({ hasText: 'GitHub' });
  await row.getByText('To /push').waitFor();
  const revoke = row.getByRole('button', { name: /^Revoke the sender/ });
  await revoke.click();
  await page.getByRole('button', { name: 'Keep' }).click();
  expect(await called(page, 'revokeSender')).toEqual([]);
  await revoke.click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await told(page, 'Nothing comes in from GitHub any more.');
  expect(await called(page, 'revokeSender')).toEqual([[{ id: 's1' }]]);
  await section(page, 'Senders').waitFor({ state: 'detached' });
  expect(await focusName(page)).not.toBe('');
});

test('one is named by the keyboard, and gets another secret', async () => {
  const page = await open({ scene: 'connected' });
  await page.getByRole('button', { name: 'Photos', exact: true }).click();
  const door = page.getByRole('button', { name: 'Take webhooks…' }).last();
  await door.press('Enter');
  const senders = section(page, 'Senders');
  const name = senders.getByRole('textbox', { name: 'Who sends?' });
  await expect.poll(() => name.evaluate((element) => element === document.activeElement)).toBe(true);
  const add = senders.getByRole('button', { name: 'Add', exact: true });
  await name.fill('Shop');
  await senders.getByRole('textbox', { name: 'Path' }).fill('/paid');
  await senders.getByRole('combobox', { name: 'How it signs' }).selectOption({ label: 'HMAC-SHA256' });
  await senders.getByLabel('Secret', { exact: true }).fill('a secret of tests');
  expect(await add.isDisabled()).toBe(true); // where is the signature?
  await senders.getByRole('textbox', { name: 'Header of the signature' }).fill('X-Sig');
  const until = senders.getByRole('combobox', { name: 'Until when?' });
  await until.selectOption({ label: 'A date…' });
  expect(await add.isDisabled()).toBe(true); // until which?
  await senders.getByLabel('Last day').fill('2031-01-31');
  await page.keyboard.press('Enter');
  await expect.poll(() => until.evaluate((element: HTMLSelectElement) => element.selectedOptions[0]!.text)).toMatch(/^Until 31 January/);
  expect(await called(page, 'addSender')).toEqual([]);
  await page.evaluate('stub.fail("addSender", "Another sender has this secret, so either could come in as the other. Give each its own.")');
  await add.click();
  await senders.getByRole('alert').getByText('Another sender has this secret').waitFor();
  await page.evaluate('stub.fail("addSender")');
  if (process.env['SHOT']) await page.screenshot({ path: process.env['SHOT'] });
  await add.click();
  const named = (await called(page, 'addSender')).at(-1) as [{ until: string }];
  expect(named).toEqual([{ app: 'photos', name: 'Shop', path: '/paid', kind: 'hmac-sha256', header: 'X-Sig', secret: 'a secret of tests', until: named[0].until }]);
  expect(new Date(named[0].until).toDateString()).toBe('Fri Jan 31 2031');
  await senders.getByText('https://photos.maya.porch.example/paid').waitFor();
  await senders.getByRole('button', { name: 'Done' }).press('Enter');
  await expect.poll(() => focusName(page)).toBe('Take webhooks…');
  expect(await page.evaluate(() => document.documentElement.outerHTML.includes('a secret of tests'))).toBe(false);

  const another = senders.getByRole('button', { name: /^Another secret for/ });
  await another.click();
  await senders.getByLabel('Secret', { exact: true }).fill('the next secret');
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await called(page, 'changeSenderSecret')).at(-1)).toEqual([{ id: 's10', secret: 'the next secret' }]);
  await expect.poll(() => focusName(page)).toBe('Another secret for Shop');

  // The newer one alone, once there are two.
  await another.click();
  const older = senders.getByRole('button', { name: 'End the older one…' });
  await older.press('Enter');
  await page.getByRole('button', { name: 'Keep' }).click();
  expect((await called(page, 'changeSenderSecret')).length).toBe(1);
  await older.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'End it' }).click();
  await expect.poll(async () => (await called(page, 'changeSenderSecret')).at(-1)).toEqual([{ id: 's10', alone: true }]);
  await expect.poll(() => senders.getByLabel('Secret', { exact: true }).evaluate((element) => element === document.activeElement)).toBe(true);
  await expect.poll(() => older.count()).toBe(0);
});
