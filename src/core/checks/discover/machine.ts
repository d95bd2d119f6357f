import { lookup } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { isLoopback } from '../../base/loopback.ts'
import { ownAddresses } from '../../base/net/addresses.ts'
import type { Machine } from '../recognition/index.ts'

/** Milliseconds for the addresses of a name. */
const lookupMs = 1_000

/** This machine. Reads /etc/resolv.conf where its own name has no domain; needs no privileges. */
export async function thisMachine(): Promise<Machine> {
  const own = domainOf(hostname())
  const resolver = own === undefined ? await readFile('/etc/resolv.conf', 'utf8').catch(() => '') : ''
  return { domain: own ?? searchedIn(resolver), isHere }
}

const domainOf = (name: string): string | undefined => domain(name.slice(name.indexOf('.') + 1))
const domain = (name: string): string | undefined =>
  /^(?=.{3,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+$/i.test(name) ? name.toLowerCase() : undefined

/** The first domain of `search` or `domain` in a resolv.conf(5). */
export const searchedIn = (file: string): string | undefined =>
  domain(/^[ \t]*(?:search|domain)[ \t]+([^\s#;]+)/m.exec(file)?.[1]?.replace(/\.$/, '') ?? '')

async function isHere(name: string): Promise<boolean> {
  const late = new Promise<readonly { readonly address: string }[]>((resolve) => {
    setTimeout(() => resolve([]), lookupMs).unref()
  })
  const addresses = await Promise.race([lookup(name, { all: true }).catch(() => []), late])
  const own = new Set(ownAddresses())
  return addresses.length > 0 && addresses.every(({ address }) => own.has(address) || isLoopback(address))
}
