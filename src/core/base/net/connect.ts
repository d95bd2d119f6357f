import { AsyncLocalStorage } from 'node:async_hooks'
import { Resolver } from 'node:dns/promises'
import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import {
  connect,
  type IpcNetConnectOpts,
  isIP,
  type LookupFunction,
  type Socket,
  type TcpNetConnectOpts,
} from 'node:net'
import { showDuration } from '../format.ts'
import { bareHost, isLoopbackHost } from '../loopback.ts'
import { ProbeError } from '../probe-error.ts'
import type { AddressFamily } from './addresses.ts'
import { sanitize } from './text.ts'

const hostsFile =
  process.platform === 'win32'
    ? `${process.env.SystemRoot ?? 'C:\\Windows'}\\System32\\drivers\\etc\\hosts`
    : '/etc/hosts'

let last: { readonly version: string; readonly content: string } | undefined

/**
 * The hosts file; empty without one. Reads it in this thread, because those of the pool may all wait for a file, and
 * keeps it as long as it does not change.
 */
export function hosts(path: string = hostsFile): string {
  try {
    const { mtimeMs, ctimeMs, size, ino } = statSync(path)
    const version = [path, mtimeMs, ctimeMs, size, ino].join(' ')
    if (last?.version !== version) last = { version, content: readFileSync(path, 'utf8') }
    return last.content
  } catch {
    return ''
  }
}

/**
 * The addresses of a name in the hosts file.
 *
 * @example
 * ```ts
 * parseHosts('10.0.0.7 db1 db1.example.com', 'db1') // ['10.0.0.7']
 * ```
 */
export function parseHosts(content: string, host: string): string[] {
  const hostName = host.toLowerCase()
  const addresses: string[] = []
  for (const line of content.split(/\r?\n/)) {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (address && isIP(address) && names.some((name) => name.toLowerCase() === hostName)) addresses.push(address)
  }
  return addresses
}

/**
 * Every address of a name, IPv4 first, from the hosts file, else from DNS, which is then asked for those of `family`
 * only. It does not use getaddrinfo, which cannot be cancelled and whose four threads queue behind one slow resolver.
 * Throws ProbeError `dns`.
 */
export async function resolveHost(
  host: string,
  signal: AbortSignal,
  family?: AddressFamily,
): Promise<readonly string[]> {
  const bare = bareHost(host).toLowerCase()
  if (isIP(bare)) return [bare]
  const fromFile = parseHosts(hosts(), bare)
  if (fromFile.length > 0) return fromFile
  // RFC 6761: localhost never goes to DNS.
  if (isLoopbackHost(bare)) return [family === 'ipv6' ? '::1' : '127.0.0.1']
  signal.throwIfAborted()
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  const cancel = (): void => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const answers = await Promise.allSettled([
      ...(family === 'ipv6' ? [] : [resolver.resolve4(bare)]),
      ...(family === 'ipv4' ? [] : [resolver.resolve6(bare)]),
    ])
    signal.throwIfAborted()
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (addresses.length > 0) return addresses
    const [first] = answers
    const code = first?.status === 'rejected' ? ((first.reason as { readonly code?: string }).code ?? '') : 'ENODATA'
    const aliases = await aliasesOf(resolver, bare, code)
    signal.throwIfAborted()
    if (aliases.loops) throw new ProbeError('dns', aliasLoop(bare, aliases), [code])
    const alias = aliases.names.at(-1)
    const what = alias === undefined ? bare : `${bare} is an alias of ${sanitize(alias, 128)}, which`
    throw new ProbeError('dns', `${what} does not resolve: ${dnsMeaning(code, family)}`, [code])
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Maximum number of aliases followed: they may form a loop. */
const maxAliases = 8

/** The aliases (CNAME) of a name, in their order. `loops`: the last of them leads back to an earlier one. */
export type Aliases = { readonly names: readonly string[]; readonly loops: boolean }

/** The codes of failed look-ups that aliases can cause. A resolver that follows a loop gives up with SERVFAIL. */
const aliasCodes: ReadonlySet<string | undefined> = new Set(['ENOTFOUND', 'ENODATA', 'ESERVFAIL'])

/** The aliases of a name that does not resolve. Empty when the failed look-up has another cause. Never rejects. */
export async function aliasesOf(resolver: Resolver, name: string, code: string | undefined): Promise<Aliases> {
  const names: string[] = []
  if (!aliasCodes.has(code)) return { names, loops: false }
  for (let hops = 0; hops < maxAliases; hops += 1) {
    const [next] = await resolver.resolveCname(names.at(-1) ?? name).catch(() => [])
    if (next === undefined) break
    const loops = [name, ...names].some((one) => one.toLowerCase() === next.toLowerCase())
    names.push(next)
    if (loops) return { names, loops }
  }
  return { names, loops: false }
}

/** The sentence about aliases that form a loop. */
export const aliasLoop = (name: string, { names }: Aliases): string =>
  `${sanitize(name, 128)} is an alias of itself: ${[name, ...names].map((one) => sanitize(one, 64)).join(' -> ')}`

function dnsMeaning(code: string, family?: AddressFamily): string {
  if (code === 'ENOTFOUND') return 'no such name'
  if (code === 'ENODATA') return `the name has no ${family?.replace('ip', 'IP').concat(' ') ?? ''}address`
  if (code === 'ETIMEOUT') return 'the name server did not answer'
  if (code === 'ECONNREFUSED') return 'this machine reaches none of its name servers, or all of them refuse queries'
  return `the name server answered ${code || 'nothing usable'}`
}

/** `resolveHost` as the `lookup` function of sockets and drivers. */
export const lookupWith =
  (resolve: (host: string) => Promise<readonly string[]>): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const all = addresses.map((address) => ({ address, family: isIP(address) }))
        const family =
          options.family === 4 || options.family === 6 ? all.filter((a) => a.family === options.family) : all
        const usable = family.length > 0 ? family : all
        if (options.all) callback(null, usable)
        else callback(null, usable[0]?.address ?? '', usable[0]?.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 4),
    )
  }

type Conversation = { readonly socket: Socket; readonly since: number; closedAt: number | undefined }

/**
 * A connection that was closed this long ago, in milliseconds, is no longer what a step waits for. Drivers give up 300 ms
 * before the deadline.
 */
const closingMs = 500

/** How the connections of an observation leave this machine, where svc.yaml says so. */
type WayOut = {
  /** The address of this machine that they come from. */
  readonly source?: string | undefined
  /** Connects by a proxy, to a host by its name. */
  readonly byProxy?: ((host: string, port: number, signal: AbortSignal) => Promise<Socket>) | undefined
}

/**
 * The connections of one observation, by address (`ip:port`), the latest of each. A deadline alone does not tell whether
 * the peer accepted the connection and whether it ever sent anything; they do.
 */
export class Conversations {
  /** Absent without any, as after the end. */
  #latest: Map<string, Conversation> | undefined
  #isOver = false
  readonly way: WayOut
  /** The error if what is awaited does not come within a time, as a text says it. Absent: the peer is silent. */
  late: ((within: string) => ProbeError) | undefined

  constructor(way: WayOut = {}) {
    this.way = way
  }

  /** The observation is over. It is kept as long as its results are, and its connections are not. */
  end(): void {
    this.#isOver = true
    this.#latest = undefined
  }

  add(address: string, socket: Socket): void {
    if (this.#isOver) return
    // Further connections to a peer that has sent nothing do not shorten its silence.
    const latest = this.#latest ?? new Map<string, Conversation>()
    this.#latest = latest
    const before = latest.get(address)
    const since = before?.socket.bytesRead === 0 ? before.since : performance.now()
    const conversation: Conversation = { socket, since, closedAt: undefined }
    socket.once('close', () => {
      conversation.closedAt = performance.now()
    })
    latest.set(address, conversation)
  }

  /** Milliseconds since an address accepted a connection on which it has sent nothing. Undefined for any other. */
  silentMs(address: string): number | undefined {
    const conversation = this.#latest?.get(address)
    if (!conversation || conversation.socket.bytesRead > 0) return undefined
    const { since, closedAt } = conversation
    const now = performance.now()
    return closedAt !== undefined && now - closedAt > closingMs ? undefined : (closedAt ?? now) - since
  }
}

const current = new AsyncLocalStorage<Conversations>()

/** Runs a part of an observation: its connections belong to `conversations`. */
export const withConversations = <T>(conversations: Conversations, part: () => T): T => current.run(conversations, part)

/** The way out of the current observation. */
export const wayOut = (): WayOut => current.getStore()?.way ?? {}

/** Says what the current observation waits for instead of its peer. */
export function waitFor(late: Conversations['late']): void {
  const conversations = current.getStore()
  if (conversations) conversations.late = late
}

/** Where a socket connects to at an address, which may be the path of a Unix socket, and from where. */
export const endpoint = (address: string, port: number): TcpNetConnectOpts | IpcNetConnectOpts =>
  address.startsWith('/') ? { path: address } : { host: address, port, localAddress: wayOut().source }

/** Notes a connection of the current observation, as soon as the peer at `ip:port` has accepted it. */
export const noteConnection = (socket: Socket, address: string): void => current.getStore()?.add(address, socket)

/**
 * `10.0.0.5:389 accepted the connection but sent nothing for 9.8 s`, for one address or several, separated by commas.
 * Undefined if one of them refused the connection, has not accepted it, or has sent anything.
 */
export function silenceOf(addresses: string): string | undefined {
  const conversations = current.getStore()
  const spans = addresses.split(', ').map((address) => conversations?.silentMs(address))
  if (!spans.every((ms) => ms !== undefined)) return undefined
  return `${addresses} accepted the connection but sent nothing for ${showDuration(Math.max(...spans))}`
}

/**
 * Connects to one address and port, in the way of the observation. The signal destroys the socket, also after it has
 * connected.
 */
export const connectTcp = (address: string, port: number, signal: AbortSignal): Promise<Socket> =>
  (wayOut().byProxy ?? connectDirectly)(address, port, signal)

/** As `connectTcp`, without a proxy. */
export function connectDirectly(address: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error)
    const socket = connect(endpoint(address, port))
    const abort = (): void => void socket.destroy(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    socket.once('close', () => signal.removeEventListener('abort', abort))
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      // The user of the socket adds another handler. This one keeps a late reset from being fatal.
      socket.on('error', () => {})
      noteConnection(socket, hostPort(address, port))
      resolve(socket)
    })
  })
}

/**
 * `host:port`, with brackets around IPv6. A Unix socket has no port.
 *
 * @example
 * ```ts
 * hostPort('::1', 443) // '[::1]:443'
 * ```
 */
export const hostPort = (host: string, port: number): string =>
  isIP(host) === 6 ? `[${host}]:${port}` : host.startsWith('/') ? host : `${host}:${port}`

export type UsualPort = { readonly port: number; readonly what: string }
export type Listening = UsualPort & { readonly banner?: string | undefined }

const loopback = '127.0.0.1'
/** Milliseconds. This machine accepts at once or not at all; a firewall that drops packets must not delay the run. */
const connectMs = 500
const bannerMs = 300
const bannerBytes = 512
const bannerShown = 80
/** Maximum number of ports: a file with thousands must not cause a port scan. */
const maxPorts = 64

/**
 * Which of the ports are open on 127.0.0.1. It connects, reads what a protocol sends first within 300 ms (`waitMs`; 0
 * does not read), sends nothing and signs in nowhere. Closed ports are left out, on Linux without a connection. Rejects
 * only when the signal aborts.
 */
export async function listeningPorts(
  ports: readonly UsualPort[],
  signal: AbortSignal,
  waitMs: number = bannerMs,
): Promise<Listening[]> {
  const mayListen = listeningSockets()
  const unique = [...new Map(ports.map((one) => [one.port, one])).values()].slice(0, maxPorts)
  const open = await Promise.all(unique.filter(({ port }) => mayListen(port)).map((one) => probe(one, signal, waitMs)))
  signal.throwIfAborted()
  return open.filter((one) => one !== undefined)
}

/** A table of sockets of Linux, and the file in which it counts them. */
export type SocketTable = { readonly sockets: string; readonly counts: string }

const socketTables: readonly SocketTable[] = [
  { sockets: '/proc/net/tcp', counts: '/proc/net/sockstat' },
  { sockets: '/proc/net/tcp6', counts: '/proc/net/sockstat6' },
]

/** Bytes. A table begins with the listening sockets, in 150 to 180 bytes each. */
const maxTable = 16_384
/**
 * Bytes of one read. The kernel fills it with sockets before it answers, and looks for those that do not listen in as
 * many lists as its memory allows: on a quiet machine 5 ms for each read that passes the last listening socket.
 */
const oneRow = 150

/**
 * Whether a port may be open, by the sockets that Linux lists: node:net takes 3 ms to load, and most ports are closed.
 * Always true on other systems, and where there is no such list or a longer one.
 */
export function listeningSockets(tables = socketTables): (port: number) => boolean {
  try {
    const listed = tables.map(tableStart).join('')
    return (port) => {
      const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
      return [8, 32].some((digits) => listed.includes(`${local} ${'0'.repeat(digits)}:0000 0A`))
    }
  } catch {
    return () => true
  }
}

/** A socket in another state than 0A, which is listening. */
const otherSocket = / (?!0A)[0-9A-F]{2} [0-9A-F]{8}:[0-9A-F]{8} /

/** The beginning of a table, with all listening sockets. It is not read to its end, which the kernel takes long to find. */
function tableStart({ sockets, counts }: SocketTable): string {
  const count = countedSockets(counts)
  if (count === 0) return ''
  const table = openSync(sockets, 'r')
  try {
    const part = Buffer.alloc(oneRow)
    let text = ''
    // The first line is the heading.
    let rows = -1
    for (;;) {
      const added = part.toString('latin1', 0, readSync(table, part))
      text += added
      rows += added.split('\n').length - 1
      if (added === '' || rows >= count || otherSocket.test(text.slice(-3 * oneRow))) return text
      if (text.length > maxTable) throw new Error('too many sockets')
    }
  } finally {
    closeSync(table)
  }
}

/** How many TCP sockets a file like /proc/net/sockstat counts, with those that wait for their end. Infinity if unknown. */
function countedSockets(path: string): number {
  try {
    const [, inUse, waiting = 0] = /^TCP6?: inuse (\d+)(?: .* tw (\d+))?/m.exec(readFileSync(path, 'latin1')) ?? []
    return inUse === undefined ? Number.POSITIVE_INFINITY : Number(inUse) + Number(waiting)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

async function probe({ port, what }: UsualPort, signal: AbortSignal, waitMs: number): Promise<Listening | undefined> {
  const patience = new AbortController()
  const stop = (): void => patience.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const timer = setTimeout(stop, connectMs)
  try {
    const socket = await connectTcp(loopback, port, patience.signal)
    clearTimeout(timer)
    try {
      const banner = waitMs > 0 ? await readBanner(socket, waitMs) : undefined
      return { port, what, banner }
    } finally {
      socket.destroy()
    }
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

/** The first line that the service sends unprompted, if it is text; a binary greeting is not shown. */
function readBanner(socket: Awaited<ReturnType<typeof connectTcp>>, ms: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0)
    const done = (): void => {
      clearTimeout(timer)
      resolve(bannerOf(received))
    }
    const timer = setTimeout(done, ms)
    socket.once('close', done)
    socket.on('data', (part: Buffer) => {
      received = Buffer.concat([received, part.subarray(0, bannerBytes - received.length)])
      if (received.includes(0x0a) || received.length >= bannerBytes) done()
    })
  })
}

export function bannerOf(received: Buffer): string | undefined {
  const line = received.toString('latin1').split(/\r?\n/, 1)[0] ?? ''
  if (!/^[\x20-\x7e]+$/.test(line)) return undefined
  return sanitize(line, bannerShown) || undefined
}

/**
 * The next step where a server accepts no more connections. Its own statements may need one, so this one asks the kernel.
 * `address` is `ip:port`.
 */
export const listConnections = (address: string): string =>
  `next: on its host, ss -tn state established 'sport = :${address.slice(address.lastIndexOf(':') + 1)}' lists who is connected`
