// What visitors ask of an app: followed as it happens, on its page.
import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { called, focusName, open, section } from './page';

const lines = (page: Page) => page.getByRole('list', { name: 'Visitors’ requests' }).getByRole('listitem');
const unfold = (page: Page) => section(page, 'For developers').locator('summary').press('Enter');

async function requests(app = 'Notes', scene = 'connected') {
  const page = await open({ scene });
  await page.getByRole('button', { name: app, exact: true }).click();
  await unfold(page);
  return page;
}

test('each is told with its answer, how long it took, who asked and what was wrong', async () => {
  const page = await requests('Home Assistant');
  await expect.poll(() => lines(page).count()).toBe(2);
  for (const text of ['PUT', '/slow', 'carla.nunes@example.org', 'It did not answer within 60 seconds.', 'no answer', '1 min']) await lines(page).first().getByText(text, { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Back to Apps' }).click();
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await unfold(page);
  await lines(page).first().getByText('not signed in').waitFor();
  await lines(page).first().getByText('/<b>bold</b>').waitFor();
  expect(await page.locator('main li b, main [role=listitem] b').count()).toBe(0);
  // A path keeps its direction, and cannot turn its line.
  expect(await lines(page).first().locator('code bdi').getAttribute('dir')).toBe('ltr');
});

test('what comes is there at once, and the question waits; another snapshot asks nothing anew', async () => {
  const page = await open({ scene: 'connected' });
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  expect(await called(page, 'requests')).toEqual([]); // it is folded
  await page.evaluate('void stub.hold("requests")');
  await unfold(page);
  await expect.poll(async () => (await called(page, 'requests')).length).toBe(1);
  await page.evaluate('stub.change("notes", {here: Array.from({ length: 12 }, (_, i) => `here-${i}@example.com`)})');
  await page.getByText('12 here now').waitFor();
  expect((await called(page, 'requests')).length).toBe(1);
  await page.evaluate('stub.release()');
  await expect.poll(() => lines(page).count()).toBe(4);
  expect(((await called(page, 'requests'))[0] as [{ app: string }])[0].app).toBe('notes');
  await page.evaluate(`stub.request('photos', 'GET', '/other', 200, 5, 'bob@example.com'); stub.request('notes', 'GET', '/fresh', 200, 5, 'bob@example.com')`);
  await lines(page).first().getByText('/fresh').waitFor();
  expect(await lines(page).count()).toBe(5);
});

test('what somebody reads stays; what came meanwhile is one press away, and all is searched', async () => {
  const page = await requests();
  await page.evaluate(`for (let i = 0; i < 60; i++) stub.request('notes', 'GET', '/page/' + i, i % 40 ? 200 : 502, 5, 'person-' + (i % 9) + '@example.com')`);
  await page.getByText('/page/59').waitFor();
  await page.getByText('/page/40').scrollIntoViewIfNeeded();
  await page.locator('main').evaluate(
    (main) =>
      new Promise((seen) => {
        main.scrollBy(0, 400);
        requestAnimationFrame(() => requestAnimationFrame(seen)); // the page hears of it by then
      }),
  );
  await page.evaluate(`stub.request('notes', 'GET', '/fresh', 200, 5, 'bob@example.com')`);
  await page.getByRole('button', { name: 'Show 1 new' }).press('Enter');
  await page.getByText('/fresh').waitFor();
  await expect.poll(() => focusName(page)).toBe('Notes');
  const search = page.getByRole('searchbox', { name: 'Search requests' });
  await search.fill('/page/17');
  await expect.poll(() => lines(page).count()).toBe(1);
  await search.fill('person-7@');
  await expect.poll(() => lines(page).count()).toBeGreaterThan(4);
  await search.fill('nowhere at all');
  await page.getByText('Nothing matches').waitFor();
});

test('off: says so, and is turned on here', async () => {
  const page = await open({ scene: 'connected' });
  await page.evaluate('stub.settings({requests: false})');
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await unfold(page);
  await page.getByText('They are not kept.').waitFor();
  await page.getByRole('button', { name: 'Keep them' }).press('Enter');
  await expect.poll(() => lines(page).count()).toBe(4);
  expect((await called(page, 'changeSettings'))[0]).toEqual([{ requests: true }]);
});

test('a failure is said, and it goes on by itself; another run of the agent begins anew', async () => {
  const page = await open({ scene: 'connected' });
  await page.evaluate('stub.fail("requests", "The agent is still starting.")');
  await page.getByRole('button', { name: 'Notes', exact: true }).click();
  await unfold(page);
  await page.getByText('The agent is still starting.').waitFor();
  await page.evaluate('stub.fail("requests")');
  await expect.poll(() => lines(page).count()).toBe(4);
  await page.evaluate('stub.restarted()');
  await page.getByText('None so far').waitFor();
});
