/*
 * Opens the built page in the browser that setup.ts started, and what most tests
 * ask of it. A page that logs an error, violates its own policy or asks another
 * origin for anything fails the test that opened it.
 */
import axe from 'axe-core';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, inject } from 'vitest';
import type { Desk, Operations, Shell } from '../../src/lib/types';

export interface Look {
  scene?: string;
  width?: number;
  height?: number;
  theme?: 'light' | 'dark';
  reducedMotion?: boolean;
  forcedColors?: boolean;
  language?: 'en' | 'de' | 'en-XA';
}

let browser: Browser;
// A page is used again by the tests after the one it was opened for: most of what
// one costs is its beginning. It keeps nothing (see leave).
const idle: Page[] = [];
const used: Page[] = [];
let wrongs: string[] = [];

/** Errors, policy violations and foreign requests since it was last asked. */
export const wrong = () => wrongs.splice(0);

beforeAll(async () => {
  browser = await chromium.connect(inject('browser'));
});
afterAll(() => browser?.close());
afterEach(async ({ task }) => {
  const pages = used.splice(0);
  // What a failed test left is not handed on.
  if (task.result?.state === 'fail') await Promise.all(pages.map((page) => page.context().close()));
  else idle.push(...(await Promise.all(pages.map(leave))));
  expect(wrong()).toEqual([]);
});

/** The page without what the last test left in it. It stays at its origin: at another it would be a new process. */
async function leave(page: Page) {
  await page.evaluate(() => {
    localStorage.clear();
    sessionStorage.clear();
  });
  await page.goto(`${inject('origin')}/empty`);
  await page.mouse.move(0, 0);
  return page;
}

/** A page that shows a scene of the stub; see bridge.ts. */
export async function open({ scene = 'apps', width = 960, height = 640, theme = 'light', reducedMotion = true, forcedColors = false, language = 'en' }: Look = {}): Promise<Page> {
  const page = idle.pop() ?? (await begin());
  used.push(page);
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: theme, reducedMotion: reducedMotion ? 'reduce' : 'no-preference', forcedColors: forcedColors ? 'active' : 'none' });
  await show(page, scene, language);
  return page;
}

/** A page of its own, which notes what goes wrong in it. */
async function begin(): Promise<Page> {
  const origin = inject('origin');
  const page = await (await browser.newContext({ deviceScaleFactor: 2 })).newPage();
  page.setDefaultTimeout(30_000);
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.location().url.endsWith('/favicon.ico')) wrongs.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => wrongs.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    wrongs.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(origin)) wrongs.push(`request: ${request.url()}`);
  });
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  return page;
}

/** Loads the page anew with another scene. */
export async function show(page: Page, scene: string, language = 'en') {
  await page.goto(`${inject('origin')}/?scene=${scene}${language === 'en' ? '' : `&language=${language}&locale=${language}`}`);
  await page.locator('main[aria-busy="false"]').waitFor();
}

/** Goes to a view by the sidebar. */
export const go = (page: Page, name: string) => page.getByRole('navigation').getByRole('button', { name: new RegExp(`^${name}`) }).click();

const calls = (page: Page) => page.evaluate('stub.calls') as Promise<[string, ...unknown[]][]>;

/** What each call of one name was given so far: the values of an operation, or the arguments of what Go bound. */
export const called = async (page: Page, name: keyof Operations | keyof Desk | keyof Shell) => (await calls(page)).filter(([each]) => each === name).map(([, ...given]) => given);

export const menuOf = (page: Page, label: string) => page.getByRole('button', { name: new RegExp(`^More for .?${label}`) });
export const toast = (page: Page) => page.locator('.toast');

/** Waits for a toast that says so; the marks around names are left out. */
export const told = (page: Page, text: string) => expect.poll(async () => ((await toast(page).textContent({ timeout: 1000 }).catch(() => '')) ?? '').replace(/[\u2068\u2069]/g, '')).toContain(text);

export const section = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

/** Goes to the settings, and unfolds what stands under More. */
export async function allSettings(page: Page) {
  await go(page, 'Settings');
  await page.locator('#more:not(:has([open])) summary').press('Enter');
}

/** What has the focus: its own name, or the text of a region. */
export const focusName = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement!;
    const labelled = element.getAttribute('aria-labelledby');
    const text = element.getAttribute('aria-label') ?? (labelled ? document.getElementById(labelled)?.textContent : element.textContent) ?? '';
    return text.replace(/[\u2068\u2069]/g, '').trim();
  });

/** Waits until a press of the mouse on the newest request counts (see deciding). */
export const settle = (page: Page) =>
  page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        const since = performance.now();
        const look = () => (performance.now() - since > 450 ? resolve() : requestAnimationFrame(look));
        look();
      }),
  );

const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** What axe finds, by its rules or by one of them. */
export async function audit(page: Page, rule?: string): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe.source);
  return page.evaluate(
    async ({ tags, rule }) => {
      const { axe } = globalThis as unknown as { axe: typeof import('axe-core') };
      const results = await axe.run(document, { runOnly: rule ? { type: 'rule', values: [rule] } : { type: 'tag', values: tags }, resultTypes: ['violations'] });
      return results.violations.flatMap((v) => v.nodes.map((node) => `${v.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
    },
    { tags, rule },
  );
}

const shots = process.env.SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

/** A picture for people to look at, where SHOTS says where to. */
export const shot = async (page: Page, name: string) => {
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`) });
};
