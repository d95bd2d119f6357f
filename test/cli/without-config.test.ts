import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'

const home = temporaryHome()
beforeAll(async () => {
  for (const name of ['ann', 'bob']) {
    const args = ['users', 'add', name, '--role', 'Admin', '--password-stdin']
    expect(await home.run(args, { stdin: 'violet-harbour-42' })).toMatchObject({ code: 0 })
  }
  mkdirSync(join(home.folder, 'files'), { mode: 0o700 })
})

const lines = [
  'roles show ann',
  'roles assign ann --role Ops',
  'roles unassign bob --role Admin --reason incident',
  'roles holders Admin',
  'users list',
  'users disable bob',
  'keys list',
  'sessions list --user ann',
  'sessions end --all --user ann',
  'heartbeat nightly',
  'heartbeats list',
  'audit list',
]

test.each(['types: [', 'types: {Sql: {monitors: [{kind: nosuch}]}}\n', 'serve: {port: none}\nunknown: 1\n'])(
  'W13 with %j in svc.yaml, roles, users, keys, sessions and heartbeats work as without the file',
  async (yaml) => {
    const config = join(home.folder, 'files', 'svc.yaml')
    writeFileSync(config, yaml, { mode: 0o600 })
    const env = { SVC_CONFIG: config }
    expect((await home.run(['monitors', 'validate'], { env })).code).toBe(12)
    for (const line of lines) {
      expect(await home.run(line.split(' '), { env }), line).toMatchObject({ code: 0 })
    }
  },
)
