/*
 * Opens the built page in the browser that setup.ts started, and what most tests
 * ask of it. A page that logs an error, violates its own policy or asks another
 * origin for anything fails the test that opened it.
 */
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
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
const contexts: BrowserContext[] = [];
let wrongs: string[] = [];

/** Errors, policy violations and foreign requests since it was last asked. */
export const wrong = () => wrongs.splice(0);

beforeAll(async () => {
  browser = await chromium.connect(inject('browser'));
});
afterAll(() => browser?.close());
afterEach(async () => {
  await Promise.all(contexts.splice(0).map((context) => context.close()));
  expect(wrong()).toEqual([]);
});

/** A page that shows a scene of the stub; see bridge.ts. */
export async function open({ scene = 'apps', width = 960, height = 640, theme = 'light', reducedMotion = true, forcedColors = false, language = 'en' }: Look = {}): Promise<Page> {
  const origin = inject('origin');
  const context = await browser.newContext({
    viewport: { width, height },
    deviceScaleFactor: 2,
    colorScheme: theme,
    reducedMotion: reducedMotion ? 'reduce' : 'no-preference',
    forcedColors: forcedColors ? 'active' : 'none',
  });
  contexts.push(context);
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
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
  await show(page, scene, language);
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
