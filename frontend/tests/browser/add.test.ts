// Adding an app that runs on this computer.
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { called, open, section, shot, told } from './page';

async function adding(scene = 'connected'): Promise<Page> {
  const page = await open({ scene });
  await page.getByRole('button', { name: 'Add an app…' }).press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Add an app' }).waitFor();
  await page.getByText('Jupyter Server').waitFor();
  return page;
}
const focused = (one: Locator) => one.evaluate((element) => element === document.activeElement);
const can = (page: Page) => section(page, 'Can be shared');
const row = (page: Page, text: string) => can(page).getByRole('listitem').filter({ hasText: text });

test('what runs here: to share, on already, and not offered with the reason', async () => {
  const page = await adding();
  expect(await can(page).getByRole('listitem').allInnerTexts()).toHaveLength(6);
  expect(await row(page, 'Jupyter Server').innerText()).toMatch(/Port 8888 ·python3 ·jupyter-server.maya.porch.example/);
  expect(await row(page, 'Port 8000').innerText()).toMatch(/python3\nPort 8000 ·port-8000.maya.porch.example/);
  await row(page, 'Port 8081').getByText('other machines in your network can open it as it is').waitFor();
  await row(page, 'Port 8081').getByText('run by root, not by you').waitFor();
  await row(page, '<b>Sync</b>').waitFor(); // as text
  await section(page, 'Already on').getByText('Notes', { exact: true }).waitFor();
  await page.getByText('Not offered', { exact: true }).click();
  await page.getByText('Port 5432: postgres').waitFor();
  await page.getByText('Speaks a database’s language, not a browser’s.').waitFor();
  // Each of the owner's own was asked once, and nobody else's.
  expect((await called(page, 'look')).map(([given]) => (given as { port: number }).port).sort()).toEqual([3001, 8000, 8384, 8888]);
  expect(await page.locator('img').count()).toBe(1);
  // A helper that comes and goes is not offered, until it has been there for a while.
  await page.evaluate(`stub.runs(45001, 'helper', { passing: true })`);
  await page.getByText('Port 45001: helper').waitFor();
  expect(await can(page).getByText('45001').count()).toBe(0);
  await page.evaluate(`stub.ends(45001); stub.runs(45001, 'helper')`);
  await row(page, 'Port 45001').waitFor();
});

// The search gives way before the title does.
test.each([720, 900, 960])('its title is whole at %d px', async (width) => {
  const page = await adding();
  await page.getByRole('searchbox').waitFor();
  await page.setViewportSize({ width, height: 640 });
  await shot(page, `add-title-${width}`);
  const title = page.getByRole('heading', { level: 1 });
  expect(await title.evaluate((h1) => h1.scrollWidth - h1.clientWidth)).toBe(0);
});

test('one press shares it, and it moves to those that are on', async () => {
  const page = await adding();
  await row(page, 'Jupyter Server').getByRole('button', { name: /^Share / }).click();
  await told(page, 'is on, at jupyter-server.maya.porch.example.');
  await section(page, 'Already on').getByText('Jupyter Server').waitFor();
  await page.getByRole('button', { name: /^Open its page: .?Jupyter Server/ }).click();
  await page.getByRole('heading', { level: 1, name: 'Jupyter Server' }).waitFor();
});

test('another name first, by the row or by its button, and what is wrong with it is said there', async () => {
  const page = await adding();
  await row(page, 'Notes 2').getByText(/^·?notes-2/).click();
  const name = page.getByRole('textbox', { name: 'Its address' });
  await expect.poll(() => name.inputValue()).toBe('notes-2');
  await page.getByText('“notes” is taken by another app of yours.').waitFor();
  await name.fill('My notes');
  await name.press('Enter');
  await page.getByRole('alert').getByText("An app's name has 1 to 63 characters").waitFor();
  await name.fill('my-notes');
  await name.press('Enter');
  await told(page, 'is on, at my-notes.maya.porch.example.');
  expect((await called(page, 'share')).at(-1)).toEqual([{ name: 'my-notes', label: 'Notes 2', localPort: 3001, program: 'node', user: 'maya', listening: true, others: false, keep: true }]);
  const fold = page.getByRole('button', { name: /^Name for .?Jupyter/ });
  await fold.press('Enter');
  await expect.poll(() => focused(page.getByRole('textbox', { name: 'Its address' }))).toBe(true);
  expect(await fold.getAttribute('aria-expanded')).toBe('true');
});

test('a listener that is gone at the click is said in its row, and nothing is published', async () => {
  const page = await adding();
  await page.evaluate('stub.hold("listening")');
  await page.evaluate('stub.ends(8000)');
  await page.getByRole('button', { name: /^Share .?Port 8000/ }).click();
  await page.evaluate('stub.release()');
  await row(page, 'Port 8000').getByText('Port 8000 stopped listening.').waitFor();
  expect(await row(page, 'Port 8000').getByRole('button').count()).toBe(0);
  expect(await section(page, 'Already on').getByText('Port 8000').count()).toBe(0);
});

test('another user’s program is asked when the owner says so, and shared as theirs', async () => {
  const page = await adding();
  await row(page, 'Grafana').getByRole('button', { name: /^Name for/ }).click();
  await page.getByRole('button', { name: 'Ask for its title' }).click();
  await expect.poll(async () => (await called(page, 'look')).at(-1)).toEqual([{ port: 3003, asked: true }]);
  await row(page, 'Grafana').getByRole('button', { name: /^Share / }).click();
  await expect.poll(async () => ((await called(page, 'share')).at(-1)?.[0] as { others?: boolean } | undefined)?.others).toBe(true);
});

test('what begins to listen appears, and what ends goes', async () => {
  const page = await adding();
  await page.evaluate('stub.runs(4000, "node")');
  await row(page, 'Port 4000').waitFor();
  await page.evaluate('stub.ends(4000)');
  await expect.poll(() => row(page, 'Port 4000').count()).toBe(0);
});

test('search, and a port that is typed', async () => {
  const page = await adding();
  await page.getByRole('searchbox').fill('jupyter');
  await expect.poll(() => can(page).getByRole('listitem').count()).toBe(1);
  await page.getByRole('searchbox').fill('zzz');
  await page.getByText('Nothing here is called').waitFor();
  await page.getByRole('searchbox').fill('');
  await page.getByRole('button', { name: 'Type a port…' }).click();
  const port = page.getByRole('textbox', { name: 'Port', exact: true });
  await expect.poll(() => focused(port)).toBe(true);
  await port.fill('8443');
  await page.getByText('This port is Porchlight’s own.').waitFor();
  await port.fill('7777');
  await page.getByText('Nothing listens there now.').waitFor();
  await page.getByRole('button', { name: /^Share .?Port 7777/ }).click();
  await told(page, 'is on, at port-7777.maya.porch.example.');
  expect((await called(page, 'share')).at(-1)).toEqual([{ name: 'port-7777', label: 'Port 7777', localPort: 7777, program: '', user: '', listening: false, others: false, keep: true }]);
});

test('without any app, the list is one press away', async () => {
  const page = await adding('empty');
  await page.getByRole('button', { name: 'Back to Apps' }).click();
  await page.getByRole('heading', { name: 'No apps yet' }).waitFor();
});
