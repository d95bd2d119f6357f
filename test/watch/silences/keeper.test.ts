import { expect, onTestFinished, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import type { Config } from '../../../src/core/config/index.ts'
import { NotifyDriver } from '../../../src/core/service/notify/notify-driver.ts'
import { SilenceKeeper } from '../../../src/core/service/silences/silence-keeper.ts'
import type { SilenceRows } from '../../../src/core/store/index.ts'
import type { Mute, Receiver } from '../../../src/core/watch/notify/index.ts'
import type { Acknowledgement, HandSilence, StateOfSubject } from '../../../src/core/watch/silences/index.ts'
import { load } from '../../config/given.ts'

const now = 1_700_000_000_000
const entry: HandSilence = {
  ...{ what: 'silence', id: 'a', monitors: ['Sql/*'], from: now, until: now + 60_000, by: 'alice', reason: 'patches' },
}

async function keeperOf(list: () => Promise<readonly HandSilence[]>): Promise<SilenceKeeper> {
  const rows: SilenceRows = { list, add: async () => {}, end: async () => undefined }
  const store = { rows: async () => rows, now: () => now }
  const keeper = new SilenceKeeper({ config: await load('types: {}'), store, now: () => now })
  onTestFinished(() => keeper.close())
  return keeper
}

test('M10 until the store has answered once, a simulated receiver keeps the silences that it has', async () => {
  let isAway = true
  const keeper = await keeperOf(async () => {
    if (isAway) throw new Fault('Unavailable', 'the store is away')
    return [entry]
  })
  const muted: (readonly Mute[])[] = []
  const receiver: Receiver = {
    describe: () => ({ name: 'am', kind: 'alertmanager', to: 'http://am' }),
    send: async () => ({ what: 'accepted' }),
    mute: async (mutes) => {
      muted.push(mutes)
      return []
    },
    close: async () => {},
  }
  const driver = new NotifyDriver({
    rows: undefined,
    lookup: () => 'removed',
    look: () => {},
    noticeOf: () => {
      throw new Error('nothing is sent')
    },
    mutes: () => (keeper.isComplete ? [] : undefined),
    now: () => now,
    isHealthy: () => true,
    log: () => {},
  })
  onTestFinished(async () => await driver.close())
  const rules = { name: 'am', folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }
  driver.use([{ receiver, rules }])
  await expect(keeper.read()).rejects.toThrow('the store is away')
  expect([await driver.mute(), muted]).toEqual([[], []])
  isAway = false
  await keeper.read()
  await driver.mute()
  expect(muted).toEqual([[]])
})

test('M9 an acknowledgement goes on under the new name of a monitor that was renamed with formerly, at a start and at a reload', async () => {
  const ack: Acknowledgement = {
    ...{ what: 'ack', id: 'b', from: now, until: now + 60_000, by: 'alice', reason: 'INC-7' },
    ...{ incident: 'i', level: 'failed', fault: 'refused' },
    subject: { key: 'Sql/tcp/old', type: 'Sql', monitor: 'tcp old', check: 'connect', item: undefined },
  }
  const yaml = (name: string, more = '') =>
    `types: {Sql: {host: false, monitors: [{kind: tcp, name: ${name}, host: 127.0.0.1, port: 9${more}}]}}`
  const [before, after] = [await load(yaml('old')), await load(yaml('new', ', formerly: Sql/tcp/old'))]
  const endings: string[] = []
  const keeperWith = (config: Config): SilenceKeeper => {
    const end: SilenceRows['end'] = async (id) => {
      endings.push(id)
      return undefined
    }
    const store = { rows: async () => ({ list: async () => [ack], add: async () => {}, end }), now: () => now }
    const keeper = new SilenceKeeper({ config, store, now: () => now })
    onTestFinished(() => keeper.close())
    return keeper
  }
  const renamed = { ...ack.subject, key: 'Sql/tcp/new', monitor: 'tcp new' }
  const state = { level: 'failed', fault: 'refused', incident: { id: 'i', level: 'failed' } } as StateOfSubject
  const started = keeperWith(after)
  await started.read()
  expect(started.of(renamed, state).silences).toMatchObject([{ source: 'ack', id: 'b' }])
  const running = keeperWith(before)
  await running.read()
  expect(running.of(ack.subject, state).silences).toHaveLength(1)
  running.use(after)
  expect(running.of(ack.subject, 'removed').silences).toEqual([])
  expect(running.of(renamed, state).silences).toMatchObject([{ source: 'ack', id: 'b' }])
  await running.read()
  expect([running.of(renamed, state).silences.length, endings]).toEqual([1, []])
})

test('M8 what was silent stays silent while the store is away', async () => {
  let isAway = false
  const keeper = await keeperOf(async () => {
    if (isAway) throw new Fault('Unavailable', 'the store is away')
    return [entry]
  })
  await keeper.read()
  isAway = true
  await expect(keeper.read()).rejects.toThrow('the store is away')
  expect(keeper.ofMonitors([{ type: 'Sql', monitor: 'postgres orders' }])).toMatchObject([{ id: 'a', by: 'alice' }])
})
