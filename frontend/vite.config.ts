import { svelte } from '@sveltejs/vite-plugin-svelte';
import { readFileSync } from 'node:fs';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

// The page may load what is embedded beside it and nothing else. Wails puts its
// two scripts (/wails/ipc.js, /wails/runtime.js) before this element; they come
// from the same origin, and neither evaluates strings.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

// Only built pages carry the policy: the development server needs inline styles
// and a socket.
const contentSecurityPolicy: Plugin = {
  name: 'porchlight:csp',
  apply: 'build',
  transformIndexHtml: () => [
    {
      tag: 'meta',
      attrs: { 'http-equiv': 'Content-Security-Policy', content: policy },
      injectTo: 'head-prepend',
    },
  ],
};

// Whoever has the program can read whose work is in it: `porchlight licenses` prints
// what build/licenses found, and that takes the packages of npm by their names.
const licensed: Plugin = {
  name: 'porchlight:licensed',
  apply: 'build',
  generateBundle(_, bundle) {
    const printed = readFileSync('../internal/commandline/licenses.txt', 'utf8');
    for (const chunk of Object.values(bundle)) {
      for (const id of chunk.type === 'chunk' ? Object.keys(chunk.modules) : []) {
        const name = /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)?.[1];
        if (name && !printed.includes(`\n${name} `)) {
          this.error(`${name} is linked into the window. Name it in build/licenses, and run: go generate ./internal/commandline`);
        }
      }
    }
  },
};

// `npm run dev` shows the window in a browser, with the stub the tests use in
// the place of Wails.
const stubBridge: Plugin = {
  name: 'porchlight:stub-bridge',
  apply: 'serve',
  transformIndexHtml: () => [
    { tag: 'script', attrs: { type: 'module', src: '/tests/bridge.ts' }, injectTo: 'head-prepend' },
  ],
};

export default defineConfig({
  plugins: [svelte(), contentSecurityPolicy, licensed, stubBridge],
  // Vite empties dist before it writes; public/.gitkeep puts back the file that
  // lets the Go package compile without a build.
  publicDir: 'public',
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // Oldest web views: WebKitGTK 2.40, WKWebView of Safari 16.4, WebView2 (evergreen).
    target: ['safari16.4', 'chrome111'],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  server: { host: '127.0.0.1' },
  resolve: process.env.VITEST ? { conditions: ['browser'] } : {},
  test: {
    environment: 'node', // a file that needs a page says so: one is made in most of a second
    include: ['src/**/*.test.ts'],
    restoreMocks: true,
    testTimeout: 60_000, // for what never comes
  },
});
