import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

/** Files that take at least so many seconds are begun first: of those of the slow tier, nobody waits for a short one. */
const leastSecondsOf = (file: string): number => (/\.(?:long|peers)\.test\.ts$/.test(file) ? 10 : 3)

/**
 * Ends the run with one plain line that any CI can read. With SVC_TEST_LONGEST=1 it also writes to longest.json which of
 * its files took long; vitest.config.ts reads that. SVC_TEST_FAILED names a file for the names of the files that failed.
 */
export default class Closing implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 }
    for (const module of modules) {
      const tests = [...module.children.allTests()]
      for (const test of tests) count[test.result().state] += 1
      // A file that breaks before its tests are known has failed all the same.
      if (module.state() === 'failed' && !tests.some((test) => test.result().state === 'failed')) count.failed += 1
    }
    if (process.env.SVC_TEST_LONGEST === '1') writeDurations(modules)
    // An error outside of all files fails whatever is repeated.
    if (process.env.SVC_TEST_FAILED && unhandled.length === 0) writeFailed(process.env.SVC_TEST_FAILED, modules)
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed, ${count.skipped + count.pending} skipped\n`)
  }
}

/** One name on each line. */
function writeFailed(path: string, modules: readonly TestModule[]): void {
  const names = modules.filter((module) => !module.ok()).map(({ relativeModuleId }) => relativeModuleId)
  writeFileSync(path, [...new Set(names)].map((name) => `${name}\n`).join(''))
}

/** Seconds by file, the longest first. Files that this run did not contain keep theirs. */
function writeDurations(modules: readonly TestModule[]): void {
  const page = new URL('./longest.json', import.meta.url)
  const seconds = new Map(Object.entries(JSON.parse(readFileSync(page, 'utf8')) as Readonly<Record<string, number>>))
  for (const module of modules) seconds.set(module.relativeModuleId, Math.round(module.diagnostic().duration / 1_000))
  const rows = [...seconds].filter(([file, took]) => took >= leastSecondsOf(file) && existsSync(file))
  const sorted = rows.toSorted(([, one], [, other]) => other - one)
  writeFileSync(page, `${JSON.stringify(Object.fromEntries(sorted), undefined, 2)}\n`)
}
