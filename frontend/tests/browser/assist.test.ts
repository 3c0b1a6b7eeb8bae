// Connecting an assistant, on the page of an app: the address, what to paste, its client id.
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { audit, called, focusName, open, section } from './page';
import type { Look } from './page';

async function assist(look: Look, label = 'Notes') {
  const page = await open(look);
  await page.getByRole('button', { name: label, exact: true }).click();
  await page.getByRole('button', { name: 'Connect an assistant…' }).press('Enter');
  await page.getByRole('heading', { name: `Connect an assistant to ${label}` }).waitFor();
  return page;
}

const copied = async (page: Page, label: string) => {
  await page.locator('.copy').filter({ has: page.getByRole('group', { name: label, exact: true }) }).getByRole('button', { name: 'Copy' }).click();
  return (await called(page, 'Copy')).at(-1)![0];
};

test('says the address and what each takes, by the keyboard, and goes back to where it was', async () => {
  const page = await assist({ scene: 'connected' });
  await expect.poll(() => focusName(page)).toBe('Back to Notes');
  const address = 'https://notes.maya.porch.example/mcp';
  await expect.poll(() => copied(page, 'Address for an assistant')).toBe(address);
  await page.getByRole('heading', { name: 'Give Claude the address' }).waitFor();
  await page.getByText('take what your operator gave you').waitFor();
  expect(await page.getByRole('button', { name: 'Make its id' }).count()).toBe(0);
  await page.getByRole('radio', { name: 'Claude', exact: true }).focus();
  for (let i = 0; i < 2; i++) await page.keyboard.press('ArrowRight');
  await page.getByRole('heading', { name: 'Run this in a terminal' }).waitFor();
  expect(await copied(page, 'What to paste')).toContain('--client-id k7dq2m4xp5vn3w8rk7dq2m4xp5 notes');
  expect(await copied(page, 'Its client id')).toBe('k7dq2m4xp5vn3w8rk7dq2m4xp5');
  await page.getByText('the one your operator gave you').waitFor(); // its secret
  await page.keyboard.press('Shift+Tab');
  await page.getByRole('radio', { name: 'VS Code' }).check();
  expect(JSON.parse(String(await copied(page, 'What to paste')))).toEqual({ servers: { notes: { type: 'http', url: address } } });
  expect(await audit(page)).toEqual([]);
  await page.getByRole('button', { name: 'Done' }).press('Enter');
  await expect.poll(() => focusName(page)).toBe('Connect an assistant…');
});

test('the path is the owner’s to say, and one that cannot be is not taken', async () => {
  const page = await assist({ scene: 'connected' });
  const field = page.getByRole('textbox', { name: 'Path in the app' });
  await field.fill('api/mcp');
  await field.press('Enter');
  await page.getByRole('alert').getByText('such as /mcp').waitFor();
  expect(await copied(page, 'Address for an assistant')).toBe('https://notes.maya.porch.example/mcp');
  await field.fill('/api/mcp');
  await field.press('Enter');
  await expect.poll(() => copied(page, 'Address for an assistant')).toBe('https://notes.maya.porch.example/api/mcp');
});

test('its first call is the proof', async () => {
  const page = await assist({ scene: 'connected' });
  await page.getByText('Waiting for its first call').waitFor();
  const grant = { id: 'new', clientId: 'x', clientName: 'Cursor', email: 'maya@example.com', createdAt: '2026-01-01T00:00:00Z', lastUsedAt: '2026-01-01T00:00:00Z', callsToday: 1, lastCall: '2100-01-01T00:00:00Z' };
  await page.evaluate((grant) => (window as never as { stub: { set(more: object): void } }).stub.set({ grants: [{ ...grant, apps: ['Photos'] }] }), grant);
  await page.getByText('Waiting for its first call').waitFor(); // another app
  await page.evaluate((grant) => (window as never as { stub: { set(more: object): void } }).stub.set({ grants: [grant] }), grant);
  await page.getByRole('status').getByText('has called. It works.').waitFor();
});

test('on this computer alone: none elsewhere, and an id is made when asked for', async () => {
  const page = await assist({ scene: 'apps' });
  await page.getByText('Only an assistant on this computer can use it so far').waitFor();
  expect(await page.getByRole('radio', { name: 'Claude Code' }).isChecked()).toBe(true);
  await page.getByText('It lets the assistant ask you, and opens nothing').waitFor();
  expect(await copied(page, 'So that it trusts this computer')).toBe('NODE_EXTRA_CA_CERTS=/home/maya/.local/share/porchlight/ca/root.pem');
  await page.getByRole('radio', { name: 'ChatGPT' }).check();
  await page.getByRole('heading', { name: 'ChatGPT cannot reach this computer yet' }).waitFor();
  expect(await page.getByRole('button', { name: 'Make its id' }).count()).toBe(0);
  await page.getByRole('radio', { name: 'Cursor' }).check();
  expect(await called(page, 'addClient')).toEqual([]);
  await page.evaluate('stub.fail("addClient", "Porchlight cannot write to its data directory.")');
  const make = page.getByRole('button', { name: 'Make its id' });
  await make.click();
  await page.getByRole('alert').getByText('cannot write').waitFor();
  await page.evaluate('stub.fail("addClient")');
  await make.click();
  await expect.poll(() => page.getByRole('group', { name: 'What to paste' }).innerText()).toContain('"CLIENT_ID": "m2p9t6h4d7k3x5vnm2p9t6h4d7"');
  expect(await audit(page)).toEqual([]);
  expect(await section(page, 'App passwords').count()).toBe(0); // none is made here
});
