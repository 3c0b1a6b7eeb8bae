// How an app does: what the list and its page say of one that visitors cannot use,
// and the one click that helps.
import { expect, test } from 'vitest';
import { called, menuOf, open, section, told, toast } from './page';
import type { Page } from 'playwright-core';

const rows = (page: Page) => section(page, 'On').getByRole('listitem');
const row = (page: Page, label: string) => rows(page).filter({ has: page.getByRole('button', { name: label, exact: true }) });
const lit = (page: Page) => page.locator('.tile.lit').allTextContents();

test('the list tells each state in words, and lights only what visitors reach', async () => {
  const page = await open({ scene: 'health' });
  const said = await rows(page).evaluateAll((all) => all.map((one) => one.querySelector('.badge')?.textContent?.trim() ?? ''));
  expect(said).toEqual(['Refuses its address', 'Speaks HTTPS', 'Speaks HTTP/2', 'Not answering', '', '', 'Not answering', 'Answers wrongly']);
  expect(await lit(page)).toEqual(['N', 'Q']);
  // What is fine has nothing to press but Open.
  expect(await row(page, 'Notes').getByRole('button', { name: /^Open/ }).count()).toBe(1);
});

test('one click in the list takes what is suggested, and Undo puts it back', async () => {
  const page = await open({ scene: 'health' });
  await page.getByRole('button', { name: /^Reach it over HTTPS: .?Cluster/ }).click();
  await told(page, 'Cluster is reached over HTTPS now.');
  expect(await called(page, 'changeOptions')).toEqual([[{ name: 'cluster', upstream: 'https' }]]);
  await row(page, 'Cluster').getByRole('button', { name: /^Open/ }).waitFor();
  expect(await lit(page)).toContain('C');
  await toast(page).getByRole('button', { name: 'Undo' }).click();
  await expect.poll(async () => (await called(page, 'changeOptions')).at(-1)).toEqual([{ name: 'cluster', upstream: '' }]);
});

test('the page says what is wrong, what helps and which option that is', async () => {
  const page = await open({ scene: 'health' });
  await page.getByRole('button', { name: 'Board', exact: true }).click();
  const health = page.getByRole('group', { name: 'How it does' });
  await health.getByText('Refuses its address').waitFor();
  await health.getByText('It refuses what is sent to board.maya.porch.example (status 403)').waitFor();
  await health.getByText('Sets “Name the app sees” to localhost.').waitFor();
  await health.getByRole('button', { name: 'Call it localhost' }).press('Enter');
  await told(page, 'Board sees localhost as its name now.');
  expect(await called(page, 'changeOptions')).toEqual([[{ name: 'board', localhostHost: true }]]);
  await health.getByText('Works from the internet, 84 ms').waitFor();
});

test('an error that every visitor meets is told by the page and by Health, and the app stays lit', async () => {
  const page = await open({ scene: 'health' });
  const detail = 'It answers on port 8000, and visitors get an error as its first page (status 503).';
  await page.evaluate(`stub.change("notes", {healthNote: true, healthStatus: 503, healthDetail: '${detail}'})`);
  expect(await lit(page)).toContain('N');
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  const health = page.getByRole('group', { name: 'How it does' });
  await health.getByText('It answers, and not as it should').waitFor();
  await health.getByText(detail).waitFor();
  await health.getByRole('button', { name: 'Try now' }).click();
  await told(page, 'Nothing new: an app is asked at most once a minute.');
  await page.getByRole('complementary').getByRole('status').getByRole('button').click();
  const noted = section(page, 'Good to know');
  await noted.getByText(detail).waitFor();
  await noted.getByRole('button', { name: /^Tell it its address: / }).waitFor();
  await noted.getByRole('button', { name: /^Show: .*Notes/ }).click();
  await page.getByRole('heading', { level: 1, name: 'Notes' }).waitFor();
});

test('what MCP an app speaks is told by its page and by Health', async () => {
  const page = await open({ scene: 'health' });
  const detail = 'It speaks MCP at /mcp (version 2025-11-25) and calls itself “notes”.';
  await page.evaluate(`stub.change("notes", {healthMcp: true, healthOption: undefined, healthDetail: '${detail}'})`);
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await page.getByRole('group', { name: 'How it does' }).getByText(detail).waitFor();
  await page.getByRole('complementary').getByRole('status').getByRole('button').click();
  await page.getByText(detail).waitFor();
});

test('asks again, and says so where that told nothing new', async () => {
  const page = await open({ scene: 'health' });
  await page.getByRole('button', { name: 'Slow', exact: true }).click();
  const health = page.getByRole('group', { name: 'How it does' });
  await health.getByText('Tried 5 minutes ago.').waitFor();
  const state = section(page, 'State');
  await state.getByText('Last error a visitor met').waitFor();
  await state.getByText('It did not answer within 60 seconds.').waitFor();
  await state.getByText('5 minutes ago').waitFor();
  await health.getByRole('button', { name: 'Try now' }).click();
  await told(page, 'Nothing new: an app is asked at most once a minute.');
  await page.evaluate('stub.settings({probe: false})');
  await health.getByRole('button', { name: 'Try now' }).click();
  await told(page, 'Asking apps how they do is off in Settings.');
  await page.evaluate('stub.change("slow", {health: "answers", healthDetail: "", healthAt: new Date().toISOString()})');
  await health.getByText('Works from the internet, 84 ms').waitFor();
});

test('the way of a visitor is tried when the page opens, and told truly', async () => {
  const page = await open({ scene: 'connected' });
  // A fresh one too, which has no certificate so far, and again once it has.
  const text = 'The relay at photos.maya.porch.example knows no computer of this name, or its tunnel is down.';
  await page.evaluate(`stub.tries('photos', {works: false, text: ${JSON.stringify(text)}})`);
  await page.getByRole('button', { name: 'Photos', exact: true }).click();
  const health = page.getByRole('group', { name: 'How it does' });
  await health.getByText(text).waitFor();
  expect(await called(page, 'tryAddress')).toEqual([[{ name: 'photos' }]]);
  await page.evaluate(`stub.tries('photos', {works: true, text: '', milliseconds: 7});
    stub.change('photos', {certificate: {problem: '', notAfter: '2099-01-01T00:00:00Z', renewsAfter: '2098-12-01T00:00:00Z'}})`);
  await health.getByText('Works from the internet, 7 ms').waitFor();
  await page.getByRole('button', { name: 'Back to Apps' }).click();
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await health.getByText('Works from the internet, 84 ms').waitFor();
  await page.evaluate('stub.set({darkSince: new Date().toISOString()})');
  await health.getByText('Nobody can open it while it is dark.').waitFor();
});

test('one that answers may do better, which its page alone says', async () => {
  const page = await open({ scene: 'health' });
  await rows(page).nth(5).getByRole('button').first().click();
  const health = page.getByRole('group', { name: 'How it does' });
  await health.getByText('It could do better').waitFor();
  expect(await health.getByRole('button').allInnerTexts()).toEqual(['Tell it its address', 'Try now']);
});

test('an approval says truly what comes of it, with what helps', async () => {
  const page = await open({ scene: 'apps' });
  await page.evaluate(`stub.does('paperless', {health: 'https', healthDetail: 'It speaks HTTPS on port 8010, and is asked in HTTP: the option to reach it over HTTPS helps.', healthOption: {upstream: 'https'}})`);
  await page.getByRole('button', { name: 'Approve', exact: true }).press('Enter');
  await told(page, 'Paperless is approved. It speaks HTTPS on port 8010');
  expect(await row(page, 'Paperless').locator('.tile.lit').count()).toBe(0);
  await toast(page).getByRole('button', { name: 'Reach it over HTTPS' }).click();
  await told(page, 'Paperless is reached over HTTPS now.');
  await expect.poll(async () => (await called(page, 'changeOptions')).at(-1)).toEqual([{ name: 'paperless', upstream: 'https' }]);
});

test('a key that changed is said where it is approved', async () => {
  const page = await open({ scene: 'apps' });
  await page.evaluate(`stub.change('paperless', {newKey: true, approvedAt: '2026-01-01T00:00:00Z'})`);
  await page.getByText('Over HTTPS it shows another key than the one that was kept.').waitFor();
});

test('names that would turn their line stay in their place', async () => {
  const page = await open({ scene: 'health' });
  await rows(page).last().getByRole('button').first().click();
  expect(await page.locator('main b').count()).toBe(0);
  expect(await page.getByRole('group', { name: 'How it does' }).locator('bdi').count()).toBe(1);
  await page.getByRole('button', { name: 'Back to Apps' }).click();
  await menuOf(page, 'Gone').waitFor();
});
