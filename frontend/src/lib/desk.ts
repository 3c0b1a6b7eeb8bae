/*
 * What the owner can do, once for all views: ask the bridge, say what happened.
 * Handed to the components by context.
 */
import { getContext, setContext } from 'svelte';
import { hostOf, onlyYours, seenOf } from './apps';
import { Asked } from './asked.svelte';
import type { Bridge, Operation, Takes } from './bridge';
import { suggestionOf } from './health';
import { clientOf, visitorName } from './labels';
import { inviteWaits, type Owner } from './state.svelte';
import type { Go } from './places';
import type { Sentence } from './sentence';
import { strings } from './strings';
import { Tried } from './tried.svelte';
import type { Toast, Toasts } from './toasts.svelte';
import { dayWord, endWord } from './until';
import type { Activity, AppPassword, Approved, Device, Group, Notice, Grant, Knock, OwnerApp, Person, Sender, Visitor } from './types';

export class Desk {
  constructor(
    readonly owner: Owner,
    readonly toasts: Toasts,
    readonly bridge: Bridge,
    readonly go: Go = () => {},
    /** Shows the palette. */
    readonly find: () => void = () => {},
  ) {}

  /** What came of trying addresses. */
  readonly tried = new Tried();
  /** What was found when everything was last looked at. */
  readonly examined = new Asked(() => this.bridge.ask('examine'));

  /** Asks the agent for what shows by itself once it is done; a failure is said. */
  ask<Name extends Operation>(operation: Name, ...values: Takes<Name>): Promise<boolean> {
    return this.#try(() => this.bridge.ask(operation, ...values));
  }

  /** The same, for what is said in another place: why it failed, as a sentence, or nothing. */
  async problemOf<Name extends Operation>(operation: Name, ...values: Takes<Name>): Promise<string> {
    try {
      await this.bridge.ask(operation, ...values);
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** The same of what the program around the page does. */
  have(done: (bridge: Bridge) => Promise<unknown>): Promise<boolean> {
    return this.#try(() => done(this.bridge));
  }

  /** With alone, nobody else who could open the app before can; until is when the approval ends, in the agent's words for a time. */
  approve(app: OwnerApp, how: { alone?: true; until?: string } = {}): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('approve', { name: app.name, ...seenOf(app), ...how }),
      (now) => {
        if (now.status === 'pending') return this.#tell(strings.toast.approvedLater(app.label));
        const account = this.owner.account;
        const host = account ? hostOf(app, account) : app.name;
        if (now.healthNote || now.ailment) return this.#offerHelp(app, now);
        this.sayOn(strings.toast.approved(app.label, host, this.#whoOpens(app, how.alone), how.until === 'today'), app.name, now.url ?? `https://${host}`);
      },
    );
  }

  /** Says that an app is on, with what one does next, as the notification of it does. */
  sayOn(text: Sentence, name: string, url: string): void {
    const { snapshot } = this.owner;
    const open = { label: strings.app.open, run: () => void this.have((bridge) => bridge.desk.Open(name)) };
    const copy = { label: strings.invite.copyLink, run: () => void this.copy(url) };
    const invite = { label: strings.knocks.invite, run: () => this.go('invite', name) };
    this.toasts.show(text, snapshot?.darkSince ? undefined : open, undefined, snapshot && inviteWaits(snapshot) ? [copy] : [copy, invite]);
  }

  /** Has the approval of an app end then, in the agent's words for a time, or never. */
  endApproval(app: OwnerApp, until: string): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('approve', { name: app.name, ...seenOf(app), until }),
      () => this.#tell(strings.toast.approvedUntil(app.label, until === 'never' ? '' : endWord(until, Date.now()))),
    );
  }

  /** Who can open an app now: "only you" is said where that is known. */
  #whoOpens(app: OwnerApp, alone = false): Sentence {
    const n = alone ? 0 : app.openToCount;
    if (n > 0 || onlyYours({ ...app, openToCount: 0 })) return strings.ask.whoCanOpen(app.openTo, n);
    return [app.network ? (app.networkDetail ?? '') : strings.app.whoNobodyHere];
  }

  /** Takes what the agent suggests for an app. Undo puts back what its options were. */
  takeSuggestion(app: Pick<OwnerApp, 'name' | 'label' | 'healthOption' | 'options'>): Promise<boolean> {
    const suggestion = suggestionOf(app);
    if (!suggestion) return Promise.resolve(true);
    const { change, before, words } = suggestion;
    const undo = () => this.#try(() => this.bridge.ask('changeOptions', { name: app.name, ...before }), () => this.#tell(strings.toast.suggestionUndone(app.label)));
    return this.#try(
      () => this.bridge.ask('changeOptions', { name: app.name, ...change }),
      () => this.toasts.show(strings.toast.suggestionTaken(app.label, words.done), { label: strings.people.undo, run: () => void undo() }),
    );
  }

  /** Has an app asked how it does, and says what was not seen of the answer. */
  async probe(app: OwnerApp): Promise<boolean> {
    return this.#try(async () => {
      const does = await this.bridge.ask('probe', { name: app.name });
      if (does.health === 'answers' && !does.healthNote) return this.#tell(strings.toast.answersNow(app.label));
      if (does.healthAt !== app.healthAt) return;
      const { probe } = await this.bridge.ask('settings');
      this.#tell(probe ? strings.toast.askedLately : strings.toast.askingOff);
    });
  }

  deny(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('deny', { name: app.name }),
      ({ muted }) => this.#tell(muted ? strings.toast.deniedAgain(app.label) : strings.toast.denied(app.label)),
    );
  }

  /** Denies one after the other and stops at the first that fails. */
  denyAll(apps: readonly OwnerApp[]): Promise<boolean> {
    return this.#try(
      async () => {
        for (const app of apps) await this.bridge.ask('deny', { name: app.name });
      },
      () => this.#tell(strings.toast.deniedAll(apps.length)),
    );
  }

  revoke(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('revoke', { name: app.name }),
      ({ closed }) => this.#tell(strings.toast.revoked(app.label, closed)),
    );
  }

  /** Answers somebody who asks to be let in. */
  answerKnock(knock: Knock, answer: 'today' | 'always' | 'no' | 'never'): Promise<boolean> {
    const words = strings.toastKnock;
    return this.#try(
      () => this.bridge.ask('answerKnock', { id: knock.id, answer }),
      ({ status }) => {
        if (answer === 'no' || answer === 'never') return this.#tell(words[answer](knock.email));
        const today = answer === 'today';
        this.#tell(status === 'pending' ? words[today ? 'invitedToday' : 'invited'](knock.email, knock.app) : words[answer](knock.email, knock.app));
      },
    );
  }

  unmute(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('unmute', { name: app.name }),
      () => this.#tell(strings.toast.unmuted(app.label)),
    );
  }

  open(app: OwnerApp): Promise<boolean> {
    return this.#try(() => this.bridge.desk.Open(app.name));
  }

  pause(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('pause', { name: app.name }),
      ({ closed }) => this.toasts.show(strings.toast.paused(app.label, closed), { label: strings.app.resume, run: () => void this.resume(app) }),
    );
  }

  resume(app: OwnerApp): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('resume', { name: app.name }),
      () => this.#tell(strings.toast.resumed(app.label)),
    );
  }

  dark(on: boolean): Promise<boolean> {
    if (!on) return this.#try(() => this.bridge.ask('lightUp'), () => this.#tell(strings.toast.light));
    return this.#try(
      () => this.bridge.ask('goDark'),
      ({ closed }) => this.#tell(strings.toast.dark(closed)),
    );
  }

  invite(email: string, labels: readonly string[]): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('ownerInvite', { email, apps: [...labels] }),
      (answer) => this.#tell(strings.toast.invited(answer.email, this.owner.account?.local ?? false)),
    );
  }

  /** Says what was done elsewhere. */
  say(what: Sentence): void {
    this.#tell(what);
  }

  /** Copies the link of somebody's invitation. */
  async copyLink(email: string, url: string): Promise<boolean> {
    const copied = await this.copy(url);
    if (copied) this.#tell(strings.invite.copied(email));
    return copied;
  }

  /** The same of an invitation sent before: the agent is asked for its link. */
  copyInvitation(person: Person): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('invitationLink', { accountId: person.accountId }),
      ({ url }) => void this.copyLink(person.email, url),
    );
  }

  grant(person: Person, label: string, granted: boolean): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('ownerGrant', { accountId: person.accountId, app: label, granted, ...(granted ? {} : { holdSeconds }) }),
      ({ closed, heldUntil }) => {
        this.toasts.forget(heldKey(person, label));
        if (granted) return;
        const again = { label: strings.people.undo, run: () => void this.grant(person, label, true) };
        this.#offerUndo(person, label, strings.toast.withdrawn(person.email, label, closed), heldUntil, again);
      },
    );
  }

  /** Gives a person an app until then, in the agent's words for a time, or lets them keep it for longer or shorter. */
  share(person: Person, label: string, until: string): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('ownerGrant', { accountId: person.accountId, app: label, granted: true, until }),
      () => {
        this.toasts.forget(heldKey(person, label));
        this.#tell(strings.toast.shared(person.email, label, until === 'never' ? '' : dayWord(until, Date.now())));
      },
    );
  }

  /** Undo leaves all as it was. Where it is too late for that, a new invitation is offered. */
  remove(person: Person): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('ownerRemovePerson', { accountId: person.accountId, holdSeconds }),
      ({ closed, heldUntil }) => {
        this.toasts.forget(heldKey(person));
        const labels = person.apps;
        const again = labels.length > 0 ? { label: strings.people.inviteAgain, run: () => void this.invite(person.email, labels) } : undefined;
        this.#offerUndo(person, '', strings.toast.removed(person.email, closed), heldUntil, again);
      },
    );
  }

  /** Makes a group; its id, or nothing where that failed. */
  async addGroup(name: string): Promise<string> {
    let id = '';
    await this.#try(() => this.bridge.ask('addGroup', { name }), ({ group }) => (id = group.id));
    return id;
  }

  /** Takes an app from a group, somebody out of it, or all of it away. Undo takes back what the timeline says of that. */
  endInGroup<Name extends 'removeGroup' | 'withdrawGroup' | 'leaveGroup'>(group: Group, operation: Name, values: Takes<Name>[0], label = '', email = ''): Promise<boolean> {
    const words = strings.toast;
    const undo = () => this.#try(async () => {
      const { lines } = await this.bridge.ask('activityPage', { limit: undoable, group: 'decisions' });
      const line = lines.find((one) => one.group === group.id && one.undo);
      await this.bridge.ask('undoActivity', { id: line?.id ?? 0 });
    }, () => this.#tell(words.undone));
    return this.#try(
      () => this.bridge.ask(operation, ...([values] as unknown as Takes<Name>)),
      ({ closed }) => this.toasts.show(
        label ? words.withdrawn(group.name, label, closed) : email ? words.groupLeft(email, group.name, closed) : words.removed(group.name, closed),
        { label: strings.people.undo, run: () => void undo() },
      ),
    );
  }

  /** Whether a person who was removed can still be put back as they were. */
  undoable(person: Person): boolean {
    return this.toasts.current?.held?.key === heldKey(person);
  }

  /** Closes what a visitor has open now; their access stays. */
  disconnectVisitor(visitor: Visitor): Promise<boolean> {
    return this.#try(
      () =>
        this.bridge.ask('disconnectVisitor', {
          accountId: visitor.accountId,
          ...(visitor.grantId ? { grantId: visitor.grantId } : {}),
          ...(visitor.passwordId ? { passwordId: visitor.passwordId } : {}),
        }),
      ({ closed }) => this.#tell(strings.toast.disconnected(visitorName(visitor), closed, visitor.clientName !== undefined || visitor.you === true)),
    );
  }

  undoNotice(notice: Notice): Promise<boolean> {
    return this.#try(() => this.bridge.ask('undoNotice', { id: notice.id }), () => this.#tell(strings.toast.undone));
  }

  revokeClient(grant: Grant): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('revokeGrant', { id: grant.id }),
      ({ closed }) => this.#tell(strings.toast.clientRevoked(clientOf(grant), closed)),
    );
  }

  revokePassword(one: AppPassword, title: string): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('revokePassword', { id: one.id }),
      ({ closed }) => this.#tell(strings.toast.passwordRevoked(title, closed)),
    );
  }

  revokeSender(one: Sender): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('revokeSender', { id: one.id }),
      ({ closed }) => this.#tell(strings.toast.senderRevoked(one.name, closed)),
    );
  }

  revokeDevice(one: Device): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('revokeDevice', { id: one.id }),
      ({ closed }) => this.#tell(strings.toast.deviceRevoked(one.name, closed)),
    );
  }

  checkDomain(name: string): Promise<boolean> {
    return this.#try(() => this.bridge.ask('checkDomain', { name }), () => {});
  }

  removeDomain(name: string): Promise<boolean> {
    return this.#try(() => this.bridge.ask('removeDomain', { name }), () => this.#tell(strings.toast.domainRemoved(name)));
  }

  /** Takes back what a line of activity is about; it offers that only while nothing is lost by it. */
  undoActivity(line: Activity): Promise<boolean> {
    return this.#try(() => this.bridge.ask('undoActivity', { id: line.id ?? 0 }), () => this.#tell(strings.toast.undone));
  }

  clearActivity(): Promise<boolean> {
    return this.#try(
      () => this.bridge.ask('clearActivity'),
      () => this.#tell(strings.toast.cleared),
    );
  }

  trust(on: boolean): Promise<boolean> {
    return this.#try(
      () => this.bridge.desk.Trust(on),
      () => this.#tell(on ? strings.toast.trusted : strings.toast.distrusted),
    );
  }

  export(): Promise<boolean> {
    return this.#try(
      () => this.bridge.desk.Export(),
      (path) => path && this.#tell(strings.toast.exported(path)),
    );
  }

  openURL(url: string): Promise<boolean> {
    return this.#try(() => this.bridge.shell.OpenURL(url));
  }

  /** Copies text and says so to screen readers; the control shows a tick. */
  copy(text: string): Promise<boolean> {
    return this.#try(
      () => this.bridge.shell.Copy(text),
      () => this.toasts.say(strings.copied),
    );
  }

  /** Says of an app that was just approved what keeps visitors from it, with what would help. */
  #offerHelp(app: OwnerApp, { healthDetail = '', healthOption }: Approved) {
    const ailing = { ...app, ...(healthOption && { healthOption }) };
    const suggestion = suggestionOf(ailing);
    const take = suggestion && { label: suggestion.words.button, run: () => void this.takeSuggestion(ailing) };
    this.toasts.show(strings.toast.approvedAiling(app.label, healthDetail), take);
  }

  /** Says what was taken away, with Undo while it is held; otherwise with what comes next to it. */
  #offerUndo(person: Person, label: string, text: Sentence, heldUntil: string | undefined, otherwise: Toast['action']) {
    if (!heldUntil) return this.toasts.show(text, otherwise);
    const undo = () => this.#try(
      () => this.bridge.ask('undoHeld', heldChange(person, label)),
      () => this.#tell(label ? strings.toast.givenBack(person.email, label) : strings.toast.putBack(person.email)),
    );
    this.toasts.show(text, { label: strings.people.undo, run: () => void undo() }, {
      key: heldKey(person, label),
      until: Date.parse(heldUntil),
      // What cannot be told now is told by the agent, a little later.
      gone: () => void this.bridge.ask('settleHeld', heldChange(person, label)).catch(() => {}),
    });
  }

  #tell(sentence: Sentence) {
    this.toasts.show(sentence);
  }

  async #try<T>(call: () => Promise<T>, done?: (answer: T) => void): Promise<boolean> {
    try {
      const answer = await call();
      done?.(answer);
      return true;
    } catch (error) {
      this.#tell(strings.toast.failed((error as Error).message));
      return false;
    }
  }
}

/** How long, in seconds, what the owner takes away can be undone at most: time enough for a toast that somebody rests on. */
const holdSeconds = 30;

/** Among how many of the newest decisions the one is that a toast undoes. */
const undoable = 20;

/** An app that was withdrawn, or with no label a removal. */
const heldChange = (person: Person, label: string) => ({ accountId: person.accountId, ...(label ? { app: label } : {}) });

const heldKey = (person: Person, label = ''): string => `${person.accountId}\n${label}`;

const key = Symbol('desk');

export const provideDesk = (desk: Desk): Desk => setContext(key, desk);
export const useDesk = (): Desk => getContext<Desk>(key);
