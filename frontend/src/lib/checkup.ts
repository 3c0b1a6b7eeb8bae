/*
 * What the Health page tells: what the snapshot knows by itself, and what was found by
 * looking. Pure functions; the page carries out what helps.
 */
import { suggestionOf } from './health';
import { capital, plain } from './sentence';
import { strings } from './strings';
import { dayOf } from './time';
import type { Examination, Finding, OwnerApp, OwnerState, Preferences } from './types';

/** What a button beside a line does. */
export type Fix =
  | { does: 'suggestion' | 'pause' | 'show'; app: OwnerApp }
  | { does: 'lightUp' | 'unlock' | 'keepInFile' | 'trust' | 'people' | 'settings' | 'connect' };

export interface Line {
  key: string;
  state: 'wrong' | 'note' | 'ok';
  title: string;
  text: string;
  /** How its button is called, and what it does; there is one at most. */
  fix?: { label: string; is: Fix };
}

/** What keeps somebody from something, as far as is known without looking. */
export function wrongs(snapshot: OwnerState): number {
  return known(snapshot, undefined).filter((line) => line.state === 'wrong').length;
}

/** Everything, in the order in which one depends on another; found is undefined before anybody looked. */
export function checkup(snapshot: OwnerState, preferences: Preferences | undefined, found: Examination | undefined): Line[] {
  // What was found under another address is of before this computer was connected, or disconnected.
  const here = found && (found.address?.host ?? snapshot.account.host) === snapshot.account.host;
  // The trouble says why; what follows from it is no trouble of its own.
  const follows = ({ key, state }: Line) => snapshot.trouble !== '' && state === 'wrong' && (key === 'control plane' || key === 'visit');
  return [...(here ? looked(snapshot, preferences, found) : []).filter((line) => !follows(line)), ...known(snapshot, preferences)];
}

function known(snapshot: OwnerState, preferences: Preferences | undefined): Line[] {
  const live = snapshot.apps.filter((app) => app.status === 'live' && !app.paused);
  const ailing = live.filter(({ ailment }) => ailment);
  const lines: Line[] = [...connection(snapshot, live), ...keychain(snapshot, preferences), ...certificates(live, snapshot.account.host), ...ailing.map(ailingApp), ...live.filter(noted).map(notedApp)];
  const fine = live.filter((app) => !app.ailment && !noted(app));
  const words = strings.checkup;
  if (fine.length > 0) lines.push({ key: 'apps', state: 'ok', title: words.apps, text: plain(words.named(fine.map((app) => app.label))) });
  for (const app of fine) if (app.healthMcp) lines.push({ key: `mcp ${app.name}`, state: 'ok', title: app.label, text: app.healthDetail });
  const ends = live.flatMap((app) => (app.certificate?.notAfter && !app.certificate.problem ? [app.certificate.notAfter] : [])).sort();
  if (ends.length > 0) lines.push({ key: 'certificates', state: 'ok', title: words.certificates, text: words.certificatesFine(dayOf(ends[0]!, Date.now())) });
  for (const to of snapshot.undelivered) lines.push({ key: `mail ${to}`, state: 'wrong', title: words.mail, text: words.mailBack(to), fix: { label: words.people, is: { does: 'people' } } });
  if (!snapshot.account.local && snapshot.undelivered.length === 0) lines.push({ key: 'mail', state: 'ok', title: words.mailFine, text: words.mailFineText });
  for (const one of snapshot.users) {
    if (one.standing === 'asks') lines.push({ key: `user ${one.id}`, state: 'note', title: strings.settings.userAsks(one.name), text: '', fix: { label: words.settings, is: { does: 'settings' } } });
  }
  return lines;
}

function connection({ trouble, reachable, darkSince, account, connecting }: OwnerState, live: readonly OwnerApp[]): Line[] {
  const words = strings.checkup;
  if (darkSince) return [{ key: 'dark', state: 'note', title: words.dark, text: words.darkText, fix: { label: strings.dark.light, is: { does: 'lightUp' } } }];
  // A certificate of an app that is on has a line of its own.
  if (trouble && !(reachable && live.some((app) => app.certificate?.problem))) {
    const fix = !account.connected && !connecting ? { fix: { label: strings.settings.connectDo, is: { does: 'connect' } as Fix } } : {};
    return [{ key: 'trouble', state: 'wrong', title: words.trouble, text: server(trouble), ...fix }];
  }
  return [];
}

function keychain({ locked }: OwnerState, preferences: Preferences | undefined): Line[] {
  const words = strings.checkup;
  const kept = preferences?.secretKept;
  if (locked && kept === 'nowhere') return [{ key: 'keychain', state: 'wrong', title: words.noKeychain, text: strings.trouble.noKeychain, fix: { label: strings.trouble.keepInFile, is: { does: 'keepInFile' } } }];
  if (locked) return [{ key: 'keychain', state: 'wrong', title: words.locked, text: strings.trouble.locked, fix: { label: strings.trouble.unlock, is: { does: 'unlock' } } }];
  if (kept === undefined) return [];
  return [{ key: 'keychain', state: 'ok', title: words.keychain, text: kept === 'file' ? strings.settings.secrets['file']! : words.unlocked }];
}

/** One line for each reason, of all apps that have no certificate because of it. */
function certificates(apps: readonly OwnerApp[], root: string): Line[] {
  const alike = new Map<string, OwnerApp[]>();
  for (const app of apps) {
    const reason = app.certificate?.problem.replaceAll(`${app.name}.${root.split(':')[0]}`, '');
    if (reason) alike.set(reason, [...(alike.get(reason) ?? []), app]);
  }
  return [...alike.values()].map((all) => {
    const [first] = all as [OwnerApp];
    return { key: `certificate ${first.name}`, state: 'wrong', title: plain(strings.checkup.certificate(all.map((app) => app.label))), text: first.certificate!.problem, fix: show(first) };
  });
}

function ailingApp(app: OwnerApp): Line {
  const words = strings.checkup;
  const suggestion = suggestionOf(app);
  return {
    key: `app ${app.name}`, state: 'wrong', title: plain(words.ails(app.label, capital(app.ailment ?? ''))), text: app.healthDetail,
    fix: suggestion ? { label: suggestion.words.button, is: { does: 'suggestion', app } } : { label: words.pause, is: { does: 'pause', app } },
  };
}

/** Whether an app answers, and visitors do not get what they came for. */
const noted = (app: OwnerApp): boolean => !app.ailment && (app.healthNote === true || suggestionOf(app) !== undefined);

function notedApp(app: OwnerApp): Line {
  const suggestion = suggestionOf(app);
  const title = plain(strings.checkup.ails(app.label, suggestion ? strings.health.better : strings.health.noted));
  return { key: `app ${app.name}`, state: 'note', title, text: app.healthDetail, fix: suggestion ? { label: suggestion.words.button, is: { does: 'suggestion', app } } : show(app) };
}

const show = (app: OwnerApp): NonNullable<Line['fix']> => ({ label: strings.checkup.show, is: { does: 'show', app } });

/** What was found of things that the snapshot does not tell. */
function looked(snapshot: OwnerState, preferences: Preferences | undefined, { findings, address }: Examination): Line[] {
  const words = strings.checkup;
  return findings.flatMap((found): Line[] => {
    const { check, state, text } = found;
    const line = (title: string, said = server(text)): Line => ({ key: check, state, title, text: said });
    switch (check) {
      case 'visit':
        if (state === 'note') return []; // dark, which is told already
        if (state === 'wrong' || !address) return [line(words.unreached)];
        return [line(snapshot.account.local ? words.reachedHere : words.reached, words.way(address.host, address.milliseconds))];
      case 'control plane':
        return [state === 'ok' ? line(words.server, words.serverIn(hostOf(snapshot.account.authUrl), text.match(/(\d+) ms/)?.[1] ?? '')) : line(words.serverAway)];
      case 'clock':
        return [state === 'ok' ? line(words.clock, '') : line(words.clockWrong)];
      case 'browsers':
        return [browsers(found, preferences)];
      case 'data':
        return state === 'ok' ? [] : [line(words.data)];
      case 'disk':
        return [line(state === 'ok' ? words.disk : words.diskFull)];
      case 'containers':
        return [line(words.containers, [server(text), found.next && server(found.next)].filter(Boolean).join(' '))];
      case 'menu bar':
        return [line(words.menuBar)];
      case 'names':
      case 'cookies':
        return []; // for developers and operators, who read the report
      default:
        return asks(snapshot, found);
    }
  });
}

function browsers({ state, text }: Finding, preferences: Preferences | undefined): Line {
  const words = strings.checkup;
  const line: Line = { key: 'browsers', state, title: words.trust, text: state === 'ok' ? '' : text };
  const { possible, trusted } = preferences?.trust ?? {};
  return state !== 'ok' && possible && !trusted ? { ...line, fix: { label: strings.settings.trustDo, is: { does: 'trust' } } } : line;
}

/** An app that waits for the owner. What else is said of apps, the snapshot tells. */
function asks(snapshot: OwnerState, { check, state, text }: Finding): Line[] {
  const app = snapshot.apps.find((one) => `app ${one.name}` === check);
  if (app?.status !== 'pending') return [];
  return [{ key: check, state, title: plain(strings.ask.title(app.label, app.approvedAt !== undefined)), text, fix: show(app) }];
}

const hostOf = (url: string): string => url.replace(/^https:\/\//, '');

/** The agent's own sentences in the words of this window. */
const server = (text: string): string => text.replaceAll('control plane', 'server').replaceAll('Control plane', 'Server');
