import type { Reporter, TestModule } from 'vitest/node'

/** Ends a run with one plain line that any tool can read. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const count = { passed: 0, failed: errors.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      for (const test of module.children.allTests()) count[test.result().state] += 1
      // A file that could not be loaded has no tests that could fail.
      if (module.errors().length > 0) count.failed += 1
    }
    const skipped = count.skipped + count.pending
    console.log(`${count.passed} passed, ${count.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  }
}
