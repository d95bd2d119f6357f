import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { openData } from '../../src/core/store/index.ts'
import type { Incident, StoredState } from '../../src/core/watch/states/index.ts'
import { documentOf } from '../support/program/documents.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { freePort } from '../support/servers/server.ts'

const tcp = (name: string, port: number): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}}`
const home = temporaryHome()
beforeAll(async () => {
  const port = await freePort()
  const yaml = `types:
  Sql: [${tcp('orders', port)}, ${tcp('replica', port)}]
  App: [${tcp('shop', port)}]
`
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  await home.run(['users', 'add', 'ann', '--no-password'])
  await plant('connect', 'open')
})
beforeEach(async () => {
  const { silences } = JSON.parse((await home.run(['silence', 'list', '--json'])).stdout) as {
    silences: readonly { id: string }[]
  }
  for (const { id } of silences) await home.run(['silence', 'end', id])
})

/** Faults that a `svc serve` of this store has confirmed. */
async function plant(...checks: readonly string[]): Promise<void> {
  const data = await openData({ store: join(home.folder, 'store', 'svc.db'), create: true })
  const at = Date.now()
  const rowOf = (check: string) => ({ key: 'Sql/tcp/orders', type: 'Sql', monitor: 'tcp orders', check }) as const
  const incidentOf = (id: string): Incident => ({
    ...{ id, beganAt: at, confirmedAt: at, level: 'failed', fault: 'refused', message: 'refused' },
    ...{ isFlapping: false, isUnobserved: false },
  })
  const level = { level: 'failed', levelSince: at, confirmedAt: at, fault: 'refused', message: 'refused' } as const
  const depths = { checkDepth: 'Basic', depth: 'Basic' } as const
  const state = { ...level, ...depths, faults: [at], isFlapping: false, blips: 0, observedAt: at, missing: 0 }
  const states = checks.map(
    (check): StoredState => ({ row: rowOf(check), state: { ...state, incident: incidentOf(check) } }),
  )
  const batch = { states, gone: [], incidents: [], isWhole: false }
  await data.states.write({ ...batch, claims: 'now', deleteBefore: undefined })
  await data.close()
}

const svc = async (...args: readonly string[]) => await home.run(args)

test('M8 svc silence says what it covers, until when and why, and svc silence list shows it', async () => {
  const { code, stdout } = await home.run(['silence', 'Sql/*', '--for', '2h', '--reason', 'patch night'], {
    columns: 100,
  })
  expect(code).toBe(0)
  expect(stdout).toMatch(/2 monitors are silenced until \d{4}-\d\d-\d\d \d\d:\d\d UTC/)
  expect(stdout).toMatch(/Covers +Sql\/tcp orders, Sql\/tcp replica/)
  expect(stdout).toMatch(/Reason +patch night/)
  const list = await home.run(['silence', 'list'], { columns: 120 })
  expect(list.stdout).toMatch(/silence +Sql\/\* +\d{4}-.* UTC +local:\S+ +patch night/)
})

test('M8 svc silence end ends a silence, and a second time there is none of that id', async () => {
  const made = documentOf(
    'silence',
    (await svc('silence', 'tcp shop', '--for', '1h', '--reason', 'x', '--json')).stdout,
  )
  const [{ id }] = (made as { silences: [{ id: string }] }).silences
  const ended = await svc('silence', 'end', id, '--json')
  expect(ended.code).toBe(0)
  documentOf('silence end', ended.stdout)
  expect(JSON.parse((await svc('silence', 'list', '--json')).stdout)).toMatchObject({ silences: [] })
  const again = await svc('silence', 'end', id)
  expect([again.code, again.stderr]).toEqual([9, expect.stringContaining(`Nothing silent has the id "${id}"`)])
})

test('M8 a silence stands in the audit, with who made it and why', async () => {
  await svc('silence', 'Sql/*', '--for', '1h', '--reason', 'patch night')
  const { stdout } = await svc('audit', 'list', '--json')
  const { entries } = JSON.parse(stdout) as { entries: readonly Record<string, unknown>[] }
  expect(entries[0]).toMatchObject({
    event: 'silence.added',
    who: expect.stringMatching(/^local:/),
    target: 'Sql/*',
    reason: 'patch night',
  })
})

test.for([
  [['silence', '--for', '1h', '--reason', 'x'], 2, 'MONITOR is missing'],
  [['silence', 'Sql/*', '--reason', 'x'], 2, '--for or --until is missing'],
  [['silence', 'Sql/*', '--for', '1h', '--until', '04:00', '--reason', 'x'], 2, '--for and --until cannot be combined'],
  [['silence', 'Sql/*', '--for', '31d', '--reason', 'x'], 9, "'For' is more than 30 days ahead"],
  [['silence', 'Sql/*', '--until', 'tomorrow', '--reason', 'x'], 2, '--until "tomorrow" is not a valid time'],
  [['silence', 'Sql/*', '--until', '2020-01-01 00:00', '--reason', 'x'], 2, '--until 2020-01-01 00:00 has passed'],
  [['silence', 'Sql/*', '--until', '2999-01-01 00:00', '--reason', 'x'], 9, "'Until' is more than 30 days ahead"],
  [['silence', 'Sql/*', '--for', '1h'], 2, '--reason is missing'],
  [['silence', 'Sql/*', '--for', '1h', '--reason', 'x'.repeat(201)], 9, "'Reason'"],
  [['silence', 'tcp ordrs', '--for', '1h', '--reason', 'x'], 2, 'did you mean "tcp orders"?'],
  [['silence', 'Mongo/*', '--for', '1h', '--reason', 'x'], 2, 'No monitor matches "Mongo/*"'],
  [['ack', 'tcp shop', '--reason', 'x'], 9, 'No confirmed fault of tcp shop is open'],
  [['ack', 'tcp orders', '--check', 'lag', '--reason', 'x'], 9, 'open: connect'],
  [['ack', 'tcp ordrs', '--reason', 'x'], 9, 'did you mean "tcp orders"?'],
  [['ack', 'tcp orders'], 2, '--reason is missing'],
] as const)('M8 M9 svc %j is refused with the way out', async ([args, code, text]) => {
  const ran = await svc(...args)
  expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(text)])
  expect(JSON.parse((await svc('silence', 'list', '--json')).stdout)).toMatchObject({ silences: [] })
})

test.for([
  [['quiet', 'Sql/*', '--for', '2h', '--reason', 'x'], "Did you mean svc silence 'Sql/*' --for 2h --reason x?"],
  [['quiet', 'list'], 'Did you mean svc silence list?'],
  [['help', 'quiet'], 'Did you mean svc silence?'],
] as const)('M8 svc %j exits with 2 and names svc silence', async ([args, text]) => {
  const ran = await home.run([...args])
  expect([ran.code, ran.stdout, ran.stderr]).toEqual([2, '', expect.stringContaining(text)])
})

test('M9 svc ack acknowledges each open fault of a monitor, or one check', async () => {
  const one = await svc('ack', 'Sql/tcp orders', '--check', 'connect', '--reason', 'INC-7', '--json')
  expect(one.code).toBe(0)
  expect(documentOf('ack', one.stdout)).toMatchObject({
    silences: [{ source: 'ack', monitors: ['Sql/tcp orders'], check: 'connect', reason: 'INC-7' }],
  })
  const all = JSON.parse((await svc('ack', 'tcp orders', '--reason', 'INC-8', '--json')).stdout) as {
    silences: readonly { check: string }[]
  }
  expect(all.silences.map(({ check }) => check).toSorted()).toEqual(['connect', 'open'])
})

test('M11 svc health of a silenced monitor exits with 3 and says why, and with 0 if it honors silences', async () => {
  await svc('silence', 'Sql/*', '--for', '2h', '--reason', 'patch night')
  const plain = await svc('health', '-t', 'Sql', '--only', 'tcp*')
  expect(plain.code).toBe(3)
  expect(plain.stdout.replaceAll(/\s+/g, ' ')).toMatch(
    /refused the connection.*\(silenced until .* UTC, local:\S+: patch night\)/,
  )
  const honoring = await home.run(['health', '-t', 'Sql', '--only', 'tcp*', '--honor-silences'], { columns: 120 })
  expect(honoring.code).toBe(0)
  expect(honoring.stdout).toContain('2 silenced results not counted')
  const other = await svc('health', '-t', 'App', '--only', 'tcp*', '--honor-silences')
  expect(other.code).toBe(3)
})

test('M11 in process, svc health honors an acknowledgement only while a svc serve watches over it', async () => {
  await svc('ack', 'tcp orders', '--check', 'connect', '--reason', 'INC-7')
  const health = async () => await svc('health', '-t', 'Sql', '--only', 'tcp orders', '--honor-silences')
  expect((await health()).code).toBe(0)
  const history = new DatabaseSync(join(home.folder, 'store', 'svc.db.history'))
  history.exec('UPDATE "historyWatch" SET "at" = "at" - 120000')
  history.close()
  const unwatched = await health()
  expect([unwatched.code, unwatched.stdout.includes('INC-7')]).toEqual([3, false])
})
