import { folderContradiction, folderSettings } from '../../folders/index.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'

/** What svc.yaml may say of an sftp monitor. */
export const sftpSettings = {
  host: { type: 'text', required: true, doc: 'Host name or address' },
  port: { type: 'integer', default: 22, min: 1, max: 65_535, doc: 'TCP port' },
  hostKey: {
    type: 'texts',
    doc: 'Fingerprints (SHA256:…) of the keys that the server may show; without it nobody signs in, and the one seen is told',
  },
  username: { type: 'text', doc: 'Account to sign in with, from Standard on; without it nobody signs in' },
  password: { type: 'secret', doc: 'Password of the account' },
  privateKey: { type: 'secret', doc: 'Private key of the account (OpenSSH or PEM), tried before the password' },
  passphrase: { type: 'secret', doc: 'Passphrase of the private key' },
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long each may take: the banner, the sign-in, the listing',
  },
  ...folderSettings,
} as const satisfies SettingsSpec
export type SftpSettings = Values<typeof sftpSettings>

/** Why the settings cannot be used together, or undefined. */
export function sftpContradiction(given: SftpSettings): string | undefined {
  const wrong = given.hostKey?.find((print) => !/^SHA256:[A-Za-z0-9+/]{43}=?$/.test(print))
  if (wrong !== undefined) {
    return 'hostKey is no fingerprint: write SHA256: and 43 characters, as ssh-keygen -lf prints it'
  }
  const credential = given.password ?? given.privateKey
  if (credential !== undefined && given.username === undefined) return 'password and privateKey need a username'
  if (credential === undefined && given.username !== undefined) return 'username needs a password or a privateKey'
  if (given.passphrase !== undefined && given.privateKey === undefined) return 'passphrase needs a privateKey'
  return folderContradiction(given)
}
