// What visitors ask of the apps: followed as it happens, for one app or all.
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { called, focusName, go, open, section } from './page';

const lines = (page: Page) => page.getByRole('list', { name: 'Requests of visitors' }).getByRole('listitem');

async function requests(scene = 'connected') {
  const page = await open({ scene });
  await go(page, 'Requests');
  return page;
}

test('each is told with its answer, how long it took, who asked and what was wrong', async () => {
  const page = await requests();
  await expect.poll(() => lines(page).count()).toBe(7);
  const newest = lines(page).first();
  for (const text of ['PUT', '/slow', 'carla.nunes@example.org', 'Home Assistant', 'It did not answer within 60 seconds.', 'no answer', '1 min']) await newest.getByText(text, { exact: true }).waitFor();
  await lines(page).nth(1).getByText('not signed in').waitFor();
  await lines(page).nth(1).getByText('/<b>bold</b>').waitFor();
  expect(await page.locator('main b').count()).toBe(0);
  // A path keeps its direction, and cannot turn its line.
  expect(await lines(page).nth(4).locator('code bdi').getAttribute('dir')).toBe('ltr');
});

test('what comes is there at once, of one app or of all, and the question waits', async () => {
  const page = await requests();
  await expect.poll(() => lines(page).count()).toBe(7);
  await page.evaluate(`stub.request('notes', 'GET', '/fresh', 200, 5, 'bob@example.com')`);
  await lines(page).first().getByText('/fresh').waitFor();
  expect((await called(page, 'requests')).length).toBeLessThan(5);
  await page.getByRole('combobox', { name: 'App' }).selectOption({ label: 'Home Assistant' });
  await expect.poll(() => lines(page).count()).toBe(2);
  await page.evaluate(`stub.request('notes', 'GET', '/other', 200, 5, 'bob@example.com'); stub.request('home', 'GET', '/mine', 200, 5, 'bob@example.com')`);
  await lines(page).first().getByText('/mine').waitFor();
  expect(await lines(page).count()).toBe(3);
});

test('what somebody reads stays; what came meanwhile is one press away', async () => {
  const page = await requests('stress');
  await page.getByText('/page/2999').waitFor();
  const main = page.locator('main');
  await main.evaluate((element) => element.scrollTo(0, 3000));
  await page.evaluate(`stub.request('app-1', 'GET', '/fresh', 200, 5, 'bob@example.com')`);
  await page.getByRole('button', { name: 'Show 1 new' }).press('Enter');
  await page.getByText('/fresh').waitFor();
  expect(await main.evaluate((element) => element.scrollTop)).toBe(0);
  await expect.poll(() => focusName(page)).toBe('Requests');
});

test('is searched by path, person, status and app', async () => {
  const page = await requests('stress');
  const search = page.getByRole('searchbox', { name: 'Search requests' });
  await search.fill('/page/2717');
  await expect.poll(() => lines(page).count()).toBe(1);
  await search.fill('person-17@');
  await expect.poll(() => lines(page).count()).toBeGreaterThan(20);
  await search.fill('nowhere at all');
  await page.getByText('Nothing matches').waitFor();
});

test('off: says what it would keep, and is turned on here', async () => {
  const page = await open({ scene: 'connected' });
  await page.evaluate('stub.settings({requests: false})');
  await go(page, 'Requests');
  await page.getByRole('heading', { name: 'Requests are not kept' }).waitFor();
  await page.getByRole('button', { name: 'Keep them' }).press('Enter');
  await expect.poll(() => lines(page).count()).toBe(7);
  expect((await called(page, 'changeSettings'))[0]).toEqual([{ requests: true }]);
});

test('a failure is said, and it goes on by itself; another run of the agent begins anew', async () => {
  const page = await open({ scene: 'connected' });
  await page.evaluate('stub.fail("requests", "The agent is still starting.")');
  await go(page, 'Requests');
  await page.getByText('The agent is still starting.').waitFor();
  await page.evaluate('stub.fail("requests")');
  await expect.poll(() => lines(page).count()).toBe(7);
  await page.evaluate('stub.restarted()');
  await page.getByText('No request yet').waitFor();
});

test('the page of an app shows its newest, while they are unfolded', async () => {
  const page = await open({ scene: 'connected' });
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  const fold = section(page, 'What visitors ask of it');
  expect(await called(page, 'requests')).toEqual([]);
  await page.evaluate('void stub.hold("requests")');
  await fold.locator('summary').press('Enter');
  await expect.poll(async () => (await called(page, 'requests')).length).toBe(1);
  // Another snapshot asks nothing anew.
  await page.evaluate('stub.change("notes", {here: Array.from({ length: 12 }, (_, i) => `here-${i}@example.com`)})');
  await page.getByText('12 here now').waitFor();
  expect((await called(page, 'requests')).length).toBe(1);
  await page.evaluate('stub.release()');
  await expect.poll(() => lines(page).count()).toBe(4);
  expect(((await called(page, 'requests'))[0] as [{ app: string }])[0].app).toBe('notes');
  await page.evaluate(`stub.request('notes', 'GET', '/fresh', 200, 5, 'bob@example.com')`);
  await lines(page).first().getByText('/fresh').waitFor();
});
