import { isIP } from 'node:net'
import type { ConfiguredFiles } from '../../base/files/index.ts'
import { type AddressFamily, familyName, familyOf } from '../../base/net/addresses.ts'
import type { Conversations } from '../../base/net/connect.ts'
import { routeError } from '../../base/net/datagrams.ts'
import { sanitize } from '../../base/net/text.ts'
import { NotReachedError, ProbeError } from '../../base/probe-error.ts'
import type { Secret, SettingsSpec, Target } from '../../base/settings/index.ts'
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

type Reach = {
  readonly family?: AddressFamily | 'both'
  readonly sourceAddress?: string
  readonly addresses?: string
  readonly proxy?: string
  readonly proxyUsername?: string
  readonly proxyPassword?: Secret
  readonly socket?: string
}

const isProxied = ({ proxy }: Reach): boolean => proxy !== undefined && proxy !== 'none'

const plain = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/** Why the settings with which a monitor reaches its server cannot be combined, or undefined. */
function reachProblem(kind: AnyKind, settings: object): string | undefined {
  const reach = settings as Reach
  const { family, sourceAddress: from, proxyUsername, proxyPassword } = reach
  const given = (names: readonly (keyof Reach)[]) => names.find((name) => reach[name] !== undefined)
  const instead = isProxied(reach) ? 'proxy' : reach.socket === undefined ? undefined : 'socket'
  const beside = given(['family', 'sourceAddress', 'addresses', ...(instead === 'proxy' ? (['socket'] as const) : [])])
  if (instead !== undefined && beside !== undefined) return `has both ${beside} and ${instead}: remove one of them`
  if (given(['proxyUsername', 'proxyPassword']) !== undefined) {
    if (instead !== 'proxy') return 'has a sign-in for a proxy, and no proxy: add proxy'
    if (proxyUsername === undefined || proxyPassword === undefined) return 'needs proxyUsername with proxyPassword'
    if (proxyPassword.origin.startsWith('{keychain:'))
      return 'has a proxyPassword of the keychain, which is bound to another host: use {file: /path} or {env: NAME}'
  }
  if (instead === 'proxy' && isClear(settings) && kind.signsIn?.(settings as never, 'Advanced') !== undefined)
    return 'would sign in through the proxy without TLS: use TLS, or remove the proxy'
  if (from !== undefined && family !== undefined && familyOf(from) !== family)
    return `has an ${familyName[familyOf(from)]} sourceAddress and family: ${family}: give both the same family`
  const wanted = from === undefined ? family : familyOf(from)
  const host = plain(kind.target?.(settings as never).host ?? '')
  if (wanted === undefined || isIP(host) === 0 || familyOf(host) === wanted) return undefined
  const setting = from === undefined ? `family: ${family}` : `an ${familyName[familyOf(from)]} sourceAddress`
  return `has ${setting}, and ${host} is an ${familyName[familyOf(host)]} address: give a name, or an address of that family`
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
  { resolve, signal, files }: { resolve: EngineContext['resolve']; signal: AbortSignal; files: ConfiguredFiles },
): Promise<Way> {
  const reach = settings as Reach
  const { family, sourceAddress: from, socket } = reach
  if (isProxied(reach)) return await wayByProxy(reach, { resolve, signal, files })
  if (from !== undefined) {
    const error = await routeError(from)
    if (error !== undefined)
      throw new NotReachedError('configuration', `sourceAddress ${from} is not an address of this machine (${error})`)
  }
  const own = from === undefined ? (family === 'both' ? undefined : family) : familyOf(from)
  return {
    way: { source: from },
    bothFamilies: family === 'both',
    resolve: async (name, asked = own) => {
      if (socket !== undefined && name === host) return [socket]
      return await (asked === undefined ? resolve(name, signal) : resolveIn(asked, name, { resolve, signal, from }))
    },
  }
}

/** The addresses of a family. Throws ProbeError `dns` without any, and NotReachedError without a route to one of them. */
async function resolveIn(
  family: AddressFamily,
  name: string,
  { resolve, signal, from }: { resolve: EngineContext['resolve']; signal: AbortSignal; from: string | undefined },
): Promise<readonly string[]> {
  const ips = (await resolve(name, signal, family)).filter((ip) => familyOf(ip) === family)
  const [first] = ips
  if (first === undefined) throw new ProbeError('dns', `${sanitize(name, 128)} has no ${familyName[family]} address`)
  const errors = await Promise.all(ips.map((ip) => routeError(from, ip)))
  const [error] = errors
  if (error === undefined || errors.includes(undefined)) return ips
  throw new NotReachedError('route', `this machine has no route to ${first} for ${familyName[family]} (${error})`)
}

async function wayByProxy(
  { proxy = '', proxyUsername: username = '', proxyPassword }: Reach,
  { resolve, signal, files }: { resolve: EngineContext['resolve']; signal: AbortSignal; files: ConfiguredFiles },
): Promise<Way> {
  const { connectByProxy } = await import('../../base/net/proxy.ts')
  const account = proxyPassword && { username, password: await proxyPassword.reveal(files) }
  const byProxy = connectByProxy({ url: new URL(proxy), account, resolve: (host) => resolve(host, signal) })
  return { way: { byProxy }, bothFamilies: false, resolve: (host) => Promise.resolve([plain(host)]) }
}
