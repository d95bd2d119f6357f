import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { OutboxRows } from '../../../src/core/watch/outbox/index.ts'
import { drivenReceiver, hour, minute, second, subjectOf } from '../../support/notify/driven.ts'
import { outboxRows } from '../../support/notify/outbox-rows.ts'
import { until } from '../../support/suite/until.ts'

const alertsIn = (body: string | undefined): readonly string[] => {
  const { alerts } = JSON.parse(body ?? '{"alerts":[]}') as {
    alerts: readonly { status: string; labels: Readonly<Record<string, string>> }[]
  }
  return alerts.map(({ status, labels }) => `${status} ${labels['monitor']}`)
}

describe('notifications to a real HTTP server, with a clock that moves and simulated monitors', () => {
  test('W23 nothing is stored of a message, and none leaves, before the states that it is about are stored', async () => {
    const order: string[] = []
    const store = outboxRows()
    const write: OutboxRows['write'] = async (batch) => {
      order.push('messages')
      await store.write(batch)
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    const storeStates = async (): Promise<void> => {
      await promise
      order.push('states')
    }
    const fixture = await drivenReceiver({ rows: { ...store, write }, storeStates })
    const driver = await fixture.start()
    fixture.fail(driver, 'orders')
    fixture.pass(driver, 10 * second)
    await setImmediate()
    expect([order, fixture.bodies]).toEqual([[], []])
    resolve()
    await until(() => fixture.bodies.length === 1)
    expect(order.slice(0, 2)).toEqual(['states', 'messages'])
  })

  test('W4 an incident that a node takes over is sent, although no receiver was told and nothing more happens to it', async () => {
    const fixture = await drivenReceiver({ rows: outboxRows() })
    const driver = await fixture.start()
    const facts = { level: 'failed', message: 'it is down', isFlapping: false, isUnobserved: false } as const
    const beganAt = fixture.now() - minute
    fixture.show('db', { id: 'db-1', beganAt, confirmedAt: beganAt + 20 * second, ...facts })
    const keys = new Set(['Sql/db'])
    const { level, message } = facts
    const incident = { id: 'db-1', beganAt, confirmedAt: beganAt + 20 * second, ...facts }
    const state = {
      level,
      levelSince: beganAt,
      confirmedAt: beganAt,
      message,
      checkDepth: 'Basic',
      depth: 'Basic',
      incident,
    } as const
    const states = [
      {
        row: subjectOf('db'),
        state: { ...state, observedAt: beganAt, faults: [], isFlapping: false, blips: 0, missing: 0 },
      },
    ]
    driver.takeOver({ keys, states, outbox: [] })
    for (let at = 0; at < 15; at += 1) fixture.pass(driver, second)
    await until(() => fixture.bodies.length === 1)
    expect(alertsIn(fixture.bodies[0])).toEqual(['firing db'])
    // Another node has it from now on.
    const released = driver.takeOver({ keys, states: [], outbox: [] })
    expect(released.map(({ receiver }) => receiver)).toEqual(['chat'])
    fixture.show('db', undefined)
    for (let at = 0; at < 90; at += 1) fixture.pass(driver, second)
    expect(fixture.bodies).toHaveLength(1)
  })

  test('W23 an attempt is stored before its message leaves', async () => {
    const rows = outboxRows()
    let attempts: readonly (string | undefined)[] = []
    const fixture = await drivenReceiver({
      rows,
      answer: () => {
        attempts = rows.all().map(({ row }) => row?.attempt?.incident)
        return undefined
      },
    })
    const driver = await fixture.start()
    fixture.fail(driver, 'orders')
    expect(fixture.peer.requests()).toHaveLength(0)
    fixture.pass(driver, 11 * second)
    await until(() => fixture.bodies.length === 1)
    expect(attempts).toEqual(['orders-1'])
    await until(() => rows.all()[0]?.row?.last?.incident === 'orders-1')
  })

  test('W23 500 faults at once are one message, and their ends another one', async () => {
    const fixture = await drivenReceiver({ rows: outboxRows() })
    const driver = await fixture.start()
    for (let at = 0; at < 500; at += 1) fixture.fail(driver, `m${at}`)
    fixture.pass(driver, 11 * second)
    await until(() => fixture.bodies.length === 1)
    expect(alertsIn(fixture.bodies[0])).toHaveLength(500)
    await until(() => {
      fixture.pass(driver, second)
      return driver.figures()[0]?.pending === 0
    })
    for (let at = 0; at < 500; at += 1) fixture.recover(driver, `m${at}`)
    fixture.pass(driver, minute)
    fixture.pass(driver, 11 * second)
    await until(() => fixture.bodies.length === 2)
    expect(alertsIn(fixture.bodies[1]).filter((one) => one.startsWith('resolved'))).toHaveLength(500)
  })

  test('W23 a receiver that was away for 25 hours is told what stands, and what began and ended, and a restart changes nothing', async () => {
    const rows = outboxRows()
    let isAway = true
    const fixture = await drivenReceiver({
      rows,
      answer: () => (isAway ? (_, response) => response.writeHead(503).end() : undefined),
    })
    const first = await fixture.start()
    fixture.fail(first, 'orders')
    fixture.fail(first, 'billing')
    fixture.pass(first, 11 * second)
    await until(() => fixture.peer.requests().length === 1)
    await until(() => first.figures()[0]?.results.failed === 1)
    fixture.recover(first, 'billing')
    fixture.pass(first, hour)
    await first.close()
    const next = await fixture.start()
    for (let passed = 0; passed < 24; passed += 1) fixture.pass(next, hour)
    isAway = false
    const all = (): readonly string[] => fixture.bodies.flatMap(alertsIn)
    await until(() => {
      fixture.pass(next, 11 * second)
      return all().includes('resolved billing') && all().includes('firing orders')
    })
    expect(all()).not.toContain('firing billing')
    expect(fixture.looks).toContain('Sql/orders')
  })

  test('W23 nothing is sent once svc stops, and the next process sends it', async () => {
    const rows = outboxRows()
    const fixture = await drivenReceiver({ rows })
    const first = await fixture.start()
    fixture.fail(first, 'orders')
    first.cancel()
    fixture.pass(first, minute)
    await first.close()
    expect(fixture.peer.requests()).toHaveLength(0)
    const next = await fixture.start()
    await until(() => {
      fixture.pass(next, 11 * second)
      return fixture.bodies.length > 0
    })
    expect(alertsIn(fixture.bodies[0])).toEqual(['firing orders'])
  })

  test('W23 without a store svc sends at once and says so in the text', async () => {
    const fixture = await drivenReceiver()
    const driver = await fixture.start(undefined)
    fixture.fail(driver, 'orders')
    fixture.pass(driver, 11 * second)
    await until(() => fixture.bodies.length === 1)
    expect(fixture.bodies[0]).toContain('it is down uncoordinated')
  })

  test('W23 while the store fails nothing leaves for a minute, and after that it leaves with a mark', async () => {
    const rows = outboxRows()
    const fixture = await drivenReceiver({ rows })
    const driver = await fixture.start()
    rows.isFailing = true
    fixture.fail(driver, 'orders')
    fixture.pass(driver, 11 * second)
    await until(() => !driver.backlog().isStored)
    for (let at = 0; at < 11; at += 1) fixture.pass(driver, second)
    expect(fixture.logs).toEqual(['notifications are not stored: the disk is full'])
    expect(fixture.peer.requests()).toHaveLength(0)
    await until(() => {
      fixture.pass(driver, 10 * second)
      return fixture.bodies.length > 0
    })
    expect(fixture.bodies[0]).toContain('uncoordinated')
    rows.isFailing = false
    await until(() => rows.all().some(({ row }) => row?.last !== undefined))
    await until(() => driver.backlog().isStored)
    for (let at = 0; at < 125; at += 1) fixture.pass(driver, second)
    expect(fixture.logs).toEqual(['notifications are not stored: the disk is full', 'notifications are stored again'])
  })

  test('W4 a store that is late several times a minute changes nothing in the log', async () => {
    const rows = outboxRows()
    const fixture = await drivenReceiver({ rows })
    const driver = await fixture.start()
    for (let time = 0; time < 13; time += 1) {
      rows.isFailing = true
      fixture.fail(driver, `of-${time}`)
      await until(() => !driver.backlog().isStored)
      for (let at = 0; at < 9; at += 1) fixture.pass(driver, second)
      rows.isFailing = false
      fixture.fail(driver, `after-${time}`)
      await until(() => driver.backlog().isStored)
      for (let at = 0; at < 60; at += 1) fixture.pass(driver, second)
    }
    expect(fixture.logs).toEqual([])
  })

  test('W23 a store that cannot be opened is not said to store again before it does, although nothing waits to be stored', async () => {
    const memory = outboxRows()
    let isGone = true
    let tries = 0
    const work = async <T>(of: () => Promise<T>): Promise<T> => {
      tries += 1
      if (isGone) throw new Error('no store')
      return await of()
    }
    const rows = {
      ...memory,
      read: () => work(() => memory.read()),
      write: (batch: Parameters<typeof memory.write>[0]) => work(() => memory.write(batch)),
    }
    const fixture = await drivenReceiver({ rows })
    const driver = await fixture.start()
    for (let at = 0; at < 200; at += 1) fixture.pass(driver, second)
    expect(fixture.logs).toEqual(['notifications are not stored: no store'])
    await until(() => tries > 2)
    for (let at = 0; at < 200; at += 1) fixture.pass(driver, second)
    expect(fixture.logs).toEqual(['notifications are not stored: no store'])
    isGone = false
    await until(() => driver.backlog().isStored)
    for (let at = 0; at < 125; at += 1) fixture.pass(driver, second)
    expect(fixture.logs).toEqual(['notifications are not stored: no store', 'notifications are stored again'])
  })

  test('W23 what is about to leave when the store answers at last does not leave if the receiver knows it from before', async () => {
    const rows = outboxRows()
    const fixture = await drivenReceiver({ rows })
    const before = await fixture.start()
    fixture.fail(before, 'orders')
    fixture.pass(before, 11 * second)
    await until(() => rows.all().some(({ row }) => row?.last !== undefined))
    await before.close()
    let isGone = true
    let reads = 0
    const read = async () => {
      if (isGone) throw new Error('no store')
      const all = await rows.read()
      reads += 1
      return all
    }
    const driver = await fixture.start({ ...rows, read })
    fixture.fail(driver, 'orders')
    isGone = false
    // In the same instant, so that the store answers while the message waits to be stored.
    fixture.pass(driver, 11 * second)
    await until(() => reads > 0)
    fixture.recover(driver, 'orders')
    await until(() => {
      fixture.pass(driver, 10 * second)
      return fixture.bodies.length > 1
    })
    expect(fixture.bodies.flatMap(alertsIn)).toEqual(['firing orders', 'resolved orders'])
  })

  test('W23 what a receiver refuses is logged, and sent again after five minutes', async () => {
    const fixture = await drivenReceiver({
      rows: outboxRows(),
      answer: () => (_, response) => response.writeHead(403).end(),
    })
    const driver = await fixture.start()
    fixture.fail(driver, 'orders')
    fixture.pass(driver, 11 * second)
    await until(() => driver.figures()[0]?.results.refused === 1)
    fixture.pass(driver, 4 * minute)
    fixture.pass(driver, 11 * second)
    expect(fixture.peer.requests()).toHaveLength(1)
    fixture.pass(driver, minute)
    await until(() => {
      fixture.pass(driver, 11 * second)
      return driver.figures()[0]?.results.refused === 2
    })
    expect(fixture.logs.filter((line) => line.startsWith('receiver chat: '))).toHaveLength(2)
  })
})
