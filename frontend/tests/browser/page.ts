/*
 * Opens the built page the way Wails does: from one origin, with its two scripts
 * put in front of everything else in <head>, here answered by the stub. A page
 * that logs an error, violates its own policy or asks another origin for
 * anything fails the test that opened it.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';

const dist = join(import.meta.dirname, '../../dist');
const stub = readFileSync(join(import.meta.dirname, '../bridge.js'), 'utf8');
const types: Record<string, string> = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css' };

export interface Opened {
  page: Page;
  /** Errors, policy violations and foreign requests so far. */
  wrongs: string[];
}

export interface Look {
  scene?: string;
  width?: number;
  height?: number;
  theme?: 'light' | 'dark';
  reducedMotion?: boolean;
  forcedColors?: boolean;
}

export class Window {
  #server!: Server;
  #browser!: Browser;
  #contexts: BrowserContext[] = [];

  async start() {
    if (!existsSync(join(dist, 'index.html'))) throw new Error('dist/ holds no page; run npm run build first');
    this.#server = createServer((request, response) => {
      const path = new URL(request.url!, 'http://window').pathname;
      if (path.startsWith('/wails/')) {
        response.setHeader('content-type', 'text/javascript').end(path === '/wails/runtime.js' ? stub : '');
        return;
      }
      const file = join(dist, normalize(path === '/' ? '/index.html' : path));
      if (!file.startsWith(dist) || !existsSync(file)) {
        response.writeHead(404).end();
        return;
      }
      response.setHeader('content-type', types[extname(file)] ?? 'application/octet-stream');
      const body = readFileSync(file);
      response.end(
        path === '/' ? body.toString().replace('<head>', '<head><script src="/wails/ipc.js"></script><script src="/wails/runtime.js"></script>') : body,
      );
    });
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.#browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
    });
  }

  async stop() {
    await this.#browser?.close();
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  async closePages() {
    await Promise.all(this.#contexts.splice(0).map((context) => context.close()));
  }

  async open({ scene = 'apps', width = 960, height = 640, theme = 'light', reducedMotion = true, forcedColors = false }: Look = {}): Promise<Opened> {
    const origin = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    const context = await this.#browser.newContext({
      viewport: { width, height },
      deviceScaleFactor: 2,
      colorScheme: theme,
      reducedMotion: reducedMotion ? 'reduce' : 'no-preference',
      forcedColors: forcedColors ? 'active' : 'none',
    });
    this.#contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    const wrongs: string[] = [];
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
    await page.goto(`${origin}/?scene=${scene}`);
    await page.locator('main[aria-busy="false"]').waitFor();
    return { page, wrongs };
  }
}
