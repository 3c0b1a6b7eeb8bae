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
  if (process.env['SHOT']) await page.screenshot({ path: process.env['SHOT'] });
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await told(page, 'Nothing comes in from GitHub any more.');
  expect(await called(page, 'revokeSender')).toEqual([[{ id: 's1' }]]);
  await section(page, 'Senders').waitFor({ state: 'detached' });
  expect(await focusName(page)).not.toBe('');
});
