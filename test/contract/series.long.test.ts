import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { hostBlock } from '../../src/core/checks/plan/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import type { Core } from '../../src/core/service/open.ts'
import { openData } from '../../src/core/store/index.ts'
import { testCore } from '../support/engine/core.ts'
import { backends } from '../support/store/data-fixture.ts'

const minute = 60_000
const machine = hostname()

/** The name that svc 0.1 gave a series. */
function formerName(kind: string, settings: unknown, name: string): string {
  const digest = createHash('sha256')
    .update(`${kind} ${JSON.stringify(settings)}`)
    .digest('hex')
    .slice(0, 32)
  return `${kind} ${digest} ${machine} ${name}`
}

describe.each(backends)('what runs remember on $name', ({ start, fresh, raw, stop }) => {
  let store = ''
  let folder = ''
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    store = await fresh(store)
    await (await openData({ store, create: true })).close()
    folder = mkdtempSync(join(tmpdir(), 'svc-series-'))
    for (const file of ['orders', 'others']) {
      writeFileSync(join(folder, file), 'x')
      utimesSync(join(folder, file), 1_000, 1_000)
    }
    return () => rmSync(folder, { recursive: true, force: true })
  })

  const opened = async (entry: string, shared: boolean): Promise<Core> => {
    writeFileSync(join(folder, 'svc.yaml'), `types:\n  Batch: [{kind: file-age, ${entry}}]\n`, { mode: 0o600 })
    return await testCore({
      config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
      store,
      shared,
      details: 'anyone',
      env: {},
    })
  }
  /** The texts of a check in a run of the type Batch, by a svc with this entry. */
  async function look(entry: string, check = 'age', mode: ExecutionMode = 'Standard', shared = true) {
    const core = await opened(entry, shared)
    try {
      const answer = await core.service.healthCheck(
        { ExecutionMode: mode, ServerType: 'Batch', SuppressErrorCodes: true },
        {
          caller: { kind: 'local', account: 'tester' },
          correlationId: 'x',
          signal: new AbortController().signal,
          fresh: true,
        },
      )
      const results = (answer.MonitorSummaries ?? []).flatMap(({ Results }) => Results ?? [])
      return results.flatMap(({ MonitoringName = '', StatusMessage = '' }) =>
        MonitoringName.includes(check) ? [StatusMessage] : [],
      )
    } finally {
      await core.runtime.close()
    }
  }
  const entryOf = (more: string, file = 'orders') => `path: ${join(folder, file)}, for: 15m, ${more}`
  const since = (ms: number) => JSON.stringify([[Date.now() - ms, JSON.stringify(['age', '', ''])]])
  const put = (series: string, points: string) =>
    raw(store, `INSERT INTO "readings" ("series", "at", "points") VALUES ('${series}', ${Date.now()}, '${points}')`)
  const names = async () => {
    const rows = await raw(store, `SELECT "series" FROM "readings" WHERE "series" LIKE '%for' ORDER BY 1`)
    // The machine has a time of its own for its load.
    return rows.map(({ series }) => String(series).split('\t')[0]).filter((name) => name !== '/host/')
  }
  /** A text about a time that began 40 minutes before this test, however long the test takes. */
  const sinceForty = /exceeded for 4\d(?:\.\d)? min/
  const settings = (file = 'orders') => ({ path: join(folder, file), hidden: false, age: { limit: 60 * minute } })

  test.each([true, false])(
    'H41 H12 `for` goes on from the version before, and under another threshold and name; another path begins anew (svc serve: %s)',
    async (shared) => {
      await put(formerName('file-age', settings(), 'for'), since(40 * minute))
      const text = async (entry: string) => (await look(entry, 'age', 'Standard', shared)).join()
      expect(await text(entryOf('age: 1h'))).toMatch(sinceForty)
      expect(await names()).toEqual(['Batch/file-age/'])
      expect(await text(entryOf('age: 30m, files: 99'))).toMatch(sinceForty)
      expect(await text(entryOf('age: 30m', 'others'))).toContain('exceeded for the first time')
      expect(await names()).toEqual(['Batch/file-age/', 'Batch/file-age/'])
      const renamed = entryOf('age: 30m, name: incoming, formerly: [Batch/file-age/]')
      expect(await text(renamed)).toMatch(sinceForty)
      expect(await text(renamed)).toMatch(sinceForty)
      expect(await names()).toEqual(['Batch/file-age/incoming', 'Batch/file-age/incoming'])
    },
  )

  test('H41 H13 the trend of a disk goes on from the version before', async () => {
    await look(entryOf('age: 1h'), 'trend', 'Advanced')
    const rows = await raw(store, `SELECT "series", "points" FROM "readings" WHERE "series" LIKE '%free %'`)
    expect(rows.length).toBeGreaterThan(0)
    await raw(store, 'DELETE FROM "readings"')
    const { settings: host } = await hostBlock({})
    for (const { series, points } of rows) {
      const [[, free] = [0, 0]] = JSON.parse(String(points)) as [number, number][]
      const hourly = Array.from({ length: 9 }, (_, n) => [Date.now() - (9 - n) * 60 * minute, free])
      await put(formerName('host', host, String(series).split('\t')[3] ?? ''), JSON.stringify(hourly))
    }
    const trends = await look(entryOf('age: 1h'), 'trend', 'Advanced')
    expect(trends).toHaveLength(rows.length)
    for (const trend of trends) expect(trend).toContain('readings of the last')
  })

  test('H41 of two svc that start at the same time, both answer from what was stored', async () => {
    await put(formerName('file-age', settings(), 'for'), since(40 * minute))
    const entry = entryOf('age: 1h')
    const texts = await Promise.all([look(entry), look(entry), look(entry)])
    for (const text of texts) expect(text.join()).toMatch(sinceForty)
    expect(await names()).toEqual(['Batch/file-age/'])
  })
})
