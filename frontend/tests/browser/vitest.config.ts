import { defineConfig } from 'vitest/config';

// The built page in a real Chromium, which all files share.
export default defineConfig({
  test: {
    environment: 'node',
    include: ['tests/browser/**/*.test.ts'],
    globalSetup: 'tests/browser/setup.ts',
    maxWorkers: 2,
    // For what never comes: a busy machine may be several times as slow as a quiet one.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
