import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { farMs } from './test/support/suite/until.ts'
import { tiers } from './test/tiers.ts'

/** Seconds by file, the longest first: whoever begins with one of these late waits for it alone at the end. */
const longest = Object.keys(JSON.parse(readFileSync(new URL('test/longest.json', import.meta.url), 'utf8')) as object)

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const index = longest.findIndex((file) => moduleId.endsWith(`/${file}`))
      return index < 0 ? longest.length : index
    }
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other))
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
    projects: Object.entries(tiers).flatMap(([name, { include, exclude, alone, env, execArgv }]) => [
      // Half of what a short file takes is a new process that loads all of svc again.
      { extends: true, test: { name, include, exclude: [...exclude, ...alone], isolate: false, env, execArgv } },
      { extends: true, test: { name: `${name}-alone`, include: alone, exclude, env } },
    ]),
  },
})
