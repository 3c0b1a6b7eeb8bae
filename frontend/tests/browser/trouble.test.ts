// The first steps, and what keeps visitors out.
import { describe, expect, test } from 'vitest';
import { allSettings, called, open, settle } from './page';

describe('first steps and trouble', () => {
  test('teaches with a command that can be copied', async () => {
    const page = await open({ scene: 'empty' });
    // It says so for two seconds, which a busy test may be late for.
    await Promise.all([page.getByRole('button', { name: 'Copied' }).waitFor(), page.getByRole('button', { name: 'Copy', exact: true }).click()]);
    expect((await called(page, 'Copy'))[0]![0]).toBe('porchlight publish notes --label Notes --port 3000');
    await page.evaluate('stub.set({api: "127.0.0.1:40001"})');
    await page.getByText('porchlight publish notes --label Notes --port 3000 --api 127.0.0.1:40001').waitFor();
  });

  test('null lists are empty lists', async () => {
    const page = await open({ scene: 'nulls' });
    await page.getByRole('heading', { name: 'No apps yet' }).waitFor();
    await page.evaluate('stub.wants("outbox")');
    await page.getByRole('heading', { name: 'No mail yet' }).waitFor();
  });

  test('an agent that does not answer is said calmly and asked again', async () => {
    const page = await open({ scene: 'away' });
    await page.getByText('Porchlight does not answer. The agent is still starting.').waitFor();
    expect(await page.locator('.foot .state').textContent()).toBe('Not answering');
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect.poll(async () => (await called(page, 'ownerState')).length).toBe(2);
    await page.evaluate('stub.fail("ownerState")');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Paperless wants an address').waitFor();
    expect(await page.locator('.foot .state').textContent()).toBe('This computer only, 2 things wrong');
  });

  test('what was known last shows at once, also while nobody answers', async () => {
    const page = await open({ scene: 'away' });
    expect(await page.getByRole('button', { name: 'Notes', exact: true }).count()).toBe(0);
    await page.goto(`${page.url()}&last`);
    await page.getByText('Porchlight does not answer.').waitFor();
    await page.getByRole('button', { name: 'Notes', exact: true }).waitFor();
    expect(await page.locator('.foot').getByText('maya.localhost:8443').count()).toBe(1);
  });

  test('without a keychain the owner may choose a file', async () => {
    const page = await open({ scene: 'keyless' });
    await page.getByText('There is no keychain here').waitFor();
    expect(await page.getByText('does not answer').count()).toBe(0);
    await page.getByRole('button', { name: 'Keep it in a file' }).click();
    await page.getByText('Paperless wants an address').waitFor();
    expect((await called(page, 'KeepInFile')).length).toBe(1);
    await allSettings(page);
    await page.getByText('In a file only you can read').waitFor();
  });

  test('without a tray the window says what brings it, until it was closed once, and quits', async () => {
    const page = await open({ scene: 'trayless' });
    const hint = page.getByText('gnome-shell-extension-appindicator');
    await hint.waitFor();
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByText('No panel here shows the lamp').waitFor();
    await page.getByRole('button', { name: 'Quit Porchlight' }).click();
    await page.getByRole('dialog').getByText('cut off').waitFor();
    expect((await called(page, 'Quit')).length).toBe(0);
    await page.getByRole('button', { name: 'Quit', exact: true }).click();
    await expect.poll(async () => (await called(page, 'Quit')).length).toBe(1);
    // Nobody is here: nothing to ask.
    await page.evaluate('stub.set({here: 0})');
    await page.getByRole('button', { name: 'Quit Porchlight' }).click();
    await expect.poll(async () => (await called(page, 'Quit')).length).toBe(2);
    // A panel has come meanwhile, or the owner was told.
    await page.evaluate('stub.prefer({closed: true}), window.dispatchEvent(new Event("focus"))');
    await page.evaluate('stub.wants("apps")');
    await page.getByRole('heading', { level: 1, name: 'Apps' }).waitFor();
    expect(await hint.count()).toBe(0);
    await page.evaluate('stub.prefer({noTray: false}), window.dispatchEvent(new Event("focus"))');
    await page.evaluate('stub.wants("settings")');
    await expect.poll(() => page.getByRole('button', { name: 'Quit Porchlight' }).count()).toBe(0);
  });

  test('with the keychain locked things are seen and taken away, and Unlock is offered', async () => {
    const page = await open({ scene: 'locked' });
    await page.getByText('Your keychain is locked').waitFor();
    await page.getByText('Paperless wants an address').waitFor();
    await page.getByRole('switch', { name: 'Go dark' }).click();
    await expect.poll(async () => (await called(page, 'goDark')).length).toBe(1);
    await page.getByRole('button', { name: 'People', exact: true }).click();
    expect(await page.getByRole('button', { name: 'Invite', exact: true }).isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Unlock…' }).click();
    await page.getByText('Your keychain is locked').waitFor({ state: 'detached' });
    expect(await page.getByRole('button', { name: 'Invite', exact: true }).isEnabled()).toBe(true);
  });

  test('with the keychain locked, answers that let somebody in wait and say so, and a no is taken', async () => {
    const page = await open({ scene: 'locked' });
    await page.evaluate(`stub.change('paperless', { approvedAt: '2026-11-20T10:00:00Z', openTo: ['ben@example.com'], openToCount: 1 });
      stub.add({ name: 'diary', label: 'Diary' });
      stub.set({ knocks: [{ id: 'k1', accountId: 'b', email: 'ben@example.com', app: 'Notes', known: true, at: '2026-11-20T10:00:00Z' }] })`);
    const waiting = page.locator('section', { has: page.getByRole('heading', { name: /^(Waiting for you|Asking to come in)/ }) });
    await waiting.getByText('Approving waits for your keychain.').waitFor();
    await waiting.getByText('Letting somebody in waits for your keychain.').waitFor();
    const gives = waiting.getByRole('button', { name: /^(Approve|Today:|Always:)/ });
    expect(await gives.count()).toBe(5);
    for (const button of await gives.all()) expect(await button.isDisabled()).toBe(true);
    await settle(page);
    await waiting.getByRole('button', { name: 'Deny', exact: true }).click();
    await expect.poll(async () => (await called(page, 'deny')).length).toBe(1);
    await waiting.getByRole('button', { name: /^No: / }).click();
    await expect.poll(async () => (await called(page, 'answerKnock')).length).toBe(1);
    await page.getByRole('button', { name: 'Unlock…' }).click();
    await expect.poll(() => waiting.getByRole('button', { name: 'Approve', exact: true }).isEnabled()).toBe(true);
    expect(await page.getByText('waits for your keychain').count()).toBe(0);
  });

  test('one state of the connection: the account says what the sidebar says, and inviting waits with it', async () => {
    const page = await open({ scene: 'certificate' });
    expect(await page.locator('.foot .state').textContent()).toBe('Certificate not in order');
    await page.getByRole('button', { name: 'Settings' }).click();
    const account = page.locator('section', { has: page.getByRole('heading', { name: 'This computer' }) });
    await account.getByText('Certificate not in order').waitFor();
    await page.evaluate('stub.set({trouble: "The relay cannot be reached.", reachable: false, accessUntil: new Date(Date.now() + 3600000).toISOString()})');
    await account.getByText('Reconnecting…').waitFor();
    expect(await account.getByText('Connected', { exact: true }).count()).toBe(0);
    await page.getByRole('button', { name: 'People', exact: true }).click();
    expect(await page.getByRole('button', { name: 'Invite', exact: true }).isDisabled()).toBe(true);
    await page.evaluate('stub.set({trouble: "", reachable: true, accessUntil: undefined})');
    await expect.poll(() => page.getByRole('button', { name: 'Invite', exact: true }).isEnabled()).toBe(true);
    expect(await page.locator('.foot .state').textContent()).toBe('Connected, 2 things wrong');
  });

  test('what keeps visitors out is said for as long as it does', async () => {
    const page = await open();
    await page.evaluate('stub.set({trouble: "Port 8443 is taken by another program (nginx).", reachable: false})');
    await page.getByText('Port 8443 is taken').waitFor();
    expect(await page.locator('.foot .state').textContent()).toBe('Not reachable');
    await page.evaluate('stub.set({trouble: "", reachable: true})');
    await page.getByText('Port 8443 is taken').waitFor({ state: 'detached' });
    expect(await page.locator('.foot .state').textContent()).toBe('This computer only, 2 things wrong');
  });

  test('a control plane that is away is told once, with what still holds and what waits', async () => {
    const page = await open({ scene: 'unreachable' });
    await page.getByText('Everyone keeps the access they have until 10:44 on 22 November. Inviting waits.').waitFor();
    expect(await page.getByText('Everyone keeps').count()).toBe(1);
    expect(await page.locator('.foot .state').textContent()).toBe('Reconnecting…');
    // The same in another language.
    await page.evaluate('stub.set({trouble: "Der Server antwortet nicht. Alle behalten ihren Zugang bis 10:44."})');
    await page.getByText('Alle behalten ihren Zugang bis 10:44. Inviting waits.').waitFor();
    expect(await page.getByText('Everyone keeps').count()).toBe(0);
    await page.evaluate('stub.set({trouble: "", troubleWords: undefined})'); // known for a moment only
    await page.getByText('Everyone keeps their access until').waitFor();
    await page.evaluate('stub.set({trouble: "The server does not know this computer any more. Connect it again."})');
    await page.getByText('does not know this computer').waitFor();
    expect(await page.getByText('Everyone keeps').count()).toBe(1);
    await page.evaluate('stub.set({trouble: "", accessUntil: undefined})');
    await page.getByText('Everyone keeps').waitFor({ state: 'detached' });
  });
});
