import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { StoreOutage } from '../../../src/core/base/errors.ts'
import { nodesPart } from '../../../src/core/service/nodes/nodes.ts'
import { SentWithoutStore } from '../../../src/core/service/notify/sent-without-store.ts'
import { watchingPart } from '../../../src/core/service/notify/watching.ts'
import type { PrivateFile } from '../../../src/core/service/part.ts'
import { scheduledMonitors } from '../../../src/core/service/watch/scheduled-monitors.ts'
import { type NodesRows, nodeOfKey } from '../../../src/core/watch/nodes/index.ts'
import { headOf, linesOf } from '../../../src/core/watch/outbox/index.ts'
import { load } from '../../config/given.ts'
import { LeasesTable } from '../../support/store/leases-table.ts'
import { requestOf, subjectOf } from '../../support/store/nodes.ts'

const second = 1_000
const beganAt = Date.UTC(2026, 10, 24)
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'], now: beganAt })
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now() - beganAt)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** The node `b`, which stands by while `a` holds the lease, with its own judgment of whether it watches. */
async function standby({ isAway = false, file }: { readonly isAway?: boolean; readonly file?: PrivateFile } = {}) {
  const config = await load(
    'types: {App: {host: false, monitors: [{kind: tcp, name: shop, host: 127.0.0.1, port: 1}]}}',
  )
  const table = new LeasesTable()
  const now = (): number => performance.now()
  const take = { type: 'take', expected: undefined, epoch: 1 } as const
  for (const shard of ['machine', 'network']) table.beat(requestOf('a', { asks: { [shard]: take } }), now())
  const store = { isAway, onHandOver: (): void => {} }
  const rows = {
    beat: async (request) => table.beat(request, now()),
    stored: async () => table.stored,
    handOver: async (what) => {
      const isStored = table.handOver(what)
      if (isStored) store.onHandOver()
      return isStored
    },
    leave: async (node, process) => table.leave(node, process, now()),
  } as Partial<NodesRows> as NodesRows
  const part = nodesPart({
    config,
    node: 'b',
    version: '1',
    peer: () => undefined,
    rows: async () => {
      if (store.isAway) throw new StoreOutage('is away', {})
      return rows
    },
    sentWithoutStore:
      file && new SentWithoutStore({ file, node: 'b', storeId: async () => 'store', now, log: () => {} }),
  })
  const monitors = await scheduledMonitors(config, part.lease.keyOf)
  part.follow({
    schedule: {
      monitors: () => monitors,
      follow: () => {},
      keepsUp: () => true,
      watches: () => true,
      look: async () => undefined,
    },
    states: {
      takeOver: () => {},
      again: () => {},
      say: () => {},
      isIsolated: () => false,
      faultsOfAll: async () => new Map(),
      questions: () => [],
      takeAnswers: () => {},
    },
    notify: { takeOver: () => [], again: () => {} },
  })
  const watching = watchingPart({
    config,
    version: '1',
    schedule: { watches: () => true, keepsUp: () => true },
    states: { isIsolated: () => false },
    isStored: part.isLed,
  })
  await part.answers?.()
  await watching.answers?.()
  onTestFinished(async () => {
    await watching.cancel?.()
    await part.cancel?.()
  })
  /** Lets seconds pass, in which `a` does this. */
  const pass = async (seconds: number, work: () => void): Promise<void> => {
    for (let n = 0; n < seconds; n += 1) {
      work()
      await vi.advanceTimersByTimeAsync(second)
    }
  }
  const renew = (): void => {
    const own = { type: 'renew', epoch: 1 } as const
    table.beat(requestOf('a', { asks: { network: own, machine: own } }), now())
  }
  const ofNetwork = async () => (await part.elsewhere()).get('App')?.map(({ name, node }) => [name, node])
  const key = monitors.find((one) => nodeOfKey(one.key) === undefined)?.key ?? ''
  return { part, watching, table, store, key, pass, renew, ofNetwork, now }
}

test('W4 W24 a node that stands by says that svc watches after a minute in which it saw the lease renewed, and never posts the watchdog', async () => {
  const { part, watching, table, pass, renew, ofNetwork, now } = await standby()
  await pass(59, renew)
  expect([watching.isSteady(), part.lease.leads()]).toEqual([false, false])
  await pass(6, renew)
  expect([watching.isSteady(), part.lease.leads()]).toEqual([true, false])
  expect(await ofNetwork()).toEqual([['tcp shop', 'a']])
  // A node of a version before keeps this one from taking the lease, which nobody renews any more.
  const silent = (): void => table.oldNode('c', now(), false)
  await pass(15, silent)
  expect([watching.isSteady(), watching.reason()]).toEqual([false, 'states or notifications are not stored'])
  // They are still monitors of others, and not healthy ones of this node.
  expect(await ofNetwork()).toEqual([['tcp shop', undefined]])
  await pass(5, renew)
  expect([watching.isSteady(), watching.reason()]).toEqual([false, undefined])
  await pass(65, renew)
  expect([watching.isSteady(), part.lease.leads()]).toEqual([true, false])
})

test('W4 W24 a node that takes the lease posts the watchdog from then on', async () => {
  const { part, table, pass, ofNetwork } = await standby()
  await pass(5, () => {})
  expect(part.lease.leads()).toBe(false)
  await pass(10, () => {})
  expect([part.lease.leads(), await ofNetwork()]).toEqual([true, undefined])
  expect(table.lease('network', 0)).toMatchObject({ node: 'b', epoch: 2 })
})

const noticeOf = (incident: string) => ({
  id: incident,
  incident,
  subject: subjectOf(`App/${incident}`),
  what: 'begin' as const,
  level: 'failed' as const,
  beganAt: 0,
  observedAt: 0,
  text: 'it is down',
})

/** A file of the node in which an earlier process has noted that it told an incident. */
function fileOfEarlier() {
  const text = headOf('store', 'b') + linesOf('mail', [noticeOf('earlier')], 0).join('')
  const state = { text: text as string | undefined }
  const file: PrivateFile = {
    path: '/state/told-b.jsonl',
    read: async () => state.text,
    append: async (text) => {
      state.text = `${state.text ?? ''}${text}`
    },
    remove: async () => {
      state.text = undefined
    },
  }
  return { state, file }
}
const incidentsIn = (table: LeasesTable): readonly (string | undefined)[] =>
  table.stored.outbox.map(({ row }) => (row?.attempt ?? row?.last)?.incident)

test('W4 W23 what an earlier process sent without the store is handed over once more if a failover loses it', async () => {
  const { state, file } = fileOfEarlier()
  const { table, store, pass, renew } = await standby({ file, isAway: true })
  let failovers = 0
  let back = table.snapshot()
  store.onHandOver = () => {
    failovers += 1
    if (failovers === 1) back()
  }
  store.isAway = false
  await pass(1, () => {
    back = table.snapshot()
    renew()
  })
  await pass(8, renew)
  expect([failovers, incidentsIn(table), state.text]).toEqual([2, ['earlier'], undefined])
})

test('W4 W23 what an earlier process sent without the store outlives that this one hands over its own first', async () => {
  const { state, file } = fileOfEarlier()
  const { part, table, store, key, pass } = await standby({ file, isAway: true })
  await pass(70, () => {})
  expect(part.lease.voice(key, 0)).toBe('alone')
  await file.append(linesOf('mail', [noticeOf('own')], 0).join(''))
  part.lease.sentAlone()
  store.isAway = false
  await pass(5, () => {})
  expect([incidentsIn(table).toSorted(), state.text]).toEqual([['earlier', 'own'], undefined])
})
