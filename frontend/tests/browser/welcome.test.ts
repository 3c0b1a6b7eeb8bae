// The first start, going dark, and what the window says while something is away.
import { describe, expect, test } from 'vitest';
import { called, focusName, open, section, show, told } from './page';

const title = 'Leave the porch light on';

describe('the first start', () => {
  test('trying it here trusts the local certificates, when that is left ticked', async () => {
    const page = await open({ scene: 'welcome' });
    await expect.poll(() => focusName(page)).toBe(title);
    await page.getByRole('button', { name: 'Try it' }).press('Enter');
    await page.getByRole('heading', { name: 'No apps yet' }).waitFor();
    expect([await called(page, 'Trust'), await called(page, 'Welcomed')]).toEqual([[[true]], [[]]]);
  });

  test('and leaves them alone when it is not', async () => {
    const page = await open({ scene: 'welcome' });
    await page.getByLabel('Have my browsers trust them').uncheck();
    await page.getByRole('button', { name: 'Try it' }).click();
    await page.getByRole('heading', { name: 'No apps yet' }).waitFor();
    expect([await called(page, 'Trust'), await called(page, 'Welcomed')]).toEqual([[], [[]]]);
  });

  test('a trust that fails is told, and keeps nobody from beginning', async () => {
    const page = await open({ scene: 'welcome' });
    await page.evaluate('stub.fail("Trust", "certutil is missing. Install libnss3-tools.")');
    await page.getByRole('button', { name: 'Try it' }).click();
    await told(page, 'certutil is missing.');
    await page.getByRole('heading', { name: 'No apps yet' }).waitFor();
  });

  test('whoever has apps already is not welcomed again', async () => {
    const page = await open({ scene: 'welcome' });
    await page.evaluate('stub.add({name: "notes", label: "Notes"})');
    await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
    await expect.poll(() => called(page, 'Welcomed')).toEqual([[]]);
    await page.evaluate('stub.set({apps: []})');
    await page.getByRole('heading', { name: 'No apps yet' }).waitFor();
  });

  test('connecting: the code to compare, giving it up, failing, and done', async () => {
    const page = await open({ scene: 'welcome' });
    const server = page.getByRole('textbox', { name: 'Server address' });
    expect(await page.getByRole('button', { name: 'Connect' }).isDisabled()).toBe(true);
    await server.fill(' control.porch.example ');
    await server.press('Enter');
    await page.getByText('WDJB-MJHT').waitFor();
    expect(await called(page, 'connect')).toEqual([[{ url: 'https://control.porch.example' }]]);
    await expect.poll(() => focusName(page)).toBe('Confirm this computer');
    await page.getByText('W D J B M J H T').waitFor({ state: 'attached' }); // as it is read out
    await page.getByRole('button', { name: 'Copy code' }).click();
    expect(await called(page, 'Copy')).toEqual([['WDJB-MJHT']]);
    await page.getByRole('button', { name: 'Open control.porch.example' }).click();
    expect(await called(page, 'OpenURL')).toEqual([['https://control.porch.example/device?code=WDJB-MJHT']]);

    await page.getByRole('button', { name: 'Use another server' }).click();
    await page.getByRole('heading', { level: 1, name: title }).waitFor();
    expect(await called(page, 'cancelConnect')).toEqual([[{}]]);

    await page.evaluate('stub.fail("connect", "control.porch.example is not a Porchlight server.")');
    await server.fill('control.porch.example');
    await server.press('Enter');
    await told(page, 'is not a Porchlight server');
    expect(await server.inputValue()).toBe('control.porch.example');
    await page.evaluate('stub.fail("connect")');
    await server.press('Enter');
    await page.getByText('WDJB-MJHT').waitFor();
    await page.evaluate('stub.set({connecting: {state: "failed", problem: "The code was not confirmed within ten minutes.", authUrl: "https://control.porch.example"}})');
    await page.getByText('The code was not confirmed within ten minutes.').waitFor();

    await page.evaluate(
      'stub.set({connecting: undefined, account: {connected: true, local: false, email: "maya@example.com", host: "maya.porch.example", url: "https://maya.porch.example", authUrl: "https://porch.example"}})',
    );
    await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
    await expect.poll(() => called(page, 'Welcomed')).toEqual([[]]);
  });

  test('a code that waits is found again after the window was closed', async () => {
    const page = await open({ scene: 'apps' });
    await page.evaluate(
      'stub.set({connecting: {state: "waiting", authUrl: "https://control.porch.example", userCode: "WDJB-MJHT", verificationUrl: "https://control.porch.example/device", verificationUrlComplete: "", expiresAt: new Date(Date.now() + 600000).toISOString()}})',
    );
    await page.getByText('A server waits for you to confirm this computer.').waitFor();
    await page.getByRole('button', { name: 'Show the code' }).click();
    await page.getByText('WDJB-MJHT').waitFor();
  });
});

describe('going dark', () => {
  test('acts at once and says since when; the notice and the switch light up again', async () => {
    const page = await open({ scene: 'connected' });
    const dark = page.getByRole('switch', { name: 'Go dark' });
    await dark.press('Space');
    await told(page, 'Nobody can open anything now. 3 connections closed.');
    await page.getByText(/^Dark since \d\d:\d\d\.$/).waitFor();
    await section(page, 'Off while dark').waitFor();
    expect(await page.locator('.foot .state').innerText()).toBe('Dark. Nobody gets in');
    await page.getByRole('button', { name: 'Light up again' }).click();
    await told(page, 'The light is on again.');
    await section(page, 'On').waitFor();
    expect(await dark.isChecked()).toBe(false);
    await dark.click();
    await expect.poll(() => dark.isChecked()).toBe(true);
    await expect.poll(() => dark.isEnabled()).toBe(true);
    await dark.click();
    await section(page, 'On').waitFor();
    expect([(await called(page, 'goDark')).length, (await called(page, 'lightUp')).length]).toEqual([2, 2]);
  });

  test('that fails turns the switch back', async () => {
    const page = await open();
    await page.evaluate('stub.fail("goDark", "The agent does not answer. Quit Porchlight to close everything.")');
    const dark = page.getByRole('switch', { name: 'Go dark' });
    await dark.click();
    await told(page, 'Quit Porchlight to close everything.');
    await expect.poll(() => dark.isChecked()).toBe(false);
  });
});

test('access that ends while the server is away has its time told', async () => {
  const page = await open({ scene: 'connected' });
  await page.evaluate('stub.set({accessUntil: new Date(Date.now() + 3600000).toISOString()})');
  await page.getByText(/^Everyone keeps their access until \d\d:\d\d/).waitFor();
});

test('the page loaded anew begins where the agent is', async () => {
  const page = await open({ scene: 'dark' });
  await page.getByText(/^Dark since/).waitFor();
  await show(page, 'paused');
  await section(page, 'On').getByText('Paused', { exact: true }).waitFor();
});
