import { expect, onTestFinished, test } from 'vitest'
import { SilenceKeeper } from '../../../src/core/service/silences/silence-keeper.ts'
import type { SilenceRows } from '../../../src/core/store/index.ts'
import type { StateOfSubject, StoredSilence } from '../../../src/core/watch/silences/index.ts'
import { until } from '../../support/suite/until.ts'

const now = 1_700_000_000_000
const actor = { who: 'alice', correlationId: 'c' }
const silence = (id: string): StoredSilence => ({
  ...{ what: 'silence', id, monitors: ['Sql/*'], from: now, until: now + 60_000, by: 'alice', reason: 'patch night' },
})
const subject = { key: 'Sql/postgres/orders', type: 'Sql', monitor: 'postgres orders', check: 'connect' } as const
const ack = (id: string): StoredSilence => ({
  ...{ what: 'ack', id, from: now, until: now + 60_000, by: 'alice', reason: 'INC-7', subject },
  ...{ incident: 'i1', level: 'failed', fault: 'refused' },
})
const failing = (incident: string, fault = 'refused'): StateOfSubject => ({
  level: 'failed',
  fault: fault as 'refused',
  incident: {
    ...{ id: incident, beganAt: now, confirmedAt: now, level: 'failed', message: 'refused' },
    ...{ isFlapping: false, isUnobserved: false },
  },
})

/** A keeper on a simulated store, whose answers the test may hold back or replace by failures. */
function started(stored: readonly StoredSilence[] = []) {
  const store = {
    entries: [...stored],
    ends: [] as string[],
    lists: 0,
    running: 0,
    most: 0,
    beforeList: async (): Promise<void> => {},
    beforeEnd: async (): Promise<void> => {},
  }
  const rows: SilenceRows = {
    list: async () => {
      store.lists += 1
      const entries = [...store.entries]
      await store.beforeList()
      return entries
    },
    add: async (entries) => void store.entries.push(...entries),
    end: async (id, ended) => {
      store.running += 1
      store.most = Math.max(store.most, store.running)
      await store.beforeEnd().finally(() => {
        store.running -= 1
      })
      store.ends.push(`${id} ${ended.why}`)
      const at = store.entries.findIndex((entry) => entry.id === id && !entry.ended)
      const entry = store.entries[at]
      if (!entry) return undefined
      store.entries[at] = { ...entry, ended }
      return store.entries[at]
    },
  }
  let state: StateOfSubject = failing('i1')
  const keeper = new SilenceKeeper({
    config: { types: {}, silences: [] } as never,
    store: { rows: async () => rows, now: () => now + 10 },
    now: () => now + 10,
    stateOf: () => state,
  })
  onTestFinished(() => keeper.close())
  return {
    ...{ keeper, store },
    show: (next: StateOfSubject): void => {
      state = next
    },
  }
}
const idsIn = (keeper: SilenceKeeper): readonly string[] => keeper.inForce.map(({ id }) => id)

test('M8 a read that began before an entry was made or ended does not undo that', async () => {
  const { keeper, store } = started([silence('a')])
  await keeper.read()
  let release = (): void => {}
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  store.beforeList = async () => await gate
  const reading = keeper.read()
  await until(() => store.lists === 2)
  await keeper.add([silence('b')], actor)
  await keeper.end('a', 'alice', actor)
  release()
  await reading
  expect(idsIn(keeper)).toEqual(['b'])
})

test('M9 a store that cannot be written says what others silenced all the same, and is asked once at a time', async () => {
  const { keeper, store, show } = started([ack('a')])
  await keeper.read()
  store.beforeEnd = async () => {
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    throw new Error('read-only')
  }
  keeper.begin()
  await until(() => store.lists >= 2)
  show({ level: 'ok', incident: undefined })
  store.entries.push(silence('b'))
  await until(() => idsIn(keeper).includes('b'))
  await until(() => store.running > 0)
  expect(idsIn(keeper)).toEqual(['b'])
  expect(store.most).toBe(1)
})

test('M9 an acknowledgement of an incident that another svc serve has is not ended in the store', async () => {
  const { keeper, store, show } = started([ack('a')])
  show(failing('i2'))
  await keeper.read()
  keeper.begin()
  await until(() => store.lists >= 2)
  expect([idsIn(keeper), store.ends]).toEqual([[], []])
})

test('M9 an acknowledgement of an own incident is ended in the store, with the reason', async () => {
  const { keeper, store, show } = started()
  await keeper.read()
  await keeper.add([ack('a')], actor)
  show(failing('i1', 'auth'))
  keeper.begin()
  await until(() => store.ends.length > 0)
  expect(store.ends).toEqual(['a other fault'])
})
