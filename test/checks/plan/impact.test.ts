import { expect, test } from 'vitest'
import type { MonitorOfType, PlannedMonitor } from '../../../src/core/checks/engine/index.ts'
import { loadImpact } from '../../../src/core/checks/plan/index.ts'
import type { ServerType } from '../../../src/core/protocol/index.ts'
import { load } from '../../config/given.ts'

const { impactOf } = await loadImpact()

const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: a, port: 1${more}}`
const monitors = async (types: Readonly<Record<string, readonly string[]>>): Promise<readonly PlannedMonitor[]> => {
  const lines = Object.entries(types).map(([type, all]) => `  ${type}:\n${all.map((one) => `    - ${one}\n`).join('')}`)
  const config = await load(`types:\n${lines.join('')}`)
  return Object.entries(config.types).flatMap(([type, { monitors: all }]) =>
    all.map((one) => ({ ...one, type: type as ServerType })),
  )
}
const of = (written: string): MonitorOfType => {
  const [type = '', name = ''] = written.split('/')
  return { type: type as ServerType, name: `tcp ${name}` }
}

const shop = {
  Sql: [tcp('gateway'), tcp('db', ', dependsOn: gateway'), tcp('replica', ', dependsOn: gateway'), tcp('other')],
  App: [
    tcp('api', ', dependsOn: Sql/db'),
    tcp('shop', ', dependsOn: api'),
    tcp('reports', ', dependsOn: {any: [Sql/replica, Sql/other]}'),
    tcp('free'),
  ],
}
const rows = async (cause: string, isDown: readonly string[] = []) =>
  impactOf(await monitors(shop), [of(cause)], (one) => isDown.some((down) => of(down).name === one.name)).map(
    ({ monitor, isSkipped, isDirect, through, group }) =>
      `${monitor.name} ${isSkipped ? 'skipped' : 'runs'} ${isDirect ? 'direct' : 'through'} ${through.map(({ name }) => name).join('+')} ${group.left}/${group.members}>=${group.needed}`,
  )

test('G4 what depends on a monitor directly and through others, of all types', async () => {
  expect(await rows('Sql/db')).toEqual([
    'tcp api skipped direct tcp db 0/1>=1',
    'tcp shop skipped through tcp api 0/1>=1',
  ])
  expect(await rows('App/free')).toEqual([])
})

test('G4 a group that has enough other members still runs, and nothing behind it is concerned', async () => {
  expect(await rows('Sql/gateway')).toEqual([
    'tcp db skipped direct tcp gateway 0/1>=1',
    'tcp replica skipped direct tcp gateway 0/1>=1',
    'tcp api skipped through tcp db 0/1>=1',
    'tcp shop skipped through tcp api 0/1>=1',
    'tcp reports runs through tcp replica 1/2>=1',
  ])
})

test('G4 a member that cannot be reached now is missing from its group', async () => {
  expect(await rows('Sql/replica')).toEqual(['tcp reports runs direct tcp replica 1/2>=1'])
  expect(await rows('Sql/replica', ['Sql/other'])).toEqual(['tcp reports skipped direct tcp replica 0/2>=1'])
})

test('G4 several causes at once, as a tag means them', async () => {
  const all = await monitors(shop)
  const both = impactOf(all, [of('Sql/replica'), of('Sql/other')])
  expect(both.map(({ monitor, isSkipped }) => [monitor.name, isSkipped])).toEqual([['tcp reports', true]])
})
