import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { connectionsToClose, type LocalConnection, limitLocal } from '../../src/core/server/loopback-limit.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'
import { cert, key } from './certificate.ts'
import { openSite } from './site.ts'

type TestConnection = LocalConnection & { readonly name: string }

const limits = { most: 8, silentMs: 2_000 }
const many = (
  count: number,
  account: LocalConnection['account'],
  more: Partial<TestConnection> = {},
): TestConnection[] =>
  Array.from({ length: count }, (_, at) => {
    return { name: `${account} ${at}`, account, isIdle: true, isSilent: false, openedAt: 0, ...more }
  })
const closed = (open: readonly TestConnection[], now = 10_000): readonly string[] =>
  connectionsToClose(open, limits, now).map(({ name }) => name)

describe('which connections from loopback are closed', () => {
  test('S3 below the limit none is, except for silent ones once half of it is in use', () => {
    const silent = { isSilent: true, openedAt: 8_000 }
    expect(closed(many(8, 1))).toEqual([])
    expect(closed(many(3, 1, silent))).toEqual([])
    expect(closed(many(4, 1, silent))).toEqual(['1 0', '1 1', '1 2', '1 3'])
    expect(closed(many(4, 1, silent), 9_999)).toEqual([])
  })

  test('S3 the account with the most idle connections loses its oldest ones', () => {
    expect(closed([...many(2, 2), ...many(7, 1)])).toEqual(['1 0'])
    expect(closed([...many(7, 2), ...many(7, 1)])).toEqual(['2 0', '1 0', '2 1', '1 1', '2 2', '1 2'])
    const busy = { isIdle: false }
    expect(closed([...many(6, 1, busy), ...many(1, 1), ...many(2, 2)])).toEqual(['2 0'])
  })

  test('S3 accounts that nobody knows count as one', () => {
    expect(closed([...many(4, 'unknown'), ...many(2, 1), ...many(3, 2)])).toEqual(['unknown 0'])
  })

  test('S3 a connection that no search has looked for stays up to twice the limit', () => {
    expect(closed(many(16, 'pending'))).toEqual([])
    expect(closed(many(17, 'pending'))).toHaveLength(9)
    expect(closed([...many(5, 'pending'), ...many(6, 1)])).toEqual(['1 0'])
  })

  test('S3 where all are busy, none is closed', () => {
    expect(closed(many(20, 1, { isIdle: false }))).toEqual([])
  })

  test('S3 no account loses a connection to one with more idle connections', () => {
    const one = fc.record({
      account: fc.constantFrom<LocalConnection['account']>(1, 2, 3, 'unknown'),
      isIdle: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(one, { maxLength: 40 }), (ones) => {
        const open = ones.map((rest, at) => ({ ...rest, name: String(at), isSilent: false, openedAt: at }))
        const close = connectionsToClose(open, limits, 100)
        const idleOf = (all: readonly TestConnection[], account: unknown): number =>
          all.filter((item) => item.account === account && item.isIdle).length
        const left = open.filter((item) => !close.includes(item))
        expect(close.every(({ isIdle }) => isIdle)).toBe(true)
        expect(left.length <= limits.most || left.every(({ isIdle }) => !isIdle)).toBe(true)
        for (const { account } of close) {
          const others = new Set(left.map((item) => item.account))
          for (const other of others) expect(idleOf(left, account)).toBeGreaterThanOrEqual(idleOf(left, other) - 1)
        }
      }),
    )
  })
})

/** A connection of the simulation. */
class Simulated extends EventEmitter {
  destroyed = false
  bytesRead = 1
  readonly account: number | undefined
  constructor(account: number | undefined, bytesRead = 1) {
    super()
    this.account = account
    this.bytesRead = bytesRead
  }
  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }
}

function simulation({ own = -1, most = 512 } = {}) {
  /** How many connections each search was for. */
  const searches: number[] = []
  let isUnderWay = false
  const admit = limitLocal({
    ...{ most, silentMs: 2_000, searchEveryMs: 1_000, exemptsOwn: true, firstBytes: 1 },
    processOf: (socket) => {
      const { account } = socket as unknown as Simulated
      return {
        account: async () => {
          if (!isUnderWay) {
            isUnderWay = true
            searches.push(0)
            queueMicrotask(() => {
              isUnderWay = false
            })
          }
          searches.push((searches.pop() ?? 0) + 1)
          return account
        },
        isOwn: async () => account === own,
      }
    },
    busy: () => () => false,
    refused: () => {},
    refuse: (socket) => void socket.destroy(),
  })
  const open = (count: number, account: number | undefined, bytesRead = 1): Simulated[] =>
    Array.from({ length: count }, () => {
      const socket = new Simulated(account, bytesRead)
      admit(socket as unknown as Socket)
      return socket
    })
  const pass = async (ms: number): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms))
  return { open, pass, searches }
}
const left = (sockets: readonly Simulated[]): number => sockets.filter(({ destroyed }) => !destroyed).length

describe('the connections from loopback, simulated', () => {
  const simulated = async (work: () => Promise<void>): Promise<void> => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] })
    try {
      await work()
    } finally {
      vi.useRealTimers()
    }
  }

  test('S3 512 idle connections of one account do not shut out another', async () => {
    await simulated(async () => {
      const { open, pass } = simulation()
      const hog = open(512, 1)
      await pass(1_500)
      const other = open(20, 2)
      await pass(1_500)
      expect([left(hog), left(other)]).toEqual([492, 20])
      expect(hog.findIndex(({ destroyed }) => !destroyed)).toBe(20)
      const more = open(600, 1)
      await pass(3_000)
      expect([left(hog) + left(more), left(other)]).toEqual([492, 20])
    })
  })

  test('S3 connections of the account of svc are neither counted nor closed', async () => {
    await simulated(async () => {
      const { open, pass } = simulation({ own: 7 })
      const own = open(900, 7)
      await pass(1_500)
      const others = open(513, 1)
      await pass(3_000)
      expect([left(own), left(others)]).toEqual([900, 512])
    })
  })

  test('S3 S8 accounts are looked up from 256 connections on, for all of them at once and once a second', async () => {
    await simulated(async () => {
      const { open, pass, searches } = simulation()
      open(255, 1)
      await pass(5_000)
      expect(searches).toHaveLength(0)
      open(1, 1)
      await pass(1)
      open(100, 1)
      await pass(998)
      expect(searches).toEqual([256])
      await pass(1)
      expect(searches).toEqual([256, 100])
    })
  })

  test('S3 a connection without a byte is closed after 2 s once 256 are open', async () => {
    await simulated(async () => {
      const { open, pass } = simulation()
      const silent = open(255, 1, 0)
      await pass(10_000)
      expect(left(silent)).toBe(255)
      const busy = open(10, 1)
      const late = open(1, 1, 0)
      await pass(1_900)
      expect([left(silent), left(busy), left(late)]).toEqual([0, 10, 1])
    })
  })
})

/** Accounts without a name, a home or a password. */
const hogging = 23_457
const missing = process.getuid?.() === 0 ? undefined : 'only root can start processes of other accounts'

suiteWith(missing, 'the connections of two accounts from loopback', () => {
  /** Connections of a process of another account. `first`: what it sends on each. */
  async function hog(port: number, count: number, first: string): Promise<ChildProcess> {
    const program = `const { connect } = require('node:net')
      let open = 0
      for (let i = 0; i < ${count}; i++) connect({ port: ${port}, host: '127.0.0.1', localAddress: '127.0.0.' + (1 + i % 3) }).on('error', () => {}).on('connect', function () {
        this.write(${JSON.stringify(first)})
        if (++open === ${count}) console.log('open')
      }).resume()`
    const child = spawn(process.execPath, ['-e', program], {
      uid: hogging,
      gid: hogging,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (child.stdout) await once(child.stdout, 'data')
    return child
  }

  test.each([
    ['nothing', ''],
    ['half a request', 'GET /livez HTTP/1.1\r\n'],
    ['a request without its body', 'POST /auth HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n'],
  ])('S3 512 connections of another account that have sent %s shut nobody out', async (_what, first) => {
    const { port, server } = await openSite({})
    const child = await hog(port, 512, first)
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    })

    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => (await fetch(`${server.url}/livez`)).status),
    )
    expect(answers).toEqual(Array.from({ length: 20 }, () => 200))
  })

  test('S3 over TLS, connections without a ClientHello are closed after 2 s once half are in use', async () => {
    const { port } = await openSite({ tls: { cert, key }, limits: { connectionsPerAddress: 8 } })
    let ended = 0
    const sockets = Array.from({ length: 6 }, () =>
      connect(port, '127.0.0.1')
        .on('error', () => {})
        .on('close', () => {
          ended += 1
        }),
    )
    for (const socket of sockets) socket.write(Buffer.from([22, 3, 1, 2, 0]))
    const began = performance.now()
    await until(() => ended >= 3)
    expect(performance.now() - began).toBeGreaterThan(1_900)
    for (const socket of sockets) socket.destroy()
  })
})
