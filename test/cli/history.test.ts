import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { history, historyRows, incidentsToShow, rowsForPeople } from '../../src/cli/health/period-lists.ts'
import { localCall } from '../../src/cli/session/session.ts'
import type { MonitorHistory } from '../../src/core/protocol/index.ts'
import { historyMarkup, historyOf } from '../../src/core/server/pages/page-monitor.ts'
import { openCore } from '../../src/core/service/open.ts'
import { openData } from '../../src/core/store/index.ts'
import type { ObservedRun } from '../../src/core/watch/periods/index.ts'
import { Recorder } from '../../src/core/watch/periods/index.ts'
import type { IncidentRecord } from '../../src/core/watch/states/index.ts'
import { load } from '../config/given.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import type { Ran } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const minute = 60_000
const hour = 60 * minute

/** Runs each minute of a simulated shop and its database, which was down for an hour, until now. */
async function simulate(store: string, hours: number): Promise<void> {
  const now = Date.now()
  const data = await openData({ store, create: true })
  const recorder = new Recorder()
  const figure = { name: JSON.stringify(['connect', 'milliseconds']), value: 12 }
  for (let at = now - hours * hour; at <= now; at += minute) {
    const isDown = at >= now - 3 * hour && at < now - 2 * hour
    for (const [type, name] of [
      ['App', 'tcp shop'],
      ['Sql', 'tcp db'],
    ] as const) {
      const checks: ObservedRun['checks'] = [{ check: 'connect', rank: 0, level: isDown ? 'failed' : 'ok', figure }]
      const run: ObservedRun = { at, rank: 1, validMs: [2 * minute, 2 * minute, 2 * hour], checks }
      recorder.add({ key: `${type}/tcp/${name.slice(4)}`, type, name }, run)
    }
    recorder.numbered(await data.history.number(recorder.unnumbered))
    const batch = recorder.batch(at, false)
    if (!batch) continue
    await data.history.write(batch)
    recorder.stored(batch)
  }
  const incident = (id: string, type: 'App' | 'Sql', name: string): IncidentRecord => ({
    ...{ id, key: `${type}/tcp/${name}`, type, monitor: `tcp ${name}`, check: 'connect' },
    ...{ beganAt: now - 3 * hour, confirmedAt: now - 3 * hour + 20_000, endedAt: now - 2 * hour, ending: 'recovered' },
    ...{ level: 'failed', fault: 'refused', message: 'connection refused', isFlapping: false, isUnobserved: false },
  })
  const cause = { key: 'Sql/tcp/db', type: 'Sql', monitor: 'tcp db' } as const
  const incidents = [incident('db', 'Sql', 'db'), { ...incident('shop', 'App', 'shop'), cause }]
  await data.states.write({ states: [], gone: [], incidents, isWhole: true, claims: 'now' })
  await data.close()
}

describe('svc history', () => {
  const home = temporaryHome()
  let whole: Ran
  beforeAll(async () => {
    await home.run(['users', 'add', 'ann', '--no-password'])
    await simulate(join(home.folder, 'store', 'svc.db'), 6)
    whole = await home.run(['history', '--json'])
  })

  type Facts = Readonly<Record<string, unknown>>
  type Row = Facts & { readonly worst: readonly Facts[]; readonly incidents: readonly Facts[] }
  const rowsOf = ({ stdout }: Ran): readonly Row[] => (JSON.parse(stdout) as { history: Row[] }).history

  test('W3 a simulated shop behind a database that was down for an hour: the availability of both', () => {
    const rows = rowsOf(whole)
    expect(rows.map(({ monitor }) => monitor)).toEqual(['tcp shop', 'tcp db'])
    for (const row of rows) {
      expect(row).toMatchObject({ status: 'Failed', downSeconds: 3_600, failedChecks: ['connect'] })
      // Five of six hours.
      expect(row['availabilityPercent']).toBeCloseTo((5 / 6) * 100, 1)
      expect(row.worst).toHaveLength(1)
      expect(row.worst[0]).toMatchObject({ downSeconds: 3_600, failedChecks: ['connect'] })
    }
    expect(whole.code).toBe(0)
  })

  test('W3 the pages of the simulated shop and of its database show the same availability', async () => {
    const store = join(home.folder, 'store', 'svc.db')
    const core = await openCore({ version: '1', config: await load('{}'), store, shared: false, details: 'anyone' })
    onTestFinished(() => core.runtime.close())

    for (const id of [
      { type: 'App', monitor: 'tcp shop' },
      { type: 'Sql', monitor: 'tcp db' },
    ] as const) {
      const { windows } = await historyOf(core.service, id, localCall(new AbortController().signal))
      const text = historyMarkup(windows, { now: Date.now() })
        .markup.replace(/<[^>]*>/g, ' ')
        .replace(/\s+/g, ' ')
      expect(text).toMatch(/ 24 h 83\.\d+ % since .* UTC 1 h /)
    }
  })

  const incidentsIn = (ran: Ran) => rowsOf(ran).flatMap(({ incidents }) => incidents)

  test('W3 the simulated shop is a victim in the incident of its database, which lasted an hour', async () => {
    const [ofShop, ofDatabase] = rowsOf(whole).map(({ incidents }) => incidents)
    expect(ofDatabase).toMatchObject([
      {
        ...{ id: 'db', check: 'connect', durationSeconds: 3_600, status: 'Failed' },
        ...{ ending: 'Recovered', fault: 'refused', victims: ['App/tcp shop'], victimCount: 1 },
      },
    ])
    expect(ofShop).toMatchObject([{ id: 'shop', durationSeconds: 3_600, cause: 'Sql/tcp db', victimCount: 0 }])
    expect(incidentsIn(await home.run(['history', '--since', '1h', '--json']))).toEqual([])
    const { stdout } = await home.run(['history'], { columns: 200 })
    expect(stdout).toMatch(/Sql +tcp db +connect .* 1 h +.*failed +refused +1 victim: App\/tcp shop/)
    expect(stdout).not.toContain('victim of')
    const piped = await home.run(['history'])
    expect(piped.stdout.split('\n').filter((line) => line.includes('connect: 1 h, refused'))).toHaveLength(2)
  })

  test('W3 with --monitor, an incident is in the row of the period in which it began', async () => {
    const ofShop = await home.run(['history', '--monitor', 'tcp shop', '--since', '5h', '--json'])
    expect(incidentsIn(ofShop)).toMatchObject([{ id: 'shop', cause: 'Sql/tcp db' }])
    const row = rowsOf(ofShop).find(({ incidents }) => incidents.length > 0)
    const began = new Date(row?.incidents[0]?.['from'] as string)
    expect([new Date(row?.['from'] as string) <= began, new Date(row?.['to'] as string) > began]).toEqual([true, true])
    const { stdout } = await home.run(['history', '--monitor', 'tcp shop'], { columns: 200 })
    expect(stdout).toContain('victim of Sql/tcp db')
    // It began before this time.
    const late = await home.run(['history', '--monitor', 'tcp shop', '--since', '150m', '--json'])
    expect(rowsOf(late)[0]?.incidents).toMatchObject([{ id: 'shop' }])
  })

  test('W3 a shorter time, a type and a depth narrow it', async () => {
    const recent = await home.run(['history', '--since', '30m', '--json'])
    expect(rowsOf(recent).map(({ downSeconds }) => downSeconds)).toEqual([0, 0])
    const ofType = await home.run(['history', '-t', 'Sql', '--depth', 'Basic', '--json'])
    expect(rowsOf(ofType)).toMatchObject([{ type: 'Sql', monitor: 'tcp db', downSeconds: 3_600 }])
  })

  test('W3 --monitor lists the periods of a monitor with their figures', async () => {
    const rows = rowsOf(await home.run(['history', '--monitor', 'TCP SHOP', '--since', '5h', '--json']))
    expect(rows.length).toBeGreaterThanOrEqual(5)
    expect(rows.filter(({ status }) => status === 'Failed')).not.toHaveLength(0)
    expect(rows[0]).toMatchObject({
      figures: [{ check: 'connect', unit: 'milliseconds', minimum: 12, average: 12, maximum: 12 }],
    })
    const sum = rows.reduce((ms, { downSeconds }) => ms + Number(downSeconds), 0)
    expect(sum).toBe(3_600)
  })

  test('W3 a terminal shows when each was down for longest', async () => {
    const { stdout } = await home.run(['history'], { columns: 140 })
    expect(stdout).toMatch(/2 monitors since \d{4}-\d\d-\d\d \d\d:\d\d UTC, 2 of them were down/)
    expect(stdout).toMatch(/tcp db .*failed +83\.\d+ % +1 h .*UTC, 1 h: connect/)
    const { stdout: periods } = await home.run(['history', '--monitor', 'tcp db', '--since', '2h'], { columns: 140 })
    expect(periods).toContain('connect 12 ms')
  })

  /** The history of a monitor over six hours. */
  const monitorOf = (ServerType: 'App' | 'Sql', MonitorName: string, downMinutes: number): MonitorHistory => ({
    ServerType,
    MonitorName,
    Status: downMinutes > 0 ? 'Failed' : MonitorName === 'host' ? 'Warning' : 'Ok',
    From: new Date('2026-11-24T04:00:00Z'),
    To: new Date('2026-11-24T10:00:00Z'),
    AvailabilityPercent: 100 - downMinutes / 3.6,
    Down: downMinutes * minute,
    Unobserved: 10 * minute,
    Worst:
      downMinutes > 0
        ? [{ From: new Date('2026-11-24T05:00:00Z'), Down: downMinutes * minute, FailedChecks: ['connect'] }]
        : [],
    Incidents: MonitorName === 'host' ? [{ Id: `${ServerType} load`, MonitoringName: 'load', From: new Date(0) }] : [],
  })

  test.each([60, 80, 100, 140])(
    'K14 a terminal of %i columns has one table with the machine once, failures first and the number of health',
    (columns) => {
      const rows = rowsForPeople(
        [
          monitorOf('App', 'host', 0),
          monitorOf('App', 'http shop', 0),
          monitorOf('Sql', 'host', 0),
          monitorOf('Sql', 'postgres orders', 60),
          monitorOf('Sql', 'postgres stock', 90),
        ].flatMap(historyRows),
      )
      const { stdout } = capturedIo({ columns, env: { NO_COLOR: '1' } }).io
      const text = history.render(
        rows,
        { target: 'here', notKept: undefined, hiddenMonitors: undefined },
        {
          json: false,
          screen: stdout,
        },
      )
      const lines = text.split('\n')
      expect(lines[0]).toBe('! 4 monitors since 2026-11-24 04:00 UTC, 2 of them were down')
      const title = lines.findIndex((line) => /^ {2}TYPE +MONITOR +WORST +AVAILABLE +DOWN/.test(line))
      const names = /postgres|stock|orders|host|http shop/g
      expect(lines.slice(title).join(' ').match(names)).toEqual([
        ...['postgres', 'stock', 'postgres', 'orders'].slice(0, 4),
        ...['host', 'http shop'],
      ])
      expect(incidentsToShow(rows).visible.map(({ type, monitor }) => `${type} ${monitor}`)).toEqual(['all host'])
    },
  )

  test('W3 a monitor that history does not know, and a time that it cannot have, are refused', async () => {
    expect(await home.run(['history', '--monitor', 'tcp nobody'])).toMatchObject({ code: 9 })
    for (const since of ['1m', '500d', 'yesterday']) {
      const { code, stderr } = await home.run(['history', '--since', since])
      expect(code).toBe(2)
      expect(stderr).toContain(`--since "${since}" is not a time from 5m to 400d`)
    }
  })
})
