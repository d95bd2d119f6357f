import { X509Certificate } from 'node:crypto'
import { isIP, SocketAddress } from 'node:net'
import { hostname } from 'node:os'
import { Fault } from '../errors.ts'
import { isLoopback, isLoopbackHost } from '../loopback.ts'
import { clean } from './log.ts'

const authority = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\]+)(?::\d{1,5})?$/i

/** An IPv4 address that arrived over an IPv6 socket, as itself. */
export const plainAddress = (address: string): string =>
  address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address

/** Throws Misdirected (or BadRequest for a name that is none) unless this server answers for that Host. */
export type HostCheck = (host: string, localAddress: string | undefined) => void

/**
 * S1: a page of any site may point its own name at 127.0.0.1, so only known names are answered: those
 * of the loopback, off loopback this machine's own, those of the certificate, and those allowed by the
 * operator. An address counts when the connection really came in on it. Ports do not matter: a tunnel
 * changes them, and a foreign page cannot change the name.
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
  // Whole header values that were found good; bounded, because ports are the caller's to choose.
  const hosts = new Set<string>()
  const good = (host: string): void => {
    if (hosts.size < 64) hosts.add(host)
  }

  return (host, localAddress) => {
    if (hosts.has(host)) return
    const name = authority.exec(host)?.[1]?.toLowerCase()
    if (name === undefined) throw new Fault('BadRequest', 'The Host header holds no host name')
    const address = name.startsWith('[') ? name.slice(1, -1) : name
    const family = isIP(address)
    if (family !== 0) {
      const canonical = new SocketAddress({ address, family: family === 4 ? 'ipv4' : 'ipv6' }).address
      if (isLoopback(canonical) || names.has(canonical)) return good(host)
      if (localAddress !== undefined && canonical === plainAddress(localAddress)) return
    } else if (isLoopbackHost(name) || names.has(name) || certificate?.checkHost(name) !== undefined) {
      return good(host)
    }
    const label = clean(name)
    throw new Fault(
      'Misdirected',
      `This server does not answer for the host name '${label}'. If the name is right, start it with --allowed-host ${label}, or list it under serve.allowedHosts`,
    )
  }
}

/** The name of `name`, `name:port`, `[::1]:port` or a bare address, in the spelling it is compared in. */
function nameOf(text: string): string {
  if (isIP(text) !== 0) return new SocketAddress({ address: text, family: isIP(text) === 4 ? 'ipv4' : 'ipv6' }).address
  const name = (authority.exec(text)?.[1] ?? text).toLowerCase()
  return name.startsWith('[') ? nameOf(name.slice(1, -1)) : name
}
