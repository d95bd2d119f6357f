import type { Reporter, TestModule } from 'vitest/node'

/** Ends the run with one plain line that any CI can read. */
export default class Closing implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      const tests = [...module.children.allTests()]
      for (const test of tests) count[test.result().state] += 1
      // A file that breaks before its tests are known has failed all the same.
      if (module.state() === 'failed' && !tests.some((test) => test.result().state === 'failed')) count.failed += 1
    }
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped + count.pending} skipped\n`)
  }
}
