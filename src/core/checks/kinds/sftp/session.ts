import type { Client, FileEntryWithStats } from 'ssh2'
import { hostPort } from '../../../base/net/connect.ts'
import { createRedactor, noRedaction, type Redact } from '../../../base/net/text.ts'
import { hostMistake, type SettingsSpec, type Values } from '../../../base/settings/index.ts'
import { isWaiting } from '../../../base/system/files.ts'
import { PeerSocket } from '../../database/index.ts'
import { type AddressTurn, type CheckContext, type Connection, includes } from '../../engine/index.ts'
import {
  type Backlog,
  type DatedFile,
  type Files,
  type FolderConnection,
  maxEntries,
  type Trip,
  validateFolders,
} from '../../folders/index.ts'
import { Sftp } from './files.ts'
import { type Credentials, credentialsOf, type Greeting, greeting, type Handshake, handshake, isSsh } from './ssh.ts'

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
  privateKey: {
    type: 'secret',
    form: 'private key',
    doc: 'Private key of the account (OpenSSH or PEM), tried before the password',
  },
  passphrase: { type: 'secret', doc: 'Passphrase of the private key' },
} as const satisfies SettingsSpec
type ConnectionSettings = Values<typeof connectionSettings>

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

/** Maximum bytes read per session; enough for the largest round trip and the largest listings. */
const maxBytes = 32 * 1024 * 1024
/** Maximum number of entries counted in the first listing. */
const maxListed = 1_000

type Account = { readonly credentials: Credentials | undefined; readonly redact: Redact }

/** Reads the credentials before connecting: without them, a connection would be useless. */
export async function readAccount(settings: ConnectionSettings, context: CheckContext): Promise<Account> {
  if (settings.username === undefined || !includes(context.mode, 'Standard'))
    return { credentials: undefined, redact: noRedaction }
  context.step('sign-in', hostPort(settings.host, settings.port))
  const { credentials, secrets } = await credentialsOf(settings, context.files)
  return { credentials, redact: createRedactor(secrets) }
}

/** An SSH connection at one address. Its checks advance it: the key exchange with the sign-in, SFTP, the folders. */
export class SftpSession implements Connection, FolderConnection {
  readonly address: string
  readonly greeting: Greeting
  trip?: Trip
  readonly #at: AddressTurn
  readonly #socket: PeerSocket
  readonly #context: CheckContext
  readonly #account: Account
  #client: Client | undefined
  #signIn: (Pick<Handshake, 'cause'> & { readonly ms: number }) | undefined
  #sftp: Sftp | undefined
  /** The working folder after the sign-in. */
  #home: string | undefined

  private constructor(
    at: AddressTurn,
    socket: PeerSocket,
    context: CheckContext,
    account: Account,
    serverGreeting: Greeting,
  ) {
    this.address = at.address
    this.greeting = serverGreeting
    this.#at = at
    this.#socket = socket
    this.#context = context
    this.#account = account
  }

  /** Connects and reads the first line of the server. Throws a socket's error. */
  static readonly open = async (
    at: AddressTurn,
    _: ConnectionSettings,
    context: CheckContext,
    account: Account,
  ): Promise<SftpSession> => {
    const start = context.now()
    const socket = await PeerSocket.reach(at.ip, at.port, at.signal, maxBytes)
    const destroy = (): void => void socket.destroy()
    at.signal.addEventListener('abort', destroy, { once: true })
    socket.once('close', () => at.signal.removeEventListener('abort', destroy))
    try {
      return new SftpSession(at, socket, context, account, await greeting(socket, at.address, context, start))
    } catch (error) {
      socket.destroy()
      throw error
    }
  }

  get usable(): boolean {
    return this.#sftp?.usable ?? !this.#socket.destroyed
  }

  get isSsh(): boolean {
    return isSsh(this.greeting)
  }

  /** True if the server has proved a known key; only then does svc send the user name. */
  get isServerKnown(): boolean {
    return this.#signIn !== undefined
  }

  get isSignedIn(): boolean {
    return this.#client !== undefined
  }

  get hasFolders(): boolean {
    return this.#home !== undefined
  }

  /**
   * Exchanges keys and signs in if the server's key is one of `knownKeys`; `signIn` reports the outcome. Throws
   * ProbeError, or a socket's error, if the server presents no key.
   */
  async exchangeKeys(knownKeys: readonly string[], { now, step }: CheckContext) {
    const { credentials, redact } = this.#account
    const start = now()
    const { hostKey, client, cause } = await handshake(this.#socket, this.#at, knownKeys, credentials, redact, step)
    this.#client = client
    if (client !== undefined || cause !== undefined) this.#signIn = { cause, ms: now() - start }
    return { address: this.address, ...hostKey }
  }

  /**
   * The outcome of the sign-in in `exchangeKeys`; `ms` includes both. Throws ProbeError if the server refused the
   * sign-in.
   */
  async signIn(username: string) {
    const { cause, ms = 0 } = this.#signIn ?? {}
    if (cause !== undefined) throw cause
    return { address: this.address, username: this.#account.redact(username), ms }
  }

  /** Starts SFTP and lists the working folder. Throws ProbeError. */
  async listHome() {
    if (this.#client === undefined) throw new Error('nobody has signed in to the SSH server')
    const { now } = this.#context
    const { redact } = this.#account
    const start = now()
    this.#sftp = await Sftp.start(this.#client, this.address, this.#context, redact)
    this.#home = await this.#sftp.realpath('.')
    const { entries, more } = await this.#sftp.list(this.#home, maxListed)
    return { folder: redact(this.#home), entries: entries.length, more, ms: now() - start }
  }

  async backlog(folder: string, ending: string): Promise<Backlog> {
    const { sftp, path } = this.#folder(folder)
    const { entries, more } = await sftp.list(path, maxEntries)
    return { ...backlogOf(entries, ending, this.#context.date(), this.#account.redact), more }
  }

  async files(folder: string | undefined): Promise<Files> {
    const { sftp, path } = this.#folder(folder)
    return sftp.files(path, maxEntries)
  }

  #folder(folder: string | undefined): { readonly sftp: Sftp; readonly path: string } {
    const [sftp, home] = [this.#sftp, this.#home]
    if (sftp === undefined || home === undefined) throw new Error('SFTP has not begun')
    if (folder === undefined) return { sftp, path: home }
    return { sftp, path: folder.startsWith('/') ? folder : `${home.replace(/(?<!\/)\/+$/, '')}/${folder}` }
  }

  close(): void {
    if (this.hasFolders && this.usable) this.#client?.end()
    this.#socket.destroy()
  }
}

const kindMask = 0o170_000
const regularFile = 0o100_000

function backlogOf(
  entries: readonly FileEntryWithStats[],
  ending: string,
  now: Date,
  redact: Redact,
): Omit<Backlog, 'more'> {
  // An entry without a file type counts as a file: it may be the one that waits.
  const files = entries.filter(({ filename, attrs }) => {
    const mode: number | undefined = attrs.mode
    return isWaiting(filename, ending) && (mode === undefined || (mode & kindMask) === regularFile)
  })
  let oldest: DatedFile | undefined
  for (const { filename, attrs } of files) {
    const seconds: number | undefined = attrs.mtime
    if (seconds === undefined) continue
    const at = new Date(seconds * 1_000)
    const ms = now.getTime() - at.getTime()
    if (oldest === undefined || ms > oldest.ms) oldest = { name: redact(filename), ms, at }
  }
  return { files: files.length, oldest, undated: files.length > 0 && oldest === undefined }
}
