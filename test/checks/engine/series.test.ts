import { describe, expect, test } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import { seriesMoves, seriesOf } from '../../../src/core/checks/engine/series.ts'
import { hostBlock, loadKind } from '../../../src/core/checks/plan/index.ts'
import type { ServerType } from '../../../src/core/protocol/index.ts'

const monitor = async (kindName: 'file-age' | 'tcp', raw: Readonly<Record<string, unknown>>, own?: string) => {
  const kind = await loadKind(kindName)
  const { values: settings } = readSettings(kind.settings, raw, { env: {}, folder: '/' })
  const type: ServerType = 'Batch'
  return { kind, settings, type, name: own === undefined ? kindName : `${kindName} ${own}` }
}
const orders = (more: Readonly<Record<string, unknown>> = {}) =>
  monitor('file-age', { path: '/srv/orders', age: '1h', ...more }, 'orders')
const peer = (more: Readonly<Record<string, unknown>> = {}) =>
  monitor('tcp', { host: 'db1.internal', port: 5432, ...more })

/** As svc 0.1 wrote it: kind, digest of `file-age {"path":"/srv/orders","hidden":false,"age":{"limit":3600000}}`. */
const formerOrders = 'file-age e84699be2ef6fecc4324ef2ef8280dd6'
const moved = (moves: ReturnType<typeof seriesMoves>) => moves.map(({ from, to }) => [from, ...to])

describe('the names of series', () => {
  test('H41 a series that svc 0.1 named by the settings gets the key, on the machine that wrote it', async () => {
    const one = await orders()
    const names = [`${formerOrders} web1 for`, `${formerOrders} web2 for`, `${formerOrders} web1 free /srv data`]
    expect(moved(seriesMoves(names, [one], 'web1'))).toEqual([
      [names[0], seriesOf(one, 'web1', 'for')],
      [names[2], seriesOf(one, 'web1', 'free /srv data')],
    ])
    expect(seriesMoves(names, [await orders({ age: '2h' })], 'web1')).toEqual([])
  })

  test('H41 equal monitors of two types each continue what they shared', async () => {
    const one = await orders()
    const two = { ...one, type: 'Ftp' as const }
    expect(moved(seriesMoves([`${formerOrders} web1 for`], [one, two], 'web1'))).toEqual([
      [`${formerOrders} web1 for`, seriesOf(one, 'web1', 'for'), seriesOf(two, 'web1', 'for')],
    ])
  })

  test('H41 the host blocks of all types have one series, whatever their thresholds', async () => {
    const [usual, changed] = await Promise.all([hostBlock({}), hostBlock({ disk: '70%' })])
    expect(seriesOf(usual, 'web1', 'free /')).toBe(seriesOf(changed, 'web1', 'free /'))
    expect(seriesOf(usual, 'web1', 'free /')).not.toBe(seriesOf(usual, 'web2', 'free /'))
  })

  test('H41 a threshold keeps a series, another target has another one', async () => {
    const name = seriesOf(await orders(), 'web1', 'for')
    expect(seriesOf(await orders({ age: '5m', files: 9 }), 'web1', 'for')).toBe(name)
    expect(seriesOf(await orders({ path: '/srv/others' }), 'web1', 'for')).not.toBe(name)
    expect(seriesOf(await orders({ ending: '.xml' }), 'web1', 'for')).not.toBe(name)
  })

  test('H41 nodes share the series of a peer, but not that of a loopback address', async () => {
    expect(seriesOf(await peer(), 'web1', 'for')).toBe(seriesOf(await peer(), 'web2', 'for'))
    const local = await peer({ host: '127.0.0.1' })
    expect(seriesOf(local, 'web1', 'for')).not.toBe(seriesOf(local, 'web2', 'for'))
  })

  test('H41 a key of `formerly` passes its series on, with what it observed', async () => {
    const before = await orders()
    const now = { ...before, name: 'file-age incoming', formerly: ['Batch/file-age/orders'] }
    const names = [
      seriesOf(before, 'web1', 'for'),
      seriesOf(before, 'web2', 'for'),
      seriesOf(await orders({ path: '/srv/others' }), 'web1', 'for'),
    ]
    expect(moved(seriesMoves(names, [now], 'web1'))).toEqual([
      [names[0], seriesOf(now, 'web1', 'for')],
      [names[2], expect.stringContaining('Batch/file-age/incoming')],
    ])
    // Another path is still another series.
    expect(seriesMoves(names, [now], 'web1')[1]?.to).not.toContain(seriesOf(now, 'web1', 'for'))
  })

  test('H41 all other names stay: other programs of the store, other machines, unknown monitors', async () => {
    const names = [
      'proof that the store can be written',
      'host free /',
      `tcp ${'0'.repeat(32)} web1 for`,
      seriesOf(await orders(), 'web1', 'for'),
    ]
    expect(seriesMoves(names, [await orders(), await peer()], 'web1')).toEqual([])
  })
})
