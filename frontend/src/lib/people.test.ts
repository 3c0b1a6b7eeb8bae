import { expect, test } from 'vitest';
import { asked } from './samples';
import { isOwner, labelsOf, named, People } from './people.svelte';
import type { People as Listing, Person } from './types';

const person = (email: string, more: Partial<Person> = {}): Person => ({ email, accountId: `acc-${email}`, role: 'member', status: 'active', apps: [], ...more });
const listing = (...members: Person[]): Listing => ({ name: 'maya', members, publishedApps: ['Notes'] });

test('the last answer asked for counts, whichever comes last', async () => {
  const answers: ((listing: Listing) => void)[] = [];
  const people = new People(asked({ ownerPeople: () => new Promise((resolve) => answers.push(resolve)) }));
  expect([people.members, people.labels]).toEqual([[], []]);
  const first = people.read();
  const second = people.read();
  answers[1]!(listing(person('second')));
  answers[0]!(listing(person('first')));
  await Promise.all([first, second]);
  expect(people.members.map((one) => one.email)).toEqual(['second']);
  expect(people.labels).toEqual(['Notes']);
});

test('what was known stays while the list cannot be had', async () => {
  let answer: () => Promise<Listing> = async () => listing(person('bob'));
  const people = new People(asked({ ownerPeople: () => answer() }));
  await people.read();
  answer = () => Promise.reject(new Error('The server does not answer.'));
  await people.read();
  expect([people.members.length, people.problem]).toEqual([1, 'The server does not answer.']);
  answer = async () => listing();
  await people.read();
  expect([people.members.length, people.problem]).toEqual([0, '']);
});

test('an older question that fails says nothing any more', async () => {
  const fails: ((error: Error) => void)[] = [];
  const people = new People(asked({ ownerPeople: () => new Promise((_, reject) => fails.push(reject)) }));
  const first = people.read();
  const second = people.read();
  fails[0]!(new Error('old'));
  await first;
  expect(people.problem).toBe('');
  fails[1]!(new Error('new'));
  await second;
  expect(people.problem).toBe('new');
});

test('only the owner is the owner', () => {
  expect([isOwner(person('maya', { role: 'owner' })), isOwner(person('owner@example.com'))]).toEqual([true, false]);
});

test.each([
  ['few keep their order', ['b'], ['a', 'b', 'c'], ['a', 'b', 'c']],
  ['what is had and not to be given comes last', ['x', 'b'], ['a', 'b'], ['a', 'b', 'x']],
  ['nothing had', [], ['a'], ['a']],
  ['nothing to give', ['a'], [], ['a']],
])('labels: %s', (_, has, labels, want) => expect(labelsOf(has, labels)).toEqual(want));

test('of many labels, those had come first, each once', () => {
  const labels = Array.from({ length: 20 }, (_, i) => `app ${i}`);
  const got = labelsOf(['app 7', 'gone'], labels);
  expect(got.slice(0, 3)).toEqual(['app 7', 'gone', 'app 0']);
  expect([got.length, new Set(got).size]).toEqual([21, 21]);
});

test.each([
  [[], { labels: [], more: 0 }],
  [['a', 'b', 'c', 'd'], { labels: ['a', 'b', 'c', 'd'], more: 0 }], // "and 1 more" is no shorter
  [['a', 'b', 'c', 'd', 'e'], { labels: ['a', 'b', 'c'], more: 2 }],
])('%j is named %j', (labels, want) => expect(named(labels)).toEqual(want));
