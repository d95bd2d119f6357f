import { Socket } from 'node:net'
import pg from 'pg'
import { closed } from './link.ts'
import { isAnswer, NoConnection } from './postgres-faults.ts'

/** An attempt to connect is given up after this. Milliseconds, like all below. */
const connectMs = 1_500
/**
 * After this another attempt is made beside a slow one: the system sends a packet that was lost again only after a
 * second, and whoever waits should not wait that long for a network that has just come back.
 */
const promptMs = 200
/**
 * A connection that has answered within this is used unchecked; an older one must answer within `checkMs` first, and so
 * must one that was asked nothing since another broke: whatever broke that one may have broken it too.
 */
const trustedMs = 100
const checkMs = 200
/** As many connections beyond the limit, at most, stand in for those that do not answer. */
const maxSpare = 2
/** Nobody needs a connection that has been unused for so long. */
const unusedMs = 10_000
/** How long a goodbye to the server may take. */
const goodbyeMs = 1_000

/** `socket` makes the socket to connect with, where it has to watch where it leads. */
export type ConnectionConfig = pg.ClientConfig & { readonly socket?: (() => Socket) | undefined }

/**
 * A connection to PostgreSQL. It may break at any moment, also between two statements and while nobody uses it, so its
 * errors and its socket's have a listener for all its life: what a break means is told by the next statement.
 */
export class PoolConnection extends pg.Client {
  readonly #socket: Socket
  /** When the last statement was sent, and when the server last answered, by the monotonic clock. */
  askedAt = performance.now()
  answeredAt = performance.now()
  /** Nothing more can be asked. */
  lost = false
  /** We closed it, and its server has said nothing about it. */
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

  /** Throws what the server answers; also where it does not answer within `ms`, and then the connection is lost. */
  async ask(text: string, values: readonly unknown[], ms: number): Promise<pg.QueryResult> {
    this.askedAt = performance.now()
    const question = { text, values: [...values], query_timeout: Math.max(1, Math.ceil(ms)) }
    try {
      const result = await this.query(question)
      this.answeredAt = performance.now()
      return result
    } catch (error) {
      // What has not answered in time may answer the next one who uses this connection.
      if (!isAnswer(error)) this.lost = true
      else this.answeredAt = performance.now()
      throw error
    }
  }

  /** A statement waits for its answer longer than usual: for a lock, or for ever. */
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

  /** Closes it without a word; the server rolls back what was open. */
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
 * Connections to one server, made when they are needed and used again. Whoever waits gets the first that becomes free,
 * whatever it was made for. One that broke is forgotten, together with the unused ones that have been silent since: a
 * server that went away without a word is found out once, and not once for each connection.
 */
export class ConnectionPool {
  readonly #config: ConnectionConfig
  readonly #max: number
  /** All sockets that are not closed yet. */
  readonly #open = new Set<PoolConnection>()
  /** The last one was used last, and is used next. */
  readonly #unused: PoolConnection[] = []
  readonly #used = new Set<PoolConnection>()
  /** Attempts to connect: young ones, and those that have taken longer than usual. */
  readonly #young = new Set<PoolConnection>()
  readonly #slow = new Set<PoolConnection>()
  /** When a connection was last found to be broken, by the monotonic clock. */
  #brokeAt = Number.NEGATIVE_INFINITY
  /** An attempt was slow, and none has succeeded since. */
  #troubled = false
  readonly #waiting = new Set<Waiter>()
  #closing: PromiseWithResolvers<void> | undefined

  constructor(config: ConnectionConfig, max: number) {
    this.#config = config
    this.#max = max
  }

  /**
   * A connection that works, to be given back by `release`. Throws why none can be had, at the latest at `deadline` by
   * the monotonic clock.
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

  /** Waits a moment for what is in use, then closes everything. Safe to call twice. */
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

  /** The next connection that becomes free. */
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
          // Counts from now on: whoever waits takes it up only later.
          this.#used.add(connection)
          resolve(connection)
        },
        reject: (error) => {
          settle()
          reject(error)
        },
      }
      const timer = setTimeout(() => waiter.reject(new NoConnection()), Math.max(0, deadline - performance.now()))
      // What was asked before on all the others has an answer by then, or is silent.
      const again = setTimeout(() => this.#connect(), promptMs)
      this.#waiting.add(waiter)
      this.#connect()
    })
  }

  /** Makes as many connections as are waited for and may be; one at a time while the network is in trouble. */
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

  /** How many more connections there may be. */
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
        // Who waits is refused for what the server or the system said since, and not for silence or what is past.
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

  /** Is used no more. */
  #leave(connection: PoolConnection): void {
    clearTimeout(connection.unusedTimer)
    const at = this.#unused.indexOf(connection)
    if (at >= 0) this.#unused.splice(at, 1)
  }

  /** Its socket is closed. */
  #forget(connection: PoolConnection): void {
    this.#open.delete(connection)
    this.#leave(connection)
    if (this.#open.size === 0) this.#closing?.resolve()
  }
}

/** A server that does not listen is left after a while. */
function sayGoodbye(connection: PoolConnection): void {
  const timer = setTimeout(() => connection.destroy(), goodbyeMs)
  connection.once('end', () => clearTimeout(timer))
  connection.end().catch(() => {})
}
