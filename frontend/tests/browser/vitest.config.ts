import { defineConfig } from 'vitest/config';

// The built page in a real Chromium, which all files share.
export default defineConfig({
  test: {
    environment: 'node',
    include: ['tests/browser/**/*.test.ts'],
    globalSetup: 'tests/browser/setup.ts',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
