import { expect, test } from 'vitest';
import { asked } from './samples';
import type { Activity } from './types';
import { Visits } from './visits.svelte';

const line = (at: string, email: string, app: string, kind: Activity['kind'] = 'opened'): Activity => ({ at, email, app, kind });

test('the newest visit of each counts, to an app or to any', async () => {
  const visits = new Visits(
    asked({
      activityPage: { next: 0, lines: [
        line('2026-11-21T12:00:00Z', 'bob', 'Notes', 'granted'), // nobody came by that
        line('2026-11-21T11:00:00Z', 'bob', 'Photos', 'client'),
        line('2026-11-21T10:00:00Z', 'bob', 'Notes'),
        line('2026-11-20T10:00:00Z', 'bob', 'Notes'),
      ] },
    }),
  );
  expect([visits.known, visits.last('bob')]).toEqual([false, '']);
  await visits.read();
  expect(visits.known).toBe(true);
  expect(visits.last('bob')).toBe('2026-11-21T11:00:00Z');
  expect(visits.last('bob', 'Notes')).toBe('2026-11-21T10:00:00Z');
  expect(visits.last('bob', 'Wiki')).toBe('');
  expect(visits.last('carla')).toBe('');
});

test('what was read stays when it cannot be read again, and an older answer is dropped', async () => {
  let answer: () => Promise<Activity[]> = async () => [line('1', 'bob', 'Notes')];
  const visits = new Visits(asked({ activityPage: async () => ({ next: 0, lines: await answer() }) }));
  await visits.read();
  answer = () => Promise.reject(new Error('away'));
  await visits.read();
  expect(visits.last('bob')).toBe('1');
  let late = (_: Activity[]) => {};
  answer = () => new Promise((resolve) => (late = resolve));
  const old = visits.read();
  answer = async () => [line('3', 'bob', 'Notes')];
  await visits.read();
  late([line('2', 'bob', 'Notes')]);
  await old;
  expect(visits.last('bob')).toBe('3');
});
