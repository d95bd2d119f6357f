import { expect, test } from 'vitest'
import {
  type Effect,
  Ledger,
  States,
  StatesTable,
  type StoredStates,
  type Transition,
  type Verdict,
  type WatchedMonitor,
} from '../../../src/core/watch/states/index.ts'

const second = 1_000
const minute = 60 * second
const origin = 1_700_000_000_000

const monitor = (key: string, more: Partial<WatchedMonitor> = {}): WatchedMonitor => ({
  key,
  type: 'Sql',
  name: key,
  runsOn: 'network',
  every: { Standard: minute },
  dependsOn: [],
  confirmMs: 20 * second,
  flapping: 6,
  formerly: [],
  fingerprint: '1',
  ...more,
})

/** A process of svc with its states and its ledger, that begins with what the table has. */
function watching(table: StatesTable, monitors: readonly WatchedMonitor[], at: number) {
  const now = (): number => origin + clock * second
  let clock = at
  const states = new States(now())
  const ledger = new Ledger()
  const transitions: Transition[] = []
  const take = (effects: readonly Effect[]): void => {
    ledger.take(effects)
    for (const effect of effects) if (effect.type === 'transition') transitions.push(effect.transition)
  }
  const flush = (): void => {
    const batch = ledger.batch(now())
    if (!batch) return
    table.write(batch, now())
    ledger.stored(batch, now())
  }
  const before = JSON.parse(JSON.stringify(table.read(now()))) as StoredStates
  ledger.adopt(before)
  states.restore(before.states, now(), now() - (before.ageMs ?? 0))
  take(states.configure(monitors, now()))
  return {
    ledger,
    states,
    transitions,
    flush,
    /** Runs at these times, in seconds since the origin, all of which say the same. */
    run: (key: string, level: Verdict['level'], ...times: readonly number[]) => {
      for (const time of times) {
        clock = time
        const verdict: Verdict = {
          check: 'connect',
          level,
          message: 'm',
          depth: 'Basic',
          ...(level === 'failed' ? { fault: 'refused' } : {}),
        }
        take(states.ran({ key, depth: 'Standard', beganAt: now(), endedAt: now(), verdicts: [verdict] }, now()))
        flush()
      }
    },
    configure: (more: readonly WatchedMonitor[]) => {
      take(states.configure(more, now()))
      flush()
    },
    what: () => transitions.map(({ what }) => what),
  }
}

const everything = { from: 0, to: Number.POSITIVE_INFINITY, most: 100 }

test('W18 a fault that stands keeps its beginning and the id of its incident across a restart', () => {
  const table = new StatesTable()
  const first = watching(table, [monitor('a')], 0)
  first.run('a', 'failed', 60, 80)
  const [before] = table.incidents(everything)
  const second = watching(table, [monitor('a')], 120)
  second.run('a', 'failed', 130, 190)
  expect(second.what()).toEqual([])
  expect([...second.states.views(origin)][0]?.state.incident).toMatchObject({
    id: before?.id,
    beganAt: origin + 60_000,
  })
  second.run('a', 'ok', 250, 260)
  expect(second.what()).toEqual(['end'])
  expect(table.incidents(everything)).toMatchObject([
    { id: before?.id, beganAt: origin + 60_000, endedAt: origin + 250_000, ending: 'recovered' },
  ])
})

test('W18 a fault that was in doubt when svc ended is confirmed since its first run, and nothing of it is stored twice', () => {
  const table = new StatesTable()
  watching(table, [monitor('a')], 0).run('a', 'failed', 60)
  const second = watching(table, [monitor('a')], 65)
  second.run('a', 'failed', 70)
  expect(table.incidents(everything)).toEqual([])
  second.run('a', 'failed', 80, 90)
  expect(table.incidents(everything)).toMatchObject([{ beganAt: origin + 60_000 }])
})

test('W18 after three intervals and 10 min without svc, what stood is unobserved: it goes on if it still fails, and only healthy runs end it', () => {
  for (const [level, ...expected] of [
    ['failed', 'unobserved', 'observed'],
    ['ok', 'unobserved', 'observed', 'end'],
  ] as const) {
    const table = new StatesTable()
    watching(table, [monitor('a')], 0).run('a', 'failed', 60, 80)
    const second = watching(table, [monitor('a')], 80 + 11 * 60)
    expect(second.transitions).toMatchObject([
      { what: 'unobserved', at: origin + 80_000, message: 'not checked: svc did not run' },
    ])
    second.run('a', level, 800, 810)
    expect(second.what()).toEqual(expected)
    expect(table.incidents(everything)).toMatchObject([{ beganAt: origin + 60_000 }])
  }
})

test('W18 a monitor that is removed, renamed or changed while svc does not run: removed, continued, confirmed anew', () => {
  const stands = (): StatesTable => {
    const table = new StatesTable()
    watching(table, [monitor('a')], 0).run('a', 'failed', 60, 80)
    return table
  }
  const removed = stands()
  const other = watching(removed, [monitor('b')], 90)
  other.flush()
  expect(other.what()).toEqual(['removed'])
  expect(removed.incidents(everything)).toMatchObject([{ ending: 'removed', endedAt: origin + 90_000 }])

  const renamed = stands()
  const [{ id = '' } = {}] = renamed.incidents(everything)
  const under = watching(renamed, [monitor('b', { formerly: ['a'] })], 90)
  under.flush()
  expect(under.what()).toEqual([])
  expect(renamed.incidents(everything)).toMatchObject([{ id, key: 'b', monitor: 'b' }])
  expect(renamed.read(origin).states.map(({ row }) => row.key)).toEqual(['b'])

  const changed = stands()
  const same = watching(changed, [monitor('a', { fingerprint: '2' })], 90)
  same.run('a', 'ok', 100)
  expect(same.what()).toEqual([])
  same.run('a', 'ok', 110)
  expect(same.what()).toEqual(['end'])
})

test('W3 a batch that the store did not take is made again with what came since, and taking it twice changes nothing', () => {
  const table = new StatesTable()
  const { ledger, run, flush } = watching(table, [monitor('a')], 0)
  flush()
  const write = table.write.bind(table)
  table.write = () => {
    throw new Error('full')
  }
  expect(() => run('a', 'failed', 60)).toThrow('full')
  expect(() => run('a', 'failed', 80)).toThrow('full')
  table.write = write
  const batch = ledger.batch(origin)
  expect(batch?.incidents).toHaveLength(1)
  if (batch) table.write(batch, origin)
  flush()
  expect(table.incidents(everything)).toHaveLength(1)
  expect(ledger.batch(origin + second)).toBeUndefined()
  // It shows until when svc watched.
  expect(ledger.batch(origin + 10 * second + 80_000)).toMatchObject({ states: [], incidents: [] })
})

test('W3 incidents that the store has open and nobody knows end when svc last watched, and do not count as recovered', () => {
  const table = new StatesTable()
  watching(table, [monitor('a')], 0).run('a', 'failed', 60, 80)
  const stranger = new Ledger()
  const batch = stranger.batch(origin + 900_000)
  expect(batch).toMatchObject({ isWhole: true, claims: 'now' })
  if (batch) table.write(batch, origin + 900_000)
  expect(table.incidents(everything)).toMatchObject([{ endedAt: origin + 80_000, ending: 'unknown' }])
})

test('W3 while the store fails, the latest 10,000 incidents that have ended wait for it', () => {
  const ledger = new Ledger()
  for (let at = 0; at < 10_010; at += 1) {
    const subject = { key: `k${at}`, type: 'Sql', monitor: 'm', check: 'c' } as const
    const flags = { isFlapping: false, isUnobserved: false }
    const incident = { id: String(at), beganAt: at, confirmedAt: at, level: 'failed', message: 'm', ...flags } as const
    const transition = {
      ...subject,
      what: 'end',
      at,
      confirmedAt: at,
      from: 'failed',
      to: 'ok',
      message: '',
      depth: 'Basic',
    } as const
    ledger.take([{ type: 'transition', transition, incident }])
  }
  expect(ledger.incidents).toHaveLength(10_000)
  expect(ledger.incidents[0]?.id).toBe('10')
  expect(ledger.lostIncidents).toBe(10)
})
