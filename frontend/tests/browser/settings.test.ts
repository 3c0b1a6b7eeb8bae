// Settings: each control asks for what it says; what fails turns back.
import type { Settings } from '../../src/lib/types';
import { describe, expect, test } from 'vitest';
import { allSettings, called, focusName, go, open, section, told } from './page';
import type { Look } from './page';

async function settings(look: Look = {}) {
  const page = await open({ height: 1500, ...look });
  await allSettings(page);
  await section(page, 'Safety').waitFor();
  return page;
}

test('what an owner changes fits two screens, and all else is folded', async () => {
  const page = await open({ height: 640 });
  await go(page, 'Settings');
  await section(page, 'Tell me about').waitFor();
  expect(await page.locator('main').evaluate((main) => main.scrollHeight)).toBeLessThanOrEqual(2 * 640);
  expect(await page.getByRole('switch', { name: 'Ask them how they do' }).count()).toBe(0);
});

test('start at login', async () => {
  const page = await settings();
  const login = page.getByRole('switch', { name: 'Start at login' });
  expect(await login.isChecked()).toBe(true);
  await login.press('Space');
  await expect.poll(() => called(page, 'StartAtLogin')).toEqual([[false]]);
  await expect.poll(() => login.isChecked()).toBe(false);
  await page.evaluate('stub.fail("StartAtLogin", "This desktop keeps its own list of what starts.")');
  await login.press('Space');
  await told(page, 'This desktop keeps its own list');
  await expect.poll(() => login.isChecked()).toBe(false);
});

test('keys that work from anywhere are a switch only where the desktop offers them', async () => {
  const of = (page: Awaited<ReturnType<typeof settings>>) => section(page, 'Lamp').getByRole('switch', { name: 'Find or do from anywhere' });
  expect(await of(await settings()).count()).toBe(0);
  const page = await settings({ scene: 'shortcut' });
  const keys = of(page);
  expect(await keys.isChecked()).toBe(false);
  await keys.press('Space');
  await expect.poll(() => called(page, 'Shortcut')).toEqual([[true]]);
  await page.getByText('Ctrl+Alt+P').waitFor(); // what the desktop gave
  expect(await keys.isChecked()).toBe(true);
  await page.evaluate('stub.fail("Shortcut", "The desktop did not give Porchlight a shortcut.")');
  await keys.press('Space');
  await told(page, 'The desktop did not give Porchlight a shortcut.');
  await expect.poll(() => keys.isChecked()).toBe(true);
});

test('appearance changes the colours at once, over the system’s and back', async () => {
  const page = await settings({ theme: 'light' });
  const look = () =>
    page.evaluate(() => {
      const of = (selector: string) => getComputedStyle(document.querySelector(selector)!).backgroundColor;
      return [of('body'), of('.card'), getComputedStyle(document.documentElement).colorScheme];
    });
  const choose = (label: string) => page.getByRole('combobox', { name: 'Appearance' }).selectOption({ label });
  const light = await look();
  await choose('Dark');
  await expect.poll(look).not.toEqual(light);
  const dark = await look();
  expect(dark[2]).toBe('dark');
  expect(dark[0]).not.toBe(light[0]);
  expect(dark[1]).not.toBe(light[1]);
  await choose('Light');
  await page.emulateMedia({ colorScheme: 'dark' }); // the system's, which does not count now
  await expect.poll(async () => (await look()).slice(0, 2)).toEqual(light.slice(0, 2));
  await choose('Like the system');
  await expect.poll(async () => (await look()).slice(0, 2)).toEqual(dark.slice(0, 2));
  expect(await called(page, 'Appearance')).toEqual([['dark'], ['light'], ['']]);
  await page.evaluate('stub.looks("light")'); // the program around the page knows better
  await expect.poll(async () => (await look()).slice(0, 2)).toEqual(light.slice(0, 2));
});

test('another language draws the window anew, dates and numbers with it', async () => {
  const page = await settings();
  expect(await page.evaluate(() => document.documentElement.lang)).toBe('en');
  await page.getByRole('combobox', { name: 'Language' }).selectOption({ label: 'Deutsch' });
  await page.getByRole('navigation').getByRole('button', { name: 'Einstellungen' }).click();
  expect(await page.evaluate(() => document.documentElement.lang)).toBe('de');
  await page.getByRole('combobox', { name: 'Sprache' }).selectOption({ label: 'Wie das System' });
  await page.getByRole('navigation').getByRole('button', { name: 'Settings' }).waitFor();
});

test('what the owner is told about: a level, or one by one', async () => {
  const page = await settings();
  const level = (name: string) => section(page, 'Tell me about').getByRole('radio', { name });
  expect(await level('Own choice').isChecked()).toBe(true); // quiet is what no level is
  await level('What waits for me').check();
  await expect.poll(() => called(page, 'changeSettings')).toEqual([[{ notify: 'waiting' }]]);
  await level('Own choice').check(); // is as it was
  await expect.poll(async () => (await called(page, 'changeSettings')).at(-1)).toEqual([{ quiet: ['connection'] }]);
  await level('What waits for me').check();
  const single = section(page, 'Single notifications');
  await expect.poll(() => single.getByRole('switch', { checked: false }).count()).toBe(6);
  expect(await single.getByRole('switch', { name: 'People asking to be let in' }).isChecked()).toBe(true);
  await level('What waits for me').press('ArrowDown');
  await expect.poll(() => level('Everything').isChecked()).toBe(true);
  await expect.poll(() => single.getByRole('switch', { checked: false }).count()).toBe(0);
  await single.getByRole('switch', { name: 'Access taken away' }).click();
  await expect.poll(() => level('Own choice').isChecked()).toBe(true);
  await page.evaluate('stub.fail("changeSettings", "The agent is still starting.")');
  await level('Nothing').click();
  await told(page, 'The agent is still starting.');
  await expect.poll(() => level('Own choice').isChecked()).toBe(true);
});

test('what the owner is told about, one by one', async () => {
  const page = await settings();
  const tell = section(page, 'Single notifications');
  expect(await tell.getByRole('switch').count()).toBe(11);
  expect(await tell.getByRole('switch', { name: 'Lost connection' }).isChecked()).toBe(false);
  await tell.getByRole('switch', { name: 'Apps asking for an address' }).click();
  await expect.poll(async () => (await called(page, 'changeSettings')).at(-1)).toEqual([{ quiet: ['connection', 'request'] }]);
  await tell.getByRole('switch', { name: 'Lost connection' }).click();
  await expect.poll(async () => (await called(page, 'changeSettings')).at(-1)).toEqual([{ quiet: ['request'] }]);
});

// Weakness: settings were set whole as the page had read them, and took back what was set
// at a terminal since, or by a press a moment before.
test('a change takes back no other', async () => {
  const page = await settings();
  const tell = section(page, 'Single notifications');
  await page.evaluate('stub.settings({failStaticHours: 6})'); // at a terminal
  await page.evaluate('stub.hold("changeSettings")');
  await tell.getByRole('switch', { name: 'Apps asking for an address' }).click();
  await tell.getByRole('switch', { name: 'Connected apps let in' }).click();
  await page.evaluate('stub.release()');
  await expect.poll(async () => (await called(page, 'changeSettings')).length).toBe(2);
  expect(await called(page, 'changeSettings')).toEqual([[{ quiet: ['connection', 'request'] }], [{ quiet: ['connection', 'request', 'client'] }]]);
});

// Weakness: where there was no keychain it said that the owner secret was in it.
test('where the owner secret is', async () => {
  const page = await settings();
  for (const [kept, says] of [['keychain', 'In the keychain.'], ['nowhere', 'Nowhere so far'], ['locked', 'which is locked'], ['file', 'In a file only you can read']]) {
    await page.evaluate(`stub.prefer({secretKept: "${kept}"}), stub.set({locked: ${kept === 'nowhere' || kept === 'locked'}})`);
    await go(page, 'People');
    await allSettings(page);
    await page.getByRole('switch', { name: 'Start at login' }).press('Space'); // has them asked for again
    await section(page, 'Safety').getByText(says!).waitFor();
  }
});

test('what people who are invited read beside the address', async () => {
  const page = await open({ scene: 'connected' });
  await go(page, 'Settings');
  const name = page.getByRole('textbox', { name: 'Your name' });
  await name.fill('Maya');
  await name.press('Enter');
  await expect.poll(async () => ((await called(page, 'changeSettings')).at(-1) as [{ displayName: string }])[0].displayName).toBe('Maya');
  await page.evaluate('stub.fail("changeSettings", "The name can hold neither an @ nor a dot.")');
  await name.fill('maya@example.com');
  await name.press('Tab');
  await told(page, 'neither an @ nor a dot');
  expect(await name.inputValue()).toBe('maya@example.com');
});

test('at which hosts assistants describe themselves, in local mode only', async () => {
  const page = await settings();
  const hosts = section(page, 'Safety').getByRole('textbox', { name: 'Hosts of assistants' });
  await hosts.fill(' claude.ai,vscode.dev ');
  await hosts.press('Enter');
  await expect.poll(async () => (await called(page, 'changeSettings')).at(-1)).toEqual([{ clientHosts: ['claude.ai', 'vscode.dev'] }]);
  await hosts.fill('');
  await hosts.press('Enter');
  await expect.poll(async () => (await called(page, 'changeSettings')).at(-1)).toEqual([{ clientHosts: [] }]);
  const elsewhere = await settings({ scene: 'connected' });
  await section(elsewhere, 'Safety').waitFor();
  expect(await elsewhere.getByRole('textbox', { name: 'Hosts of assistants' }).count()).toBe(0);
});

test('whether apps are asked, and what visitors ask is kept', async () => {
  const page = await settings();
  const apps = section(page, 'Your apps');
  const last = async () => ((await called(page, 'changeSettings')).at(-1)?.[0] ?? {}) as Partial<Settings>;
  await apps.getByRole('switch', { name: 'Ask them how they do' }).click();
  await expect.poll(async () => (await last()).probe).toBe(false);
  await apps.getByRole('switch', { name: 'Keep what visitors ask of them' }).click();
  await expect.poll(async () => (await last()).requests).toBe(false);
  expect(await last()).toEqual({ requests: false });
});

test('what happens while the server is away, in connected mode only; a failure turns back', async () => {
  const page = await settings({ scene: 'connected' });
  const hours = page.getByRole('combobox', { name: 'When the server can’t be reached' });
  await page.evaluate('stub.fail("changeSettings", "The agent is still starting.")');
  await hours.selectOption({ label: 'Nobody' });
  await told(page, 'The agent is still starting.');
  await expect.poll(() => hours.evaluate((element: HTMLSelectElement) => element.selectedOptions[0]!.label)).toBe('24 hours');
  await page.evaluate('stub.fail("changeSettings")');
  await hours.selectOption({ label: '6 hours' });
  await expect.poll(async () => (await called(page, 'changeSettings')).at(-1)).toEqual([{ failStaticHours: 6 }]);
  await page.getByRole('switch', { name: 'Ask me again when an app changes port' }).click();
  await expect.poll(async () => (await called(page, 'changeSettings')).at(-1)).toEqual([{ askAgain: true }]);
  await go(page, 'Apps');
  await page.evaluate('stub.set({account: {connected: true, local: true, email: "o", host: "maya.localhost:8443", url: "https://maya.localhost:8443", authUrl: "https://control.localhost:8443"}})');
  await allSettings(page);
  await section(page, 'Safety').waitFor();
  expect(await hours.count()).toBe(0);
});

test('who named the address of newer versions, and asking nowhere', async () => {
  const page = await settings({ scene: 'connected' });
  const about = section(page, 'Data and versions');
  await page.evaluate('stub.set({update: {by: "operator", address: "https://porch.example/update.json", version: "1.4.0", askedAt: new Date().toISOString()}})');
  await expect.poll(() => about.innerText()).toContain('Version 1.4.0 is there');
  expect(await about.innerText()).toContain('Whoever runs your server named https://porch.example/update.json');
  await page.getByRole('button', { name: 'Don’t ask there' }).click();
  await expect.poll(async () => (await called(page, 'changeSettings')).at(-1)).toEqual([expect.objectContaining({ updateAddress: 'none', updateKey: '' })]);
  await page.evaluate('stub.set({update: undefined})');
  await page.getByRole('button', { name: 'Ask again' }).click();
  await expect.poll(async () => (await called(page, 'changeSettings')).at(-1)).toEqual([{ updateAddress: '' }]);
  await page.evaluate('stub.set({update: {by: "owner", address: "https://own.example/", problem: "It did not answer."}})');
  await expect.poll(() => about.innerText()).toContain('It did not answer. You named https://own.example/ for that. Not asked yet.');
  expect(await page.getByRole('button', { name: 'Don’t ask there' }).count()).toBe(0);
});

describe('local certificates', () => {
  test('are trusted and no longer trusted', async () => {
    const page = await settings();
    const safety = section(page, 'Safety');
    await page.evaluate('void stub.hold("Trust")');
    await safety.getByRole('button', { name: 'Trust', exact: true }).click();
    await safety.getByRole('button', { name: 'Asking…' }).waitFor();
    await page.evaluate('stub.release()');
    await told(page, 'Your browsers trust addresses on this computer.');
    await safety.getByText('Trusted', { exact: true }).waitFor();
    await safety.getByRole('button', { name: 'Remove' }).click();
    await told(page, 'Your browsers no longer trust');
    await safety.getByRole('button', { name: 'Trust', exact: true }).waitFor();
    expect(await called(page, 'Trust')).toEqual([[true], [false]]);
  });

  test('say why they cannot be', async () => {
    const page = await settings();
    await page.evaluate('stub.prefer({trust: {possible: false, trusted: false, problem: "certutil is missing. Install libnss3-tools."}})');
    await allSettings(page);
    await page.getByRole('switch', { name: 'Start at login' }).click(); // has the page ask anew
    await page.getByText('certutil is missing. Install libnss3-tools.').waitFor();
    expect(await page.getByRole('button', { name: 'Trust', exact: true }).count()).toBe(0);
  });
});

test('the account: connecting from here, and disconnecting after a question', async () => {
  const page = await settings({ scene: 'connected' });
  await section(page, 'This computer').getByRole('button', { name: 'Lost passkeys…' }).click();
  await expect.poll(() => called(page, 'OpenURL')).toEqual([['https://porch.example/signin/link?token=once']]);
  await section(page, 'This computer').getByRole('button', { name: 'Disconnect…' }).click();
  expect(await focusName(page)).toBe('Keep');
  await page.keyboard.press('Escape');
  await expect.poll(() => focusName(page)).toBe('Disconnect…');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click();
  await section(page, 'This computer').getByRole('button', { name: 'Connect…' }).waitFor();
  expect(await called(page, 'disconnect')).toEqual([[{}]]);
  await section(page, 'This computer').getByRole('button', { name: 'Connect…' }).click();
  await page.getByRole('heading', { level: 1, name: 'Connect to a server' }).waitFor();
  await page.getByRole('button', { name: 'Not now' }).click();
  await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
});

test('data and versions', async () => {
  const page = await settings();
  await section(page, 'Data and versions').getByText('/home/maya/.local/share/porchlight').waitFor();
  await page.getByRole('button', { name: 'Show in files' }).click();
  await expect.poll(() => called(page, 'ShowData')).toEqual([[]]);
  await page.getByRole('button', { name: 'Copy versions' }).click();
  expect(String((await called(page, 'Copy'))[0]![0])).toMatch(/^Porchlight 0\.1\.0\nIn the background: 0\.1\.0, desktop\n/);
  await section(page, 'Programs using Porchlight').getByText('wiki, run by maya').waitFor();
});

test('the export says where it went, nothing when nowhere, and why when it failed', async () => {
  const page = await settings();
  const button = page.getByRole('button', { name: 'Export…' });
  await button.click();
  await told(page, 'Saved as /home/maya/porchlight.json.');
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await page.evaluate('window.go.ui.Desk.Export = () => Promise.resolve("")'); // they rather not
  await button.click();
  await expect.poll(() => page.locator('.toast').count()).toBe(0);
  await page.evaluate('window.go.ui.Desk.Export = () => Promise.reject("The export was not saved as /x.json: permission denied. Choose another place.")');
  await button.press('Enter');
  await told(page, 'permission denied. Choose another place.');
});

test('settings that cannot be read are said; the rest is there', async () => {
  const page = await open();
  await page.evaluate('stub.fail("settings", "The agent does not answer.")');
  await go(page, 'Settings');
  await page.getByText('The agent does not answer.').waitFor();
  await section(page, 'General').waitFor();
  expect(await section(page, 'Tell me about').count()).toBe(0);
});

test('an app that two users run with one process number is there twice', async () => {
  const page = await open({ height: 1500 });
  await page.evaluate(`{
    const one = { appId: 'org.example.wiki', pid: 1, program: 'wiki', registeredAt: '2026-11-01T10:00:00Z', lastSeenAt: '2026-11-01T10:00:00Z' };
    stub.set({ registrants: [{ ...one, user: 'maya' }, { ...one, user: 'tom' }] });
  }`);
  await allSettings(page);
  await expect.poll(() => page.getByText('org.example.wiki').count()).toBe(2);
});
