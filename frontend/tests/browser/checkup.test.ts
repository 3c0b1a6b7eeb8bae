// The Health page: what is wrong first, one button each, and a report to hand on.
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { called, focusName, go, open, section, told } from './page';

const health = async (scene: string) => {
  const page = await open({ scene });
  await page.getByRole('complementary').getByRole('status').getByRole('button').click();
  await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
  return page;
};
const titles = (page: Page, name: string) => section(page, name).locator('.title').allInnerTexts();
const plain = (texts: string[]) => texts.map((text) => text.replace(/[\u2068\u2069]/g, ''));

test('is reached by the line that says how things are, which counts what is wrong', async () => {
  const page = await open({ scene: 'health' });
  const line = page.getByRole('complementary').getByRole('status');
  expect(await line.innerText()).toBe('Connected, 6 things wrong');
  await line.getByRole('button').press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor();
  expect(await line.getByRole('button').getAttribute('aria-current')).toBe('page');
  expect(await page.getByRole('navigation').locator('[aria-current]').count()).toBe(0);
  await go(page, 'Apps');
  await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
});

test('tells what is wrong first, and what helps acts at once', async () => {
  const page = await health('health');
  await page.getByText(/^6 things are wrong\. Last tried at \d\d:\d\d\.$/).waitFor();
  expect(plain(await titles(page, 'Wrong'))[0]).toBe('Board: Refuses its address');
  const fine = await titles(page, 'Fine');
  expect(fine.slice(0, 2)).toEqual(['Room on the disk', 'The server answers']);
  await section(page, 'Fine').getByText('maya.porch.example, through the server: 84 ms').waitFor();
  expect(await page.getByText('control plane').count()).toBe(0);
  await section(page, 'Wrong').getByRole('button', { name: /^Reach it over HTTPS: .*Cluster/ }).click();
  await told(page, 'Cluster is reached over HTTPS now.');
  await page.getByText(/^5 things are wrong\./).waitFor();
  await section(page, 'Wrong').getByRole('button', { name: /^Pause it: .*Gone/ }).click();
  await told(page, 'Gone is paused.');
  await page.getByText(/^4 things are wrong\./).waitFor();
  expect(await called(page, 'examine')).toEqual([[{}]]);
  await page.getByRole('button', { name: 'Try now', exact: true }).click();
  await expect.poll(() => called(page, 'examine')).toEqual([[{}], [{}]]);
  // And beside each of these, with its fix where there is one; what is fine has neither.
  const wrong = section(page, 'Wrong').locator('.setting');
  expect(await wrong.filter({ has: page.getByRole('button', { name: /^Try now: / }) }).count()).toBe(await wrong.count());
  expect(await section(page, 'Fine').getByRole('button', { name: /^Try now/ }).count()).toBe(0);
  const again = section(page, 'Wrong').getByRole('button', { name: /^Try now: .*Board/ });
  await again.press('Enter');
  await expect.poll(() => called(page, 'examine')).toHaveLength(3);
  expect(await focusName(page)).toMatch(/^Try now: /);
});

test('what is fine is told as fine, and the report is copied whole', async () => {
  const page = await health('alone');
  await page.evaluate(`stub.change('home', null)`);
  await page.getByText(/^Nothing is wrong\./).waitFor();
  expect(await section(page, 'Wrong').count()).toBe(0);
  await page.getByRole('button', { name: 'Copy report' }).click();
  expect((await called(page, 'Copy'))[0]![0]).toContain('Porchlight 0.1.0, protocol 1');
  await section(page, 'For developers').locator('summary').press('Enter');
  await section(page, 'For developers').getByText('protocol 1').waitFor();
});

test('dark, a locked keychain and a mail that came back each have their button', async () => {
  const page = await health('dark');
  await section(page, 'Good to know').getByRole('button', { name: 'Light up again: Everything is dark' }).click();
  await expect.poll(() => called(page, 'lightUp')).toHaveLength(1);
  await page.evaluate(`stub.set({undelivered: ['nina@example.com']})`);
  await section(page, 'Wrong').getByText('The mail to nina@example.com came back, or was given up.').waitFor();
  await section(page, 'Wrong').getByRole('button', { name: 'Show people: An invitation did not arrive' }).click();
  await expect.poll(() => focusName(page)).not.toBe('');
  await page.getByRole('heading', { level: 1, name: 'People' }).waitFor();

  const locked = await health('locked');
  await section(locked, 'Wrong').getByText('Your keychain is locked', { exact: true }).waitFor();
  expect(await called(locked, 'examine')).toEqual([]); // which needs what the keychain keeps
  await section(locked, 'Wrong').getByRole('button', { name: 'Unlock…: Your keychain is locked' }).click();
  await expect.poll(() => called(locked, 'Unlock')).toHaveLength(1);
});

test('trouble offers to try at once, and to see what is wrong', async () => {
  const page = await open({ scene: 'unreachable' });
  await page.getByRole('button', { name: 'Try now', exact: true }).click();
  await expect.poll(() => called(page, 'examine')).toHaveLength(1);
  await page.getByRole('button', { name: 'What is wrong?' }).click();
  await section(page, 'Wrong').getByText('The server does not answer as it should', { exact: true }).waitFor();
  await section(page, 'Wrong').getByText('Visitors do not get through').waitFor();
});
