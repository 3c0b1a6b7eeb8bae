import { svelte } from '@sveltejs/vite-plugin-svelte';
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
  plugins: [svelte(), contentSecurityPolicy, stubBridge],
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
