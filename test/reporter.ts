import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node'

/** Ends the run with one plain line that any CI can read. Tests of another tier are no skipped ones. */
export default class Closing implements Reporter {
  #filter: string | undefined

  onInit(vitest: Vitest): void {
    const filter = vitest.config.tagsFilter
    this.#filter = Array.isArray(filter) ? filter[0] : filter
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      const tests = [...module.children.allTests()]
      for (const test of tests) if (this.#isOfTier(test)) count[test.result().state] += 1
      // A file that breaks before its tests are known has failed all the same.
      if (module.state() === 'failed' && !tests.some((test) => test.result().state === 'failed')) count.failed += 1
    }
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped + count.pending} skipped\n`)
  }

  #isOfTier({ tags }: TestCase): boolean {
    const isApart = tags.includes('peers') || tags.includes('long')
    return this.#filter === undefined || (this.#filter === 'peers or long') === isApart
  }
}
