import { isIP } from 'node:net'
import { bareHost } from '../../base/loopback.ts'
import { type AddressFamily, familyName, familyOf } from '../../base/net/addresses.ts'
import type { Conversations } from '../../base/net/connect.ts'
import { routeError } from '../../base/net/datagrams.ts'
import { connectByProxy } from '../../base/net/proxy.ts'
import { sanitize } from '../../base/net/text.ts'
import { NotReachedError, ProbeError } from '../../base/probe-error.ts'
import type { Secret, Target } from '../../base/settings/index.ts'
import type { AnyKind, CheckContext } from './kind.ts'
import type { EngineContext } from './monitor.ts'

/** The settings by which a monitor reaches its server. */
type Reach = {
  readonly [Name in 'sourceAddress' | 'addresses' | 'proxy' | 'proxyUsername' | 'socket']?: string
} & { readonly family?: AddressFamily | 'both'; readonly proxyPassword?: Secret }

/** Why the settings with which a monitor reaches its server cannot be combined, or undefined. */
export function reachProblem(kind: AnyKind, settings: object): string | undefined {
  const reach = settings as Reach
  const { family, sourceAddress: from, proxyUsername, proxyPassword } = reach
  const instead = (reach.proxy ?? 'none') !== 'none' ? 'proxy' : reach.socket === undefined ? undefined : 'socket'
  const others = ['family', 'sourceAddress', 'addresses', 'socket'] as const
  const beside = others.find((name) => reach[name] !== undefined && name !== instead)
  if (instead !== undefined && beside !== undefined) return `has both ${beside} and ${instead}: remove one of them`
  if ((proxyUsername === undefined) !== (proxyPassword === undefined)) return 'needs proxyUsername with proxyPassword'
  if (proxyPassword !== undefined && instead !== 'proxy') return 'has a sign-in for a proxy, and no proxy: add proxy'
  if (proxyPassword?.origin.startsWith('{keychain:'))
    return 'has a proxyPassword of the keychain, which is bound to another host: use {file: /path} or {env: NAME}'
  if (instead === 'proxy' && isClear(settings) && kind.signsIn?.(settings as never, 'Advanced') !== undefined)
    return 'would sign in through the proxy without TLS: use TLS, or remove the proxy'
  const only = from === undefined ? family : familyOf(from)
  if (family !== undefined && family !== only)
    return `has an address of ${only} as sourceAddress, and family: ${family}: give both the same family`
  const host = bareHost(kind.target?.(settings as never).host ?? '')
  if (only === undefined || isIP(host) === 0 || familyOf(host) === only) return undefined
  return `asks for ${only}, and ${host} is an address of ${familyOf(host)}: give a name, or an address of that family`
}

/** Whether the connection has no TLS, by its URL or its setting. */
function isClear(settings: object): boolean {
  const { url, issuer = url, tls } = settings as { url?: string; issuer?: string; tls?: unknown }
  return issuer === undefined ? tls === false || tls === undefined : issuer.startsWith('http:')
}

/** The parts of the context of a run that the settings of its monitor change. */
export type WayTo = Pick<CheckContext, 'resolve' | 'bothFamilies'> & { readonly way: Conversations['way'] }

/**
 * How a monitor reaches its server. Throws NotReachedError where this machine lacks the source, and what reading the
 * password of the proxy throws.
 */
export async function wayTo(
  settings: object,
  { host }: Target,
  { resolve, signal, files }: Pick<EngineContext, 'resolve'> & Pick<CheckContext, 'signal' | 'files'>,
): Promise<WayTo> {
  const { family, sourceAddress: source, socket, proxy = 'none', proxyUsername, proxyPassword } = settings as Reach
  if (proxy !== 'none') {
    const account = proxyPassword && { username: proxyUsername ?? '', password: await proxyPassword.reveal(files) }
    const byProxy = connectByProxy({ url: new URL(proxy), account, resolve: (name) => resolve(name, signal) })
    return { way: { byProxy }, resolve: (name) => Promise.resolve([bareHost(name)]) }
  }
  const error = source && (await routeError(source))
  if (error)
    throw new NotReachedError('configuration', `sourceAddress ${source} is not an address of this machine (${error})`)
  const own = source === undefined ? (family === 'both' ? undefined : family) : familyOf(source)
  return {
    way: { source },
    bothFamilies: family === 'both',
    resolve: async (name, required = own) => {
      if (socket !== undefined && name === host) return [socket]
      const ips = await resolve(name, signal, required)
      return required === undefined ? ips : await ofFamily(required, name, ips, source)
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
