import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { openData } from '../../src/core/store/index.ts'
import type { DrillRecord, Hop } from '../../src/core/watch/drill/index.ts'
import { documentOf } from '../support/program/documents.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const home: Home = temporaryHome()

const shared: Hop = { hop: 'confirmation', result: 'proven', ms: 20_000, message: 'the fault is confirmed' }
const outbox: Hop = { receiver: 'chat', hop: 'outbox', result: 'proven', ms: 1_000, message: 'stored' }
const open: Hop = { receiver: 'chat', hop: 'opened', result: 'not proven', message: 'nobody has opened the link' }
const refused: Hop = { receiver: 'chat', hop: 'accepted', result: 'failed', message: 'it answered 500' }

/** Stores a drill that is over, an hour after the one before. */
let at = Date.UTC(2026, 10, 24)
async function store(...hops: readonly Hop[]): Promise<void> {
  const data = await openData({ store: join(home.folder, 'store', 'svc.db'), create: true })
  at += 3_600_000
  const drill: DrillRecord = {
    id: `d${at}`,
    by: 'ann',
    through: ['chat'],
    beganAt: at,
    endedAt: at + 90_000,
    hops,
    tokens: {},
    opened: {},
  }
  await data.drills.begin(drill, 60_000)
  await data.close()
}

beforeAll(() => {
  const path = join(home.folder, 'svc.yaml')
  writeFileSync(
    path,
    'notify:\n  - {name: chat, webhook: {url: "http://127.0.0.1:1/"}}\n  - {name: oncall, pagerduty: {routingKey: {env: PD}}}\n',
  )
  chmodSync(path, 0o600)
})

describe('svc drill', () => {
  test('M14 refuses what no drill may go through, and sends nothing', async () => {
    const none = await home.run(['drill'])
    expect([none.code, none.stderr]).toEqual([9, expect.stringContaining('Name one: --through NAME')])
    const unknown = await home.run(['drill', '--through', 'chatt'])
    expect([unknown.code, unknown.stderr]).toEqual([9, expect.stringContaining('Receivers: chat, oncall')])
    const pages = await home.run(['drill', '--through', 'oncall'])
    expect([pages.code, pages.stderr]).toEqual([9, expect.stringContaining('a drill would page people')])
    const last = await home.run(['drill', '--last'])
    expect([last.code, last.stderr]).toEqual([9, expect.stringContaining('There was no drill yet')])
  })

  test('M14 a hop that is not proven is no failure: exit code 0', async () => {
    await store(shared, outbox, open)
    const { code, stdout } = await home.run(['drill', '--last'], { columns: 100 })
    expect(code).toBe(0)
    expect(stdout).toContain('no hop failed, 1 of 3 hops is not proven')
    expect(stdout).toMatch(/chat +opened +not proven +nobody has opened the link/)
  })

  test('M14 a hop that failed is exit code 3, and named', async () => {
    await store(shared, outbox, refused)
    const { code, stdout } = await home.run(['drill', '--last'], { columns: 100 })
    expect(code).toBe(3)
    expect(stdout).toContain('1 of 3 hops failed')
    expect(stdout).toMatch(/chat +accepted +failed +it answered 500/)
    const piped = await home.run(['drill', '--last', '--no-header'])
    expect(piped.stdout.split('\n')[0]).toMatch(/\t\tconfirmation\t\tproven\t20000\tthe fault is confirmed$/)
    const json = await home.run(['drill', '--last', '--json'])
    expect(json.code).toBe(3)
    documentOf('drill', json.stdout)
    expect(JSON.parse(json.stdout)).toMatchObject({ by: 'ann', result: 'failed', hops: [{}, {}, { result: 'failed' }] })
  })

  test('M14 a drill that is not over is exit code 10: it has proven nothing yet', async () => {
    await store(shared, outbox, { ...open, result: 'waiting', message: 'nobody has opened the link in the message' })
    const { code, stdout } = await home.run(['drill', '--last'], { columns: 100 })
    expect(code).toBe(10)
    expect(stdout).toContain('the drill is not over')
  })

  test('M14 every hop proven says so', async () => {
    await store(shared, outbox, { ...open, result: 'proven', message: 'opened' })
    const { code, stdout } = await home.run(['drill', '--last'], { columns: 100 })
    expect(code).toBe(0)
    expect(stdout).toContain('every hop is proven')
  })
})
