import type { ConfiguredFiles } from '../../../base/files/index.ts'
import { isLoopbackHost } from '../../../base/loopback.ts'
import { trustSettings } from '../../../base/net/trust.ts'
import { hostOf, portOf } from '../../../base/net/url.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { proxyFor } from '../../../base/proxy-variables.ts'
import {
  type Problem,
  Secret,
  type SettingsSpec,
  type Target,
  type Template,
  type Values,
} from '../../../base/settings/index.ts'
import type { ExecConfig } from '../../../base/system/allowed-program.ts'
import type { Receiver } from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'

/** The data and functions that a receiver gets from the process that opens it. */
export type ReceiverContext = {
  /** `serve.name`, the label `server`. */
  readonly server: string
  /** `serve.url`: where the status page is. */
  readonly url?: string | undefined
  readonly version: string
  /** The way to secrets and to files of CAs. */
  readonly files: ConfiguredFiles
  /** The programs that the system's svc.yaml allows. Absent: none. */
  readonly programs?: ExecConfig | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Gets what an operator should know and no delivery says: one line without secrets. */
  readonly warn: (message: string) => void
  /** Marks each message as a test, which never looks like an incident, and expects every place to accept it. */
  readonly isTest?: boolean | undefined
  /** Gets each request, mail or input as text, instead of the place that it is for: `svc notify preview`. */
  readonly show?: ((text: string) => void) | undefined
}

/** A way to send notifications: everything that belongs to it and nothing else. */
export type ReceiverKind<S extends SettingsSpec = SettingsSpec> = {
  /** The name of its section in a receiver. */
  readonly name: string
  readonly doc: string
  readonly settings: S
  /** Mistakes that only several settings together show. Paths begin at those of the kind. */
  readonly mistakes: (values: Values<S>, all: Pick<ReceiverConfig, 'remind'>) => readonly Problem[]
  /** Where it sends to: scheme and host, without secrets. */
  readonly to: (values: Values<S>) => string
  /** The host and port to which a secret of the keychain is bound. */
  readonly target: (values: Values<S>) => Target | undefined
  /**
   * Whether it needs a store, unless the receiver is `volatile`: without one, each restart repeats messages, which people get.
   */
  readonly needsStore: boolean
  /** Whether it starts programs of this machine. */
  readonly runsPrograms?: boolean | undefined
  /** Why no drill may go through a receiver with these settings, or undefined: the message continues its name. */
  readonly drillMistake?: ((values: Values<S>) => string | undefined) | undefined
  /** Whether it has silences of its own: `mute` of what it opens. */
  readonly silences?: boolean | undefined
  /** Loads what sending needs, and connects to nothing. */
  readonly open: (config: ReceiverConfig, values: Values<S>, context: ReceiverContext) => Promise<Receiver>
}

/** A kind whose settings only itself knows. */
export type AnyReceiverKind = Omit<ReceiverKind, 'mistakes' | 'to' | 'target' | 'drillMistake' | 'open'> & {
  readonly mistakes: (values: unknown, all: Pick<ReceiverConfig, 'remind'>) => readonly Problem[]
  readonly to: (values: unknown) => string
  readonly target: (values: unknown) => Target | undefined
  readonly drillMistake?: ((values: unknown) => string | undefined) | undefined
  readonly open: (config: ReceiverConfig, values: unknown, context: ReceiverContext) => Promise<Receiver>
}

/** The settings of every kind that connects with TLS. */
export const receiverTrust = {
  servername: trustSettings.servername,
  caFile: { ...trustSettings.caFile, otherWord: 'ca' },
  fingerprint: trustSettings.fingerprint,
} as const satisfies SettingsSpec

/** The setting of kinds that may reach their service by a proxy. Read by `readProxy`. */
export const receiverProxy = {
  proxy: {
    type: 'template',
    mistake: proxyMistake,
    doc: 'Proxy to the service: http://host:port or socks5://host:port, a secret with one, or none; by default that of HTTPS_PROXY and NO_PROXY in the environment of svc',
  },
} as const satisfies SettingsSpec

function proxyMistake(text: string): string | undefined {
  const url = URL.parse(text)
  if (text === 'none') return undefined
  if (url === null || !/^(?:http|socks5):$/.test(url.protocol) || url.hostname === '')
    return 'is not a proxy: write http://host:port, socks5://host:port, {env: NAME} or none'
  return url.username + url.password === ''
    ? undefined
    : 'contains an account: write {env: NAME}, with the whole URL in it'
}

/**
 * The proxy by which a receiver reaches a place; undefined for none. `written`: the setting. Throws ProbeError `internal`
 * for one that cannot be used, because another way could violate the policy of the network.
 */
export async function readProxy(
  written: Template | undefined,
  place: URL,
  files: ConfiguredFiles,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<URL | undefined> {
  const host = hostOf(place)
  const target = { secure: place.protocol === 'https:', host, port: portOf(place), loopback: isLoopbackHost(host) }
  const refuse = (origin: string): ProbeError =>
    new ProbeError('internal', `${origin} is not a proxy like http://host:port or socks5://host:port`)
  if (written === 'none') return undefined
  if (written === undefined) {
    const proxy = proxyFor(target, env)
    if (proxy?.secure) throw refuse(proxy.variable)
    return proxy && new URL(proxy.url)
  }
  const [text, origin] = written instanceof Secret ? [await written.reveal(files), written.origin] : [written, 'proxy']
  const url = typeof text === 'string' ? URL.parse(text.trim()) : null
  if (url === null || !/^(?:http|socks5):$/.test(url.protocol)) throw refuse(origin)
  return url
}

/** The `target` of a kind with a URL. An invalid URL has none. */
export function urlTarget(written: string): Target | undefined {
  const url = URL.parse(written)
  return url === null ? undefined : { host: hostOf(url), port: portOf(url) }
}

/** Declares a kind. */
export const receiverKind = <const S extends SettingsSpec>(kind: ReceiverKind<S>): AnyReceiverKind =>
  kind as unknown as AnyReceiverKind
