import { expect, test } from 'vitest'
import type { ServerType } from '../../../src/core/protocol/index.ts'
import { incidentsByMonitor } from '../../../src/core/service/watch/incident-answer.ts'
import type { IncidentRecord } from '../../../src/core/watch/states/index.ts'

const hour = 3_600_000
const noon = Date.UTC(2026, 5, 1, 12)

const record = (type: ServerType, name: string, more: Partial<IncidentRecord> = {}): IncidentRecord => ({
  ...{ id: name, key: `${type}/tcp/${name}`, type, monitor: `tcp ${name}`, check: 'connect' },
  ...{ beganAt: noon, confirmedAt: noon + 20_000, level: 'failed', fault: 'refused', message: 'connection refused' },
  ...{ isFlapping: false, isUnobserved: false },
  ...more,
})
const ended = { endedAt: noon + hour, ending: 'recovered' } as const
const causeOf = ({ key, type, monitor }: IncidentRecord) => ({ cause: { key, type, monitor } })

const db = record('Sql', 'db', ended)
const shop = record('App', 'shop', { ...ended, ...causeOf(db) })
const orders = record('App', 'orders', { ...ended, ...causeOf(shop) })
const backup = record('App', 'backup', { fault: 'data' })
const all = [backup, shop, orders, db]

const answer = (
  records: readonly IncidentRecord[],
  reads: (type: ServerType) => boolean,
  typesOfHost: (key: string) => readonly string[] | undefined = () => undefined,
) => {
  const of = incidentsByMonitor({ records, reads, typesOfHost, now: noon + 3 * hour })
  return (type: ServerType, name: string) => of({ type, name })
}

test('W3 each monitor has its incidents: a cause names its victims, also those behind a victim, a victim its cause, and an open one lasts until now', () => {
  const of = answer(all, () => true)
  expect(of('Sql', 'tcp db')).toMatchObject([
    { Id: 'db', Duration: hour, Ending: 'Recovered', VictimCount: 2, Victims: ['App/tcp shop', 'App/tcp orders'] },
  ])
  expect(of('App', 'tcp shop')).toMatchObject([{ Id: 'shop', Cause: 'Sql/tcp db', Victims: ['App/tcp orders'] }])
  expect(of('App', 'tcp orders')).toMatchObject([{ Id: 'orders', Cause: 'App/tcp shop', VictimCount: 0 }])
  expect(of('App', 'tcp backup')).toMatchObject([
    { Id: 'backup', Duration: 3 * hour, To: undefined, Ending: undefined, VictimCount: 0 },
  ])
  expect(of('Sql', 'tcp shop')).toEqual([])
})

test('W3 S11 a caller who may not read the type of the victims gets their count, and of a cause no name', () => {
  expect(answer(all, (type) => type === 'Sql')('Sql', 'tcp db')).toMatchObject([{ VictimCount: 2, Victims: [] }])
  const behind = answer(all, (type) => type === 'App')('App', 'tcp shop')
  expect(JSON.stringify(behind)).not.toContain('tcp db')
  expect(behind).toMatchObject([{ Cause: 'a monitor of another type', Victims: ['App/tcp orders'] }])
})

test('W3 a victim of an earlier incident of its cause belongs to that one', () => {
  const later = record('Sql', 'db', { id: 'again', beganAt: noon + 2 * hour })
  expect(answer([later, shop, db], () => true)('Sql', 'tcp db')).toMatchObject([
    { Id: 'again', VictimCount: 0 },
    { Id: 'db', VictimCount: 1 },
  ])
})

test('G3 of several incidents of a cause at a time, only the one that keeps it from being reached has victims', () => {
  const disk = record('Sql', 'db', { id: 'disk', check: 'disk', fault: 'threshold', beganAt: noon - hour })
  const slow = record('Sql', 'db', { id: 'slow', check: 'lag', level: 'warning', fault: undefined, ...ended })
  const late = record('App', 'late', { ...causeOf(db), id: 'late', beganAt: noon + 2 * hour })
  const again = record('Sql', 'db', { id: 'again', beganAt: noon + 2 * hour })
  const victims = answer([late, again, shop, orders, db, slow, disk], () => true)('Sql', 'tcp db')
  expect(victims.map(({ Id, Victims }) => [Id, Victims])).toEqual([
    ['again', ['App/tcp late']],
    ['db', ['App/tcp shop', 'App/tcp orders']],
    ['slow', []],
    ['disk', []],
  ])
})

test('W3 two monitors that rest on each other are victims of each other, once', () => {
  const cycle = [record('App', 'shop', causeOf(db)), record('Sql', 'db', causeOf(shop))]
  const of = answer(cycle, () => true)
  expect(of('Sql', 'tcp db')).toMatchObject([{ VictimCount: 1, Victims: ['App/tcp shop'] }])
  expect(of('App', 'tcp shop')).toMatchObject([{ VictimCount: 1, Victims: ['Sql/tcp db'] }])
})

test('W3 an incident of the machine belongs to the host of the types that have its host block', () => {
  const full = { ...record('App', 'host'), key: '/host/', type: undefined, monitor: 'host', id: 'full' }
  const of = answer(
    [full],
    () => true,
    (key) => (key === '/host/' ? ['App', 'Sql'] : undefined),
  )
  expect([of('App', 'host'), of('Sql', 'host'), of('Batch', 'host')].map((some) => some.length)).toEqual([1, 1, 0])
  expect(answer([full], () => true)('Batch', 'host')).toMatchObject([{ Id: 'full' }])
})
