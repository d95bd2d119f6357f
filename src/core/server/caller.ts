import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { Fault } from '../errors.ts'
import { isLoopback } from '../loopback.ts'
import type { Caller } from '../service.ts'
import { plainAddress } from './hosts.ts'

export type HttpCaller = Extract<Caller, { kind: 'http' }>
export type CallerOf = (peer: string | undefined, headers: IncomingHttpHeaders) => HttpCaller

/** Says which addresses are trusted proxies. Throws a Local fault for an entry that is no address or range. */
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
      throw new Fault('Local', `'${entry}' is no address and no address range of a trusted proxy`, {
        hints: ['Write 10.0.0.7, 10.0.0.0/8 or fd00::/8'],
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

/** Left by proxies: who connects from this machine and sends one of these speaks for somebody else. */
const relayed = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via', 'x-forwarded-host', 'x-forwarded-proto']

/**
 * Who calls. `loopback` opens details that strangers do not get (S11), so it is claimed only for a
 * connection from this machine that nobody relayed. `X-Forwarded-For` counts from trusted proxies
 * alone, read from the right: what stands left of the first untrusted address is the caller's own say.
 */
export function callerOf(isTrusted: (address: string) => boolean): CallerOf {
  return (peer, headers) => {
    const address = plainAddress(peer ?? '')
    const here = isLoopback(address)
    if (isTrusted(address)) {
      const reported = forwarded(headers['x-forwarded-for'], isTrusted)
      // A trusted proxy that reports nobody relays for an unknown stranger.
      if (reported === undefined) return { kind: 'http', address, loopback: false }
      return { kind: 'http', address: reported, loopback: here && isLoopback(reported) }
    }
    const loopback = here && !relayed.some((name) => headers[name] !== undefined)
    return { kind: 'http', address, loopback }
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
