import { execFile } from 'node:child_process'
import { closeSync, openSync, readSync } from 'node:fs'
import { isIPv4, type Socket } from 'node:net'
import { endianness } from 'node:os'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { isLoopback } from '../base/loopback.ts'
import { orLate, pace } from '../base/pace.ts'
import type { PeerProcess, ServeOptions } from '../protocol/service/service.ts'
import { type Log, logOnce } from './log.ts'

/** The two ends of a connection, as a socket of this server knows them. */
export type Ends = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>

/**
 * Finds the accounts of connections by their keys. Connections that it does not find are missing from the result. Calls
 * `spent` with the milliseconds of this thread that it has used.
 */
export type FindAccounts = (
  keys: ReadonlySet<string>,
  spent: (ms: number) => void,
) => Promise<ReadonlyMap<string, number>>

/** Milliseconds that a request waits for the account of its caller, who is a stranger to this request then. */
export const maxAccountMs = 500

/**
 * Bytes of one table that a search reads, which are about 440,000 sockets: the kernel keeps up to 262,144 ended connections
 * in TIME_WAIT (net.ipv4.tcp_max_tw_buckets) besides those that are open. A connection further down is not found, so that
 * a search ends on every machine.
 */
export const maxTableBytes = 64 * 1024 * 1024
const chunkBytes = 64 * 1024
/**
 * Milliseconds of this thread for searches that follow each other at once. Beyond them, a search is followed by a pause as
 * long as the time of this thread that it has used, however long it took. Even for a short table, the kernel walks through
 * all buckets of its hash table, which takes 10 ms on a machine with 24 GB.
 */
const burstMs = 250
/** The account that the kernel shows for every account without a counterpart in this user namespace. */
const overflowUid = 65_534

/**
 * Returns a function that resolves to the account (uid) of the process at the other end of a connection. It never
 * rejects. It resolves to undefined for a connection that is not on loopback or that the search does not find.
 *
 * The tables can be large, and any caller can cause a search, so one search at a time serves all connections that wait,
 * and a pause follows where searches would take more than half of this thread.
 */
export function accountFinder(find: FindAccounts): (ends: Ends) => Promise<number | undefined> {
  let next: { readonly keys: Set<string>; readonly accounts: ReturnType<FindAccounts> } | undefined
  let before: Promise<unknown> = Promise.resolve()
  let paidUntil = 0
  // A search in progress may already have passed the place of a new connection.
  const queue = (): NonNullable<typeof next> => {
    const keys = new Set<string>()
    let usedMs = 0
    // The requests of many new connections arrive together.
    const accounts = before.then(turn).then(() => {
      next = undefined
      return find(keys, (ms) => {
        usedMs += ms
      })
    })
    const rest = async (): Promise<void> => {
      const now = performance.now()
      paidUntil = Math.max(now, paidUntil) + usedMs
      const pauseMs = paidUntil - burstMs - now
      if (pauseMs > 0) await sleep(pauseMs, undefined, { ref: false })
    }
    before = accounts.then(rest, rest)
    return { keys, accounts }
  }
  return async (ends) => {
    const key = keyOf(ends)
    if (key === undefined) return undefined
    next ??= queue()
    next.keys.add(key)
    try {
      return (await next.accounts).get(key)
    } catch {
      return undefined
    }
  }
}

/** The rules for the processes of this machine that connect to the server (S8, S11). */
export type AccountRules = {
  /** Finds the account of a connection. Absent where nothing can tell: on systems other than Linux. */
  readonly find: ((ends: Ends) => Promise<number | undefined>) | undefined
  /** The account of this server. */
  readonly own: number | undefined
  /** Further accounts whose processes may read the details of health. */
  readonly localAccounts: ReadonlySet<number>
  /** False: no process may read the details because it runs on this machine. */
  readonly trustLocal: boolean
  /** Called when a request no longer waits for the account of its caller. */
  readonly late?: (() => void) | undefined
}

/**
 * Returns a function that describes the process at the other end of a connection from this machine, with one lookup for
 * each connection.
 */
export function peerProcesses(rules: AccountRules): (socket: Ends) => PeerProcess {
  const processes = new WeakMap<Ends, PeerProcess>()
  return (socket) => {
    const before = processes.get(socket)
    if (before) return before
    const process = new ConnectedProcess(rules, socket)
    processes.set(socket, process)
    return process
  }
}

class ConnectedProcess implements PeerProcess {
  readonly #rules: AccountRules
  readonly #ends: Ends
  #account: Promise<number | undefined> | undefined
  /** Undefined until the account is known. */
  #reads: boolean | undefined

  constructor(rules: AccountRules, ends: Ends) {
    this.#rules = rules
    this.#ends = ends
    if (!rules.trustLocal || !rules.find) this.#reads = rules.trustLocal
  }

  account(): Promise<number | undefined> {
    this.#account ??= this.#find()
    return this.#account
  }

  async #find(): Promise<number | undefined> {
    let isPending = true
    const lookup = (this.#rules.find?.(this.#ends) ?? Promise.resolve(undefined)).then((account) => {
      isPending = false
      // The table could not be read, or not as far as this connection: the next request asks again.
      this.#account = account === undefined ? undefined : Promise.resolve(account)
      return account
    })
    // While the search goes on, further requests of this connection do not wait at all.
    const account = await orLate(lookup, maxAccountMs)
    if (isPending) this.#rules.late?.()
    return account
  }

  async isOwn(): Promise<boolean> {
    const { own } = this.#rules
    // Proxies and port forwarders run as root, as does everybody in most containers.
    return own !== undefined && own !== 0 && own !== overflowUid && (await this.account()) === own
  }

  /** Without a promise once it is known, because every await delays shared answers. */
  reads(): boolean | Promise<boolean> {
    return this.#reads ?? this.#readsBy()
  }

  async #readsBy(): Promise<boolean> {
    const { own, localAccounts } = this.#rules
    const account = await this.account()
    if (account === undefined) return false
    this.#reads = localAccounts.has(account) || (account !== overflowUid && (account === 0 || account === own))
    return this.#reads
  }
}

/** The rules for this process. An account that does not exist is logged and left out. */
export async function accountRules(
  { localAccounts, trustLocal }: Pick<ServeOptions, 'localAccounts' | 'trustLocal'>,
  log: Log,
): Promise<AccountRules> {
  if (process.platform !== 'linux') {
    return { find: undefined, own: undefined, localAccounts: new Set(), trustLocal }
  }
  const numbers = await Promise.all(localAccounts.map((account) => accountNumber(account, log)))
  return {
    find: accountFinder(findAccounts),
    own: process.geteuid?.(),
    localAccounts: new Set(numbers.filter((number) => number !== undefined)),
    trustLocal,
    late: reportLateOnce(log),
  }
}

/** Figures would vanish from a scrape, and nothing else would say why. */
const reportLateOnce = (log: Log): (() => void) =>
  logOnce(log, {
    level: 'warn',
    msg: `The account of a local caller was not known within ${maxAccountMs} ms, because this machine has very many TCP connections: its request was answered without details. A key and serve.socket work without this search`,
  })

/** Milliseconds. Accounts may come from a directory on another machine. */
const maxLookupMs = 5_000

/** The number of an account. `id` also knows the accounts of directories, which /etc/passwd does not list. */
async function accountNumber(account: string, log: Log): Promise<number | undefined> {
  if (/^\d+$/.test(account)) return Number(account)
  try {
    const { stdout } = await promisify(execFile)('id', ['-u', '--', account], { timeout: maxLookupMs })
    return Number(stdout)
  } catch {
    log({
      level: 'info',
      msg: `serve.localAccounts: this system has no account ${account}. Restart svc after you create it`,
    })
    return undefined
  }
}

/** The kernel prints each 32-bit word of an address in the byte order of the machine. */
const word = (bytes: readonly number[]): string =>
  (endianness() === 'LE' ? bytes.toReversed() : bytes)
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .toUpperCase()
const zeros = word([0, 0, 0, 0])
/** ::ffff:0:0/96: how the table of IPv6 shows the connections that an IPv6 socket makes over IPv4. */
const mapped = `${zeros}${zeros}${word([0, 0, 255, 255])}`

/** The peer's end of a connection and our end, as the tables write them. Undefined for connections beyond loopback. */
function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Ends): string | undefined {
  const peer = end(remoteAddress, remotePort)
  const own = end(localAddress, localPort)
  return peer && own && `${peer} ${own}`
}

function end(address = '', port: number | undefined): string | undefined {
  if (port === undefined || !isLoopback(address)) return undefined
  const digits = port.toString(16).padStart(4, '0').toUpperCase()
  const bare = address.startsWith('::ffff:') ? address.slice(7) : address
  if (isIPv4(bare)) return `${word(bare.split('.').map(Number))}:${digits}`
  return address === '::1' ? `${zeros}${zeros}${zeros}${word([0, 0, 0, 1])}:${digits}` : undefined
}

/** Searches the kernel's tables of TCP sockets. A table that cannot be read, such as that of IPv6, shows nothing. */
export const findAccounts: FindAccounts = async (keys, spent) => {
  const accounts = new Map<string, number>()
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    if (accounts.size < keys.size) await searchTable(table, keys, accounts, { spent }).catch(() => {})
  }
  return accounts
}

type SearchOptions = {
  readonly spent?: (ms: number) => void
  /** Reads the next bytes of the table, 0 at its end. A read of /proc returns at most a page, 27 sockets. */
  readonly read?: (file: number, chunk: Buffer) => number
}

/**
 * Adds what a file of the format of /proc/net/tcp shows. Its reads never wait for a disk, so they are synchronous: one after
 * the other, in turns of the event loop that are at least 5 ms and as long as those of the requests beside them.
 */
export async function searchTable(
  path: string,
  keys: ReadonlySet<string>,
  accounts: Map<string, number>,
  { spent = () => {}, read = (file, chunk) => readSync(file, chunk) }: SearchOptions = {},
): Promise<void> {
  let since = performance.now()
  const file = openSync(path, 'r')
  try {
    // Almost all lines are about other connections, so each line is read only if it contains an end of this server.
    const ownEnds = new Set([...keys].map((key) => `${key.slice(key.indexOf(' ') + 1)} `))
    const chunk = Buffer.allocUnsafe(chunkBytes)
    const breathe = pace()
    let rest = ''
    for (let total = 0; total < maxTableBytes && accounts.size < keys.size; ) {
      const bytes = read(file, chunk)
      if (bytes === 0) return
      total += bytes
      const text = rest + chunk.toString('latin1', 0, bytes)
      const whole = text.lastIndexOf('\n') + 1
      rest = text.slice(whole)
      for (const line of linesWith(ownEnds, text.slice(0, whole))) {
        const { key, account } = readLine(line)
        const number = keys.has(key) ? account() : undefined
        if (number !== undefined) accounts.set(key, number)
      }
      const turn = breathe()
      if (!turn) continue
      spent(performance.now() - since)
      await turn
      since = performance.now()
    }
  } finally {
    spent(performance.now() - since)
    closeSync(file)
  }
}

/** The lines of a text that contain one of these texts. */
function* linesWith(texts: ReadonlySet<string>, lines: string): Generator<string> {
  for (const text of texts) {
    for (let at = lines.indexOf(text); at !== -1; at = lines.indexOf(text, at)) {
      const end = lines.indexOf('\n', at)
      yield lines.slice(lines.lastIndexOf('\n', at) + 1, end)
      at = end
    }
  }
}

/** Reads a line of a table: `  0: 0100007F:1F90 0100007F:A1B2 01 …`. */
function readLine(line: string): { readonly key: string; readonly account: () => number | undefined } {
  const from = line.indexOf(': ') + 2
  const to = line.indexOf(' ', line.indexOf(' ', from) + 1)
  return {
    key: line.slice(from, to).replaceAll(mapped, ''),
    account: () => {
      // State, queues, timer and retransmissions precede the account, and another timer the inode.
      const [, , , , account, , inode] = line.slice(to).trim().split(/ +/)
      // A connection that no process holds any more has no inode, and the kernel shows root as its account.
      return inode === undefined || inode === '0' ? undefined : Number(account)
    },
  }
}
