// Own domains: added on the app's page, with the records to make and how each stands, looked
// up, and removed.
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { audit, called, focusName, open, section, told } from './page';

const domains = (page: Page) => section(page, 'Own domains');
const add = (page: Page) => page.getByRole('button', { name: 'Own domain…' });
const row = (page: Page, name: string) => domains(page).getByRole('listitem').filter({ hasText: name });
const stands = (page: Page, all: Record<string, object>) => page.evaluate((all) => (window as unknown as { stub: { domains(app: string, all: object): void } }).stub.domains('notes', all), all);

async function notes(language: 'en' | 'de' = 'en') {
  const page = await open({ scene: 'connected', language });
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await page.locator('.hero').waitFor();
  return page;
}

test('one is added by the keyboard, its records are copied, it is looked up, and removed', async () => {
  const page = await notes();
  await add(page).press('Enter');
  const field = page.getByRole('textbox', { name: 'Which domain?' });
  await expect.poll(() => field.evaluate((element) => element === document.activeElement)).toBe(true);
  await field.fill(' Notes.Maya.Net ');
  await field.press('Enter');
  await row(page, 'notes.maya.net').getByText('Not found yet').waitFor();
  expect(await called(page, 'addDomain')).toEqual([[{ name: 'Notes.Maya.Net', app: 'notes' }]]);
  await expect.poll(() => focusName(page)).toBe('Own domain…');
  await row(page, 'notes.maya.net').getByText('The DNS has no record TXT').waitFor();
  for (const [label, text] of [
    ['Name of the record TXT', '_porchlight.notes.maya.net'], ['Value of the record TXT', 'gq0Ws2d5f7h9k1m3p5r7tA'],
    ['Name of the record CNAME', 'notes.maya.net'], ['Value of the record CNAME', 'notes.maya.porch.example'],
  ] as const) {
    const copy = row(page, 'notes.maya.net').locator('.copy').filter({ has: page.getByRole('group', { name: label, exact: true }) });
    await copy.getByRole('button', { name: 'Copy' }).click();
    await expect.poll(async () => (await called(page, 'Copy')).at(-1)).toEqual([text]);
  }
  expect(await audit(page)).toEqual([]);
  await page.getByRole('button', { name: /^Check now: .?notes.maya.net/ }).click();
  await row(page, 'notes.maya.net').getByText('Opens the app.').waitFor();
  expect(await row(page, 'notes.maya.net').locator('.copy').count()).toBe(0);
  await page.getByRole('button', { name: /^Remove .?notes.maya.net/ }).click();
  await page.getByRole('dialog').getByText('Its records are worth nothing afterwards').waitFor();
  expect(await focusName(page)).toBe('Keep');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await told(page, 'notes.maya.net leads to this computer no more.');
  expect(await called(page, 'removeDomain')).toEqual([[{ name: 'notes.maya.net' }]]);
  await domains(page).waitFor({ state: 'detached' });
});

test('how each stands is said in words, in German, too', async () => {
  const until = new Date(Date.now() + 3 * 86_400_000).toISOString();
  const problem = 'The DNS of it does not answer. It is asked again.';
  for (const [language, proven, gone, unsure, opens] of [
    ['en', 'Opens the app.', 'Not found any more', 'No answer', 'Opens the app until'], ['de', 'Öffnet die App.', 'Nicht mehr gefunden', 'Keine Antwort', 'Öffnet die App bis'],
  ] as const) {
    const page = await notes(language);
    await stands(page, { 'a.maya.net': { state: 'proven', problem: '' }, 'b.maya.net': { state: 'gone', until }, 'c.maya.net': { state: 'unsure', until, problem } });
    const of = (name: string) => page.locator('#domains li').filter({ hasText: name });
    await of('a.maya.net').getByText(proven).waitFor();
    await of('b.maya.net').getByText(gone).waitFor();
    await of('c.maya.net').getByText(unsure).waitFor();
    await of('c.maya.net').getByText(problem).waitFor();
    await of('c.maya.net').getByText(opens).waitFor();
    expect(await audit(page)).toEqual([]);
  }
});

test('what the agent says against one stands beside the field; Escape leaves', async () => {
  const page = await notes();
  await add(page).click();
  await page.evaluate('stub.fail("addDomain", "That is not a domain name, like notes.example.org.")');
  const field = page.getByRole('textbox', { name: 'Which domain?' });
  await field.fill('maya');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await domains(page).getByRole('alert').getByText('That is not a domain name').waitFor();
  expect(await field.inputValue()).toBe('maya');
  await field.press('Escape');
  await field.waitFor({ state: 'detached' });
  await expect.poll(() => focusName(page)).toBe('Own domain…');
});

test('a computer without a server offers none', async () => {
  const page = await open({ scene: 'apps' });
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await page.locator('.hero').waitFor();
  expect(await add(page).count()).toBe(0);
});
