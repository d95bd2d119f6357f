import { open } from 'node:fs/promises'
import { isIPv4, type Socket } from 'node:net'
import { endianness } from 'node:os'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLoopback } from '../loopback.ts'

/** The two ends of a connection, as a socket of this server knows them. */
export type Ends = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>

/** Finds the accounts of connections by their keys. Connections that it does not find are missing from the result. */
export type FindAccounts = (keys: ReadonlySet<string>) => Promise<ReadonlyMap<string, number>>

/**
 * Bytes of one table that a search reads, which are about 55,000 sockets. A connection further down is not found, so
 * that the question never costs a busy machine more than that.
 */
const maxTableBytes = 8 * 1024 * 1024
const chunkBytes = 64 * 1024
/** The pause after a search, as a multiple of its duration. */
const pauseFactor = 4
/** What the kernel shows for every account that has no counterpart in this user namespace. */
const overflowUid = 65_534

/**
 * Returns a function that tells whether the process at the other end of a connection belongs to the account `uid`. It
 * never rejects. It resolves to false for a connection that is not on loopback or that the search does not find, and
 * always if `uid` is root or the overflow account.
 *
 * The tables can be large, and any caller can cause a search, so one search at a time serves all connections that wait,
 * and the next one begins after a pause, so that searches take at most a fifth of the time.
 */
export function accountMatcher(uid: number, find: FindAccounts): (ends: Ends) => Promise<boolean> {
  let next: { readonly keys: Set<string>; readonly accounts: ReturnType<FindAccounts> } | undefined
  let before: Promise<unknown> = Promise.resolve()
  // A search in progress may already have passed the place of a new connection.
  const queue = (): NonNullable<typeof next> => {
    const keys = new Set<string>()
    let began = 0
    const accounts = before.then(() => {
      next = undefined
      began = performance.now()
      return find(keys)
    })
    const rest = (): Promise<void> => sleep(pauseFactor * (performance.now() - began), undefined, { ref: false })
    before = accounts.then(rest, rest)
    return { keys, accounts }
  }
  return async (ends) => {
    const key = keyOf(ends)
    if (uid === 0 || uid === overflowUid || key === undefined) return false
    next ??= queue()
    next.keys.add(key)
    try {
      return (await next.accounts).get(key) === uid
    } catch {
      return false
    }
  }
}

/**
 * The function for this process, which remembers the answer for the life of a connection. Undefined where the answer
 * is always no: for root, and on systems other than Linux.
 */
export function ownAccountOf(): ((socket: Ends) => Promise<boolean>) | undefined {
  const uid = process.platform === 'linux' ? process.geteuid?.() : undefined
  if (uid === undefined || uid === 0) return undefined
  const matches = accountMatcher(uid, findAccounts)
  const answers = new WeakMap<Ends, Promise<boolean>>()
  return (socket) => {
    const answer = answers.get(socket) ?? matches(socket)
    answers.set(socket, answer)
    return answer
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
export async function findAccounts(keys: ReadonlySet<string>): Promise<ReadonlyMap<string, number>> {
  const accounts = new Map<string, number>()
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    if (accounts.size < keys.size) await searchTable(table, keys, accounts).catch(() => {})
  }
  return accounts
}

/** Adds what a file of the format of /proc/net/tcp shows. */
export async function searchTable(
  path: string,
  keys: ReadonlySet<string>,
  accounts: Map<string, number>,
): Promise<void> {
  const file = await open(path)
  try {
    const chunk = Buffer.allocUnsafe(chunkBytes)
    let rest = ''
    for (let total = 0; total < maxTableBytes && accounts.size < keys.size; ) {
      const { bytesRead } = await file.read(chunk, 0, chunkBytes)
      if (bytesRead === 0) return
      total += bytesRead
      const lines = (rest + chunk.toString('latin1', 0, bytesRead)).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const { key, account } = read(line)
        if (keys.has(key)) accounts.set(key, account())
      }
    }
  } finally {
    await file.close()
  }
}

/** Reads a line of a table: `  0: 0100007F:1F90 0100007F:A1B2 01 …`. */
function read(line: string): { readonly key: string; readonly account: () => number } {
  const from = line.indexOf(': ') + 2
  const to = line.indexOf(' ', line.indexOf(' ', from) + 1)
  return {
    key: line.slice(from, to).replaceAll(mapped, ''),
    // State, queues, timer and retransmissions precede it.
    account: () => Number(line.slice(to).trim().split(/ +/)[4]),
  }
}
