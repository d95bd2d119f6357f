import type { ConfiguredFiles } from '../../../base/files/index.ts'
import { trustSettings } from '../../../base/net/trust.ts'
import { hostOf, portOf } from '../../../base/net/url.ts'
import type { Problem, SettingsSpec, Target, Values } from '../../../base/settings/index.ts'
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

/** The `target` of a kind with a URL. An invalid URL has none. */
export function urlTarget(written: string): Target | undefined {
  const url = URL.parse(written)
  return url === null ? undefined : { host: hostOf(url), port: portOf(url) }
}

/** Declares a kind. */
export const receiverKind = <const S extends SettingsSpec>(kind: ReceiverKind<S>): AnyReceiverKind =>
  kind as unknown as AnyReceiverKind
