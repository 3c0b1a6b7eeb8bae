import { expect, test } from 'vitest';
import { plain } from './sentence';
import { strings } from './strings';

const say = (was: string, program: string, user: string) =>
  plain(strings.ask.otherUser('Notes', 8000, was, program, user)).replace(/[\u2068\u2069]/g, '');

test.each([
  ['ada', '', 'nobody', 'Notes was approved for ada; now a program of nobody listens on port 8000.'],
  ['ada', 'nc', 'nobody', 'Notes was approved for ada; now nc, run by nobody, listens on port 8000.'],
  ['ada', '', '', 'Notes was approved for ada; now a program that cannot be seen listens on port 8000.'],
  ['', '', 'nobody', 'Notes was approved for a program that could not be seen; now a program of nobody listens on port 8000.'],
])('a change of the listener from %j to %j of %j is a sentence', (was, program, user, want) => {
  expect(say(was, program, user)).toBe(want);
});
