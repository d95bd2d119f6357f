import { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, SocketAddress } from 'node:net'
import { hostname } from 'node:os'
import { Fault } from '../base/errors.ts'
import { bareHost, isLoopback, isLoopbackHost } from '../base/loopback.ts'
import type { Caller, PeerProcess } from '../protocol/service/service.ts'
import { isOnLocalSocket, socketProcess } from './local-socket.ts'
import { escapeControls } from './log.ts'
import type { Ends } from './peer-account.ts'

const authority = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\]+)(?::\d{1,5})?$/i

/** Unwraps an IPv4 address that arrived over an IPv6 socket. */
export const plainAddress = (address: string): string =>
  address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address

/** Throws Misdirected unless this server answers for the Host, and BadRequest when the Host is not a valid name. */
export type HostCheck = (host: string, localAddress: string | undefined) => void

/**
 * Any web page may point its own name at 127.0.0.1 (DNS rebinding), so the server answers known names only (S1): the
 * loopback names; beyond loopback, this machine's own names; those of the certificate; and those that the operator
 * allows. An IP address is accepted when the connection arrived on it. Ports are ignored: a tunnel changes them, and a
 * foreign page cannot change the name.
 */
export function hostCheck(options: {
  readonly bound: string
  readonly allowedHosts: readonly string[]
  readonly certificate: string | Buffer | undefined
}): HostCheck {
  const names = new Set(options.allowedHosts.map(nameOf))
  if (!isLoopbackHost(options.bound)) {
    const own = hostname().toLowerCase()
    for (const name of [own, own.split('.')[0] ?? own, nameOf(options.bound)]) names.add(name)
  }
  const certificate = options.certificate === undefined ? undefined : new X509Certificate(options.certificate)
  // Whole header values that have passed. Bounded, because callers choose the ports.
  const hosts = new Set<string>()
  const good = (host: string): void => {
    if (hosts.size < 64) hosts.add(host)
  }

  return (host, localAddress) => {
    if (hosts.has(host)) return
    const name = authority.exec(host)?.[1]?.toLowerCase()
    if (name === undefined) throw new Fault('BadRequest', 'The Host header contains no host name')
    const address = bareHost(name)
    const family = isIP(address)
    if (family !== 0) {
      const canonical = new SocketAddress({ address, family: family === 4 ? 'ipv4' : 'ipv6' }).address
      if (isLoopback(canonical) || names.has(canonical)) return good(host)
      if (localAddress !== undefined && canonical === plainAddress(localAddress)) return
    } else if (isLoopbackHost(name) || names.has(name) || certificate?.checkHost(name) !== undefined) {
      return good(host)
    }
    const label = escapeControls(name)
    throw new Fault(
      'Misdirected',
      `This server does not accept requests for the host name '${label}'. To allow it, start the server with --allowed-host ${label} or add it to serve.allowedHosts`,
    )
  }
}

/** The host of `name`, `name:port`, `[::1]:port` or a bare address, normalized for comparison. */
function nameOf(text: string): string {
  if (isIP(text) !== 0) return new SocketAddress({ address: text, family: isIP(text) === 4 ? 'ipv4' : 'ipv6' }).address
  const name = (authority.exec(text)?.[1] ?? text).toLowerCase()
  return name.startsWith('[') ? nameOf(bareHost(name)) : name
}

export type HttpCaller = Extract<Caller, { kind: 'http' }>
export type CallerRequest = Pick<IncomingMessage, 'headers' | 'httpVersion'> & { readonly socket: Ends }
export type CallerOf = (request: CallerRequest) => HttpCaller

export type CallerRules = {
  readonly isTrusted: (address: string) => boolean
  /** True if all callers come through a proxy, so that a connection from this machine says nothing about the caller. */
  readonly behindProxy: boolean
  /** Describes the process at the other end of a connection from this machine. */
  readonly processOf: (socket: Ends) => PeerProcess
  /** Called for each request that a proxy on this machine relays and nobody has declared. */
  readonly foundProxy?: (() => void) | undefined
}

/**
 * Returns a test for the addresses of trusted proxies. Throws a Local fault for an entry that is not an address or
 * range.
 */
export function trustedProxies(entries: readonly string[]): (address: string) => boolean {
  if (entries.length === 0) return () => false
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', prefix, rest] = entry.split('/')
    const family = isIP(address)
    const bits = prefix === undefined ? undefined : Number(prefix)
    const widest = family === 4 ? 32 : 128
    const valid =
      family !== 0 && rest === undefined && (bits === undefined || (/^\d{1,3}$/.test(prefix ?? '') && bits <= widest))
    if (!valid) {
      throw new Fault('Local', `'${entry}' is not a valid address or address range of a trusted proxy`, {
        hints: ['Examples: 10.0.0.7, 10.0.0.0/8, fd00::/8'],
      })
    }
    const type = family === 4 ? 'ipv4' : 'ipv6'
    if (bits === undefined) list.addAddress(address, type)
    else list.addSubnet(address, bits, type)
  }
  return (address) => {
    const family = isIP(address)
    return family !== 0 && list.check(address, family === 4 ? 'ipv4' : 'ipv6')
  }
}

/** Throws Forbidden for a connection from an address that may not send requests. */
export type PeerCheck = (peer: string | undefined) => void

/**
 * With `--behind-proxy`, only the proxies and this machine may send requests: a direct caller would bypass what the
 * proxy enforces, and send its password without TLS.
 */
export function peerCheck({ isTrusted, behindProxy }: Pick<CallerRules, 'isTrusted' | 'behindProxy'>): PeerCheck {
  return (peer) => {
    const address = plainAddress(peer ?? '')
    if (!behindProxy || isTrusted(address) || isLoopback(address)) return
    throw new Fault('Forbidden', 'This server accepts requests only from its proxy')
  }
}

/** Headers that relays add, besides all that begin with `x-forwarded-`. */
const relayed = ['forwarded', 'via', 'x-real-ip']

/**
 * Whether something has passed the request on for another caller, as far as the request shows it. A reverse proxy that
 * adds no header usually speaks HTTP/1.0, as nginx does by default.
 */
function isRelayed({ headers, httpVersion }: CallerRequest): boolean {
  if (httpVersion === '1.0' || relayed.some((name) => headers[name] !== undefined)) return true
  for (const name in headers) if (name.startsWith('x-forwarded-')) return true
  return false
}

/**
 * Returns a function that identifies the caller of a request. Relayed callers are never local: neither those of a
 * trusted proxy, whatever address it reports, nor those of a proxy on this machine that nobody has named (S11). A request
 * over the Unix socket is local unless a relay shows, whatever is said of proxies.
 * `X-Forwarded-For` counts only from trusted proxies and is read from the right: the caller itself may have written
 * anything left of the first untrusted address.
 */
export function callerOf({ isTrusted, behindProxy, processOf, foundProxy }: CallerRules): CallerOf {
  return (request) => {
    const { headers, socket } = request
    const address = plainAddress(socket.remoteAddress ?? '')
    if (isOnLocalSocket(socket)) {
      if (isRelayed(request)) return { kind: 'http', address, loopback: false, relayed: true }
      return { kind: 'http', address, loopback: true, process: socketProcess }
    }
    if (isTrusted(address)) {
      // Without `X-Forwarded-For`, the proxy relays for an unknown caller.
      const reported = forwarded(headers['x-forwarded-for'], isTrusted)
      // The loopback of another machine says nothing either.
      const isKnown = reported !== undefined && (isLoopback(address) || !isLoopback(reported))
      if (isKnown) return { kind: 'http', address: reported, loopback: false }
      return { kind: 'http', address, loopback: false, relayed: isLoopback(address) }
    }
    if (!isLoopback(address)) return { kind: 'http', address, loopback: false }
    if (behindProxy || isRelayed(request)) {
      if (!behindProxy) foundProxy?.()
      return { kind: 'http', address, loopback: false, relayed: true }
    }
    return { kind: 'http', address, loopback: true, process: processOf(socket) }
  }
}

function forwarded(header: string | string[] | undefined, isTrusted: (address: string) => boolean): string | undefined {
  let last: string | undefined
  for (const hop of String(header ?? '')
    .split(',')
    .reverse()) {
    const address = plainAddress(bare(hop.trim()))
    if (isIP(address) === 0) break
    last = address
    if (!isTrusted(address)) break
  }
  return last
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function bare(hop: string): string {
  const match = /^(?:\[([0-9a-f:.]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d+)?$/i.exec(hop)
  return match?.[1] ?? match?.[2] ?? hop
}
