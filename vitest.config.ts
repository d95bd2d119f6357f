import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** These take the longest: whoever begins with them late waits for them alone at the end. */
const longest = [
  'prove/leaks',
  'e2e/scripts',
  'store/bounded-reads',
  'server/shortage',
  'clear-text',
  'e2e/serve-log',
  'prove/requests',
  'client/replay',
  'interop/version-0.1',
  'kinds/sqlite',
  'kinds/mysql',
  'kinds/postgres',
  'store/postgres-cuts',
  'discover/discover',
  'kinds/rabbitmq',
  'store/data-postgres',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const found = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`))
      return found < 0 ? longest.length : found
    }
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other))
  }
}

/**
 * Each of these has a process of its own: they compare processor time, count what the process holds, put something else
 * in the place of what all share, or run for long.
 */
const alone = [
  'test/**/hostile-text.test.ts',
  'test/regular-expressions.test.ts',
  'test/{prove,e2e}/**/*.test.ts',
  'test/contract/sharing.test.ts',
  'test/{client/hostile,server/shortage,child/child,system/state}.test.ts',
  'test/assert/probe.test.ts',
  'test/engine/{engine,shared-runs,shared-bounds}.test.ts',
  'test/store/{postgres-cuts,data-postgres,bounded-reads,durability}.test.ts',
  'test/kinds/{self,process,host,listening,deployment,exec,rabbitmq}.test.ts',
]

const all = ['test/**/*.test.ts']

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two processes at most: real servers run beside the tests.
    maxWorkers: 2,
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './test/reporter.ts'],
    // `npm test` leaves both out, `npm run test:peers` runs both.
    tags: [
      { name: 'peers', description: "Needs servers from the operating system's packages" },
      { name: 'long', description: 'Proves by many repetitions, or with many processes' },
    ],
    projects: [
      { extends: true, test: { name: 'alone', include: alone } },
      // Half of what a short file takes is a new process that loads all of svc again.
      { extends: true, test: { name: 'together', include: all, exclude: alone, isolate: false } },
    ],
  },
})
