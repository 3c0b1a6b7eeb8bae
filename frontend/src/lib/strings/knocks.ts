/* The words about people who ask to be let in. */
import { count, type Sentence } from '../sentence';

export const ofKnocks = {
  knocks: {
    section: 'Asking to come in',
    title: (email: string, label: string): Sentence => (label ? [{ name: email }, ' would like ', { name: label }] : [{ name: email }, ' would like to see something of yours']),
    asked: (ago: string, known: boolean) => `Asked ${ago}, signed in with this address. ${known ? 'Waiting on the page.' : 'New to this computer, waiting on the page.'}`,
    row: (label: string, ago: string, known: boolean): Sentence => [...(known ? [] : ['New. ']), ...(label ? ['Would like ', { name: label }, `, ${ago}`] : [`Would like to see something of yours, ${ago}`])],
    today: 'Today',
    always: 'Always',
    no: 'No',
    never: 'Never ask again',
    invite: 'Invite…',
    waits: 'Letting somebody in waits for your keychain.',
    hint: 'Today ends at midnight.',
    answer: (answer: string, email: string, label: string): Sentence => [`${answer}: `, { name: email }, ...(label ? [', ', { name: label }] : [])],
    answering: 'Answering…',
    more: (n: number) => `${count(n, 'more person asks', 'more people ask')}`,
    showAll: 'Show all',
  },
  toastKnock: {
    today: (email: string, label: string): Sentence => [{ name: email }, ' can open ', { name: label }, ' until midnight. Their page goes on by itself.'],
    always: (email: string, label: string): Sentence => [{ name: email }, ' can open ', { name: label }, '. Their page goes on by itself.'],
    invited: (email: string, label: string): Sentence => [{ name: email }, ' can open ', { name: label }, ' after one click on the page they wait on.'],
    invitedToday: (email: string, label: string): Sentence => [{ name: email }, ' can open ', { name: label }, ' until midnight, after one click on the page they wait on.'],
    no: (email: string): Sentence => [{ name: email }, ' isn’t let in, and sees no answer.'],
    never: (email: string): Sentence => ['You hear nothing more of ', { name: email }, ' until you invite them.'],
  },
};
