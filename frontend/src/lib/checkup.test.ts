import { expect, test } from 'vitest';
import { nothing } from '../../tests/nothing';
import { app } from '../../tests/scenes';
import { checkup } from './checkup';
import type { OwnerState } from './types';

const wrong = (more: Partial<OwnerState>) => checkup({ ...nothing.ownerState, reachable: true, ...more }, undefined, undefined).filter(({ state }) => state === 'wrong').map(({ key }) => key);

test('a trouble is told once, and always', () => {
  const trouble = 'There is no certificate for notes.maya.porch.example.';
  const certificate = { notAfter: '', renewsAfter: '', problem: trouble };
  expect(wrong({ trouble, apps: [app('notes', 'Notes', 3000, { certificate })] })).toEqual(['certificate notes']);
  // Of an app that is paused nothing is listed.
  expect(wrong({ trouble, apps: [app('notes', 'Notes', 3000, { certificate, paused: true })] })).toEqual(['trouble']);
  expect(wrong({ trouble, reachable: false, apps: [app('notes', 'Notes', 3000, { certificate })] })).toEqual(['trouble', 'certificate notes']);
});
