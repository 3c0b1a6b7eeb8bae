// People who ask to be let in: answered by one press, on Apps and on the app's own page.
import { expect, test } from 'vitest';
import { allSettings, called, open, section, toast } from './page';

test('somebody who knocks is let in for today by one press', async () => {
  const page = await open({ scene: 'knocks', height: 900 });
  await page.getByRole('navigation').getByText('7 waiting for you').waitFor({ state: 'attached' });
  const asking = section(page, 'Asking to come in');
  expect(await asking.getByRole('heading', { level: 3 }).textContent()).toContain('dora@example.org');
  expect(await asking.textContent()).toContain('Today ends at midnight.');
  await page.waitForTimeout(450); // a press counts once it could be read
  await page.getByRole('button', { name: /^Today: .*dora@example.org/ }).click();
  await expect.poll(() => toast(page).textContent()).toMatch(/dora@example\.org.* can open .*Notes.* until midnight\. Their page goes on by itself\./);
  expect(await called(page, 'answerKnock')).toEqual([[{ id: 'k1', answer: 'today' }]]);
  await expect.poll(() => asking.getByRole('heading', { level: 3 }).textContent()).toContain('bob@example.com');
});

test('a press that was meant for the one above answers nobody', async () => {
  const page = await open({ scene: 'knocks', height: 900 });
  await page.waitForTimeout(450);
  await page.getByRole('button', { name: /^No: .*dora@example.org/ }).dblclick();
  await expect.poll(() => toast(page).textContent()).toMatch(/isn’t let in, and sees no answer/);
  expect(await called(page, 'answerKnock')).toEqual([[{ id: 'k1', answer: 'no' }]]);
});

test('never ask again, an invitation for who asked for no app, and all of them', async () => {
  const page = await open({ scene: 'knocks', height: 900 });
  await page.waitForTimeout(450);
  await page.getByRole('button', { name: /^Never ask again: .*dora@example.org/ }).click();
  await expect.poll(() => toast(page).textContent()).toMatch(/You hear nothing more of .*dora@example\.org/);
  await expect.poll(() => page.getByRole('button', { name: /^Today: .*grace@example.net/ }).count()).toBe(1);
  await page.getByRole('button', { name: /^Invite…: .*eve@example.net/ }).click();
  await page.getByRole('heading', { level: 1, name: /People|Invite/ }).waitFor();
});

test('an app shows those who ask for it', async () => {
  const page = await open({ scene: 'knocks' });
  await page.getByRole('button', { name: 'Notes', exact: true }).first().click();
  const asking = section(page, 'Asking to come in');
  expect(await asking.textContent()).toContain('dora@example.org');
  expect(await asking.textContent()).not.toContain('bob@example.com');
});

test('whether strangers may ask is a setting', async () => {
  const page = await open({ scene: 'connected' });
  await allSettings(page);
  await page.getByRole('switch', { name: 'Strangers may ask to be let in' }).click();
  await expect.poll(async () => (await called(page, 'changeSettings')).at(-1)).toEqual([expect.objectContaining({ strangersKnock: true })]);
});
