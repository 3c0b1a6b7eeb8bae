/* The words of what happened, in German: what ../activity.ts says in English. */
import { count, listed, number, type Sentence } from '../../sentence';
import type { Line, ofActivity as english } from '../activity';
import type { Spoken } from '../spoken';

type Part = Sentence[number];

const by = (l: Line): Part[] => (l.owner ? [' von Ihnen'] : l.by ? [' von ', { name: l.by }] : []);
const person = (l: Line): Part => (l.you ? 'Ihnen' : { name: l.email });
const till = (l: Line): Part[] => (l.until ? [`, bis ${l.until}`] : []);
const closed = (l: Line): Part[] => (l.closed > 0 ? [`. ${count(l.closed, 'Verbindung', 'Verbindungen')} getrennt`] : []);
const times = (l: Line): Part[] => (l.times > 1 ? [`, ${number.format(l.times)}-mal`] : []);
const an = (app: string): Part[] => (app ? [{ name: app }] : ['eine App']);
const port = (l: Line): Part[] => (l.port ? [`: Port ${l.port}`, ...(l.program ? [', ', { name: l.program }] : [])] : []);

export const ofActivity: Spoken<typeof english> = {
  activity: {
    find: 'Verlauf durchsuchen',
    show: 'Zeigen',
    groups: { all: 'Alles', visits: 'Besuche', decisions: 'Entscheidungen', trouble: 'Störungen' },
    app: 'App',
    allApps: 'Alle Apps',
    person: 'Person',
    everybody: 'Alle',
    you: 'Sie',
    export: 'Exportieren…',
    hereNow: 'Gerade hier',
    hasOpen: (labels, email, you) => [...listed(labels), ...(you ? [', als Sie'] : email ? [', als ', { name: email }] : [])],
    connections: (n) => count(n, 'Verbindung', 'Verbindungen'),
    disconnect: 'Trennen',
    disconnecting: 'Wird getrennt…',
    disconnectOf: (email, client, you) => (client ? [{ name: client }, you ? ' trennen' : ` von ${email} trennen`] : [`${email} trennen`]),
    disconnectHint: 'Getrennt können sie wiederkommen, bis sie entfernt oder widerrufen sind.',
    remove: 'Entfernen',
    removing: 'Wird entfernt…',
    removeOf: (email) => `${email} entfernen`,
    today: 'Heute',
    yesterday: 'Gestern',
    undo: 'Rückgängig',
    undoing: 'Einen Moment…',
    undoOf: (sentence) => `Rückgängig: ${sentence}`,
    prolong: 'Verlängern…',
    revoke: 'Widerrufen…',
    older: 'Ältere zeigen',
    reading: 'Wird gelesen…',
    did: {
      opened: (l) => [l.you ? 'Sie' : l.email, [l.you ? ' haben ' : ' hat ', ...an(l.app), ' geöffnet']],
      client: (l) => l.you ? [l.by || 'Ein Programm', [' hat ', ...an(l.app), ' als Sie geöffnet']] : [l.email, [' hat ', ...an(l.app), ...(l.by ? [' über ', { name: l.by }] : []), ' geöffnet']],
      invited: (l) => [l.email, [' wurde', ...by(l), ...(l.app ? [' zu ', { name: l.app }] : []), ' eingeladen', ...till(l), ...times(l)]],
      granted: (l) => [l.email, [' darf ', ...an(l.app), ' öffnen', ...(l.owner || l.by ? [', zugelassen', ...by(l)] : []), ...till(l), ...times(l)]],
      withdrawn: (l) => [l.email, [' wurde', ...by(l), ' aus ', ...an(l.app), ' entfernt', ...times(l), ...closed(l)]],
      removed: (l) => [l.email, [' wurde', ...by(l), ' entfernt', ...times(l), ...closed(l)]],
      cut: (l) => [(l.you && l.what) || l.email, [' wurde', ...by(l), ...(l.what && !l.you ? [', über ', { name: l.what }, ','] : []), ' getrennt', ...times(l), ...closed(l)]],
      restored: (l) => [l.email, l.app ? [' hat ', { name: l.app }, ' wieder wie zuvor'] : [' ist wieder da wie zuvor']],
      accepted: (l) => [l.email, [' hat Ihre Einladung angenommen', ...times(l)]],
      until: (l) => [l.email, [' darf ', ...an(l.app), ...(l.until ? [` bis ${l.until}`] : [' ohne Ende']), ' öffnen', ...(l.owner || l.by ? [', geändert', ...by(l)] : [])]],
      ended: (l) =>
        l.email ? [l.email, [' darf ', ...an(l.app), ' nicht mehr öffnen: beendet', ...closed(l)]] : [l.app, [` war bis ${l.until} genehmigt und ist widerrufen`, ...closed(l)]],
      left: (l) => [l.email, [' ist gegangen und darf nichts mehr öffnen']],
      browser: (l) => [l.you ? 'Sie' : l.email, [l.you ? ' haben' : ' hat', ' sich mit einem neuen Browser', ...(l.what ? [' unter ', { name: l.what }] : []), ' angemeldet', ...times(l)]],
      'knock-refused': (l) => [l.email, [' wurde', ...by(l), ' nicht zu ', ...an(l.app), ' zugelassen']],
      'knock-muted': (l) => [l.email, [' wurde', ...by(l), ' nicht zugelassen und kann nicht mehr fragen']],
      approved: (l) => [l.app, [' wurde', ...by(l), ' genehmigt', ...till(l), ...port(l)]],
      denied: (l) => [l.app, [' wurde', ...by(l), ' abgelehnt']],
      paused: (l) => [l.app, [' wurde', ...by(l), ' pausiert', ...closed(l)]],
      resumed: (l) => [l.app, [' wurde', ...by(l), ' fortgesetzt']],
      stopped: (l) => [l.app, [' ist nicht mehr freigegeben', ...closed(l)]],
      revoked: (l) => [l.app, [' wurde', ...by(l), ' widerrufen', ...closed(l)]],
      options: (l) => [l.app, [' hat andere Optionen', ...(l.owner || l.by ? [', gewählt', ...by(l)] : [])]],
      renamed: (l) => [l.app, [' heißt jetzt so', ...(l.what ? ['. Zuvor hieß es ', { name: l.what }] : []), ...times(l)]],
      'port-changed': (l) => [l.app, [` antwortet jetzt auf Port ${l.port}`, ...times(l)]],
      'program-changed': (l) => [l.app, [' wird jetzt beantwortet von ', ...(l.program ? [{ name: l.program }] : ['einem anderen Programm']), ...times(l)]],
      'client-in': (l) => [l.what || 'Eine verbundene App', [' wurde', ...(l.email ? [' von ', person(l)] : []), ' erlaubt', ...times(l)]],
      'client-out': (l) => [l.what || 'Eine verbundene App', l.owner ? [' wurde von Ihnen widerrufen', ...(l.email && !l.you ? [', für ', { name: l.email }] : []), ...closed(l)] : [' wurde', ...(l.email ? [' von ', person(l)] : []), ' getrennt', ...times(l)]],
      'password-made': (l) => [l.owner ? 'Ein App-Passwort' : l.email, [l.owner ? ' wurde von Ihnen angelegt' : ' hat ein App-Passwort angelegt', ' für ', ...an(l.app), ...(l.what ? [': ', { name: l.what }] : []), ...times(l)]],
      'password-revoked': (l) => ['Ein App-Passwort', [...(l.email && !l.you ? [' von ', { name: l.email }] : []), ' wurde', ...by(l), ' widerrufen', ...(l.what ? [': ', { name: l.what }] : []), ...times(l), ...closed(l)]],
      dark: (l) => ['Dunkel', [...(l.owner || l.by ? [',', ...by(l)] : []), ...closed(l)]],
      light: (l) => ['Wieder hell', l.owner || l.by ? [',', ...by(l)] : []],
      connected: (l) => ['Dieser Computer', [' wurde', ...by(l), ' mit ', { name: l.what }, ' verbunden']],
      disconnected: (l) => ['Dieser Computer', [' wurde', ...by(l), ' von ', { name: l.what }, ' getrennt']],
      'connect-failed': (l) => ['Das Verbinden', [' mit ', { name: l.what }, ' ist fehlgeschlagen']],
      settings: (l) => ['Die Einstellungen', [' wurden', ...by(l), ' geändert']],
      'user-allowed': (l) => [l.what, [', ein anderer Benutzer dieses Computers, darf ändern, wer hereinkommt', ...(l.owner ? [', erlaubt von Ihnen'] : [])]],
      'user-denied': (l) => [l.what, [', ein anderer Benutzer dieses Computers, darf nicht ändern, wer hereinkommt', ...(l.owner ? [', verboten von Ihnen'] : [])]],
      'server-away': (l) => [l.what, [' antwortete nicht mehr', ...times(l)]],
      'server-back': (l) => [l.what, [' antwortete wieder', ...times(l)]],
      'certificate-trouble': (l) => ['Kein Zertifikat', [...(l.what ? [' für ', { name: l.what }] : []), ', darum konnten Browser es nicht öffnen', ...times(l)]],
      'certificate-renewed': (l) => ['Das Zertifikat', [...(l.what ? [' von ', { name: l.what }] : []), ' hat sich erneuert', ...(l.until ? [`, gültig bis ${l.until}`] : [])]],
      'clock-ahead': () => ['Die Uhr', [' dieses Computers geht vor: Freigaben mit einem Datum können zu früh enden']],
      knocked: (l) => [l.email || 'Jemand', [' bat ', ...(l.app ? ['um ', { name: l.app }] : ['um Einlass']), ...times(l)]],
      'turned-away': (l) => [l.email || 'Jemand', [' wollte ', ...(l.app ? [{ name: l.app }] : ['eine App']), ' öffnen, ohne Zugang dazu', ...times(l)]],
      'password-refused': (l) => ['Ein falsches App-Passwort', [' wollte ', ...(l.app ? [{ name: l.app }] : ['eine App']), ' öffnen, ohne Zugang dazu', ...times(l)]],
      other: (l) => [l.email || l.app || l.what, l.email && l.app ? [' – ', { name: l.app }] : []],
    },
    kept: 'Nur hier gemerkt, 90 Tage lang.',
    clear: 'Leeren…',
    emptyTitle: 'Noch ist nichts geschehen',
    emptyText: 'Wer welche App öffnet und was Sie und Ihre Apps entscheiden, steht hier, nur auf diesem Computer, 90 Tage lang.',
    none: (query) => (query ? ['Nichts passt zu „', { name: query }, '“.'] : ['Davon gibt es nichts.']),
  },

  clearActivity: {
    title: ['Den Verlauf leeren?'],
    text: 'Wer was wann geöffnet hat und was entschieden wurde, wird vergessen. Es war nur auf diesem Computer gemerkt.',
    keep: 'Behalten',
    confirm: 'Leeren',
    busy: 'Wird geleert…',
  },
};
