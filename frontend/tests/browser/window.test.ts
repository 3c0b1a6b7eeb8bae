// The window as its owner uses it, by mouse and by keyboard, in a real browser.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { Window, type Look } from './page';

const window_ = new Window();
beforeAll(() => window_.start());
afterAll(() => window_.stop());

let wrongs: string[] = [];
afterEach(async () => {
  await window_.closePages();
  expect(wrongs.splice(0)).toEqual([]);
});

async function open(look: Look = {}): Promise<Page> {
  const opened = await window_.open(look);
  wrongs = opened.wrongs;
  return opened.page;
}

const calls = (page: Page) => page.evaluate('stub.calls') as Promise<[string, ...string[]][]>;
const called = async (page: Page, method: string) => (await calls(page)).filter(([name]) => name === method).map(([, ...args]) => args);
const menuOf = (page: Page, label: string) => page.getByRole('button', { name: new RegExp(`^More for .?${label}`) });
const toast = (page: Page) => page.locator('.toast');
const section = (page: Page, name: string) => page.getByRole('region', { name });
/** What has the focus: its own name, or the text of a region. */
const focusName = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement!;
    const labelled = element.getAttribute('aria-labelledby');
    return (element.getAttribute('aria-label') ?? (labelled ? document.getElementById(labelled)?.textContent : element.textContent) ?? '').replace(/[\u2068\u2069]/g, '').trim();
  });
/** Waits until a press of the mouse on the newest request counts (see deciding). */
const settle = (page: Page) =>
  page.evaluate(() => new Promise<void>((resolve) => {
    const since = performance.now();
    const look = () => (performance.now() - since > 450 ? resolve() : requestAnimationFrame(look));
    look();
  }));

describe('deciding on a request', () => {
  test('approving by mouse puts the app on and says where', async () => {
    const page = await open();
    await settle(page);
    await page.getByRole('button', { name: 'Approve' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('Paperless is on, at paperless.maya.localhost:8443. Only you can open it.');
    expect(await called(page, 'Approve')).toEqual([['paperless', 'Paperless', 8010]]);
    await section(page, 'On').getByText('Paperless', { exact: true }).waitFor();
    expect(await section(page, 'Waiting for you').count()).toBe(0);
    await toast(page).getByRole('button', { name: 'Open' }).click();
    expect(await called(page, 'Open')).toEqual([['paperless']]);
    expect(await toast(page).count()).toBe(0);
  });

  test('denying says for how long one hears nothing', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'Deny' }).press('Enter');
    await expect.poll(() => toast(page).textContent()).toContain('Paperless stays off. If it asks again, you won’t hear of it for 10 minutes.');
    expect(await called(page, 'Deny')).toEqual([['paperless']]);
  });

  test('denying what was denied before says so, and it can be unmuted', async () => {
    const page = await open({ scene: 'muted' });
    await page.getByRole('button', { name: 'Unmute' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('You hear of Paperless again');
    expect(await called(page, 'Unmute')).toEqual([['paperless']]);
    await page.getByRole('button', { name: 'Unmute' }).waitFor({ state: 'detached' });
    await page.evaluate('stub.set({apps: []}); stub.add({name: "diary", label: "Diary", denials: 1})');
    await page.getByRole('button', { name: 'Deny' }).press('Enter');
    await expect.poll(() => toast(page).textContent()).toContain('until you unmute it');
  });

  test('a press meant for what stood there a moment ago decides nothing', async () => {
    const page = await open({ scene: 'empty' });
    const place = await page.evaluate(async () => {
      const stub = (window as unknown as { stub: { add(app: object): void } }).stub;
      stub.add({ name: 'surprise', label: 'Surprise' });
      const button = await new Promise<Element>((resolve) => {
        const look = () => {
          const found = document.querySelector('.btn.primary');
          if (found) resolve(found);
          else requestAnimationFrame(look);
        };
        look();
      });
      // As the web view delivers it: a first click of the mouse, at once.
      button.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 }));
      return button.textContent;
    });
    expect(place?.trim()).toBe('Approve');
    expect(await called(page, 'Approve')).toEqual([]);
    await settle(page);
    await page.getByRole('button', { name: 'Approve' }).click();
    expect(await called(page, 'Approve')).toEqual([['surprise', 'Surprise', 9000]]);
  });

  test('a request that changes under the pointer is not approved by that press', async () => {
    const page = await open();
    await settle(page);
    await page.evaluate(async () => {
      const stub = (window as unknown as { stub: { change(name: string, more: object): void } }).stub;
      stub.change('paperless', { localPort: 22, listener: { program: 'sshd', user: 'root' } });
      await new Promise<void>((resolve) => {
        const look = () => (document.querySelector('.ask')?.textContent?.includes('port 22') ? resolve() : requestAnimationFrame(look));
        look();
      });
      document.querySelector('.ask .primary')!.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 }));
    });
    expect(await called(page, 'Approve')).toEqual([]);
    await settle(page);
    await page.getByRole('button', { name: 'Approve' }).click();
    expect(await called(page, 'Approve')).toEqual([['paperless', 'Paperless', 22]]);
  });

  test('a double click approves one request, not the next as well', async () => {
    const page = await open({ scene: 'requests' });
    await settle(page);
    const box = (await page.locator('.btn.primary').boundingBox())!;
    await page.mouse.dblclick(box.x + box.width / 2, box.y + box.height / 2);
    await expect.poll(async () => (await called(page, 'Approve')).length).toBe(1);
    await settle(page);
    expect(await called(page, 'Approve')).toHaveLength(1);
  });

  test('a refusal is told in the words of the agent, and the request stays', async () => {
    const page = await open();
    await page.evaluate('stub.fail("Approve", "The label Paperless belongs to another app already.")');
    await page.getByRole('button', { name: 'Approve' }).press('Enter');
    await expect.poll(() => toast(page).textContent()).toContain('The label Paperless belongs to another app already.');
    expect(await section(page, 'Waiting for you').getByText('wants an address').count()).toBe(1);
    expect(await page.getByRole('button', { name: 'Approve' }).isEnabled()).toBe(true);
  });

  test('while it works it says so and takes no second press', async () => {
    const page = await open();
    await page.evaluate('void stub.hold("Approve")');
    await page.getByRole('button', { name: 'Approve' }).press('Enter');
    const busy = page.getByRole('button', { name: 'Approving…' });
    await busy.waitFor();
    expect(await page.getByRole('button', { name: 'Deny' }).isDisabled()).toBe(true);
    await busy.press('Enter');
    await page.evaluate('stub.release()');
    await toast(page).waitFor();
    expect(await called(page, 'Approve')).toHaveLength(1);
  });

  test('denying all of many asks first', async () => {
    const page = await open({ scene: 'requests' });
    await page.getByRole('button', { name: 'Deny all…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Deny all 6?' });
    expect(await focusName(page)).toBe('Keep');
    await page.keyboard.press('Escape');
    expect(await dialog.count()).toBe(0);
    expect(await called(page, 'Deny')).toEqual([]);
    await page.getByRole('button', { name: 'Deny all…' }).click();
    await dialog.getByRole('button', { name: 'Deny all' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('6 apps stay off');
    expect(await called(page, 'Deny')).toHaveLength(6);
    await page.getByRole('heading', { name: 'No apps yet' }).waitFor();
  });
});

describe('an approved app', () => {
  test('is revoked after a question that Esc keeps', async () => {
    const page = await open();
    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Revoke…' }).click();
    const dialog = page.getByRole('dialog', { name: /Revoke “.?Notes.?”\?/ });
    expect(await dialog.textContent()).toContain('Its address goes away and 2 connections are closed. Who may open it is forgotten. The app itself keeps running.');
    expect(await focusName(page)).toBe('Keep');
    await page.keyboard.press('Escape');
    expect(await dialog.count()).toBe(0);
    expect(await focusName(page)).toBe('More for Notes');
    expect(await called(page, 'Revoke')).toEqual([]);

    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Revoke…' }).click();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect.poll(() => toast(page).textContent()).toContain('Notes has no address any more. 2 connections closed.');
    expect(await called(page, 'Revoke')).toEqual([['notes']]);
    await page.getByText('notes.maya.localhost:8443').waitFor({ state: 'detached' });
    await expect.poll(() => focusName(page)).toBe('Apps');
  });

  test('counts what is open to it now', async () => {
    const page = await open();
    expect(await section(page, 'On').locator('.now').allInnerTexts()).toEqual(['now: 2 connections']);
  });

  test('stops, keeps its row, and cannot be opened then', async () => {
    const page = await open();
    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Stop' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('Notes is stopped. 2 connections closed.');
    await section(page, 'Off').getByText('Notes', { exact: true }).waitFor();
    await menuOf(page, 'Notes').click();
    expect(await page.getByRole('menuitem').allTextContents()).toEqual(['Copy address', 'Revoke…']);
  });

  test('shows a tick for its copied address and says so', async () => {
    const page = await open();
    await page.getByRole('button', { name: /Copy address of .?Notes/ }).click();
    expect(await called(page, 'Copy')).toEqual([['https://notes.maya.localhost:8443']]);
    const done = page.locator('button.done');
    await done.waitFor();
    expect(await page.locator('.sr[role="status"]').last().textContent()).toContain('Copied');
    await done.waitFor({ state: 'detached' });
  });

  test('a question closes when its app went by another way', async () => {
    const page = await open();
    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Revoke…' }).click();
    await page.evaluate('stub.set({apps: []})');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await expect.poll(() => focusName(page)).toBe('Apps');
  });
});

describe('keyboard alone', () => {
  test('reaches everything in order, each stop with its ring', async () => {
    const page = await open();
    const stops: string[] = [];
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press('Tab');
      const name = await focusName(page);
      if (stops.length > 3 && name === stops[0]) break;
      if (await page.evaluate(() => document.activeElement === document.body)) break;
      stops.push(name);
      expect(await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle), name).toBe('solid');
    }
    expect(stops.filter((stop) => stop !== '')).toEqual([
      'Apps 11 waiting for you', 'Outbox 33 mails', 'Copy this computer’s address',
      'Approve', 'Deny', 'Details',
      'Copy address of Home Assistant', 'Open Home Assistant', 'More for Home Assistant',
      'Copy address of Notes', 'Open Notes', 'More for Notes',
      'Copy address of Photos', 'Open Photos', 'More for Photos',
      'Copy address of Blog draft', 'More for Blog draft', 'Copy address of Recipes', 'More for Recipes',
    ]);
  });

  test('works a menu: arrows, ends, letters, Esc, Tab', async () => {
    const page = await open();
    await menuOf(page, 'Notes').focus();
    await page.keyboard.press('ArrowDown');
    expect(await focusName(page)).toBe('Open');
    await page.keyboard.press('ArrowUp');
    expect(await focusName(page)).toBe('Revoke…');
    await page.keyboard.press('ArrowDown');
    expect(await focusName(page)).toBe('Open');
    await page.keyboard.press('End');
    expect(await focusName(page)).toBe('Revoke…');
    await page.keyboard.press('Home');
    await page.keyboard.press('s');
    expect(await focusName(page)).toBe('Stop');
    await page.keyboard.press('Escape');
    expect(await focusName(page)).toBe('More for Notes');
    expect(await page.getByRole('menu').count()).toBe(0);
    await page.keyboard.press('ArrowUp');
    expect(await focusName(page)).toBe('Revoke…');
    await page.keyboard.press('Tab');
    expect(await page.getByRole('menu').count()).toBe(0);
    expect(await focusName(page)).toBe('Copy address of Photos');
  });

  test('deciding leads to the next request, then to the title', async () => {
    const page = await open({ scene: 'requests' });
    await page.evaluate('stub.set({apps: []}); stub.add({name: "a", label: "First"}); stub.add({name: "b", label: "Second"})');
    await page.locator('.btn.primary').press('Enter');
    await expect.poll(() => focusName(page)).toBe('Second wants an address');
    await page.keyboard.press('Tab');
    expect(await focusName(page)).toBe('Approve');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect.poll(() => focusName(page)).toBe('Apps');
    expect(await called(page, 'Approve')).toEqual([['a', 'First', 9000]]);
    expect(await called(page, 'Deny')).toEqual([['b']]);
  });
});

describe('many apps', () => {
  test('only rows in sight are drawn, and all can be reached', async () => {
    const page = await open({ scene: 'stress' });
    const drawn = () => page.locator('[role="listitem"]').count();
    expect(await drawn()).toBeLessThan(60);
    await page.getByRole('button', { name: 'Show all' }).click();
    expect(await drawn()).toBeLessThan(60);
    await page.locator('main').evaluate((main) => main.scrollTo(0, main.scrollHeight));
    await page.getByText('App 199', { exact: true }).waitFor();
    expect(await drawn()).toBeLessThan(60);
    const list = section(page, 'On').locator('[role="listitem"]').last();
    expect(await list.getAttribute('aria-setsize')).toBe('196');
    expect(await list.getAttribute('aria-posinset')).toBe('196');
  });

  test('the row with the focus stays when it is scrolled away', async () => {
    const page = await open({ scene: 'stress' });
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('button', { name: /Deny .?Ledger/ }).first().focus();
    await page.locator('main').evaluate((main) => main.scrollTo(0, 9000));
    await page.getByText('Request 160', { exact: true }).waitFor();
    expect(await focusName(page)).toBe('Deny Ledger');
    await page.keyboard.press('Enter');
    expect(await called(page, 'Deny')).toEqual([['ask-1']]);
  });

  test('Tab walks on through rows that were not drawn before', async () => {
    const page = await open({ scene: 'stress' });
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('button', { name: /Deny .?Ledger/ }).first().focus();
    for (let i = 0; i < 60; i++) await page.keyboard.press('Tab');
    expect(await focusName(page)).toBe('Deny Request 31');
  });

  test('search narrows by label and address, accents and case aside, and Esc clears', async () => {
    const page = await open({ scene: 'stress' });
    await page.keyboard.press('Control+f');
    await page.keyboard.type('REQUEST 29');
    await expect.poll(() => section(page, 'Waiting for you').locator('.num').first().textContent()).toBe('11');
    expect(await section(page, 'On').count()).toBe(0);
    await page.keyboard.press('Escape');
    await section(page, 'On').waitFor();
    await page.keyboard.type('nothing like it');
    await page.getByText('Nothing matches').waitFor();
    await page.getByRole('button', { name: 'Clear search' }).click();
    await section(page, 'On').waitFor();
    expect(await page.getByRole('searchbox').inputValue()).toBe('');
  });

  test('there is no search for a handful', async () => {
    const page = await open();
    expect(await page.getByRole('searchbox').count()).toBe(0);
  });

  test('labels are text, whatever is in them', async () => {
    const page = await open({ scene: 'stress' });
    expect(await page.locator('main b:has-text("Totally fine"), main script').count()).toBe(0);
    const row = section(page, 'On').locator('bdi', { hasText: '<script>alert(1)</script>' });
    expect(await row.getAttribute('dir')).toBe('auto');
    expect(await row.getAttribute('title')).toBe('<script>alert(1)</script>');
    const rtl = section(page, 'On').locator('bdi', { hasText: 'לוח' });
    expect(await rtl.evaluate((element) => getComputedStyle(element).direction)).toBe('rtl');
  });

  test('a menu near the foot opens upwards', async () => {
    const page = await open({ height: 640 });
    await menuOf(page, 'Recipes').click();
    const menu = (await page.getByRole('menu').boundingBox())!;
    expect(menu.y + menu.height).toBeLessThanOrEqual(640);
  });
});

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

  test('is there in local mode only', async () => {
    const page = await open();
    await page.getByRole('button', { name: /^Outbox/ }).click();
    await page.getByRole('heading', { level: 1, name: 'Outbox' }).waitFor();
    await page.evaluate('stub.set({account: {connected: true, local: false, host: "maya.porch.example", url: "https://maya.porch.example"}})');
    await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
    expect(await page.getByRole('button', { name: /^Outbox/ }).count()).toBe(0);
  });
});

describe('first steps and trouble', () => {
  test('teaches with a command that can be copied', async () => {
    const page = await open({ scene: 'empty' });
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    expect((await called(page, 'Copy'))[0]![0]).toContain('curl http://127.0.0.1:8765/publish');
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    await page.evaluate('stub.set({api: "127.0.0.1:40001"})');
    await page.getByText('curl http://127.0.0.1:40001/publish').waitFor();
    expect(await page.getByText('Shorter, the same').count()).toBe(0);
  });

  test('null lists are empty lists', async () => {
    const page = await open({ scene: 'nulls' });
    await page.getByRole('heading', { name: 'No apps yet' }).waitFor();
    await page.getByRole('button', { name: /^Outbox/ }).click();
    await page.getByRole('heading', { name: 'No mail yet' }).waitFor();
  });

  test('an agent that does not answer is said calmly and asked again', async () => {
    const page = await open({ scene: 'away' });
    await page.getByText('Porchlight’s engine does not answer. The agent is still starting.').waitFor();
    expect(await page.locator('.foot .state').textContent()).toBe('Not answering');
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect.poll(async () => (await called(page, 'State')).length).toBe(2);
    await page.evaluate('stub.fail("State")');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Paperless wants an address').waitFor();
    expect(await page.locator('.foot .state').textContent()).toBe('This computer only');
  });

  test('what keeps visitors out is said for as long as it does', async () => {
    const page = await open();
    await page.evaluate('stub.set({trouble: "Port 8443 is taken by another program (nginx)."})');
    await page.getByText('Port 8443 is taken').waitFor();
    expect(await page.locator('.foot .state').textContent()).toBe('Not reachable');
    await page.evaluate('stub.set({trouble: ""})');
    await page.getByText('Port 8443 is taken').waitFor({ state: 'detached' });
    expect(await page.locator('.foot .state').textContent()).toBe('This computer only');
  });
});
