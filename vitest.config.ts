import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { matchesGlob } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { farMs } from './test/support/suite/until.ts'
import { tiers, waiting } from './test/tiers.ts'

// Times for people are those of the machine: tests that name no zone mean UTC, wherever they run.
process.env['TZ'] = 'UTC'

/** Seconds by file. What is not there takes less than three, or ten in the slow tier. */
const longest = JSON.parse(readFileSync(new URL('test/longest.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, number>
>
const root = new URL('.', import.meta.url).pathname
const fileOf = ({ moduleId }: TestSpecification): string => moduleId.slice(root.length)
const secondsOf = (specification: TestSpecification): number => longest[fileOf(specification)] ?? 1
const isWaiting = (specification: TestSpecification): boolean =>
  waiting.some((glob) => matchesGlob(fileOf(specification), glob))

/**
 * The longest first: whoever begins with one of these late waits for it alone at the end. Files that wait and files that
 * compute take turns by their seconds, so that both end at the same time.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = (await super.sort(files)).toSorted((one, other) => secondsOf(other) - secondsOf(one))
    const queues = [sorted.filter(isWaiting), sorted.filter((file) => !isWaiting(file))]
    const sums = queues.map((queue) => queue.reduce((sum, file) => sum + secondsOf(file), 0))
    const order = queues.flatMap((queue, at) => {
      let before = 0
      return queue.map((file) => {
        const share = before / (sums[at] ?? 1)
        before += secondsOf(file)
        return { file, share }
      })
    })
    return order.toSorted((one, other) => one.share - other.share).map(({ file }) => file)
  }
}

export default defineConfig({
  test: {
    // They only end what hangs: no test compares itself with them, and a busy machine takes ten times as long.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: farMs } },
    // Two for each processor, since the tests mostly wait, and four at most: real servers run beside them.
    maxWorkers: Math.min(4, 2 * availableParallelism()),
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './test/reporter.ts'],
    globalSetup: ['./test/port-trap.ts', './test/busy-machine.ts'],
    projects: Object.entries(tiers).flatMap(([name, { include, exclude, alone, env, execArgv, native }]) => [
      // Half of what a short file takes is a new process that loads all of svc again.
      {
        extends: true,
        test: {
          ...{ name, include, exclude: [...exclude, ...alone], isolate: false, env, execArgv },
          server: { deps: { external: native } },
        },
      },
      {
        extends: true,
        test: { name: `${name}-alone`, include: alone, exclude, env, server: { deps: { external: native } } },
      },
    ]),
  },
})
