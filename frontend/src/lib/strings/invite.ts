/* The words of inviting: the form, what became of it, and the links to hand over. */
import { count, listed, number, type Sentence } from '../sentence';

/** What the hint says of the time: "until Saturday 28 November", or without an end. */
const until = (day: string) => (day ? `, until ${day}. ` : ', without an end. ');

export const ofInvite = {
  invite: {
    yourName: 'Your name',
    yourNameText: 'In invitations.',
    yourNameNone: 'Your address alone',
    title: 'Invite',
    close: 'Close',
    emails: 'E-mail addresses',
    placeholder: 'name@example.com',
    more: 'One more',
    takeOut: (email: string) => `Take out ${email}`,
    noAddress: (text: string): Sentence => ['“', { name: text }, '” is not an e-mail address.'],
    tooMany: (most: number) => `At most ${number.format(most)} at once.`,
    line: 'A line from you',
    mayBeEmpty: '– optional',
    linePlaceholder: 'The pictures from Lisbon are in. Have a look.',
    left: (n: number) => (n === 1 ? '1 character left' : `${number.format(n)} characters left`),
    mayOpen: 'May open',
    until: 'Until',
    today: 'Today',
    week: 'A week',
    date: 'A date…',
    always: 'Always',
    lastDay: 'Last day',
    chooseApp: 'Choose at least one app.',
    chooseDay: 'Choose a day from today on.',
    hint: (apps: readonly string[], day: string, from: string): Sentence => [
      ...listed(apps), until(day), 'Each gets one mail from ', { name: from }, '; the link in it works for 7 days, only for that address.',
    ],
    hintFromYou: (apps: readonly string[], day: string): Sentence => [
      ...listed(apps), until(day), 'Each gets one mail; the link in it works for 7 days, only for that address.',
    ],
    hintLocal: (apps: readonly string[], day: string): Sentence => [
      ...listed(apps), until(day), 'The mails stay in the outbox: nobody else can reach this computer yet.',
    ],
    send: (n: number) => (n < 2 ? 'Send invitation' : `Send ${number.format(n)} invitations`),
    sending: 'Sending…',
    copyLinks: 'Copy links…',
    copyLinksHint: 'Makes the invitations and mails nothing: you hand over the links.',
    making: 'Making them…',
    invitedAll: (first: string, more: number, local: boolean): Sentence => [
      { name: first },
      more === 0 ? ' is invited. ' : ` and ${number.format(more)} more are invited. `,
      local ? (more === 0 ? 'The mail is in the outbox.' : 'The mails are in the outbox.') : more === 0 ? 'The mail is on its way.' : 'The mails are on their way.',
    ],
    someFailed: (invited: number, refused: number) =>
      `${invited === 0 ? 'Nobody is invited.' : `${count(invited, 'person is', 'people are')} invited.`} ${count(refused, 'address', 'addresses')} could not be invited; ${refused === 1 ? 'it stays' : 'they stay'} above.`,

    links: (n: number, day: string) => `${count(n, 'link', 'links')}${day ? `, until ${day}` : ''}`,
    noLinks: 'No link',
    copyLink: 'Copy link',
    copyLinkOf: (email: string) => `Copy link for ${email}`,
    qr: 'QR code',
    qrOf: (email: string) => `QR code for ${email}`,
    theLink: (email: string) => `Link for ${email}`,
    /** Of one address, or with none of each its own. */
    linkSigns: (email: string, apps: readonly string[], day: string): Sentence => [
      ...(email
        ? ['It names the invitation and signs nobody in. Whoever opens it is asked for the code that is mailed to ', { name: email }]
        : ['Each names its invitation and signs nobody in. Whoever opens it is asked for the code that is mailed to its address']),
      '; then one click, and ', ...listed(apps), apps.length === 1 ? ' opens' : ' open', day ? ` until ${day}.` : '.',
    ],
    linkUntil: (day: string, email: string): Sentence => [`Works until ${day}. Removing `, { name: email }, ' ends the link too.'],
    linkLocal: 'Nobody else can reach this computer until it is connected to a server: the link works only on this computer.',
    noLink: 'The server gives no links yet; it has to be updated.',
    copied: (email: string): Sentence => ['The link for ', { name: email }, ' is copied. It signs nobody in.'],
  },
} as const;
