import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two processes at most: real servers run beside the tests.
    maxWorkers: 2,
    pool: 'forks',
    reporters: ['default', './test/reporter.ts'],
  },
})
