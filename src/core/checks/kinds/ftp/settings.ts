import { type TrustValues, trustSettings, unusedTrust } from '../../../base/net/trust.ts'
import { hostMistake, lineMistake, type SettingsSpec } from '../../../base/settings/index.ts'
import { certificateSetting, latencySetting } from '../../engine/index.ts'
import { validateFolders } from '../../folders/index.ts'

/** The settings for opening, signing in and testing a session; http-steps declares the same for its FTP steps. */
export const ftpSettings = {
  host: { type: 'text', observed: true, required: true, mistake: hostMistake, doc: 'Host name or address' },
  port: {
    type: 'integer',
    observed: true,
    min: 1,
    max: 65_535,
    doc: 'TCP port; by default 21, or 990 with `tls: implicit`',
  },
  tls: {
    type: 'choice',
    values: ['explicit', 'implicit', 'off'],
    default: 'explicit',
    doc: '`explicit`: AUTH TLS; `implicit`: TLS from the first byte; `off`: no encryption',
  },
  ...trustSettings,
  username: {
    type: 'text',
    mistake: lineMistake,
    doc: 'Account to sign in with, from Standard on; without it, svc does not sign in',
  },
  password: { type: 'secret', form: 'line', doc: 'Password of the account' },
  insecureFtp: { type: 'flag', default: false, doc: 'With `tls: off`, send the password to other machines too' },
  latency: latencySetting({ warn: 1_000, limit: 3_000 }, 'How long each may take: the banner, the sign-in, a listing'),
  certificate: certificateSetting,
  passive: {
    type: 'choice',
    values: ['both', 'EPSV', 'PASV'],
    default: 'both',
    doc: 'Passive modes that clients use; each is tested separately',
  },
  dataHosts: {
    type: 'texts',
    doc: 'Addresses that PASV may return besides that of the control connection; nothing is sent to any other',
  },
} as const satisfies SettingsSpec

export type TlsMode = (typeof ftpSettings.tls.values)[number]

const defaultPorts = { explicit: 21, implicit: 990, off: 21 } as const
export const ftpPortOf = ({ port, tls }: { readonly port?: number | undefined; readonly tls: TlsMode }): number =>
  port ?? defaultPorts[tls]

type FtpValues = Parameters<typeof validateFolders>[0] &
  TrustValues & {
    readonly tls: TlsMode
    readonly password?: unknown
  }

/** Why the settings cannot be combined, or undefined. */
export function validateFtp(settings: FtpValues): string | undefined {
  if (settings.password !== undefined && settings.username === undefined) return 'password needs a username'
  const unused = settings.tls === 'off' ? unusedTrust(settings, 'TLS, and tls is off') : undefined
  return unused ?? validateFolders(settings)
}
