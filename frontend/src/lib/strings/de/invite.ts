/* The words of inviting, in German: what ../invite.ts says in English. */
import { count, listed, number } from '../../sentence';
import type { ofInvite as english } from '../invite';
import type { Spoken } from '../spoken';

const until = (day: string) => (day ? `, bis ${day}. ` : ', ohne Ende. ');

export const ofInvite: Spoken<typeof english> = {
  invite: {
    yourName: 'Ihr Name',
    yourNameText: 'In Einladungen.',
    yourNameNone: 'Nur Ihre Adresse',
    title: 'Einladen',
    close: 'Schließen',
    emails: 'E-Mail-Adressen',
    placeholder: 'name@example.com',
    more: 'Noch eine',
    takeOut: (email) => `${email} herausnehmen`,
    noAddress: (text) => ['„', { name: text }, '“ ist keine E-Mail-Adresse.'],
    tooMany: (most) => `Höchstens ${number.format(most)} auf einmal.`,
    line: 'Eine Zeile von Ihnen',
    mayBeEmpty: '– freiwillig',
    linePlaceholder: 'Die Bilder aus Lissabon sind da.',
    left: (n) => `noch ${number.format(n)} Zeichen`,
    mayOpen: 'Darf öffnen',
    until: 'Bis',
    today: 'Heute',
    week: 'Eine Woche',
    date: 'Ein Datum…',
    always: 'Immer',
    lastDay: 'Letzter Tag',
    chooseApp: 'Wählen Sie mindestens eine App.',
    chooseDay: 'Wählen Sie einen Tag ab heute.',
    hint: (apps, day, from) => [...listed(apps), until(day), 'Jede Person bekommt eine E-Mail von ', { name: from }, '; der Link darin gilt 7 Tage, nur für diese Adresse.'],
    hintFromYou: (apps, day) => [...listed(apps), until(day), 'Jede Person bekommt eine E-Mail; der Link darin gilt 7 Tage, nur für diese Adresse.'],
    hintLocal: (apps, day) => [...listed(apps), until(day), 'Die E-Mails bleiben im Postausgang: noch erreicht niemand sonst diesen Computer.'],
    send: (n) => (n < 2 ? 'Einladung senden' : `${number.format(n)} Einladungen senden`),
    sending: 'Wird gesendet…',
    copyLinks: 'Links kopieren…',
    copyLinksHint: 'Lädt ein, ohne E-Mails zu senden: die Links geben Sie selbst weiter.',
    making: 'Einen Moment…',
    invitedAll: (first, more, local) => [
      { name: first },
      more === 0 ? ' ist eingeladen. ' : ` und ${number.format(more)} weitere sind eingeladen. `,
      local ? (more === 0 ? 'Die E-Mail ist im Postausgang.' : 'Die E-Mails sind im Postausgang.') : more === 0 ? 'Die E-Mail ist unterwegs.' : 'Die E-Mails sind unterwegs.',
    ],
    someFailed: (invited, refused) =>
      `${invited === 0 ? 'Niemand ist eingeladen.' : `${count(invited, 'Person ist', 'Personen sind')} eingeladen.`} ${count(refused, 'Adresse ließ', 'Adressen ließen')} sich nicht einladen und ${refused === 1 ? 'bleibt' : 'bleiben'} oben stehen.`,

    links: (n, day) => `${count(n, 'Link', 'Links')}${day ? `, bis ${day}` : ''}`,
    noLinks: 'Kein Link',
    copyLink: 'Link kopieren',
    copyLinkOf: (email) => `Link kopieren für ${email}`,
    qr: 'QR-Code',
    qrOf: (email) => `QR-Code für ${email}`,
    theLink: (email) => `Link für ${email}`,
    linkSigns: (email, apps, day) => [
      ...(email
        ? ['Er nennt die Einladung und meldet niemanden an. Wer ihn öffnet, wird nach dem Code gefragt, der an ', { name: email }]
        : ['Jeder nennt seine Einladung und meldet niemanden an. Wer ihn öffnet, wird nach dem Code gefragt, der an die eingeladene Adresse']),
      ' geht; dann ein Klick, und ', ...listed(apps), apps.length === 1 ? ' öffnet sich' : ' öffnen sich', day ? ` bis ${day}.` : '.',
    ],
    linkUntil: (day, email) => [`Gilt bis ${day}. `, { name: email }, ' zu entfernen beendet auch den Link.'],
    linkLocal: 'Niemand sonst erreicht diesen Computer, bis er mit einem Server verbunden ist: der Link gilt nur auf diesem Computer.',
    noLink: 'Der Server gibt noch keine Links; er muss aktualisiert werden.',
    copied: (email) => ['Der Link für ', { name: email }, ' ist kopiert. Er meldet niemanden an.'],
  },
};
