import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { memoryCgroupMissing, startMemoryCgroup } from '../support/faults/memory-cgroup.ts'
import { ask, signIn, startNode } from '../support/program/serve-node.ts'
import { floodOfSignIns } from '../support/program/sign-in-flood.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const deployed = {
  'the systemd unit': ['deploy/systemd/svc.service', /^Environment=(MALLOC_\w+)=(\d+)$/m],
  'the container': ['deploy/container/Containerfile', /^ENV .*\b(MALLOC_\w+)=(\d+)/m],
} as const

suiteWith(memoryCgroupMissing, 'a server with little memory', () => {
  test.each(Object.entries(deployed))(
    'W14 with the settings of %s, 64 strangers who sign in at once end no server that has 128 MB',
    async (_, [file, pattern]) => {
      const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
      const [, name = '', value = ''] = pattern.exec(text) ?? []
      const folder = temporaryFolder()
      const group = startMemoryCgroup(128)
      onTestFinished(() => group.remove())

      const store = join(folder, 'store', 'svc.db')
      const flags = ['--behind-proxy', '127.0.0.1']
      await using node = await startNode({ store, command: group.command, flags, env: { [name]: value } })
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
