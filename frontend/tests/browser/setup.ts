/*
 * What every test file shares, started once: a Chromium, and a server that hands
 * out the built page the way Wails does, from one origin and with its two
 * scripts put in front of everything else in <head>, here answered by the stub.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { chromium } from 'playwright-core';
import { build, type Rolldown } from 'vite';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the browser takes orders (ws:). */
    browser: string;
    /** Where the page is served (http:, no slash at its end). */
    origin: string;
  }
}

const dist = join(import.meta.dirname, '../../dist');
const html = 'text/html; charset=utf-8';
const types: Record<string, string> = { '.html': html, '.js': 'text/javascript', '.css': 'text/css' };
const wails = '<script src="/wails/ipc.js"></script><script src="/wails/runtime.js"></script>';

export default async function setup(project: TestProject) {
  if (!existsSync(join(dist, 'index.html'))) throw new Error('dist/ holds no page; run npm run build first');
  const lib = { entry: join(import.meta.dirname, '../bridge.ts'), formats: ['iife' as const], name: 'bridge' };
  const [{ output: [stub] }] = (await build({ configFile: false, logLevel: 'error', build: { write: false, lib } })) as [Rolldown.RolldownOutput];
  const server = createServer((request, response) => {
    const path = new URL(request.url!, 'http://window').pathname;
    if (path.startsWith('/wails/')) {
      response.setHeader('content-type', 'text/javascript').end(path === '/wails/runtime.js' ? stub.code : '');
      return;
    }
    if (path === '/empty') {
      response.setHeader('content-type', html).end('<!doctype html><title>Between two tests</title>');
      return;
    }
    const file = join(dist, normalize(path === '/' ? '/index.html' : path));
    if (!file.startsWith(dist) || !existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    const body = readFileSync(file);
    response.setHeader('content-type', types[extname(file)] ?? 'application/octet-stream');
    response.end(path === '/' ? body.toString().replace('<head>', `<head>${wails}`) : body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const browser = await chromium.launchServer({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run',
      '--js-flags=--expose-gc',
    ],
  });
  project.provide('browser', browser.wsEndpoint());
  project.provide('origin', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return async () => {
    await browser.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
}
