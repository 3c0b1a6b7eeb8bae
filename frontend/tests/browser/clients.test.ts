// Connected apps: what the owner and other people let in, and ending it.
import { expect, test } from 'vitest';
import { called, focusName, go, open, section, told } from './page';

async function clients(scene = 'connected') {
  const page = await open({ scene });
  await go(page, 'Connected apps');
  return page;
}

test('are the owner’s and other people’s, with when they were used', async () => {
  const page = await clients();
  expect(await section(page, 'Yours').getByRole('listitem').count()).toBe(3);
  const row = section(page, 'Other people’s').getByRole('listitem').filter({ hasText: 'bob@example.com' });
  expect(await row.innerText()).toContain('Never used');
  await row.getByText('<b>Feed</b> reader').waitFor(); // as text
  const yours = (text: string) => section(page, 'Yours').getByRole('listitem').filter({ hasText: text }).innerText();
  expect(await yours('Pocket Notes')).toMatch(/12 calls today\s+the last at \d/);
  expect(await yours('Backup')).toContain('Used 10 hours ago'); // from before calls were counted
  const claude = await yours('claude.ai');
  for (const part of ['Calls itself “Claude”', 'Notes and nothing else, as you', 'Used 3 days ago']) expect(claude).toContain(part);
});

test('one is revoked after a question, and the focus goes to the title', async () => {
  const page = await clients();
  const revoke = section(page, 'Yours').getByRole('button', { name: /Revoke .?Pocket Notes/ });
  await revoke.press('Enter');
  const dialog = page.getByRole('dialog', { name: /Revoke .?Pocket Notes.?\?/ });
  expect(await focusName(page)).toBe('Keep');
  await page.keyboard.press('Escape');
  await expect.poll(() => focusName(page)).toBe('Revoke Pocket Notes');
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Revoke' }).press('Enter');
  await told(page, 'Pocket Notes can’t open anything any more. 1 connection closed.');
  expect(await called(page, 'revokeGrant')).toEqual([[{ id: 'g1' }]]); // this one, not the other of that name
  await expect.poll(() => section(page, 'Yours').getByRole('listitem').count()).toBe(2);
  expect(await section(page, 'Other people’s').getByText('Pocket Notes').count()).toBe(1);
  await expect.poll(() => focusName(page)).toBe('Connected apps');
});

test('a refusal keeps it and says why', async () => {
  const page = await clients();
  await page.evaluate('stub.fail("revokeGrant", "The server does not answer, so it is ended here only.")');
  await section(page, 'Yours').getByRole('button', { name: /Revoke .?Backup/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await told(page, 'ended here only');
  expect(await section(page, 'Yours').getByRole('listitem').count()).toBe(3);
});

test('the question closes when it ended elsewhere; with the last one the view teaches', async () => {
  const page = await clients();
  await section(page, 'Yours').getByRole('button', { name: /Revoke .?Pocket/ }).click();
  await page.evaluate('stub.endPasswords(); stub.set({grants: []})');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'No connected apps' }).waitFor();
  await expect.poll(() => focusName(page)).toBe('Connected apps');
});

test('many can be searched by name and by person', async () => {
  const page = await clients('stress');
  await page.getByRole('searchbox').fill('CLIENT 29');
  await expect.poll(() => page.getByRole('listitem').count()).toBe(11);
  await page.getByRole('searchbox').fill('person-4@');
  await expect.poll(() => page.getByRole('listitem').count()).toBe(0);
  await page.getByText('Nothing matches').waitFor();
  await page.getByRole('searchbox').press('Escape');
  await section(page, 'Yours').waitFor();
});
