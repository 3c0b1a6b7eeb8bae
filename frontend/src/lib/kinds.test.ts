// Holds the words of the window to the kinds there are in Go.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { nothing } from '../../tests/nothing';
import { strings } from './strings';

test('every setting that is on or off has its switch', () => {
  const { apps, safety } = strings.settings.toggles;
  const onOrOff = Object.entries(nothing.settings).filter(([, value]) => typeof value === 'boolean').map(([name]) => name);
  expect(Object.keys({ ...apps, ...safety }).sort()).toEqual(onOrOff.sort());
});

test('every kind of notification has its switch, every kind of activity its words', () => {
  const kinds = [...readFileSync('../agent/agentapi/kinds.go', 'utf8').matchAll(/^\tKind\w+\s+= "(\w+)"/gm)].map((m) => m[1]!);
  expect(kinds.length).toBeGreaterThan(0);
  expect(Object.keys(strings.settings.kinds).sort()).toEqual(kinds.sort());
  const activity = [...readFileSync('../agent/agentapi/activity.go', 'utf8').matchAll(/^\tActivity\w+\s+= "([\w-]+)"/gm)].map((m) => m[1]!);
  expect(activity.length).toBeGreaterThan(6);
  expect(Object.keys(strings.activity.did)).toEqual(expect.arrayContaining(activity));
});
