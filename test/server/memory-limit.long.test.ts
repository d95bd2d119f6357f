import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type MemoryCgroup, memoryCgroupMissing, startMemoryCgroup } from '../support/faults/memory-cgroup.ts'
import { ask, signIn, startNode } from '../support/program/serve-node.ts'
import { floodOfSignIns } from '../support/program/sign-in-flood.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const deployed = {
  'the systemd unit': ['deploy/systemd/svc.service', /^Environment=(MALLOC_\w+)=(\d+)$/m],
  'the container': ['deploy/container/Containerfile', /^ENV .*\b(MALLOC_\w+)=(\d+)/m],
} as const

/** Megabytes with which a server lives, with these settings. */
const limits = [
  ...Object.entries(deployed).map(([name, [file, pattern]]) => {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
    const [, variable = '', value = ''] = pattern.exec(text) ?? []
    return [`the settings of ${name}`, 128, { [variable]: value }] as const
  }),
  ['no settings', 160, {}] as const,
]

suiteWith(memoryCgroupMissing, 'a server with little memory', () => {
  test.each(limits)(
    'W14 with %s, 64 strangers who sign in at once end no server that has %d MB',
    async (_, megabytes, env) => {
      const group = startMemoryCgroup(megabytes)
      // A child of the server may be there for some milliseconds more.
      onTestFinished(async () => {
        await until(() => removed(group))
      })

      const store = join(temporaryFolder(), 'store', 'svc.db')
      const flags = ['--behind-proxy', '127.0.0.1']
      await using node = await startNode({ store, command: group.command, flags, env })
      let ended = false
      void node.ended.then(() => {
        ended = true
      })
      const flood = { port: node.port, strangers: 64, seconds: 8, ended: () => ended }
      const { answers, healthMs } = await floodOfSignIns(flood)
      expect(ended).toBe(false)
      // Passwords were really compared, and health was answered meanwhile.
      expect(answers.get('401')).toBeGreaterThan(20)
      expect([...answers.keys()].toSorted()).toEqual(['401', '503'])
      expect(healthMs.length).toBeGreaterThan(10)
      expect((await signIn(node)).status).toBe(200)
      expect((await ask(`${node.url}/readyz`)).status).toBe(200)
    },
    120_000,
  )
})

function removed(group: MemoryCgroup): boolean {
  try {
    group.remove()
    return true
  } catch {
    return false
  }
}
