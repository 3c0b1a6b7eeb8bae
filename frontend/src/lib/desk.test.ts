// What happened is said, once, with the way back where there is one.
import { expect, test, vi } from 'vitest';
import type { Bridge, Operation } from './bridge';
import { Desk } from './desk';
import { app, asked, options, snapshot, type Answers } from './samples';
import { Owner } from './state.svelte';
import { plain } from './sentence';
import { Toasts } from './toasts.svelte';
import type { Person } from './types';

const closed = { ok: true, closed: 2, milliseconds: 3 };
const bob: Person = { email: 'bob@example.com', accountId: 'acc_2', role: 'member', status: 'active', apps: ['Notes'] };

function setup(answers: Answers = {}, account = snapshot(1).account) {
  const ask = asked(answers);
  const done = async () => {};
  const bridge = { ask, desk: { Open: done }, shell: { Copy: done, OpenURL: done } } as unknown as Bridge;
  const toasts = new Toasts();
  const owner = new Owner(bridge);
  owner.snapshot = snapshot(1, { account });
  const desk = new Desk(owner, toasts, bridge);
  const said = () => plain(toasts.current?.text ?? []).replace(/[\u2068\u2069]/g, '');
  /** What an operation was asked with, each time. */
  const calls = (operation: Operation) => ask.mock.calls.filter(([name]) => name === operation).map(([, values]) => values as unknown);
  return { desk, calls, toasts, said };
}

test('a refusal is said in its own words, and nothing else', async () => {
  const { desk, said } = setup({ goDark: new Error('The agent is still starting.') });
  expect(await desk.dark(true)).toBe(false);
  expect(said()).toBe('The agent is still starting.');
});

test('pausing offers to resume', async () => {
  const { desk, calls, toasts, said } = setup({ pause: closed });
  expect(await desk.pause(app('notes', { label: 'Notes' }))).toBe(true);
  expect(said()).toBe('Notes is paused. 2 connections closed. Who may open it is kept.');
  toasts.current!.action!.run();
  await vi.waitFor(() => expect(said()).toBe('Notes is open again to whom you chose.'));
  expect(calls('resume')).toEqual([{ name: 'notes' }]);
});

test('taking an app offers to give it back; giving says nothing', async () => {
  const { desk, calls, toasts, said } = setup({ ownerGrant: { ...closed, person: bob } });
  await desk.grant(bob, 'Notes', true);
  expect(toasts.current).toBeUndefined();
  await desk.grant(bob, 'Notes', false);
  expect(said()).toBe('bob@example.com can’t open Notes any more. 2 connections closed.');
  toasts.current!.action!.run();
  expect(calls('ownerGrant').at(-1)).toEqual({ accountId: 'acc_2', app: 'Notes', granted: true });
});

const held = () => ({ ...closed, person: bob, heldUntil: new Date(Date.now() + 30_000).toISOString() });

test('what is held is undone by the agent, and settled when nobody undoes it', async () => {
  const { desk, calls, toasts, said } = setup({ ownerRemovePerson: held(), ownerGrant: held(), undoHeld: { ...closed, person: bob }, pause: closed });
  await desk.remove(bob);
  expect([said(), toasts.current!.action!.label, desk.undoable(bob)]).toEqual(['bob@example.com can’t open anything any more. 2 connections closed.', 'Undo', true]);
  toasts.act();
  await vi.waitFor(() => expect(said()).toBe('bob@example.com is back, with everything as it was. No mail was sent.'));
  expect(calls('undoHeld').at(-1)).toEqual({ accountId: 'acc_2' });
  expect([calls('settleHeld'), calls('ownerInvite'), desk.undoable(bob)]).toEqual([[], [], false]);

  await desk.grant(bob, 'Notes', false);
  expect(desk.undoable(bob)).toBe(false); // that is of one app
  toasts.act();
  await vi.waitFor(() => expect(said()).toBe('bob@example.com can open Notes again.'));
  expect(calls('undoHeld').at(-1)).toEqual({ accountId: 'acc_2', app: 'Notes' });

  await desk.remove(bob);
  await desk.pause(app('notes'));
  expect(calls('settleHeld')).toEqual([{ accountId: 'acc_2' }]);
});

test('switching on and off again holds anew, and the first does not settle the second', async () => {
  const { desk, calls, toasts } = setup({ ownerGrant: held() });
  await desk.grant(bob, 'Notes', false);
  await desk.grant(bob, 'Notes', true);
  expect(toasts.current).toBeUndefined();
  await desk.grant(bob, 'Notes', false);
  await desk.grant(bob, 'Notes', false);
  expect(calls('settleHeld')).toEqual([]);
  toasts.dismiss();
  expect(calls('settleHeld')).toEqual([{ accountId: 'acc_2', app: 'Notes' }]);
  expect(calls('ownerGrant').map((values) => (values as { holdSeconds?: number }).holdSeconds)).toEqual([30, undefined, 30, 30]);
});

test('undone too late, it says so', async () => {
  const { desk, toasts, said } = setup({ ownerRemovePerson: held(), undoHeld: new Error('It is too late to undo that. Invite them again to let them in.') });
  await desk.remove(bob);
  toasts.act();
  await vi.waitFor(() => expect(said()).toContain('It is too late to undo that.'));
});

test('disconnecting says what it closed, and what it does not do', async () => {
  const visitor = { accountId: 'acc_2', email: bob.email, apps: ['Notes'], connections: 2 };
  const { desk, calls, said } = setup({ disconnectVisitor: closed });
  await desk.disconnectVisitor(visitor);
  expect(said()).toBe('bob@example.com is disconnected. 2 connections closed. They can come back.');
  await desk.disconnectVisitor({ ...visitor, grantId: 'g1', clientName: 'Pocket Notes' });
  expect(said()).toBe('Pocket Notes is disconnected. 2 connections closed.');
  expect(calls('disconnectVisitor')).toEqual([{ accountId: 'acc_2' }, { accountId: 'acc_2', grantId: 'g1' }]);
});

const live = { status: 'live', host: 'notes.maya.localhost:8443', url: 'https://notes.maya.localhost:8443' } as const;

test('an approval offers what its notification does: to open it, to copy its link, to invite', async () => {
  const went: unknown[] = [];
  const { desk, toasts } = setup({ approve: live });
  const at = new Desk(desk.owner, toasts, desk.bridge, (...to) => void went.push(to));
  await at.approve(app('notes'));
  expect([toasts.current!.action!.label, ...toasts.current!.further!.map((one) => one.label)]).toEqual(['Open', 'Copy link', 'Invite…']);
  toasts.act(toasts.current!.further![1]);
  expect([went, toasts.current]).toEqual([[['invite', 'notes']], undefined]);
  at.owner.snapshot = { ...snapshot(2), accessUntil: '2026-11-21T10:00:00Z' };
  await at.approve(app('notes'));
  expect(toasts.current!.further!.map((one) => one.label)).toEqual(['Copy link']); // inviting waits
});

test('in the dark nothing offers to open an app', async () => {
  const { desk, toasts } = setup({ approve: live });
  await desk.approve(app('notes'));
  expect(toasts.current!.action!.label).toBe('Open');
  desk.owner.snapshot = { ...snapshot(2), darkSince: '2026-11-21T10:00:00Z' };
  await desk.approve(app('notes'));
  expect(toasts.current!.action).toBeUndefined();
});

test('where nothing can be held, removing offers an invitation to what they had, if they had anything', async () => {
  const { desk, calls, toasts, said } = setup({ ownerRemovePerson: { ...closed, closed: 0, person: bob }, ownerInvite: { email: bob.email, status: 'pending', url: '' } });
  await desk.remove({ ...bob, apps: [] });
  expect(said()).toBe('bob@example.com can’t open anything any more.');
  expect(toasts.current!.action).toBeUndefined();
  await desk.remove(bob);
  toasts.current!.action!.run();
  await vi.waitFor(() => expect(said()).toBe('bob@example.com is invited. The mail is in the outbox.'));
  expect(calls('ownerInvite')).toEqual([{ email: 'bob@example.com', apps: ['Notes'] }]);
});

test('an invitation says where its mail is', async () => {
  const { desk, said } = setup({ ownerInvite: { email: 'n@example.com', status: 'pending', url: '' } }, { ...snapshot(1).account, local: false });
  await desk.invite('n@example.com', ['Notes']);
  expect(said()).toBe('n@example.com is invited. The mail is on its way.');
});

test.each([
  ['denied once', {}, 'for 10 minutes'],
  ['denied before', { muted: true }, 'until you unmute it'],
])('%s', async (_, more, words) => {
  const { desk, said } = setup({ deny: { ok: true, ...more } });
  await desk.deny(app('notes'));
  expect(said()).toContain(words);
});

test('denying all stops at the first that fails', async () => {
  const deny = vi.fn(async () => ({ ok: true })).mockResolvedValueOnce({ ok: true }).mockRejectedValueOnce(new Error('It has changed meanwhile.'));
  const { desk, said } = setup({ deny });
  expect(await desk.denyAll([app('a'), app('b'), app('c')])).toBe(false);
  expect(deny).toHaveBeenCalledTimes(2);
  expect(said()).toBe('It has changed meanwhile.');
});

test('settings, options, copying and opening say nothing when they worked', async () => {
  const { desk, toasts } = setup({ changeOptions: options });
  expect(await desk.ask('changeSettings', { failStaticHours: 1 })).toBe(true);
  expect(await desk.ask('changeOptions', { name: 'a', h2c: true })).toBe(true);
  expect(await desk.openURL('https://maya.localhost:8443')).toBe(true);
  expect(await desk.copy('x')).toBe(true);
  expect([toasts.current, toasts.spoken]).toEqual([undefined, 'Copied']);
});

test('approving sends what was shown and says who can open it then', async () => {
  const asked = app('notes', {
    label: 'Notes', status: 'pending', approvedAt: '2026-11-20T10:00:00Z', listener: { program: 'node', user: 'maya' },
    openTo: ['ben@example.com', 'cy@example.com'], openToCount: 3,
  });
  const { desk, calls, said } = setup({ approve: live });
  await desk.approve(asked);
  expect(said()).toBe('Notes is on, at notes.maya.localhost:8443. ben@example.com and 2 others can open it again.');
  await desk.approve(asked, { alone: true });
  expect(said()).toBe('Notes is on, at notes.maya.localhost:8443. Only you can open it.');
  const seen = { name: 'notes', label: 'Notes', localPort: 3000, program: 'node', user: 'maya' };
  expect(calls('approve')).toEqual([seen, { ...seen, alone: true }]);
});

test('an approval that ends says until when, and can be given another end', async () => {
  const { desk, calls, said } = setup({ approve: live });
  const asked = app('notes', { label: 'Notes', listener: { program: 'node', user: 'maya' } });
  await desk.approve(asked, { until: 'today' });
  expect(said()).toBe('Notes is on until midnight, at notes.maya.localhost:8443. Only you can open it.');
  const today = new Date();
  today.setHours(23, 59, 59, 0);
  await desk.endApproval(asked, today.toISOString());
  expect(said()).toBe('Notes is approved until midnight.');
  await desk.endApproval(asked, 'never');
  expect(said()).toBe('Notes is approved without an end.');
  expect(calls('approve').map((call) => (call as { until?: string }).until)).toEqual(['today', today.toISOString(), 'never']);
});

// Weakness: "only you" was promised where nothing was seen listening, which the network could open later.
test.each([
  [{}, 'At its address, only you.'],
  [{ network: true, networkDetail: 'Other computers can open it.' }, 'Other computers can open it.'],
])('approving says of %j: %s', async (more, who) => {
  const { desk, said } = setup({ approve: live });
  await desk.approve(app('notes', { label: 'Notes', status: 'pending', openTo: ['ben@example.com'], openToCount: 1, ...more }), { alone: true });
  expect(said()).toBe(`Notes is on, at notes.maya.localhost:8443. ${who}`);
});

test('an app without an address yet is not said to be on', async () => {
  const { desk, said } = setup({ approve: { status: 'pending' } });
  await desk.approve(app('notes', { label: 'Notes' }));
  expect(said()).toBe('Notes is approved. It gets its address once this computer is connected.');
});
