import { describe, expect, test } from 'vitest'
import { type Notice, receiverKinds } from '../../../src/core/watch/notify/index.ts'
import { summaryOf } from '../../../src/core/watch/notify/receivers/message.ts'
import { headOf, linesOf, rowsOfSent } from '../../../src/core/watch/outbox/index.ts'
import { signal } from '../../support/notify/notice.ts'
import { receiverRows } from '../../support/notify/receiver-rows.ts'
import { monitorOf, RenamedMonitor } from '../../support/notify/renamed-monitor.ts'
import { sending } from '../../support/notify/sending.ts'

const told = (world: RenamedMonitor): readonly string[] =>
  world.sent.flat().map(({ what, level, subject }) => `${what} ${level} ${subject.monitor}`)
const incidents = (world: RenamedMonitor): readonly string[] => [
  ...new Set(world.sent.flat().map(({ incident }) => incident)),
]

/** A monitor of which a warning is open, and known to the receiver. */
function warned(): RenamedMonitor {
  const world = new RenamedMonitor('a')
  world.pass(20)
  world.level = 'warning'
  world.pass(60)
  expect(told(world)).toEqual(['begin warning tcp a'])
  return world
}

const b = monitorOf('b', ['a'])
const c = monitorOf('c', ['b'])

/** The ways in which a monitor gets another name while its incident is open. They all end with the name of the key. */
const ways: Readonly<Record<string, (world: RenamedMonitor) => void>> = {
  'b by a reload': (world) => world.reload(b),
  'b by a restart': (world) => world.restart([b]),
  'b by a reload before a restart': (world) => {
    world.reload(b)
    world.restart()
  },
  'b by a reload before a restart without formerly': (world) => {
    world.reload(b)
    world.tick()
    world.restart([monitorOf('b')])
  },
  'b by a takeover': (world) => world.restart([b], true),
  'b by a reload before a takeover': (world) => {
    world.reload(b)
    world.tick()
    world.restart([b], true)
  },
  'c by two reloads': (world) => {
    world.reload(b)
    world.pass(10)
    world.reload(c)
  },
  'c by two reloads at once': (world) => {
    world.reload(b)
    world.reload(c)
  },
  'c by a reload and a restart': (world) => {
    world.reload(b)
    world.restart([c])
  },
  'c by one reload that names both': (world) => world.reload(monitorOf('c', ['b', 'a'])),
  'a by two reloads, back to its first name': (world) => {
    world.reload(b)
    world.pass(10)
    world.reload(monitorOf('a', ['b']))
  },
}

describe.each(Object.keys(ways))('a monitor that becomes %s while its incident is open', (way) => {
  const name = `tcp ${way[0]}`
  const rename = ways[way] as (world: RenamedMonitor) => void

  test('W18 keeps the name at receivers until the end, and the next incident has the new one', () => {
    const world = warned()
    rename(world)
    world.pass(30)
    // The rename itself is no message.
    expect(told(world)).toEqual(['begin warning tcp a'])
    world.pass(90)
    world.level = 'failed'
    world.pass(60)
    world.level = 'warning'
    world.pass(60)
    world.level = 'ok'
    world.pass(60)
    world.level = 'failed'
    world.pass(60)
    const [first, next] = incidents(world)
    expect(told(world)).toEqual([
      'begin warning tcp a',
      'reminder warning tcp a',
      'change failed tcp a',
      'change warning tcp a',
      'end warning tcp a',
      `begin failed ${name}`,
    ])
    expect(incidents(world)).toEqual([first, next])
    expect(world.rows.map(({ subject }) => subject.monitor)).toEqual([name])
  })

  test('W18 gets the end under its old name if it recovers right after that', () => {
    const world = warned()
    world.level = 'ok'
    world.pass(9)
    rename(world)
    world.pass(60)
    expect(told(world)).toEqual(['begin warning tcp a', 'end warning tcp a'])
    expect([world.rows, world.stored]).toEqual([[], [expect.anything()]])
  })

  test('W18 is removed under its old name', () => {
    const world = warned()
    rename(world)
    world.pass(30)
    world.reload()
    world.pass(10)
    expect(told(world)).toEqual(['begin warning tcp a', 'removed warning tcp a'])
  })

  test('W18 keeps the name of a message and of an end whose answers are lost', () => {
    const world = warned()
    world.level = 'failed'
    world.answer = { what: 'later', message: 'no answer', isPerhapsReceived: true }
    world.pass(41)
    rename(world)
    world.level = 'ok'
    world.pass(90)
    world.answer = { what: 'accepted' }
    world.pass(400)
    const names = new Set(world.sent.flat().map(({ subject }) => subject.monitor))
    expect([...names]).toEqual(['tcp a'])
    const ends = world.sent.flat().filter(({ what }) => what === 'end')
    expect(new Set(ends.map(({ id }) => id)).size).toBe(1)
    expect([world.rows, incidents(world).length]).toEqual([[], 1])
  })
})

test('W18 an answer that arrives after a rename counts, so that nothing is sent twice', () => {
  const world = new RenamedMonitor('a')
  world.answer = undefined
  world.level = 'failed'
  world.pass(60)
  expect(told(world)).toEqual(['begin failed tcp a'])
  world.reload(b)
  world.tick()
  world.reply({ what: 'accepted' })
  world.pass(60)
  world.level = 'ok'
  world.pass(60)
  expect(told(world)).toEqual(['begin failed tcp a', 'end failed tcp a'])
})

test('W18 a receiver that knew nothing gets the old name for the whole incident', () => {
  const world = new RenamedMonitor('a')
  world.answer = { what: 'later', message: 'it is away', isPerhapsReceived: false }
  world.level = 'failed'
  world.pass(60)
  world.reload(b)
  world.answer = { what: 'accepted' }
  world.pass(400)
  world.level = 'ok'
  world.pass(60)
  expect(new Set(told(world))).toEqual(new Set(['begin failed tcp a', 'reminder failed tcp a', 'end failed tcp a']))
})

test('W18 once another monitor has the old name, the incident ends under it and goes on under the new one', () => {
  const world = warned()
  world.reload(b)
  world.pass(10)
  world.reload(monitorOf('b'), monitorOf('a'))
  world.pass(20)
  expect(told(world)).toEqual(['begin warning tcp a', 'removed warning tcp a', 'begin warning tcp b'])
  world.pass(60)
  world.level = 'ok'
  world.pass(60)
  const ends = told(world).filter((one) => one.startsWith('end'))
  expect(ends).toEqual(expect.arrayContaining(['end warning tcp a', 'end warning tcp b']))
  expect(world.rows).toEqual([])
})

test('W18 what an earlier version has renamed, or told under the new name, gets one end for each name', () => {
  const world = warned()
  world.reload(b)
  world.tick()
  // It does not know the field.
  world.forgetNames()
  world.restart()
  world.pass(20)
  world.level = 'ok'
  world.pass(60)
  expect(told(world)).toEqual([
    'begin warning tcp a',
    'removed warning tcp a',
    'begin warning tcp b',
    'end warning tcp b',
  ])
})

test('W16 what was sent without the store is ended by the next process under the name that it was sent by', () => {
  const world = warned()
  world.reload(b)
  world.pass(120)
  const items = world.outbox.openFor('r')
  expect(items.map(({ as }) => as?.monitor)).toEqual(['tcp a'])
  const text = [headOf('store', 'node'), ...linesOf('r', items, world.now)].join('')
  const { rows, passedOver } = rowsOfSent(text, { store: 'store', node: 'node', now: world.now })
  expect([rows.map(({ row }) => row?.attempt?.as?.monitor), passedOver]).toEqual([['tcp a'], 0])
  const damaged = text.replace('"as":{"key":"Sql/tcp/a"', '"as":{"key":1')
  expect(rowsOfSent(damaged, { store: 'store', node: 'node', now: world.now }).passedOver).toBe(1)
  // An earlier version writes no name: it sent the present one.
  const earlier = text.replace(/"as":\{[^}]*\},/, '')
  const [word] = rowsOfSent(earlier, { store: 'store', node: 'node', now: world.now }).rows
  expect([word?.subject.monitor, word?.row?.attempt?.as]).toEqual(['tcp b', undefined])
})

test('M4 people read both names, the present one first', () => {
  const world = warned()
  world.reload(b)
  world.pass(120)
  const [begin, reminder] = world.sent.flat() as [Notice, Notice]
  expect(summaryOf(begin)).toBe('Sql/tcp a: connect is a warning')
  expect(summaryOf(reminder)).toBe('Sql/tcp b (formerly Sql/tcp a): connect still a warning')
})

describe.each(receiverKinds.map(({ name }) => name))('the receiver %s', (kind) => {
  /** The keys of what it is sent of each incident, in a world that tells begin, repetition, both levels and end. */
  const keysOfEach = async (rename: (world: RenamedMonitor) => void): Promise<readonly (readonly string[])[]> => {
    const world = warned()
    rename(world)
    for (const [level, seconds] of [
      ['warning', 125],
      ['failed', 60],
      ['warning', 60],
      ['ok', 60],
      ['failed', 60],
    ] as const) {
      world.level = level
      world.pass(seconds)
    }
    expect(world.sent.flat().map(({ what }) => what)).toEqual(['begin', 'reminder', 'change', 'change', 'end', 'begin'])
    await using sent = await (sending[kind] ?? expect.fail(`${kind} has no row`))()
    const { keysIn } = receiverRows[kind] ?? expect.fail(`${kind} has no row`)
    const keys = new Map<string, Set<string>>()
    for (const notices of world.sent) {
      const before = kind === 'exec' && keys.size === 0 ? 0 : sent.texts().length
      await sent.one.receiver.send(notices, signal())
      const own = sent.texts().slice(before).flatMap(keysIn)
      expect(own.length).toBeGreaterThan(0)
      for (const { incident } of notices) keys.set(incident, new Set([...(keys.get(incident) ?? []), ...own]))
    }
    return [...keys.values()].map((one) => [...one].sort())
  }

  test('M1 tells an incident from begin to end under one key, whatever its monitor is called meanwhile', async () => {
    const [first, next] = await keysOfEach((world) => {
      world.reload(b)
      world.pass(10)
      world.restart([c])
    })
    const [unchanged, same] = await keysOfEach(() => {})
    expect(unchanged).toEqual(same)
    expect(first).toEqual(unchanged)
    expect(next).not.toEqual(first)
  })
})
