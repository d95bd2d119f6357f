import { describe, expect, test } from 'vitest'
import { type Notice, receiverKinds } from '../../../src/core/watch/notify/index.ts'
import { summaryOf } from '../../../src/core/watch/notify/receivers/message.ts'
import { services } from '../../../src/core/watch/notify/receivers/services/services.ts'
import { headOf, linesOf, rowsOfSent } from '../../../src/core/watch/outbox/index.ts'
import { signal } from '../../support/notify/notice.ts'
import { receiverRows } from '../../support/notify/receiver-rows.ts'
import { monitorOf, RenamedMonitor } from '../../support/notify/renamed-monitor.ts'
import { sending } from '../../support/notify/sending.ts'

const messagesTo = (fixture: RenamedMonitor): readonly string[] =>
  fixture.sent.flat().map(({ what, level, subject }) => `${what} ${level} ${subject.monitor}`)
const incidents = (fixture: RenamedMonitor): readonly string[] => [
  ...new Set(fixture.sent.flat().map(({ incident }) => incident)),
]

/** A monitor of which a warning is open, and known to the receiver. */
function warned(): RenamedMonitor {
  const fixture = new RenamedMonitor('a')
  fixture.pass(20)
  fixture.level = 'warning'
  fixture.pass(60)
  expect(messagesTo(fixture)).toEqual(['begin warning tcp a'])
  return fixture
}

const b = monitorOf('b', ['a'])
const c = monitorOf('c', ['b'])

/** The ways in which a monitor gets another name while its incident is open. They all end with the name of the key. */
const ways: Readonly<Record<string, (fixture: RenamedMonitor) => void>> = {
  'b by a reload': (fixture) => fixture.reload(b),
  'b by a restart': (fixture) => fixture.restart([b]),
  'b by a reload before a restart': (fixture) => {
    fixture.reload(b)
    fixture.restart()
  },
  'b by a reload before a restart without formerly': (fixture) => {
    fixture.reload(b)
    fixture.tick()
    fixture.restart([monitorOf('b')])
  },
  'b by a takeover': (fixture) => fixture.restart([b], true),
  'b by a reload before a takeover': (fixture) => {
    fixture.reload(b)
    fixture.tick()
    fixture.restart([b], true)
  },
  'c by two reloads': (fixture) => {
    fixture.reload(b)
    fixture.pass(10)
    fixture.reload(c)
  },
  'c by two reloads at once': (fixture) => {
    fixture.reload(b)
    fixture.reload(c)
  },
  'c by a reload and a restart': (fixture) => {
    fixture.reload(b)
    fixture.restart([c])
  },
  'c by one reload that names both': (fixture) => fixture.reload(monitorOf('c', ['b', 'a'])),
  'a by two reloads, back to its first name': (fixture) => {
    fixture.reload(b)
    fixture.pass(10)
    fixture.reload(monitorOf('a', ['b']))
  },
}

describe.each(Object.keys(ways))('a monitor that becomes %s while its incident is open', (way) => {
  const name = `tcp ${way[0]}`
  const rename = ways[way] as (fixture: RenamedMonitor) => void

  test('W18 keeps the name at receivers until the end, and the next incident has the new one', () => {
    const fixture = warned()
    rename(fixture)
    fixture.pass(30)
    // The rename itself is no message.
    expect(messagesTo(fixture)).toEqual(['begin warning tcp a'])
    fixture.pass(90)
    fixture.level = 'failed'
    fixture.pass(60)
    fixture.level = 'warning'
    fixture.pass(60)
    fixture.level = 'ok'
    fixture.pass(60)
    fixture.level = 'failed'
    fixture.pass(60)
    const [first, next] = incidents(fixture)
    expect(messagesTo(fixture)).toEqual([
      'begin warning tcp a',
      'reminder warning tcp a',
      'change failed tcp a',
      'change warning tcp a',
      'end warning tcp a',
      `begin failed ${name}`,
    ])
    expect(incidents(fixture)).toEqual([first, next])
    expect(fixture.rows.map(({ subject }) => subject.monitor)).toEqual([name])
  })

  test('W18 gets the end under its old name if it recovers right after that', () => {
    const fixture = warned()
    fixture.level = 'ok'
    fixture.pass(9)
    rename(fixture)
    fixture.pass(60)
    expect(messagesTo(fixture)).toEqual(['begin warning tcp a', 'end warning tcp a'])
    expect([fixture.rows, fixture.stored]).toEqual([[], [expect.anything()]])
  })

  test('W18 is removed under its old name', () => {
    const fixture = warned()
    rename(fixture)
    fixture.pass(30)
    fixture.reload()
    fixture.pass(10)
    expect(messagesTo(fixture)).toEqual(['begin warning tcp a', 'removed warning tcp a'])
  })

  test('W18 keeps the name of a message and of an end whose answers are lost', () => {
    const fixture = warned()
    fixture.level = 'failed'
    fixture.answer = { what: 'later', message: 'no answer', isPerhapsReceived: true }
    fixture.pass(41)
    rename(fixture)
    fixture.level = 'ok'
    fixture.pass(90)
    fixture.answer = { what: 'accepted' }
    fixture.pass(400)
    const names = new Set(fixture.sent.flat().map(({ subject }) => subject.monitor))
    expect([...names]).toEqual(['tcp a'])
    const ends = fixture.sent.flat().filter(({ what }) => what === 'end')
    expect(new Set(ends.map(({ id }) => id)).size).toBe(1)
    expect([fixture.rows, incidents(fixture).length]).toEqual([[], 1])
  })
})

test('W18 an answer that arrives after a rename counts, so that nothing is sent twice', () => {
  const fixture = new RenamedMonitor('a')
  fixture.answer = undefined
  fixture.level = 'failed'
  fixture.pass(60)
  expect(messagesTo(fixture)).toEqual(['begin failed tcp a'])
  fixture.reload(b)
  fixture.tick()
  fixture.reply({ what: 'accepted' })
  fixture.pass(60)
  fixture.level = 'ok'
  fixture.pass(60)
  expect(messagesTo(fixture)).toEqual(['begin failed tcp a', 'end failed tcp a'])
})

test('W18 a receiver that knew nothing gets the old name for the whole incident', () => {
  const fixture = new RenamedMonitor('a')
  fixture.answer = { what: 'later', message: 'it is away', isPerhapsReceived: false }
  fixture.level = 'failed'
  fixture.pass(60)
  fixture.reload(b)
  fixture.answer = { what: 'accepted' }
  fixture.pass(400)
  fixture.level = 'ok'
  fixture.pass(60)
  expect(new Set(messagesTo(fixture))).toEqual(
    new Set(['begin failed tcp a', 'reminder failed tcp a', 'end failed tcp a']),
  )
})

test('W18 once another monitor has the old name, the incident ends under it and goes on under the new one', () => {
  const fixture = warned()
  fixture.reload(b)
  fixture.pass(10)
  fixture.reload(monitorOf('b'), monitorOf('a'))
  fixture.pass(20)
  expect(messagesTo(fixture)).toEqual(['begin warning tcp a', 'removed warning tcp a', 'begin warning tcp b'])
  fixture.pass(60)
  fixture.level = 'ok'
  fixture.pass(60)
  const ends = messagesTo(fixture).filter((one) => one.startsWith('end'))
  expect(ends).toEqual(expect.arrayContaining(['end warning tcp a', 'end warning tcp b']))
  expect(fixture.rows).toEqual([])
})

test('W18 what an earlier version has renamed, or told under the new name, gets one end for each name', () => {
  const fixture = warned()
  fixture.reload(b)
  fixture.tick()
  // It does not know the field.
  fixture.forgetNames()
  fixture.restart()
  fixture.pass(20)
  fixture.level = 'ok'
  fixture.pass(60)
  expect(messagesTo(fixture)).toEqual([
    'begin warning tcp a',
    'removed warning tcp a',
    'begin warning tcp b',
    'end warning tcp b',
  ])
})

test('W16 what was sent without the store is ended by the next process under the name that it was sent by', () => {
  const fixture = warned()
  fixture.reload(b)
  fixture.pass(120)
  const items = fixture.outbox.openFor('r')
  expect(items.map(({ as }) => as?.monitor)).toEqual(['tcp a'])
  const text = [headOf('store', 'node'), ...linesOf('r', items, fixture.now)].join('')
  const { rows, passedOver } = rowsOfSent(text, { store: 'store', node: 'node', now: fixture.now })
  expect([rows.map(({ row }) => row?.attempt?.as?.monitor), passedOver]).toEqual([['tcp a'], 0])
  const damaged = text.replace('"as":{"key":"Sql/tcp/a"', '"as":{"key":1')
  expect(rowsOfSent(damaged, { store: 'store', node: 'node', now: fixture.now }).passedOver).toBe(1)
  // An earlier version writes no name: it sent the present one.
  const earlier = text.replace(/"as":\{[^}]*\},/, '')
  const [word] = rowsOfSent(earlier, { store: 'store', node: 'node', now: fixture.now }).rows
  expect([word?.subject.monitor, word?.row?.attempt?.as]).toEqual(['tcp b', undefined])
})

test('W16 an end that was sent without the store under another name of the monitor counts for its former name as well', () => {
  const notice = (key: string, what: 'begin' | 'end') => ({
    ...({ id: what, incident: 'i', level: 'failed', beganAt: 1, observedAt: 1, text: 'it is down', what } as const),
    subject: { key, monitor: key, check: 'connect' },
    ...(key === 'Sql/new' ? { as: { key: 'Sql/old', monitor: 'Sql/old' } } : {}),
  })
  const end = [...linesOf('r', [notice('Sql/new', 'end')], 2), ...linesOf('r', [notice('Sql/new', 'end')], 3, true)]
  // Also if another process has told the begin.
  for (const lines of [[...linesOf('r', [notice('Sql/old', 'begin')], 1), ...end], end]) {
    const text = [headOf('store', 'node'), ...lines].join('')
    const { rows } = rowsOfSent(text, { store: 'store', node: 'node', now: 4 })
    const gist = rows.map(({ subject, row }) => [subject.key, row?.attempt?.as?.key, row?.attempt?.isOver])
    expect(gist.toSorted()).toEqual([
      ['Sql/new', 'Sql/old', true],
      ['Sql/old', undefined, true],
    ])
  }
})

test('M4 people read both names, the present one first', () => {
  const fixture = warned()
  fixture.reload(b)
  fixture.pass(120)
  const [begin, reminder] = fixture.sent.flat() as [Notice, Notice]
  expect(summaryOf(begin)).toBe('Sql/tcp a: connect is a warning')
  expect(summaryOf(reminder)).toBe('Sql/tcp b (formerly Sql/tcp a): connect still a warning')
})

/** Services without keys, whose messages name the incident. */
const isKeyless = services
  .filter(({ name, alerts }) => alerts === undefined && name !== 'googlechat')
  .map(({ name }) => name)

describe.each(receiverKinds.map(({ name }) => name))('the receiver %s', (kind) => {
  /** The keys of what it is sent of each incident, in a fixture that tells begin, repetition, both levels and end. */
  const keysOfEach = async (rename: (fixture: RenamedMonitor) => void): Promise<readonly (readonly string[])[]> => {
    const fixture = warned()
    rename(fixture)
    for (const [level, seconds] of [
      ['warning', 125],
      ['failed', 60],
      ['warning', 60],
      ['ok', 60],
      ['failed', 60],
    ] as const) {
      fixture.level = level
      fixture.pass(seconds)
    }
    expect(fixture.sent.flat().map(({ what }) => what)).toEqual([
      'begin',
      'reminder',
      'change',
      'change',
      'end',
      'begin',
    ])
    await using sent = await (sending[kind] ?? expect.fail(`${kind} has no row`))()
    const { keysIn } = receiverRows[kind] ?? expect.fail(`${kind} has no row`)
    const keys = new Map<string, Set<string>>()
    for (const notices of fixture.sent) {
      const before = kind === 'exec' && keys.size === 0 ? 0 : sent.texts().length
      await sent.one.receiver.send(notices, signal())
      const own = sent.texts().slice(before).flatMap(keysIn)
      expect(own.length).toBeGreaterThan(0)
      for (const { incident } of notices) keys.set(incident, new Set([...(keys.get(incident) ?? []), ...own]))
    }
    return [...keys.values()].map((one) => [...one].sort())
  }

  test('M1 tells an incident from begin to end under one key, whatever its monitor is called meanwhile', async () => {
    const [first, next] = await keysOfEach((fixture) => {
      fixture.reload(b)
      fixture.pass(10)
      fixture.restart([c])
    })
    if (isKeyless.includes(kind)) {
      expect([first?.length, next?.length, first?.[0] === next?.[0]]).toEqual([1, 1, false])
      return
    }
    const [unchanged, same] = await keysOfEach(() => {})
    expect(unchanged).toEqual(same)
    expect(first).toEqual(unchanged)
    expect(next).not.toEqual(first)
  })
})
