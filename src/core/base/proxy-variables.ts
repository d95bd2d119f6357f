import { Fault } from './errors.ts'
import { bareHost } from './loopback.ts'

/** The server that a proxy connects to. */
type Address = {
  readonly secure: boolean
  /** A name or an IP address, without brackets. */
  readonly host: string
  readonly port: number
  /** Whether the host as written is loopback. */
  readonly loopback: boolean
}

export type ProxyEnvironment = Readonly<Record<string, string | undefined>>

/** The member of an environment for a proxy that a setting of one server names. */
export const proxySetting = '`proxy:`'

export type ProxyServer = {
  /** The environment variable that names the proxy, or `proxySetting`, for messages. */
  readonly variable: string
  /** Includes user and password, so never shown. */
  readonly url: string
  readonly host: string
  /** True when the connection to the proxy itself uses TLS. */
  readonly secure: boolean
  /** Host and port, for messages. */
  readonly label: string
}

/**
 * The proxy for a server: `HTTPS_PROXY` or `HTTP_PROXY` by the server's scheme; the lower-case name comes first. Never
 * used for this machine or for hosts in `NO_PROXY`. Throws `Fault` Local for an unusable proxy, because bypassing it
 * silently could violate the network's policy.
 *
 * @example
 * ```ts
 * const server = { secure: true, host: 'svc.example.com', port: 443, loopback: false }
 * proxyFor(server, { HTTPS_PROXY: 'http://proxy.internal:3128' })?.label // 'proxy.internal:3128'
 * proxyFor(server, { HTTPS_PROXY: 'http://proxy.internal:3128', NO_PROXY: '.example.com' }) // undefined
 * ```
 */
export function proxyFor(address: Address, env: ProxyEnvironment): ProxyServer | undefined {
  if (address.loopback) return undefined
  const names = [proxySetting, ...(address.secure ? ['https_proxy', 'HTTPS_PROXY'] : ['http_proxy', 'HTTP_PROXY'])]
  const variable = names.find((name) => env[name])
  const value = variable === undefined ? '' : (env[variable] ?? '').trim()
  if (variable === undefined || value === '') return undefined
  if (bypassed(address, env['no_proxy'] || env['NO_PROXY'] || '')) return undefined
  const url = URL.parse(value.includes('://') ? value : `http://${value}`)
  if (url === null || !/^https?:$/.test(url.protocol) || !decodable(url.username + url.password)) {
    throw new Fault('Local', `${variable} does not contain a usable proxy URL`, {
      hints: ['Proxies are http://host:port or https://host:port; SOCKS is not supported.'],
    })
  }
  return { variable, url: url.href, host: bareHost(url.hostname), secure: url.protocol === 'https:', label: url.host }
}

function decodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/**
 * Entries are `*`, a name (including its subdomains), an address or a CIDR range. `:port` restricts an entry to a
 * port.
 */
function bypassed({ host, port }: Address, noProxy: string): boolean {
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      if (entry === '*') return true
      const { name, onPort } = readEntry(entry)
      if (name === '' || (onPort !== undefined && onPort !== port)) return false
      return name.includes('/') ? within(host, name) : host === name || host.endsWith(`.${name}`)
    })
}

function readEntry(entry: string): { readonly name: string; readonly onPort: number | undefined } {
  // An IPv6 address without brackets contains colons itself.
  const v6 = /^[^:]*:[^:]*:/.test(entry) && !entry.startsWith('[')
  const [, written = entry, onPort] = v6 ? [] : (/^(.*?)(?::(\d+))?$/.exec(entry) ?? [])
  const name = bareHost(written).replace(/^\*?\./, '')
  return { name, onPort: onPort === undefined ? undefined : Number(onPort) }
}

function within(host: string, range: string): boolean {
  const { BlockList, isIP } = process.getBuiltinModule('node:net')
  const [network = '', bits = ''] = range.split('/')
  const family = isIP(network)
  if (family === 0 || family !== isIP(host) || !/^\d{1,3}$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128)) {
    return false
  }
  const type = family === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  list.addSubnet(network, Number(bits), type)
  return list.check(host, type)
}
