import { Socket } from 'node:net'
import pg from 'pg'
import { closed } from './link.ts'
import { isAnswer, NoConnection } from './postgres-faults.ts'

/** Timeout of an attempt to connect. Milliseconds, like all values below. */
const connectMs = 1_500
/**
 * After this time a second attempt runs beside a slow one. The system resends a lost packet only after a second, and
 * nobody should wait that long for a network that has just come back.
 */
const promptMs = 200
/**
 * A connection that answered within this time is used unchecked. An older one must first answer within `checkMs`. So
 * must one that has sent no query since another connection broke: the same cause may have broken both.
 */
const trustedMs = 100
const checkMs = 200
/** At most this many connections beyond the limit replace those that do not answer. */
const maxSpare = 2
/** Connections unused for this long are closed. */
const unusedMs = 10_000
/** How long signing off from the server may take. */
const goodbyeMs = 1_000

/** `socket` makes the socket to connect with, for callers that check which address it connects to. */
export type ConnectionConfig = pg.ClientConfig & { readonly socket?: (() => Socket) | undefined }

/**
 * A connection to PostgreSQL. It may break at any moment, also between two statements or while unused. The client and
 * its socket therefore always have an error listener, and the next statement reports the break.
 */
export class PoolConnection extends pg.Client {
  readonly #socket: Socket
  /** When the last statement was sent, and when the server last answered. Both by the monotonic clock. */
  askedAt = performance.now()
  answeredAt = performance.now()
  /** The connection is unusable. */
  lost = false
  /** We closed it, and the server has reported no error on it. */
  abandoned = false
  unusedTimer: NodeJS.Timeout | undefined

  constructor(
    { socket: open = () => new Socket(), ...config }: ConnectionConfig,
    forgotten: (connection: PoolConnection) => void,
  ) {
    const socket = open()
    super({ ...config, stream: () => socket })
    this.#socket = socket
    const lose = (): void => {
      this.lost = true
    }
    this.on('error', lose)
    socket.on('error', lose)
    socket.once('close', () => {
      lose()
      forgotten(this)
    })
  }

  /**
   * Runs one statement. Throws the server's error. Throws also when there is no answer within `ms`; the connection is
   * lost then.
   */
  async ask(text: string, values: readonly unknown[], ms: number): Promise<pg.QueryResult> {
    this.askedAt = performance.now()
    const question = { text, values: [...values], query_timeout: Math.max(1, Math.ceil(ms)) }
    try {
      const result = await this.query(question)
      this.answeredAt = performance.now()
      return result
    } catch (error) {
      // A late answer could reach the next user of this connection.
      if (!isAnswer(error)) this.lost = true
      else this.answeredAt = performance.now()
      throw error
    }
  }

  /** Whether a statement has waited unusually long for its answer: for a lock, or forever. */
  get silent(): boolean {
    return this.askedAt > this.answeredAt && performance.now() - this.askedAt >= promptMs
  }

  /** Whether the server still answers on it. */
  async answers(ms: number): Promise<boolean> {
    try {
      await this.ask('SELECT 1', [], ms)
      return true
    } catch {
      return false
    }
  }

  /** Closes it without signing off. The server rolls back the open transaction. */
  destroy(): void {
    this.abandoned ||= !this.lost
    this.lost = true
    this.#socket.destroy()
  }
}

type Waiter = {
  /** By the monotonic clock. */
  readonly since: number
  readonly resolve: (connection: PoolConnection) => void
  readonly reject: (error: Error) => void
}

/**
 * A pool of connections to one server, made on demand and reused. A waiting caller gets the first connection that
 * becomes free, whichever caller it was made for. A broken connection is removed together with the unused ones that
 * have been silent since. A server that vanished is thus noticed once and not once for each connection.
 */
export class ConnectionPool {
  readonly #config: ConnectionConfig
  readonly #max: number
  /** All connections whose sockets are not closed yet. */
  readonly #open = new Set<PoolConnection>()
  /** A stack: the connection used last is used next. */
  readonly #unused: PoolConnection[] = []
  readonly #used = new Set<PoolConnection>()
  /** Attempts to connect: recent ones, and those that have taken longer than usual. */
  readonly #young = new Set<PoolConnection>()
  readonly #slow = new Set<PoolConnection>()
  /** When a connection was last found broken, by the monotonic clock. */
  #brokeAt = Number.NEGATIVE_INFINITY
  /** True when an attempt was slow and none has succeeded since. */
  #troubled = false
  readonly #waiting = new Set<Waiter>()
  #closing: PromiseWithResolvers<void> | undefined

  constructor(config: ConnectionConfig, max: number) {
    this.#config = config
    this.#max = max
  }

  /**
   * Returns a working connection; the caller gives it back with `release`. Throws the reason when there is none, at the
   * latest at `deadline` (monotonic clock).
   */
  async take(deadline: number): Promise<PoolConnection> {
    for (;;) {
      const connection = this.#unused.pop() ?? (await this.#next(deadline))
      clearTimeout(connection.unusedTimer)
      this.#used.add(connection)
      const now = performance.now()
      const trusted = !connection.lost && connection.askedAt > this.#brokeAt && now - connection.answeredAt < trustedMs
      if (trusted || (await connection.answers(Math.min(checkMs, deadline - now)))) return connection
      this.release(connection)
      if (performance.now() >= deadline) throw new NoConnection()
    }
  }

  release(connection: PoolConnection): void {
    this.#used.delete(connection)
    if (connection.lost) {
      this.#brokeAt = performance.now()
      connection.destroy()
      for (const other of this.#unused.filter(({ answeredAt }) => answeredAt < connection.askedAt)) {
        this.#leave(other)
        other.destroy()
      }
      this.#connect()
    } else this.#handOver(connection)
  }

  /** Waits briefly for connections in use, then closes everything. Safe to call twice. */
  async close(): Promise<void> {
    if (this.#closing) return await this.#closing.promise
    this.#closing = Promise.withResolvers<void>()
    for (const waiter of this.#waiting) waiter.reject(closed())
    for (const attempt of [...this.#young, ...this.#slow]) attempt.destroy()
    for (const connection of this.#unused.splice(0)) {
      this.#leave(connection)
      sayGoodbye(connection)
    }
    const timer = setTimeout(() => {
      for (const connection of this.#open) connection.destroy()
    }, goodbyeMs)
    if (this.#open.size === 0) this.#closing.resolve()
    await this.#closing.promise
    clearTimeout(timer)
  }

  /** Waits for the next connection that becomes free. */
  #next(deadline: number): Promise<PoolConnection> {
    if (this.#closing) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer)
        clearTimeout(again)
        this.#waiting.delete(waiter)
      }
      const waiter: Waiter = {
        since: performance.now(),
        resolve: (connection) => {
          settle()
          // It counts as used from now on: the waiting caller resumes only later.
          this.#used.add(connection)
          resolve(connection)
        },
        reject: (error) => {
          settle()
          reject(error)
        },
      }
      const timer = setTimeout(() => waiter.reject(new NoConnection()), Math.max(0, deadline - performance.now()))
      // By then every earlier statement on the other connections has its answer or counts as silent.
      const again = setTimeout(() => this.#connect(), promptMs)
      this.#waiting.add(waiter)
      this.#connect()
    })
  }

  /** Makes as many connections as are waited for and allowed; one at a time while the network is in trouble. */
  #connect(): void {
    while (
      !this.#closing &&
      this.#young.size < (this.#troubled ? 1 : this.#waiting.size) &&
      this.#waiting.size > 0 &&
      this.#young.size < this.#room()
    ) {
      this.#attempt()
    }
  }

  /** How many more connections may be made. */
  #room(): number {
    const silent = [...this.#used].filter((connection) => connection.silent).length
    return this.#max + Math.min(maxSpare, silent) - this.#used.size - this.#unused.length
  }

  #attempt(): void {
    const startedAt = performance.now()
    const connection = new PoolConnection(this.#config, (gone) => this.#forget(gone))
    this.#open.add(connection)
    this.#young.add(connection)
    const slow = setTimeout(() => {
      this.#young.delete(connection)
      this.#slow.add(connection)
      this.#troubled = true
      this.#connect()
    }, promptMs)
    const giveUp = setTimeout(() => connection.destroy(), connectMs)
    const settle = (): void => {
      clearTimeout(slow)
      clearTimeout(giveUp)
      this.#young.delete(connection)
      this.#slow.delete(connection)
    }
    connection.connect().then(
      () => {
        settle()
        this.#troubled = false
        connection.answeredAt = performance.now()
        this.#handOver(connection)
        this.#connect()
      },
      (error: Error) => {
        settle()
        // A waiting caller gets an error that the server or the system reported since it began to wait, never one for
        // silence and never an older one.
        if (!connection.abandoned) [...this.#waiting].find(({ since }) => since <= startedAt)?.reject(error)
        connection.destroy()
        this.#connect()
      },
    )
  }

  #handOver(connection: PoolConnection): void {
    const [waiter] = this.#waiting
    if (connection.lost) connection.destroy()
    else if (this.#closing || this.#room() <= 0) sayGoodbye(connection)
    else if (waiter) waiter.resolve(connection)
    else {
      this.#unused.push(connection)
      connection.unusedTimer = setTimeout(() => {
        this.#leave(connection)
        sayGoodbye(connection)
      }, unusedMs)
      connection.unusedTimer.unref()
    }
  }

  /** Takes the connection out of use. */
  #leave(connection: PoolConnection): void {
    clearTimeout(connection.unusedTimer)
    const at = this.#unused.indexOf(connection)
    if (at >= 0) this.#unused.splice(at, 1)
  }

  /** Called when the socket has closed. */
  #forget(connection: PoolConnection): void {
    this.#open.delete(connection)
    this.#leave(connection)
    if (this.#open.size === 0) this.#closing?.resolve()
  }
}

/** Signs off; destroys the connection when the server does not react in time. */
function sayGoodbye(connection: PoolConnection): void {
  const timer = setTimeout(() => connection.destroy(), goodbyeMs)
  connection.once('end', () => clearTimeout(timer))
  connection.end().catch(() => {})
}
