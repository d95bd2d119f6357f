import { isIP } from 'node:net'
import type { PeerCertificate, TLSSocket } from 'node:tls'
import type { ConfiguredFiles } from '../../base/files/index.ts'
import { isLocal } from '../../base/net/addresses.ts'
import { pinOf, pinProblem } from '../../base/net/certificates.ts'
import { sanitize } from '../../base/net/text.ts'
import { pinnedOf, readTrust, trustSettings, unusedTrust } from '../../base/net/trust.ts'
import { hostOf, portOf } from '../../base/net/url.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { Secret, SettingsSpec, Values } from '../../base/settings/index.ts'

/** The settings for the encryption of a database connection. */
export const tlsSetting = {
  type: 'group',
  doc: 'TLS for the connection',
  fields: {
    mode: {
      type: 'choice',
      values: ['auto', 'off', 'verify'],
      default: 'auto',
      doc: '`verify`: TLS with a trusted certificate; `off`: no TLS; `auto`: off for loopback without a fingerprint or a client certificate, otherwise verify',
    },
    ...trustSettings,
    caFile: { type: 'text', file: 'certificates', doc: 'PEM file of CAs to trust instead of the bundled ones' },
  },
} as const satisfies SettingsSpec[string]
export type TlsSetting = Values<(typeof tlsSetting)['fields']>

/** Why the settings of `tls` cannot be combined, or undefined. */
export const tlsProblem = ({ tls }: { readonly tls?: TlsSetting | undefined }): string | undefined =>
  tls?.mode === 'off'
    ? unusedTrust({ fingerprint: tls.fingerprint, clientCert: tls.clientCert }, 'TLS, and tls is off')
    : undefined

export type DatabaseTarget = {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
  readonly password: Secret | undefined
  readonly tls: TlsSetting
}

type TargetSettings = {
  readonly url: string
  readonly password?: Secret | undefined
  readonly tls?: TlsSetting | undefined
}

/** The mode of `tls` for each `sslmode` in a URL: the words that the URL of a store has, too. */
const sslmodes = { disable: 'off', 'verify-full': 'verify' } as const
const isSslmode = (text: string): text is keyof typeof sslmodes => Object.hasOwn(sslmodes, text)

/**
 * The target that a URL and the settings beside it name. `setting`: the one with the URL. Throws ProbeError `internal` for an
 * unusable one.
 */
export function databaseTarget(settings: TargetSettings, defaultPort: number, setting = 'url'): DatabaseTarget {
  const url = new URL(settings.url)
  const invalid = (what: string): ProbeError => new ProbeError('internal', `the setting ${setting} ${what}`)
  if (url.username === '') throw invalid('has no user: write it like scheme://user@host:port/database')
  const parameter = [...url.searchParams.keys()].find((name) => name !== 'sslmode')
  if (parameter !== undefined) {
    const way = /^(?:host|socket(?:path)?)$/i.test(parameter)
      ? 'svc connects over TCP, so write the host after the @'
      : 'configure encryption with tls:'
    throw invalid(`has the unsupported parameter ${sanitize(parameter, 32)}: ${way}`)
  }
  const { tls = { mode: 'auto' } } = settings
  const sslmode = url.searchParams.get('sslmode') ?? undefined
  if (sslmode !== undefined && !isSslmode(sslmode))
    throw invalid('has an unsupported sslmode: write verify-full or disable, or remove it and configure tls:')
  const mode = sslmode === undefined ? tls.mode : sslmodes[sslmode]
  if (tls.mode !== 'auto' && tls.mode !== mode) throw invalid('has an sslmode that contradicts tls: remove one of them')
  const decode = (part: string): string => {
    try {
      return decodeURIComponent(part)
    } catch {
      throw invalid('has a "%" that is not followed by two hexadecimal digits')
    }
  }
  return {
    host: hostOf(url),
    port: portOf(url, defaultPort),
    user: decode(url.username),
    database: decode(url.pathname.slice(1)),
    password: settings.password,
    tls: { ...tls, mode },
  }
}

export type TlsChoice = {
  /** The name for SNI. Absent for an IP address. */
  readonly servername?: string
  readonly ca?: string
  /** PEM of the client certificate and its key. */
  readonly cert?: string
  readonly key?: string
  /** False with a pinned certificate: `whyUnpinned` then decides, before anything secret is sent. */
  readonly rejectUnauthorized: boolean
  readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined
}

/** How to encrypt the connection to an address, or undefined for no encryption. */
export async function tlsChoice(
  target: DatabaseTarget,
  ip: string,
  files: ConfiguredFiles,
): Promise<TlsChoice | undefined> {
  const { mode, servername } = target.tls
  const { ca, pinned, client } = await readTrust(target.tls, files)
  if (mode === 'off' || (mode === 'auto' && pinned.length === 0 && !client && isLocal(ip))) return undefined
  const name = servername ?? target.host
  const { checkServerIdentity } = process.getBuiltinModule('node:tls')
  return {
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ...(ca === undefined ? {} : { ca }),
    ...client?.pem,
    rejectUnauthorized: pinned.length === 0,
    checkServerIdentity: (_, certificate) => (pinned.length > 0 ? undefined : checkServerIdentity(name, certificate)),
  }
}

/** The PEM texts of a choice, for drivers that take them in options of their own. */
export const pemOf = ({ ca, cert, key }: TlsChoice): { ca?: string; cert?: string; key?: string } => ({
  ...(ca === undefined ? {} : { ca }),
  ...(cert === undefined || key === undefined ? {} : { cert, key }),
})

/** Why the certificate of a new TLS connection is not the pinned one. Undefined when it is, or when none is pinned. */
export function whyUnpinned(socket: TLSSocket, { tls }: DatabaseTarget, address: string): ProbeError | undefined {
  const pinned = pinnedOf(tls.fingerprint ?? [])
  if (pinned.length === 0) return undefined
  // Not `getPeerX509Certificate`, which leaves nothing for the next reader of the chain.
  const { fingerprint256: fingerprint } = socket.getPeerCertificate()
  const why = pinProblem({ address, pin: pinOf(fingerprint, pinned), fingerprint })
  return why === undefined ? undefined : new ProbeError('tls', why)
}

/** The remedy when a server offers no TLS. */
export const withoutTls = 'if the network is trusted, tls: {mode: off} connects without TLS'
