import { defineConfig } from 'vitest/config';

// The built page in a real Chromium. One file after the other: two cores.
export default defineConfig({
  test: {
    environment: 'node',
    include: ['tests/browser/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
