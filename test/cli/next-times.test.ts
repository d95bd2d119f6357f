import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Home, svcHome } from '../support/program/svc.ts'

let home: Home
beforeAll(async () => {
  home = svcHome()
  const yaml = `silences: [{monitors: ['Sql/*'], when: '30 2 * * *', timezone: Europe/Berlin, for: 2h, reason: patches}]
types:
  Batch: [{kind: heartbeat, name: nightly, agents: [a], schedule: '0 3 * * *', timezone: Asia/Tokyo, grace: {limit: 1h}}]
  Sql: [{kind: tcp, name: a, host: 127.0.0.1, port: 1}]
`
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  await home.run(['users', 'add', 'ann', '--no-password'])
})
afterAll(() => home.remove())

const time = String.raw`\w{3} \d{4}-\d\d-\d\d \d\d:\d\d [+-]\d\d:\d\d`

test.each([
  ['silence', `silences: Sql/\\*: (?:${time}, ){5}Europe/Berlin`],
  ['heartbeats', `heartbeat nightly: (?:${time}, ){5}Asia/Tokyo`],
])('M7 svc %s list -v prints the next five times beside the list, which stays as it is', async (topic, line) => {
  for (const more of [[], ['--json']]) {
    const plain = await home.run([topic, 'list', ...more])
    const verbose = await home.run([topic, 'list', '-v', ...more])
    expect(plain.stderr).not.toMatch(new RegExp(time))
    expect([verbose.code, verbose.stdout]).toEqual([0, plain.stdout])
    expect(verbose.stderr).toMatch(new RegExp(`^${line}$`, 'm'))
    expect(verbose.stderr.match(new RegExp(line, 'g'))).toHaveLength(1)
  }
})
