import { compiledCode } from './support/program/compiled-code.ts'
import { memoryFolder } from './support/suite/memory-folder.ts'

const slow = 'test/**/*.{peers,long}.test.ts'

/**
 * Files that wait for intervals and deadlines nearly all of their time. They run beside those that compute, and not
 * beside each other: otherwise the processors would rest in the first half of the slow tier.
 */
export const waiting = [
  'test/watch/nodes/{night,cross-check,speakers,four-nodes,upgrade,lease}.peers.test.ts',
  'test/watch/notify/{watching,killed-watchdog,alertmanager}.peers.test.ts',
  'test/watch/notify/killed.long.test.ts',
  'test/watch/drill/{broken-hops.peers,server.long}.test.ts',
  'test/watch/rehearsal/{process.peers,server.long}.test.ts',
  'test/base/files/hung-share.peers.test.ts',
  'test/store/{newer-store,late-store,failover}.long.test.ts',
  'test/e2e/{silences-by-hand,role-end-notice,states-survive,notifications}.long.test.ts',
  'test/e2e/shifted-clock.peers.test.ts',
  'test/server/{schedule-dead-peers,schedule-stopped,causes,restarts}.long.test.ts',
  'test/server/{schedule-hung-share,schedule-clock,balancers}.peers.test.ts',
]

/**
 * The tier of a file is in its name: `npm test` runs the quick one, `npm run test:peers` the slow one, and neither loads
 * files of the other. Each file of `alone` has a process of its own: they compare processor time, count what the process
 * holds, put something else in the place of what all share, or run for long. `execArgv`: options of Node for the
 * processes of the others. `native`: modules that Node loads itself, as in `bin/dev.js`, and that vitest can therefore not
 * mock: each process loads nearly all of svc, and vitest takes twice as long for that.
 */
export const tiers = {
  quick: {
    include: ['test/**/*.test.ts'],
    exclude: [slow],
    // Most of what a child process takes is reading and compiling the same modules.
    env: { ...compiledCode, ...memoryFolder },
    // Most objects of a test die young: with 16 MiB or more for these, the process collects garbage less often.
    execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=64'],
    native: [/\/(?:src|tools)\/.*\.ts$/],
    alone: [
      'test/e2e/*.test.ts',
      'test/{client/hostile,base/system/state}.test.ts',
      'test/checks/engine/{engine,shared-runs}.test.ts',
      'test/checks/kinds/{self,process,host,deployment}.test.ts',
    ],
  },
  slow: {
    include: [slow],
    exclude: [],
    env: compiledCode,
    execArgv: [],
    native: [],
    alone: [
      'test/**/hostile-text.long.test.ts',
      'test/server/anonymous-paths.long.test.ts',
      'test/checks/engine/shared-bounds.long.test.ts',
      'test/checks/kinds/{listening,exec,rabbitmq}.long.test.ts',
      'test/{regular-expressions,contract/sharing,server/{shortage,flood},checks/child/child,checks/assert/probe}.long.test.ts',
      'test/store/{postgres-cuts,data-postgres,bounded-reads,durability}.long.test.ts',
      'test/{prove,e2e}/*.{peers,long}.test.ts',
      'test/{checks/kinds/rabbitmq,watch/nodes/night}.peers.test.ts',
    ],
  },
}
