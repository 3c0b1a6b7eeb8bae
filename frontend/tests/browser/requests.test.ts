// Deciding on requests, by mouse and by keyboard.
import { describe, expect, test } from 'vitest';
import { called, focusName, open, section, settle, toast, told } from './page';

describe('deciding on a request', () => {
  test('approving by mouse puts the app on and says where', async () => {
    const page = await open();
    await settle(page);
    await page.getByRole('button', { name: 'Approve' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('Paperless is on, at paperless.maya.localhost:8443. Only you can open it.');
    expect(await called(page, 'approve')).toEqual([[{ name: 'paperless', label: 'Paperless', localPort: 8010, program: 'python3', user: 'maya' }]]);
    await section(page, 'On').getByText('Paperless', { exact: true }).waitFor();
    expect(await section(page, 'Waiting for you').count()).toBe(0);
    await toast(page).getByRole('button', { name: 'Open' }).click();
    expect(await called(page, 'Open')).toEqual([['paperless']]);
    expect(await toast(page).count()).toBe(0);
  });

  test('approving for today says until when, in the list and on its page, where it can be changed', async () => {
    const page = await open();
    await settle(page);
    await page.getByRole('button', { name: 'For today' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('Paperless is on until midnight, at paperless.maya.localhost:8443. Only you can open it.');
    expect(await called(page, 'approve')).toEqual([[{ name: 'paperless', label: 'Paperless', localPort: 8010, program: 'python3', user: 'maya', until: 'today' }]]);
    await section(page, 'On').getByText('Until midnight').waitFor();
    await section(page, 'On').getByText('Paperless', { exact: true }).click();
    await page.getByText('On, until midnight', { exact: true }).waitFor();
    await page.getByLabel('Until when it is approved').selectOption('always');
    await told(page, 'Paperless is approved without an end.');
    await page.getByText('On, until midnight', { exact: true }).waitFor({ state: 'detached' });
    expect((await called(page, 'approve'))[1]).toMatchObject([{ name: 'paperless', until: 'never' }]);
  });

  test('one that the network opens says so, and nowhere that only its owner can', async () => {
    const page = await open();
    const detail = 'Other computers in your network can open port 8010 directly, without signing in.';
    await page.evaluate('stub.change("paperless", {network: true, networkDetail: "' + detail + '"})');
    const request = page.getByRole('article', { name: 'Paperless wants an address' });
    await request.getByText(detail).waitFor();
    expect(await request.getByText('Only you').count()).toBe(0);
    await request.getByRole('button', { name: 'Details' }).click();
    expect(await request.getByText('Only you').count()).toBe(0);
    await page.evaluate(`stub.add({name: "diary", label: "Diary", network: true, networkDetail: "${detail}"})`);
    await section(page, 'Waiting for you').getByText('Open to your network').waitFor(); // also of one in a row
    await settle(page);
    await request.getByRole('button', { name: 'Approve' }).click();
    await expect.poll(() => toast(page).textContent()).toContain(`Paperless is on, at paperless.maya.localhost:8443. ${detail}`);
    await section(page, 'On').getByText('Open to your network').waitFor();
    await section(page, 'On').getByText('Paperless', { exact: true }).click();
    const warning = page.getByRole('main').getByRole('status').filter({ hasText: detail });
    await warning.waitFor();
    await page.getByText('At its address, only you.').waitFor();
    await page.evaluate('stub.change("paperless", {network: false, networkDetail: ""})');
    await page.getByText('Only you.', { exact: true }).waitFor();
    expect(await warning.count()).toBe(0);
  });

  test('a screen reader says at Approve what asks, from where', async () => {
    const page = await open();
    await settle(page);
    const said = async () => {
      const session = await page.context().newCDPSession(page);
      const { nodes } = await session.send('Accessibility.getFullAXTree');
      return nodes.filter((node) => node.role?.value === 'button' && /^Approve( |$)/.test(node.name?.value)).map((node) => node.description?.value.replace(/\s+/g, ' '));
    };
    expect(await said()).toEqual(['paperless.maya.localhost:8443 port 8010 python3, run by maya']);
    await page.evaluate('stub.add({name: "diary", label: "Diary"})');
    await expect.poll(async () => (await said()).length).toBe(2);
    for (const one of await said()) expect(one).toMatch(/^(paperless|diary)\.maya\.localhost:8443 .*python3, run by maya/);
  });

  test('denying says for how long one hears nothing', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'Deny' }).press('Enter');
    await expect.poll(() => toast(page).textContent()).toContain('Paperless stays off. If it asks again, you won’t hear of it for 10 minutes.');
    expect(await called(page, 'deny')).toEqual([[{ name: 'paperless' }]]);
  });

  test('denying what was denied before says so, and it can be unmuted', async () => {
    const page = await open({ scene: 'muted' });
    await page.getByRole('button', { name: 'Unmute' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('You hear of Paperless again');
    expect(await called(page, 'unmute')).toEqual([[{ name: 'paperless' }]]);
    await page.getByRole('button', { name: 'Unmute' }).waitFor({ state: 'detached' });
    await page.evaluate('stub.set({apps: []}); stub.add({name: "diary", label: "Diary", denials: 1})');
    await page.getByRole('button', { name: 'Deny' }).press('Enter');
    await expect.poll(() => toast(page).textContent()).toContain('until you unmute it');
  });

  test('a press meant for what stood there a moment ago decides nothing', async () => {
    const page = await open({ scene: 'empty' });
    const place = await page.evaluate(async () => {
      const stub = (window as unknown as { stub: { add(app: object): void; once(so: () => unknown): Promise<void> } }).stub;
      stub.add({ name: 'surprise', label: 'Surprise' });
      const approve = () => [...document.querySelectorAll('.btn.primary')].find((one) => one.textContent?.trim() === 'Approve');
      await stub.once(approve);
      const button = approve()!;
      // As the web view delivers it: a first click of the mouse, at once.
      button.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 }));
      return button.textContent;
    });
    expect(place?.trim()).toBe('Approve');
    expect(await called(page, 'approve')).toEqual([]);
    await settle(page);
    await page.getByRole('button', { name: 'Approve' }).click();
    expect(await called(page, 'approve')).toEqual([[{ name: 'surprise', label: 'Surprise', localPort: 9000, program: 'python3', user: 'maya' }]]);
  });

  test('one that has changed says who could open it, and can be approved without them', async () => {
    const page = await open();
    await page.evaluate('stub.change("paperless", {approvedAt: "2026-11-20T10:00:00Z", openTo: ["ben@example.com", "cy@example.com"], openToCount: 3, askedBy: "eve", resembles: "Notes"})');
    const request = page.getByRole('article', { name: 'Paperless has changed' });
    await request.getByText('ben@example.com and 2 others can open it again.').waitFor();
    await request.getByText('Asked for by eve, another user of this computer.').waitFor();
    await request.getByText('Its name looks like that of another app, Notes.').waitFor();
    await settle(page);
    await request.getByRole('button', { name: 'Approve for me alone' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('Only you can open it.');
    expect(await called(page, 'approve')).toEqual([[{ name: 'paperless', label: 'Paperless', localPort: 8010, program: 'python3', user: 'maya', alone: true }]]);
  });

  test('what asks is told where it is not what listens, and what a coding agent calls itself', async () => {
    const page = await open();
    const asks = page.getByRole('article');
    const change = (more: object) => page.evaluate(`stub.change("paperless", ${JSON.stringify(more)})`);
    await change({ asks: { program: 'porchlight', user: 'maya', assistant: '<b>claude-code</b>' } });
    await asks.getByText('Asked for by porchlight, run by maya.').waitFor();
    await asks.getByText('A coding agent asks. It calls itself “<b>claude-code</b>”.').waitFor();
    await change({ asks: { program: 'python3', user: 'maya' } });
    await expect.poll(() => asks.textContent()).not.toContain('Asked for');
    expect(await asks.textContent()).not.toContain('coding agent');
    // A further one is a row, where a long line is cut: a badge says it.
    await page.evaluate('stub.add({ name: "further", label: "Further", asks: { program: "porchlight", user: "maya", assistant: "claude-code" } })');
    await page.getByText('Coding agent', { exact: true }).waitFor();
  });

  test('a request that changes under the pointer is not approved by that press', async () => {
    const page = await open();
    await settle(page);
    await page.evaluate(async () => {
      const stub = (window as unknown as { stub: { change(name: string, more: object): void; once(so: () => unknown): Promise<void> } }).stub;
      stub.change('paperless', { localPort: 22, listener: { program: 'sshd', user: 'root' } });
      await stub.once(() => document.querySelector('.ask')?.textContent?.includes('port 22'));
      document.querySelector('.ask .primary')!.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 }));
    });
    expect(await called(page, 'approve')).toEqual([]);
    await settle(page);
    await page.getByRole('button', { name: 'Approve' }).click();
    expect(await called(page, 'approve')).toEqual([[{ name: 'paperless', label: 'Paperless', localPort: 22, program: 'sshd', user: 'root' }]]);
  });

  test('a press counts however often the rest of the computer changes', async () => {
    const page = await open();
    await settle(page);
    await page.evaluate(async () => {
      const stub = (window as unknown as { stub: { change(name: string, more: object): void; once(so: () => unknown): Promise<void> } }).stub;
      stub.change('notes', { here: Array.from({ length: 12 }, (_, i) => `here-${i}@example.com`) });
      await stub.once(() => document.body.textContent?.includes('12 here now'));
      document.querySelector('.ask .primary')!.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 }));
    });
    expect(await called(page, 'approve')).toHaveLength(1);
  });

  test('a double click approves one request, not the next as well', async () => {
    const page = await open({ scene: 'requests' });
    await settle(page);
    const box = (await page.locator('.btn.primary').boundingBox())!;
    await page.mouse.dblclick(box.x + box.width / 2, box.y + box.height / 2);
    await expect.poll(async () => (await called(page, 'approve')).length).toBe(1);
    await settle(page);
    expect(await called(page, 'approve')).toHaveLength(1);
  });

  test('a refusal is told in the words of the agent, and the request stays', async () => {
    const page = await open();
    await page.evaluate('stub.fail("approve", "The label Paperless belongs to another app already.")');
    await page.getByRole('button', { name: 'Approve' }).press('Enter');
    await expect.poll(() => toast(page).textContent()).toContain('The label Paperless belongs to another app already.');
    expect(await section(page, 'Waiting for you').getByText('wants an address').count()).toBe(1);
    expect(await page.getByRole('button', { name: 'Approve' }).isEnabled()).toBe(true);
  });

  test('while it works it says so and takes no second press', async () => {
    const page = await open();
    await page.evaluate('void stub.hold("approve")');
    await page.getByRole('button', { name: 'Approve' }).press('Enter');
    const busy = page.getByRole('button', { name: 'Approving…' });
    await busy.waitFor();
    expect(await page.getByRole('button', { name: 'Deny' }).isDisabled()).toBe(true);
    await busy.press('Enter');
    await page.evaluate('stub.release()');
    await toast(page).waitFor();
    expect(await called(page, 'approve')).toHaveLength(1);
  });

  test('denying all of many asks first', async () => {
    const page = await open({ scene: 'requests' });
    await page.getByRole('button', { name: 'Deny all…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Deny all 6?' });
    expect(await focusName(page)).toBe('Keep');
    await page.keyboard.press('Escape');
    expect(await dialog.count()).toBe(0);
    expect(await called(page, 'deny')).toEqual([]);
    await page.getByRole('button', { name: 'Deny all…' }).click();
    await dialog.getByRole('button', { name: 'Deny all' }).click();
    await expect.poll(() => toast(page).textContent()).toContain('6 apps stay off');
    expect(await called(page, 'deny')).toHaveLength(6);
    await page.getByRole('heading', { name: 'No apps yet' }).waitFor();
  });
});
