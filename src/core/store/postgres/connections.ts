import { Socket } from 'node:net'
import pg from 'pg'
import { closed } from '../link.ts'
import { codeOf, isAnswer, isLimit, isUnknownHost, NoConnection, ReadOnlyHost } from './faults.ts'

/** Timeout of an attempt to connect. Milliseconds, like all values below. */
const connectMs = 1_500
/** To a server whose network is slow, an attempt may take this many round trips, and this long at most. */
const connectTrips = 10
const maxConnectMs = 5_000
/**
 * After this time a second attempt runs beside a slow one. The system resends a lost packet only after a second, and
 * nobody should wait that long for a network that has just come back. Attempts to a distant server take longer: there it
 * is twice the time of the last one that succeeded, and no more than the second value.
 */
const promptMs = 200
const maxPromptMs = 1_000
/**
 * A connection that answered within this time, or within one round trip, is used unchecked. An older one must answer first,
 * within two round trips, but not less than `checkMs` and not more than `maxCheckMs`. So must one that has sent no
 * query since another connection broke: the same cause may have broken both.
 */
const trustedMs = 100
const checkMs = 200
const maxCheckMs = 1_000
/** At most this many connections beyond the limit replace those that do not answer. */
const maxSpare = 2
/**
 * Connections unused for this long are closed, except the last one. All are kept where a new one may be refused, and
 * where making one takes long.
 */
const unusedMs = 10_000
/** After the server has refused a connection because of its limit, the pool asks for no other one for this long. */
const fullMs = 1_000
/** The server has been at its limit lately. */
const limitedMs = 60_000
/** A round trip to a distant server. */
const distantMs = 50
/** How long signing off from the server may take. */
const goodbyeMs = 1_000

/**
 * `socket` makes the socket to connect with, for callers that check which address it connects to. `writable`: a server
 * that accepts no writes is refused, as with `target_session_attrs=read-write` of libpq.
 */
export type ConnectionConfig = pg.ClientConfig & {
  readonly socket?: (() => Socket) | undefined
  readonly writable?: boolean
}

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
  /** Whether it must answer before what it has been sent counts. */
  unproven = false
  readonly #writable: boolean
  /**
   * The settings that the server reported while it connected. PostgreSQL before 14 reports none of those that are read.
   */
  readonly #reported = new Map<string, string>()

  constructor(
    { socket: open = () => new Socket(), writable = false, ...config }: ConnectionConfig,
    forgotten: (connection: PoolConnection) => void,
  ) {
    const socket = open()
    // Statements that are sent together are answered after one round trip.
    super({ ...config, pipeline: true, stream: () => socket })
    this.#socket = socket
    this.#writable = writable
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }) =>
      this.#reported.set(parameterName, parameterValue),
    )
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

  /** Connects. Throws ReadOnlyHost for a server that accepts no writes where they are needed. */
  async open(): Promise<void> {
    await this.connect()
    this.askedAt = this.answeredAt = performance.now()
    if (this.#writable && (await this.#isReadOnly())) throw new ReadOnlyHost()
  }

  async #isReadOnly(): Promise<boolean> {
    const standby = this.#reported.get('in_hot_standby')
    const byDefault = this.#reported.get('default_transaction_read_only')
    if (standby !== undefined && byDefault !== undefined) return standby === 'on' || byDefault === 'on'
    const { rows } = await this.ask('SHOW transaction_read_only', [], connectMs)
    return (rows[0] as { transaction_read_only?: string }).transaction_read_only === 'on'
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
      // The server has become a standby: another one accepts writes now.
      if (this.#writable && codeOf(error) === '25006') this.lost = true
      throw error
    }
  }

  /** Whether a statement has waited unusually long for its answer: for a lock, or forever. */
  get silent(): boolean {
    return this.askedAt > this.answeredAt && performance.now() - this.askedAt >= promptMs
  }

  /** Whether the server still answers on it. */
  async answers(ms: number, question: string): Promise<boolean> {
    try {
      await this.ask(question, [], ms)
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
  /** How many attempts have failed since then, and the error that says the most of the last ones. */
  refusals: number
  error: Error | undefined
  readonly resolve: (connection: PoolConnection) => void
  readonly reject: (error: Error) => void
}

/**
 * A pool of connections to one server, made on demand and reused. A waiting caller gets the first connection that
 * becomes free, whichever caller it was made for. A broken connection is removed together with the unused ones that
 * have been silent since. A server that vanished is thus noticed once and not once for each connection.
 */
export class ConnectionPool {
  /** The servers that may have the store. The first one is tried first. */
  readonly #configs: readonly ConnectionConfig[]
  readonly #max: number
  /** The server to connect to next: the last one that worked, or the one after a server that did not. */
  #host = 0
  /** A round trip to the server, and how long the last attempt took that succeeded. */
  #roundTripMs = 0
  #connectedInMs = 0
  /** No other connection is asked for before this time, and when the server last refused one because of its limit. */
  #fullUntil = Number.NEGATIVE_INFINITY
  #limitedAt = Number.NEGATIVE_INFINITY
  /** An attempt has reached a server whose network is slow. */
  #reachedSlowly = false
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

  constructor(configs: readonly ConnectionConfig[], max: number) {
    this.#configs = configs
    this.#max = max
  }

  /** Whether an attempt needs more time than usual because the server is far away. */
  get distant(): boolean {
    return this.#reachedSlowly || this.#roundTripMs >= distantMs
  }

  /** How long a connection may take to show that it still works. Milliseconds. */
  get checkMs(): number {
    return Math.min(maxCheckMs, Math.max(checkMs, 2 * this.#roundTripMs))
  }

  /**
   * Returns a connection that has answered; the caller gives it back with `release`. Throws the reason when there is none,
   * at the latest at `deadline` (monotonic clock).
   */
  async take(deadline: number): Promise<PoolConnection> {
    for (;;) {
      const connection = await this.lease(deadline)
      if (!connection.unproven || (await this.proved(connection, deadline))) return connection
      this.release(connection)
      if (performance.now() >= deadline) throw new NoConnection()
    }
  }

  /**
   * Like `take`, without asking the server. If the connection is `unproven`, the caller sends a check together with its
   * first statement, which then costs no round trip of its own.
   */
  async lease(deadline: number): Promise<PoolConnection> {
    const connection = this.#unused.pop() ?? (await this.#next(deadline))
    clearTimeout(connection.unusedTimer)
    this.#used.add(connection)
    // Making one takes longer there than most callers may wait.
    if (this.distant) this.#connect(1)
    const age = performance.now() - connection.answeredAt
    const trusted =
      !connection.lost && connection.askedAt > this.#brokeAt && age < Math.max(trustedMs, this.#roundTripMs)
    connection.unproven = !trusted
    return connection
  }

  /** Whether the server still answers on the connection. `question` changes nothing. */
  async proved(connection: PoolConnection, deadline: number, question = 'SELECT 1'): Promise<boolean> {
    const askedAt = performance.now()
    const answers = await connection.answers(Math.min(this.checkMs, deadline - askedAt), question)
    if (!answers) return false
    this.#measured(performance.now() - askedAt)
    connection.unproven = false
    return true
  }

  /** Follows a longer round trip at once, because the next check must not fail, and a shorter one slowly. */
  #measured(ms: number): void {
    this.#roundTripMs = ms > this.#roundTripMs ? ms : this.#roundTripMs * 0.8 + ms * 0.2
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
        refusals: 0,
        error: undefined,
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
      const again = setTimeout(() => this.#connect(), this.#promptMs)
      this.#waiting.add(waiter)
      this.#connect()
    })
  }

  get #promptMs(): number {
    return Math.min(maxPromptMs, Math.max(promptMs, 2 * this.#connectedInMs))
  }

  /**
   * Makes as many connections as are waited for and allowed; one at a time while the network is in trouble. `reserve`: how
   * many should be unused or under way even if nobody waits.
   */
  #connect(reserve = 0): void {
    const shortfall = (): number => Math.max(this.#waiting.size, reserve - this.#unused.length - this.#slow.size)
    while (
      !this.#closing &&
      // Without a connection of its own, the pool can only ask again.
      (performance.now() >= this.#fullUntil || this.#own === 0) &&
      this.#young.size < (this.#troubled ? Math.min(1, shortfall()) : shortfall()) &&
      this.#young.size < this.#vacancies()
    ) {
      this.#attempt()
    }
  }

  /** Connections that have been made. */
  get #own(): number {
    return this.#used.size + this.#unused.length
  }

  /** How many more connections may be made. */
  #vacancies(): number {
    const silent = [...this.#used].filter((connection) => connection.silent).length
    return this.#max + Math.min(maxSpare, silent) - this.#used.size - this.#unused.length
  }

  #attempt(): void {
    const startedAt = performance.now()
    const host = this.#host
    const connection = new PoolConnection(this.#configs[host] ?? {}, (gone) => this.#forget(gone))
    this.#open.add(connection)
    this.#young.add(connection)
    const slow = setTimeout(() => {
      this.#young.delete(connection)
      this.#slow.add(connection)
      this.#troubled = true
      this.#leaveHost(host)
      this.#connect()
    }, this.#promptMs)
    let giveUp = setTimeout(() => connection.destroy(), connectMs)
    connection.connection.once('connect', () => {
      const tripMs = performance.now() - startedAt
      const neededMs = Math.min(maxConnectMs, tripMs * connectTrips)
      if (neededMs <= connectMs) return
      this.#reachedSlowly = true
      clearTimeout(giveUp)
      giveUp = setTimeout(() => connection.destroy(), neededMs - tripMs)
    })
    const settle = (): void => {
      clearTimeout(slow)
      clearTimeout(giveUp)
      this.#young.delete(connection)
      this.#slow.delete(connection)
    }
    connection.open().then(
      () => {
        settle()
        this.#troubled = false
        this.#host = host
        this.#connectedInMs = performance.now() - startedAt
        // Connecting takes at least three round trips. A server that has moved away would fail each check otherwise, and a
        // check that fails measures nothing.
        this.#measured(this.#connectedInMs / 3)
        this.#handOver(connection)
        this.#connect()
      },
      (error: Error) => {
        settle()
        this.#leaveHost(host)
        // A waiting caller gets an error that the server or the system reported since it began to wait, never one for
        // silence and never an older one.
        if (!connection.abandoned) this.#refused(error, startedAt)
        connection.destroy()
        this.#connect()
      },
    )
  }

  /** Tries the next of several servers from now on. */
  #leaveHost(host: number): void {
    if (this.#host === host) this.#host = (host + 1) % this.#configs.length
  }

  #refused(error: Error, startedAt: number): void {
    if (isLimit(error)) {
      const now = performance.now()
      this.#limitedAt = now
      // Callers wait for the connections that the pool has.
      if (this.#own > 0) {
        this.#fullUntil = now + fullMs
        setTimeout(() => this.#connect(), fullMs).unref()
        return
      }
    }
    const waiter = [...this.#waiting].find(({ since }) => since <= startedAt)
    if (!waiter) return
    waiter.refusals += 1
    // That a name is unknown is the reason only if no other server has said anything.
    if (!waiter.error || !isUnknownHost(error)) waiter.error = error
    // Another server may have the store.
    if (waiter.refusals >= this.#configs.length) waiter.reject(waiter.error)
  }

  #handOver(connection: PoolConnection): void {
    const [waiter] = this.#waiting
    if (connection.lost) connection.destroy()
    else if (this.#closing || this.#vacancies() <= 0) sayGoodbye(connection)
    else if (waiter) waiter.resolve(connection)
    else {
      this.#unused.push(connection)
      this.#closeWhenUnused(connection)
    }
  }

  #closeWhenUnused(connection: PoolConnection): void {
    connection.unusedTimer = setTimeout(() => {
      const limited = performance.now() - this.#limitedAt < limitedMs
      if (this.#own <= 1 || limited || this.distant) return this.#closeWhenUnused(connection)
      this.#leave(connection)
      sayGoodbye(connection)
    }, unusedMs)
    connection.unusedTimer.unref()
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
