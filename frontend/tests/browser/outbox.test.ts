// The mails of local mode.
import { describe, expect, test } from 'vitest';
import { called, open, toast } from './page';

describe('the outbox', () => {
  test('lists mails with link and code, and grows by itself', async () => {
    const page = await open();
    await page.getByRole('button', { name: /^Outbox/ }).click();
    await page.getByText('bob@example.com').waitFor();
    await page.getByRole('button', { name: 'Open link for bob@example.com' }).click();
    expect(await called(page, 'OpenURL')).toEqual([['https://control.localhost:8443/sign-in/123456']]);
    await page.getByRole('button', { name: 'Copy the link for bob@example.com' }).click();
    await page.getByRole('button', { name: 'Copy the code for bob@example.com' }).click();
    expect(await called(page, 'Copy')).toEqual([['https://control.localhost:8443/sign-in/123456'], ['123 456']]);
    await page.evaluate('stub.post("dora@example.org", "555 777")');
    await page.getByText('dora@example.org').waitFor();
    expect(await page.locator('[role="listitem"]').first().textContent()).toContain('dora@example.org');
  });

  test('a link that is not opened is said', async () => {
    const page = await open();
    await page.getByRole('button', { name: /^Outbox/ }).click();
    await page.evaluate('stub.fail("OpenURL", "This is not one of Porchlight’s addresses.")');
    await page.getByRole('button', { name: 'Open link for bob@example.com' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('This is not one of Porchlight’s addresses.');
  });

  test('is there in local mode only, and while there is mail', async () => {
    const page = await open();
    await page.getByRole('button', { name: /^Outbox/ }).click();
    await page.getByRole('heading', { level: 1, name: 'Outbox' }).waitFor();
    await page.evaluate('stub.set({outboxSize: 0})');
    await page.getByRole('button', { name: 'Outbox', exact: true }).waitFor(); // while it shows
    await page.evaluate('stub.wants("apps")');
    await page.getByRole('button', { name: /^Outbox/ }).waitFor({ state: 'detached' });
    await page.evaluate('stub.set({outboxSize: 1})');
    await page.getByRole('button', { name: /^Outbox/ }).click();
    await page.evaluate('stub.set({account: {connected: true, local: false, host: "maya.porch.example", url: "https://maya.porch.example"}})');
    await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
    expect(await page.getByRole('button', { name: /^Outbox/ }).count()).toBe(0);
  });
});
