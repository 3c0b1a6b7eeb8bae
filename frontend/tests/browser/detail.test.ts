// The page of one app: its address, who may open it, its options, its end.
import { describe, expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import type { AppOptions } from '../../src/lib/types';
import { called, focusName, go, menuOf, open, section, toast, told } from './page';
import type { Look } from './page';

async function detail(look: Look = { scene: 'connected' }, label = 'Notes') {
  const page = await open(look);
  await page.getByRole('button', { name: label, exact: true }).click();
  await page.getByRole('heading', { level: 1, name: label }).waitFor();
  return page;
}

/** The part about how requests reach the app, opened by the keyboard. */
async function reached(page: Page) {
  const reach = section(page, 'For developers');
  await reach.locator('summary').press('Enter');
  return reach;
}

describe('coming and going', () => {
  test('Back returns to the row it came from, by mouse and by keyboard', async () => {
    const page = await open({ scene: 'connected' });
    const name = page.getByRole('button', { name: 'Photos', exact: true });
    await name.press('Enter');
    await expect.poll(() => focusName(page)).toBe('Back to Apps');
    await page.keyboard.press('Enter');
    await expect.poll(() => focusName(page)).toBe('Photos');
    await menuOf(page, 'Notes').click();
    await page.getByRole('menuitem', { name: 'Who may open it, options…' }).click();
    await page.getByRole('button', { name: 'Back to Apps' }).click();
    await expect.poll(() => focusName(page)).toBe('Notes');
  });

  test('a long list stands where it stood', async () => {
    const page = await open({ scene: 'stress' });
    const main = page.locator('main');
    await main.evaluate((element) => element.scrollTo(0, 6000));
    const name = page.getByRole('button', { name: 'App 90', exact: true });
    await name.scrollIntoViewIfNeeded();
    const top = await main.evaluate((element) => element.scrollTop);
    await name.click();
    await page.getByRole('heading', { level: 1, name: 'App 90' }).waitFor();
    await expect.poll(() => main.evaluate((element) => element.scrollTop)).toBe(0);
    await page.getByRole('button', { name: 'Back to Apps' }).click();
    await expect.poll(() => focusName(page)).toBe('App 90');
    expect(Math.abs((await main.evaluate((element) => element.scrollTop)) - top)).toBeLessThan(60);
  });

  test('Apps in the sidebar leads back as well, and each view begins at its top', async () => {
    const page = await detail();
    await page.locator('main').evaluate((element) => element.scrollTo(0, 400));
    await go(page, 'Apps');
    await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
    expect(await page.locator('main').evaluate((element) => element.scrollTop)).toBe(0);
  });

  test('an app that is revoked elsewhere takes its page along, for good', async () => {
    const page = await detail();
    await page.evaluate('stub.change("notes", null)');
    await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
    await expect.poll(() => focusName(page)).toBe('Apps');
    // It asks again and is approved in the tray: the list shows it, no page opens.
    await page.evaluate('stub.add({name: "notes", label: "Notes"}); stub.change("notes", {status: "live"})');
    await section(page, 'On').getByText('Notes', { exact: true }).waitFor();
    expect(await page.getByRole('heading', { level: 1, name: 'Apps' }).count()).toBe(1);
  });
});

test('an app that is reached by TCP shows the command for it, and nothing of web apps', async () => {
  const page = await detail();
  await page.evaluate('stub.change("notes", {tcp: true})');
  await page.getByText('porchlight reach notes.maya.porch.example').waitFor();
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  expect(await called(page, 'Copy')).toEqual([['porchlight reach notes.maya.porch.example']]);
  for (const gone of ['QR code', 'Open']) expect(await page.getByRole('main').getByRole('button', { name: gone, exact: true }).count()).toBe(0);
  expect(await page.getByText('For developers').count()).toBe(0);
});

test('a request for one says what approving it means', async () => {
  const page = await open({ scene: 'connected' });
  await page.evaluate('stub.change("paperless", {tcp: true})');
  await page.getByText('It is reached over TCP').waitFor();
});

test('shows its address to copy, to scan and to open', async () => {
  const page = await detail();
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  expect(await called(page, 'Copy')).toEqual([['https://notes.maya.porch.example']]);
  const button = page.getByRole('button', { name: 'QR code' });
  expect(await button.getAttribute('aria-expanded')).toBe('false');
  await button.click();
  const code = page.getByRole('img', { name: 'QR code of https://notes.maya.porch.example' });
  const box = (await code.locator('svg').boundingBox())!;
  expect([box.width > 150, box.width === box.height]).toEqual([true, true]);
  await page.getByRole('button', { name: 'Hide QR code' }).click();
  expect(await code.count()).toBe(0);
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  expect(await called(page, 'Open')).toEqual([['notes']]);
});

test('pauses at once, says so, and resumes', async () => {
  const page = await detail();
  await section(page, 'State').getByRole('button', { name: 'Pause' }).click();
  await told(page, 'Notes is paused. 2 connections closed. Who may open it is kept.');
  await page.getByText('Nobody gets in until you resume it.').waitFor();
  await toast(page).getByRole('button', { name: 'Resume' }).click();
  await page.getByText('Nobody gets in until you resume it.').waitFor({ state: 'detached' });
  expect([await called(page, 'pause'), await called(page, 'resume')]).toEqual([[[{ name: 'notes' }]], [[{ name: 'notes' }]]]);
  await page.getByRole('button', { name: 'Back to Apps' }).click();
  await menuOf(page, 'Notes').click();
  await page.getByRole('menuitem', { name: 'Pause' }).click();
  await section(page, 'On').getByText('Paused', { exact: true }).waitFor();
  await menuOf(page, 'Notes').click();
  await page.getByRole('menuitem', { name: 'Resume' }).click();
  await section(page, 'On').getByText('Paused', { exact: true }).waitFor({ state: 'detached' });
});

test('says who may open it and when they did, lets them in and out, and invites to it', async () => {
  const page = await detail({ scene: 'connected' }, 'Blog draft');
  // Of an app that is off people can only be taken away; it is put on again here.
  expect(await section(page, 'Who may open it').getByRole('listitem').count()).toBe(1);
  expect(await section(page, 'Who may open it').getByRole('button', { name: 'Add people…' }).count()).toBe(0);
  await section(page, 'State').getByRole('button', { name: 'Resume' }).click();
  await section(page, 'Who may open it').getByRole('button', { name: 'Add people…' }).waitFor();
  await page.getByRole('button', { name: 'Back to Apps' }).click();

  // A row opens wherever it is clicked; only those who may are listed.
  const place = (await page.locator('[data-app="notes"]').boundingBox())!;
  await page.mouse.click(place.x + place.width * 0.55, place.y + 8);
  const who = section(page, 'Who may open it');
  const row = (email: string) => who.getByRole('listitem').filter({ hasText: email });
  await row('carla.nunes@example.org').getByText('Here now').waitFor();
  await row('bob@example.com').getByText(/^Opened it/).waitFor();
  expect(await who.getByRole('listitem').count()).toBe(2);
  await row('bob@example.com').getByRole('button', { name: /^Remove .?bob@example.com.? from .?Notes/ }).click();
  await told(page, 'bob@example.com can’t open Notes any more.');
  await toast(page).getByRole('button', { name: 'Undo' }).click();
  await row('bob@example.com').waitFor();
  await row('bob@example.com').getByRole('button', { name: /^Remove/ }).click();
  await row('bob@example.com').waitFor({ state: 'detached' });
  await who.getByRole('button', { name: 'Add people…' }).click();
  await who.getByRole('button', { name: /^Let .?bob@example.com.? in/ }).click();
  await told(page, 'bob@example.com can open Notes, always.');
  expect(await page.getByLabel('Notes', { exact: true }).isChecked()).toBe(true);
  await page.getByLabel('E-mail addresses').fill('nina@example.com');
  await page.getByRole('button', { name: 'Send invitation' }).click();
  await told(page, 'nina@example.com is invited.');
  expect(((await called(page, 'inviteAll')) as [object][])[0]![0]).toMatchObject({ emails: ['nina@example.com'], apps: ['Notes'] });
  await row('nina@example.com').getByText('Invited').waitFor();
  await expect.poll(() => focusName(page)).toBe('Add people…');
});

test('says until when, and gives it for longer or shorter, or again', async () => {
  const page = await detail();
  const who = section(page, 'Who may open it');
  const until = who.getByRole('combobox', { name: 'Until when, for bob@example.com' });
  const says = () => until.evaluate((element: HTMLSelectElement) => element.selectedOptions[0]!.label);
  const last = async () => ((await called(page, 'ownerGrant')).at(-1) as [{ accountId: string; until: string }] | undefined)?.[0];
  expect(await says()).toMatch(/^Until \w+day$/);
  await until.selectOption({ label: 'Today' });
  await told(page, 'bob@example.com can open Notes until midnight.');
  expect(new Date((await last())!.until).toTimeString()).toContain('23:59:59');
  await expect.poll(says).toBe('Until midnight');
  await until.selectOption({ label: 'A date…' });
  await expect.poll(() => focusName(page)).toBe('Last day');
  await page.keyboard.press('Escape');
  await until.selectOption({ label: 'A date…' });
  const day = `${new Date().getFullYear() + 1}-01-31`;
  await who.getByLabel('Last day').fill(day);
  await page.keyboard.press('Enter');
  await expect.poll(says).toBe(`Until 31 January ${new Date().getFullYear() + 1}`);
  await until.selectOption({ label: 'Always' });
  await expect.poll(says).toBe('Always');
  expect((await last())!.until).toBe('never');

  const ended = section(page, 'Ended');
  await ended.getByText('Ended').click();
  await ended.getByRole('combobox', { name: /Prolong for .?lena@example.com/ }).selectOption({ label: 'A week' });
  await who.getByRole('listitem').filter({ hasText: 'lena@example.com' }).waitFor();
  expect((await last())!.accountId).toBe('acc-lena@example.com');
});

describe('options', () => {
  test('each is set at once, and no other is named', async () => {
    const page = await detail();
    const last = async () => (await called(page, 'changeOptions')).at(-1);
    await (await reached(page)).getByRole('switch', { name: 'Let other apps act on it' }).click();
    await expect.poll(last).toEqual([{ name: 'notes', allowCrossOrigin: true }]);
    await section(page, 'State').getByRole('switch', { name: 'Only with a passkey' }).click();
    await expect.poll(last).toEqual([{ name: 'notes', onlyPasskey: true }]);
    const reach = section(page, 'For developers');
    await reach.getByRole('switch', { name: 'Pass on network addresses' }).click();
    await expect.poll(last).toEqual([{ name: 'notes', forwarded: true }]);
    await reach.getByRole('switch', { name: 'Pass on its public address' }).click();
    await expect.poll(last).toEqual([{ name: 'notes', publicAddress: true }]);
    await reach.getByRole('combobox', { name: 'A page waits for its first word' }).selectOption({ label: '5 minutes' });
    await expect.poll(last).toEqual([{ name: 'notes', firstByte: 300 }]);
    const assistants = reach.getByRole('switch', { name: 'Assistants use it, by MCP' });
    await assistants.click();
    await expect.poll(last).toEqual([{ name: 'notes', mcp: '/mcp' }]);
    await reach.getByRole('textbox', { name: 'Path of MCP' }).fill('/tools');
    await reach.getByRole('button', { name: 'Save' }).click();
    await expect.poll(last).toEqual([{ name: 'notes', mcp: '/tools' }]);
    await assistants.click();
    await expect.poll(last).toEqual([{ name: 'notes', mcp: '' }]);
  });

  test('a header of the app’s own: a known one, or any', async () => {
    const page = await detail();
    const options = await reached(page);
    const last = async () => Object.assign({}, ...(await called(page, 'changeOptions')).flat()) as Partial<AppOptions>;
    const choice = options.getByRole('combobox', { name: 'Tell the app who is there' });
    await choice.selectOption({ label: 'X-WEBAUTH-USER' });
    await expect.poll(async () => (await last()).identityHeader).toBe('X-WEBAUTH-USER');
    await options.getByRole('combobox', { name: 'The header holds' }).selectOption({ label: 'the account id' });
    await expect.poll(async () => (await last()).identityValue).toBe('id');
    await choice.selectOption({ label: 'Another header…' });
    const field = options.getByRole('textbox', { name: 'Header name' });
    await page.evaluate('stub.fail("changeOptions", "A header name has letters, digits and hyphens.")');
    await field.fill('not a header');
    await options.getByRole('button', { name: 'Save' }).click();
    await options.getByRole('alert').getByText('A header name has letters, digits and hyphens.').waitFor();
    expect(await field.inputValue()).toBe('not a header');
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    await page.evaluate('stub.fail("changeOptions")');
    await field.fill('  X-Mine ');
    await field.press('Enter');
    await expect.poll(async () => (await last()).identityHeader).toBe('X-Mine');
    await choice.selectOption({ label: 'Standard headers' });
    await expect.poll(async () => (await last()).identityHeader).toBe('');
    await field.waitFor({ state: 'detached' });
  });

  test('a choice that fails turns back', async () => {
    const page = await detail();
    await page.evaluate('stub.fail("changeOptions", "The agent is busy.")');
    const choice = (await reached(page)).getByRole('combobox', { name: 'Name the app sees' });
    await choice.selectOption({ label: 'localhost' });
    await told(page, 'The agent is busy.');
    await expect.poll(() => choice.evaluate((element: HTMLSelectElement) => element.selectedOptions[0]!.label)).toBe('The public address');
  });
});

describe('how requests reach it', () => {
  const last = (page: Page) => async () => (await called(page, 'changeOptions')).at(-1);

  test('is folded, and says what is otherwise than most apps need it', async () => {
    const page = await detail();
    const reach = section(page, 'For developers');
    await expect.poll(() => reach.locator('summary').innerText()).toBe('For developers');
    expect(await reach.getByRole('combobox').count()).toBe(0);
    await page.evaluate(`stub.change('notes', {options: {...stub.options, upstream: 'https', hostHeader: 'intranet.example', publicAddress: true, firstByte: 300}})`);
    await reach.getByText('HTTPS, intranet.example, told its address, waits 5 minutes').waitFor();
  });

  test('a choice turns off what would contradict it', async () => {
    const page = await detail();
    const reach = await reached(page);
    const speaks = reach.getByRole('combobox', { name: 'The app speaks' });
    expect(await reach.getByRole('switch', { name: 'Ask me when its key changes' }).count()).toBe(0);
    await speaks.selectOption({ label: 'HTTPS' });
    await expect.poll(last(page)).toEqual([{ name: 'notes', upstream: 'https', h2c: false }]);
    await reach.getByRole('switch', { name: 'Ask me when its key changes' }).click();
    await expect.poll(last(page)).toEqual([{ name: 'notes', pin: true }]);
    await speaks.selectOption({ label: 'HTTP/2 without TLS' });
    await expect.poll(last(page)).toEqual([{ name: 'notes', upstream: 'h2c', h2c: false, pin: false }]);
    await speaks.selectOption({ label: 'HTTP' });
    await expect.poll(last(page)).toEqual([{ name: 'notes', upstream: '', h2c: false, pin: false }]);
  });

  test('a socket, and a name of its own: what the agent says against them stands beside the field', async () => {
    const page = await detail();
    const reach = await reached(page);
    await reach.getByRole('combobox', { name: 'The app speaks' }).selectOption({ label: 'HTTP at a unix socket…' });
    expect(await called(page, 'changeOptions')).toEqual([]);
    const path = reach.getByRole('textbox', { name: 'Path of the socket' });
    await page.evaluate('stub.fail("changeOptions", "The socket is Docker’s, which nobody else may reach.")');
    await path.fill('/var/run/docker.sock');
    await path.press('Enter');
    await reach.getByRole('alert').getByText('The socket is Docker’s, which nobody else may reach.').waitFor();
    await page.evaluate('stub.fail("changeOptions")');
    await path.fill('/run/notes.sock');
    expect(await reach.getByRole('alert').count()).toBe(0);
    await path.press('Enter');
    await expect.poll(last(page)).toEqual([{ name: 'notes', upstream: 'unix:/run/notes.sock', pin: false }]);
    await reach.getByRole('switch', { name: 'Speak HTTP/2 there' }).waitFor();
    const host = reach.getByRole('combobox', { name: 'Name the app sees' });
    await host.selectOption({ label: 'Another name…' });
    const name = reach.getByRole('textbox', { name: 'Name to send as Host' });
    await name.fill('intranet.example:8080');
    await reach.getByRole('button', { name: 'Save' }).last().click();
    await expect.poll(last(page)).toEqual([{ name: 'notes', hostHeader: 'intranet.example:8080', localhostHost: false }]);
    await host.selectOption({ label: 'localhost' });
    await expect.poll(last(page)).toEqual([{ name: 'notes', localhostHost: true, hostHeader: '' }]);
    await name.waitFor({ state: 'detached' });
  });
});

test('says how it stands with the certificate', async () => {
  // One that is fine is silent.
  let state = section(await detail(), 'State');
  await state.getByText(/^On, since/).waitFor();
  expect(await state.getByText('Certificate').count()).toBe(0);
  state = section(await detail({ scene: 'connected' }, 'Home Assistant'), 'State');
  await state.getByText("Browsers cannot open home.maya.porch.example: no certificate. Let's Encrypt says that it finds no address of home.maya.porch.example. That is set in the DNS: ask whoever runs your server. Porchlight tries again at 14:20.").waitFor();
  await state.getByText('Not in order', { exact: true }).waitFor();
});

test('is revoked from here', async () => {
  const page = await detail();
  const state = section(page, 'State');
  expect((await state.getByRole('button').allTextContents()).map((text) => text.trim())).toEqual(['Pause', 'Revoke…']);
  await state.getByRole('button', { name: 'Revoke…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await told(page, 'Notes has no address any more.');
  await expect.poll(() => focusName(page)).toBe('Apps');
});
