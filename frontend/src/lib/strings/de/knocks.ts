/* The words of people who ask to be let in, in German: what ../knocks.ts says in English. */
import { count } from '../../sentence';
import type { ofKnocks as english } from '../knocks';
import type { Spoken } from '../spoken';

export const ofKnocks: Spoken<typeof english> = {
  knocks: {
    section: 'Klopft an',
    title: (email, label) => (label ? [{ name: email }, ' möchte ', { name: label }, ' öffnen'] : [{ name: email }, ' möchte etwas von Ihnen sehen']),
    asked: (ago, known) => `Gefragt ${ago}, mit dieser Adresse angemeldet. ${known ? 'Wartet auf der Seite.' : 'Neu auf diesem Computer, wartet auf der Seite.'}`,
    row: (label, ago, known) => [...(known ? [] : ['Neu. ']), ...(label ? ['Möchte ', { name: label }, ` öffnen, ${ago}`] : [`Möchte etwas von Ihnen sehen, ${ago}`])],
    today: 'Heute',
    always: 'Immer',
    no: 'Nein',
    never: 'Nicht mehr fragen',
    invite: 'Einladen…',
    waits: 'Hereinlassen wartet auf Ihren Schlüsselbund.',
    hint: 'Heute endet um Mitternacht.',
    answer: (answer, email, label) => [`${answer}: `, { name: email }, ...(label ? [', ', { name: label }] : [])],
    answering: 'Antwortet…',
    more: (n) => `${count(n, 'weitere Person klopft an', 'weitere klopfen an')}`,
    showAll: 'Alle zeigen',
  },
  toastKnock: {
    today: (email, label) => [{ name: email }, ' kann ', { name: label }, ' bis Mitternacht öffnen. Die Seite geht von selbst weiter.'],
    always: (email, label) => [{ name: email }, ' kann ', { name: label }, ' öffnen. Die Seite geht von selbst weiter.'],
    invited: (email, label) => [{ name: email }, ' kann ', { name: label }, ' nach einem Klick auf der Seite öffnen, die wartet.'],
    invitedToday: (email, label) => [{ name: email }, ' kann ', { name: label }, ' bis Mitternacht öffnen, nach einem Klick auf der Seite, die wartet.'],
    no: (email) => [{ name: email }, ' kommt nicht herein und sieht keine Antwort.'],
    never: (email) => ['Von ', { name: email }, ' hören Sie nichts mehr, bis Sie einladen.'],
  },
};
