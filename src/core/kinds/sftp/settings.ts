import { validateFolders } from '../../folders/index.ts'
import { hostMistake, type SettingsSpec, type Values } from '../../settings/index.ts'

/** The settings for the server and the credentials. */
export const connectionSettings = {
  host: { type: 'text', observed: true, required: true, mistake: hostMistake, doc: 'Host name or address' },
  port: { type: 'integer', observed: true, default: 22, min: 1, max: 65_535, doc: 'TCP port' },
  hostKey: {
    type: 'texts',
    doc: 'Accepted fingerprints (SHA256:…) of the host key; without it, svc reports the fingerprint and does not sign in',
  },
  username: { type: 'text', doc: 'Account to sign in with, from Standard on; without it, svc does not sign in' },
  password: { type: 'secret', doc: 'Password of the account' },
  privateKey: { type: 'secret', doc: 'Private key of the account (OpenSSH or PEM), tried before the password' },
  passphrase: { type: 'secret', doc: 'Passphrase of the private key' },
} as const satisfies SettingsSpec
export type ConnectionSettings = Values<typeof connectionSettings>

/** Why the settings cannot be combined, or undefined. */
export function validateSftp(settings: ConnectionSettings & Parameters<typeof validateFolders>[0]): string | undefined {
  const { hostKey, username, password, privateKey, passphrase } = settings
  if (hostKey?.some((fingerprint) => !/^SHA256:[A-Za-z0-9+/]{43}=?$/.test(fingerprint))) {
    return 'hostKey is not a fingerprint: write SHA256: and 43 characters, as ssh-keygen -lf prints it'
  }
  const credential = password ?? privateKey
  if (credential !== undefined && username === undefined) return 'password and privateKey require a username'
  if (credential === undefined && username !== undefined) return 'username requires a password or a privateKey'
  if (passphrase !== undefined && privateKey === undefined) return 'passphrase requires a privateKey'
  return validateFolders(settings)
}
