import { isIP } from 'node:net'
import { type AddressFamily, familyName, familyOf } from '../../base/net/addresses.ts'
import type { Conversations } from '../../base/net/connect.ts'
import { routeError } from '../../base/net/datagrams.ts'
import { sanitize } from '../../base/net/text.ts'
import { NotReachedError, ProbeError } from '../../base/probe-error.ts'
import type { SettingsSpec, Target, Values } from '../../base/settings/index.ts'
import type { AnyKind, CheckContext } from './kind.ts'
import type { EngineContext } from './monitor.ts'

/** In most kinds also `source`, which is another server in kind mysql. */
const sourceAddress = {
  type: 'text',
  otherWord: 'source',
  mistake: (text: string) =>
    isIP(text) === 0 ? 'is not an address: write one of this machine, like 10.0.0.7' : undefined,
  doc: 'Address of this machine from which svc connects; only addresses of its family are checked',
} as const satisfies SettingsSpec[string]

/** The settings of every kind that takes a host and checks its addresses. */
export const reachSettings = {
  family: {
    type: 'choice',
    values: ['ipv4', 'ipv6', 'both'],
    doc: 'The addresses of the host that are checked: `ipv4`, `ipv6`, or `both`, of which each has to have an address that serves. Applies before `addresses`',
  },
  sourceAddress,
} as const satisfies SettingsSpec

/** The same for a kind that takes a host and has one connection. */
export const oneFamilySettings = {
  family: { type: 'choice', values: ['ipv4', 'ipv6'], doc: 'The addresses of the host that are used' },
  sourceAddress,
} as const satisfies SettingsSpec

/** The settings of every kind that may connect by a proxy. */
export const proxySettings = {
  proxy: {
    type: 'text',
    mistake: proxyMistake,
    doc: 'Proxy that connects in place of this machine and resolves the name: http://host:port (CONNECT) or socks5://host:port; default: none',
  },
  proxyUsername: { type: 'text', doc: 'User at the proxy, with proxyPassword' },
  proxyPassword: { type: 'secret', doc: 'Password at the proxy, which gets it without TLS' },
} as const satisfies SettingsSpec

/** The setting of kinds whose servers listen at Unix sockets. */
export const socketSettings = {
  socket: {
    type: 'text',
    observed: true,
    pattern: /^\/.{1,106}$/s,
    doc: 'Path of the Unix socket of the server, up to 107 bytes, in place of the host in url. The server may take the account of the process for the sign-in',
  },
} as const satisfies SettingsSpec

function proxyMistake(text: string): string | undefined {
  const url = URL.parse(text)
  if (text === 'none') return undefined
  if (!/^(?:http|socks5):$/.test(url?.protocol ?? '') || !url?.hostname || !/^\/?$/.test(url.pathname + url.search))
    return 'is not a proxy: write http://host:port, socks5://host:port or none'
  return url.username + url.password === '' ? undefined : 'contains a user: write proxyUsername and proxyPassword'
}

type Reach = Values<typeof reachSettings & typeof proxySettings & typeof socketSettings> & {
  readonly addresses?: string | undefined
}

const isProxied = ({ proxy }: Reach): boolean => proxy !== undefined && proxy !== 'none'

const plain = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/** Why the settings with which a monitor reaches its server cannot be combined, or undefined. */
function reachProblem(kind: AnyKind, settings: object): string | undefined {
  const reach = settings as Reach
  const { family, sourceAddress: from, proxyUsername, proxyPassword } = reach
  const instead = isProxied(reach) ? 'proxy' : reach.socket === undefined ? undefined : 'socket'
  const others = ['family', 'sourceAddress', 'addresses', 'socket'] as const
  const beside = others.find((name) => reach[name] !== undefined && name !== instead)
  if (instead !== undefined && beside !== undefined) return `has both ${beside} and ${instead}: remove one of them`
  if ((proxyUsername === undefined) !== (proxyPassword === undefined)) return 'needs proxyUsername with proxyPassword'
  if (proxyPassword !== undefined && instead !== 'proxy') return 'has a sign-in for a proxy, and no proxy: add proxy'
  if (proxyPassword?.origin.startsWith('{keychain:'))
    return 'has a proxyPassword of the keychain, which is bound to another host: use {file: /path} or {env: NAME}'
  if (instead === 'proxy' && isClear(settings) && kind.signsIn?.(settings as never, 'Advanced') !== undefined)
    return 'would sign in through the proxy without TLS: use TLS, or remove the proxy'
  const wanted = from === undefined ? family : familyOf(from)
  if (family !== undefined && family !== wanted)
    return `has an address of ${wanted} as sourceAddress, and family: ${family}: give both the same family`
  const host = plain(kind.target?.(settings as never).host ?? '')
  if (wanted === undefined || isIP(host) === 0 || familyOf(host) === wanted) return undefined
  return `asks for ${wanted}, and ${host} is an address of ${familyOf(host)}: give a name, or an address of that family`
}

/** Why settings that are valid by themselves cannot be combined: a sentence that continues after the monitor's name. */
export const settingsProblem = (kind: AnyKind, settings: object): string | undefined =>
  reachProblem(kind, settings) ?? kind.validate?.(settings as never)

/** Whether the connection has no TLS, by its URL or its setting. */
function isClear(settings: object): boolean {
  const { url, issuer = url, tls } = settings as { url?: string; issuer?: string; tls?: unknown }
  return issuer === undefined ? tls === false || tls === undefined : issuer.startsWith('http:')
}

/** The parts of the context of a run that the settings of its monitor change. */
type Way = Pick<CheckContext, 'resolve' | 'bothFamilies'> & { readonly way: Conversations['way'] }

/**
 * How a monitor reaches its server. Throws NotReachedError where this machine lacks the source, and what reading the
 * password of the proxy throws.
 */
export async function wayTo(
  settings: object,
  { host }: Target,
  { resolve, signal, files }: Pick<EngineContext, 'resolve'> & Pick<CheckContext, 'signal' | 'files'>,
): Promise<Way> {
  const { family, sourceAddress: source, socket, proxy = 'none', proxyUsername, proxyPassword } = settings as Reach
  if (proxy !== 'none') {
    const { connectByProxy } = await import('../../base/net/proxy.ts')
    const account = proxyPassword && { username: proxyUsername ?? '', password: await proxyPassword.reveal(files) }
    const byProxy = connectByProxy({ url: new URL(proxy), account, resolve: (name) => resolve(name, signal) })
    return { way: { byProxy }, resolve: (name) => Promise.resolve([plain(name)]) }
  }
  const error = source && (await routeError(source))
  if (error)
    throw new NotReachedError('configuration', `sourceAddress ${source} is not an address of this machine (${error})`)
  const own = source === undefined ? (family === 'both' ? undefined : family) : familyOf(source)
  return {
    way: { source },
    bothFamilies: family === 'both',
    resolve: async (name, asked = own) => {
      if (socket !== undefined && name === host) return [socket]
      const ips = await resolve(name, signal, asked)
      return asked === undefined ? ips : await ofFamily(asked, name, ips, source)
    },
  }
}

/** The addresses of a family. Throws ProbeError `dns` without any, and NotReachedError without a route to one of them. */
async function ofFamily(
  family: AddressFamily,
  name: string,
  all: readonly string[],
  source: string | undefined,
): Promise<readonly string[]> {
  const ips = all.filter((ip) => familyOf(ip) === family)
  if (ips.length === 0) throw new ProbeError('dns', `${sanitize(name, 128)} has no ${familyName[family]} address`)
  const errors = await Promise.all(ips.map((ip) => routeError(source, ip)))
  if (errors.includes(undefined)) return ips
  throw new NotReachedError('route', `this machine has no route for ${familyName[family]} to ${ips[0]} (${errors[0]})`)
}
