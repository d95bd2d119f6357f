import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** Who a connection through the proxy is with: the client that came, or the server behind. */
export type Side = 'client' | 'server'
/** The signs of a broken connection at one side: RST, FIN, or nothing at all. */
export type Break = 'reset' | 'end' | 'silence'

export type Breaks = { readonly client: Break; readonly server: Break }
export type Cut = Breaks & {
  /** The cut follows this many pieces of data from that side; the last of them is lost. */
  readonly pieces: number
  readonly from: Side
  /** Whether the other connections of the moment break too. */
  readonly all: boolean
}

export type CutProxy = {
  readonly port: number
  /** Connections that are open on the client's side. */
  readonly open: () => number
  /** Breaks connections in the middle of what they carry. Resolves when it is done. */
  readonly cut: (cut: Cut) => Promise<void>
  /**
   * Passes the next transaction to PostgreSQL, whose statements are sent together, and resets its connection when the
   * server has committed: the client gets no answer to any of them. Resolves when it is done.
   */
  readonly loseCommit: () => Promise<void>
  /** Breaks all connections at once. */
  readonly cutNow: (breaks: Breaks) => void
  /** Passes nothing on, and keeps every connection, new ones included. */
  readonly stall: () => void
  /** Ends a stall. What was open then flows on, or is `lost`: silent for ever, while new connections are good. */
  readonly heal: (open: 'flows' | 'lost') => void
  /** How late the answers of the server are from now on, in milliseconds. */
  readonly slow: (ms: number) => void
  readonly close: () => Promise<void>
}

/** A server notices by its keepalive that a silent client is gone. Milliseconds; hours in real life. */
const keepAliveMs = 3_000

type Pair = {
  readonly client: Socket
  server: Socket | undefined
  lost: boolean
  /** Ends when the client has the latest answer, however late that is. */
  answered: Promise<void>
  /** How many answers are late now. */
  late: number
}

/** A TCP proxy to a port of loopback that breaks connections on demand. */
export async function cutProxy(port: number): Promise<CutProxy> {
  const pairs = new Set<Pair>()
  let stalled = false
  let lateMs = 0
  let armed: { readonly cut: Cut; left: number; readonly done: () => void } | undefined
  let losing: { pair: Pair | undefined; answers: string; readonly done: () => void } | undefined

  const join = (pair: Pair): void => {
    const server = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    pair.server = server
    server.setNoDelay(true)
    server.on('error', () => pair.client.destroy())
    server.on('data', (data) => inOrder(pair, () => pass(pair, data, 'server')))
    server.on('end', () =>
      inOrder(pair, () => {
        if (!pair.lost) pair.client.end()
      }),
    )
    server.on('close', () =>
      inOrder(pair, () => {
        if (!pair.lost) pair.client.destroySoon()
      }),
    )
  }

  /** At once, unless answers are late now or one before it still is. */
  const inOrder = (pair: Pair, work: () => void): void => {
    if (lateMs === 0 && pair.late === 0) {
      work()
      return
    }
    const due = performance.now() + lateMs
    pair.late += 1
    pair.answered = pair.answered.then(async () => {
      await pause(Math.max(0, due - performance.now()))
      pair.late -= 1
      work()
    })
  }

  const pass = (pair: Pair, data: Buffer, from: Side): void => {
    if (pair.lost || withholds(pair, data, from)) return
    if (armed?.cut.from === from) {
      armed.left -= 1
      if (armed.left <= 0) {
        const { cut, done } = armed
        armed = undefined
        for (const one of cut.all ? [...pairs] : [pair]) if (!one.lost) sever(one, cut)
        done()
        return
      }
    }
    const other = from === 'client' ? pair.server : pair.client
    if (other?.writable) other.write(data)
  }

  /** Whether the answer belongs to the transaction whose COMMIT gets lost. */
  const withholds = (pair: Pair, data: Buffer, from: Side): boolean => {
    if (!losing) return false
    if (from === 'client') {
      if (!losing.pair && data.includes('BEGIN')) losing.pair = pair
      return false
    }
    if (losing.pair !== pair) return false
    losing.answers += data.toString('latin1')
    if (losing.answers.includes('COMMIT\0')) {
      losing.done()
      losing = undefined
      sever(pair, { client: 'reset', server: 'reset' })
    }
    return true
  }

  const sever = (pair: Pair, cut: Breaks): void => {
    pair.lost = true
    for (const [socket, way] of [
      [pair.client, cut.client],
      [pair.server, cut.server],
    ] as const) {
      if (!socket || socket.destroyed) continue
      if (way === 'reset') socket.resetAndDestroy()
      else if (way === 'end') socket.end()
    }
    forget(pair)
  }
  const forget = ({ client, server }: Pair): void => {
    setTimeout(() => {
      client.destroy()
      server?.destroy()
    }, keepAliveMs).unref()
  }

  const listener = createServer({ allowHalfOpen: true }, (client) => {
    const pair: Pair = { client, server: undefined, lost: false, answered: Promise.resolve(), late: 0 }
    pairs.add(pair)
    client.setNoDelay(true)
    client.on('error', () => {})
    client.on('data', (data) => pass(pair, data, 'client'))
    client.on('end', () => {
      if (!pair.lost && !stalled) pair.server?.end()
    })
    client.on('close', () => {
      pairs.delete(pair)
      // A server behind a dead network does not learn that its client is gone.
      if (pair.lost || stalled) forget(pair)
      else pair.server?.destroySoon()
    })
    if (stalled) client.pause()
    else join(pair)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')

  return {
    port: (listener.address() as AddressInfo).port,
    open: () => pairs.size,
    cut: (cut) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      armed = { cut, left: cut.pieces, done: resolve }
      return promise
    },
    loseCommit: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      losing = { pair: undefined, answers: '', done: resolve }
      return promise
    },
    cutNow: (breaks) => {
      for (const one of pairs) if (!one.lost) sever(one, breaks)
    },
    stall: () => {
      stalled = true
      for (const { client, server } of pairs) {
        client.pause()
        server?.pause()
      }
    },
    heal: (open) => {
      stalled = false
      for (const pair of pairs) {
        if (open === 'lost') {
          pair.lost = true
          forget(pair)
          continue
        }
        if (!pair.server) join(pair)
        pair.client.resume()
        pair.server?.resume()
      }
    },
    slow: (ms) => {
      lateMs = ms
    },
    close: async () => {
      listener.close()
      for (const { client, server } of pairs) {
        client.destroy()
        server?.destroy()
      }
      await once(listener, 'close')
    },
  }
}
