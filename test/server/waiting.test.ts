import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { isProbe, ProbeConnections } from '../../src/core/server/probes.ts'
import { Pipelines, Turns } from '../../src/core/server/turns.ts'
import { WaitingAnswers } from '../../src/core/server/waiting.ts'

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** Simulated: a connection whose system has not taken `writableLength` bytes. */
class Connection extends EventEmitter {
  destroyed = false
  writableLength = 1
  remoteAddress = '192.0.2.1'
  remotePort: number
  constructor(remotePort = 1) {
    super()
    this.remotePort = remotePort
  }
  destroy(): void {
    if (this.destroyed) return
    this.destroyed = true
    this.emit('close')
  }
  get socket(): Socket {
    return this as unknown as Socket
  }
}

const responseOn = ({ socket }: Connection) =>
  Object.assign(new EventEmitter(), { socket }) as unknown as EventEmitter & Pick<ServerResponse, 'socket' | 'once'>

/** Whether a promise is settled once others had their turn. */
async function settles(promise: Promise<unknown> | undefined): Promise<boolean> {
  let isSettled = false
  void promise?.then(() => {
    isSettled = true
  })
  await nextTurn()
  return isSettled
}

describe('S3 answers that wait', () => {
  let closed: number
  let waiting: WaitingAnswers
  beforeEach(() => {
    closed = 0
    waiting = new WaitingAnswers({ each: 100, all: 100_000 }, () => {
      closed += 1
    })
  })

  test('S3 an answer counts until the system has taken its last byte, and not if it took all at once', () => {
    const connection = new Connection()
    const response = responseOn(connection)
    waiting.answer(connection.socket, response, 70)
    expect(waiting.bytes).toBe(70)
    connection.writableLength = 0
    waiting.answer(connection.socket, responseOn(connection), 1_000)
    expect(waiting.bytes).toBe(70)
    response.emit('close')
    expect(waiting.bytes).toBe(0)
  })

  test('S3 an answer behind earlier ones of its connection counts', () => {
    const connection = new Connection()
    connection.writableLength = 0
    waiting.answer(connection.socket, Object.assign(responseOn(connection), { socket: null }), 70)
    expect(waiting.bytes).toBe(70)
  })

  test('S3 a connection gets its next answer when no more than its share waits, or it has closed', async () => {
    const [one, other] = [new Connection(), new Connection()]
    const response = responseOn(one)
    waiting.answer(one.socket, response, 100)
    expect(waiting.capacity(one.socket)).toBeUndefined()
    waiting.answer(one.socket, responseOn(one), 1)
    const capacity = waiting.capacity(one.socket)
    expect(await settles(capacity)).toBe(false)
    expect(waiting.capacity(other.socket)).toBeUndefined()
    response.emit('close')
    expect(await settles(capacity)).toBe(true)

    waiting.answer(other.socket, responseOn(other), 101)
    const never = waiting.capacity(other.socket)
    other.destroy()
    expect(await settles(never)).toBe(true)
  })

  test('S3 beyond the bound of all, the connection that has waited for longest is closed', () => {
    const [first, second, third] = [new Connection(), new Connection(), new Connection()]
    const late = responseOn(first)
    waiting.answer(first.socket, late, 40_000)
    waiting.answer(second.socket, responseOn(second), 40_000)
    waiting.answer(third.socket, responseOn(third), 40_000)
    expect([first, second, third].map(({ destroyed }) => destroyed)).toEqual([true, false, false])
    expect([closed, waiting.bytes]).toEqual([1, 80_000])
    late.emit('close')
    expect(waiting.bytes).toBe(80_000)
  })

  test('S3 a connection that waits alone is not closed', () => {
    const only = new Connection()
    waiting.answer(only.socket, responseOn(only), 200_000)
    expect([only.destroyed, waiting.bytes]).toEqual([false, 200_000])
  })

  test('S3 a request that waits for others of its connection takes part in the bound until it begins', () => {
    const [first, second] = [new Connection(), new Connection()]
    const begins = waiting.request(first.socket)
    const each = waiting.bytes
    expect(each).toBeGreaterThan(0)
    expect(waiting.capacity(first.socket)).toBeUndefined()
    for (let bytes = each; bytes <= 100_000; bytes += each) waiting.request(second.socket)
    expect([first.destroyed, second.destroyed]).toEqual([true, false])
    const before = waiting.bytes
    begins()
    expect(waiting.bytes).toBe(before)
  })

  test('S3 a connection that waits again and again keeps no listener', () => {
    const connection = new Connection()
    for (let i = 0; i < 3; i += 1) {
      const response = responseOn(connection)
      waiting.answer(connection.socket, response, 70)
      response.emit('close')
      waiting.request(connection.socket)()
    }
    expect([connection.listenerCount('close'), waiting.bytes]).toEqual([0, 0])
  })
})

/** Simulated: a clock that stands until `now` is set. */
function stoppedClock(): { now: number } {
  const clock = { now: 0 }
  vi.spyOn(performance, 'now').mockImplementation(() => clock.now)
  return clock
}

describe('S3 turns', () => {
  test('S3 requests begin at once for 5 ms of a turn of the loop, and the others in later turns, in their order', async () => {
    const clock = stoppedClock()
    const turns = new Turns()
    expect(turns.next()).toBeUndefined()
    clock.now = 4.9
    expect(turns.next()).toBeUndefined()
    clock.now = 5
    const log: number[] = []
    const all = [1, 2, 3].map(async (request) => {
      await turns.next()
      log.push(request)
      // Each takes longer than a turn.
      clock.now += 10
    })
    expect(log).toEqual([])
    const progress = new Set<number>()
    while (log.length < 3) {
      await nextTurn()
      progress.add(log.length)
    }
    await Promise.all(all)
    expect(log).toEqual([1, 2, 3])
    expect([...progress]).toEqual(expect.arrayContaining([1, 2]))
  })

  test('S3 at most 64 requests that waited begin in a turn, however little each takes', async () => {
    const clock = stoppedClock()
    const turns = new Turns()
    turns.next()
    clock.now = 5
    let count = 0
    for (let i = 0; i < 100; i += 1) {
      void turns.next()?.then(() => {
        count += 1
      })
    }
    const progress: number[] = []
    while (count < 100) {
      await nextTurn()
      progress.push(count)
    }
    expect(progress.find((one) => one > 0)).toBeLessThanOrEqual(64)
  })
})

/** Answers that end when the test says so. */
function answers() {
  const log: string[] = []
  const ends = new Map<string, () => void>()
  const answering = (name: string) => (): Promise<void> => {
    log.push(name)
    return new Promise((resolve) => ends.set(name, resolve))
  }
  return { log, answering, end: (name: string) => ends.get(name)?.() }
}

describe('S3 pipelined requests', () => {
  const unlimited = { capacity: () => undefined, request: () => () => {} }

  test('S3 the answers of a connection begin in order, and a slow one does not hold up the next one', async () => {
    const { log, answering, end } = answers()
    const pipelines = new Pipelines(unlimited)
    const { socket } = new Connection()
    for (const name of ['a', 'b', 'c']) pipelines.add(socket, answering(name), false)
    expect(log).toEqual(['a'])
    end('a')
    await expect.poll(() => log).toEqual(['a', 'b', 'c'])
  })

  test('S3 a probe waits for no other connection, only for earlier requests of its own', () => {
    const clock = stoppedClock()
    const { log, answering } = answers()
    const pipelines = new Pipelines(unlimited)
    const [busy, other, third] = [new Connection(), new Connection(), new Connection()]
    pipelines.add(busy.socket, answering('busy'), false)
    clock.now = 5
    pipelines.add(other.socket, answering('waits'), false)
    pipelines.add(third.socket, answering('probe'), true)
    pipelines.add(busy.socket, answering('probe behind'), true)
    expect(log).toEqual(['busy', 'probe'])
  })

  test('S3 the next answer waits for the capacity of its connection, and the request counts until it begins', async () => {
    const { log, answering } = answers()
    const capacity = Promise.withResolvers<void>()
    const events: string[] = []
    const [one, other] = [new Connection(), new Connection()]
    const pipelines = new Pipelines({
      capacity: (socket) => (socket === one.socket && log.length > 0 ? capacity.promise : undefined),
      request: () => {
        events.push('waits')
        return () => events.push('begins')
      },
    })
    pipelines.add(one.socket, answering('a'), false)
    pipelines.add(one.socket, answering('b'), false)
    await nextTurn()
    await nextTurn()
    expect([log, events]).toEqual([['a'], ['waits']])
    pipelines.add(other.socket, answering('other'), false)
    expect(log).toEqual(['a', 'other'])
    capacity.resolve()
    await expect
      .poll(() => [log, events])
      .toEqual([
        ['a', 'other', 'b'],
        ['waits', 'begins'],
      ])
  })

  test('S3 a connection that has closed begins no further answer', async () => {
    const { log, answering } = answers()
    const pipelines = new Pipelines(unlimited)
    const connection = new Connection()
    for (const name of ['a', 'b', 'c']) pipelines.add(connection.socket, answering(name), false)
    connection.destroy()
    for (let i = 0; i < 5; i += 1) await nextTurn()
    expect(log).toEqual(['a'])
  })
})

describe('S3 connections for probes', () => {
  test('S3 only the exact targets of the probes are probes', () => {
    const targets = ['/livez', '/readyz', '/livez?', '/livez/', '//livez', '/LIVEZ', '/metrics', '', undefined]
    expect(targets.filter((target) => isProbe(target))).toEqual(['/livez', '/readyz'])
  })

  test('S3 a newer connection closes the oldest one, and each ends after its time', () => {
    vi.useFakeTimers()
    const probes = new ProbeConnections(2, 2_000)
    const all = [1, 2, 3].map((port) => new Connection(port))
    const [first, second, third] = all as [Connection, Connection, Connection]
    probes.add(first.socket)
    vi.advanceTimersByTime(500)
    probes.add(second.socket)
    probes.add(second.socket)
    expect(first.destroyed).toBe(false)
    probes.add(third.socket)
    expect(all.map(({ destroyed }) => destroyed)).toEqual([true, false, false])
    expect(all.map((one) => probes.has(one.socket))).toEqual([false, true, true])
    expect(vi.getTimerCount()).toBe(2)
    vi.advanceTimersByTime(1_999)
    expect(second.destroyed).toBe(false)
    vi.advanceTimersByTime(1)
    expect(all.map((one) => probes.has(one.socket))).toEqual([false, false, false])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('S3 a connection that has closed takes no place', () => {
    const probes = new ProbeConnections(1, 2_000)
    const gone = new Connection(1)
    gone.destroy()
    probes.add(gone.socket)
    expect(probes.has(gone.socket)).toBe(false)
  })
})
