import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    environment: 'node',
    reporters: ['default', './test/support/summary-reporter.ts'],
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    // Processes, not threads: tests start servers, and kill them.
    pool: 'forks',
    // Each test file brings a service and load of its own; more at once than processors only makes deadlines miss.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
