import { createHash } from 'node:crypto'
import type { AnyAuthMethod, AuthenticationType, Client, ParsedKey } from 'ssh2'
import type { ConfiguredFiles } from '../../../base/files/index.ts'
import type { PeerAddress } from '../../../base/net/addresses.ts'
import { quote, type Redact, sanitize } from '../../../base/net/text.ts'
import { ProbeError, RefusedSignInError, refusedSignIn } from '../../../base/probe-error.ts'
import type { Secret } from '../../../base/settings/index.ts'
import { listen } from '../../assert/conversation.ts'
import type { PeerSocket } from '../../database/index.ts'
import { loadDriver } from '../../drivers/index.ts'
import type { CheckContext } from '../../engine/index.ts'

/** The identification line with which an SSH server begins (RFC 4253, 4.2), as far as it was received. */
export type Greeting = Awaited<ReturnType<typeof greeting>>

/** Maximum bytes up to the end of that line, including any text before it. */
const maxGreeting = 8 * 1024
/** Milliseconds reserved before the deadline, so that svc can report what did not answer. */
const reserveMs = 150

/**
 * A built-in pattern that always terminates. A pattern of svc.yaml would run under a time limit, which could expire on
 * a busy machine.
 */
const isWhole = (received: Buffer): boolean => /^SSH-[^\r\n\u2028\u2029]*\r?\n/m.test(received.toString('latin1'))

/** Reads the server's first line, and pushes it back for the driver. */
export async function greeting(socket: PeerSocket, address: string, context: CheckContext, start: number) {
  const ms = Math.max(1, context.msLeft() - reserveMs, context.msLeft() / 2)
  const { bytes, ended } = await listen(socket, isWhole, maxGreeting, ms)
  const line = /^SSH-(\d+\.\d+)-([^\r\n]*)/m.exec(bytes.toString('utf8'))
  if (ended === 'met') socket.unshift(bytes)
  const [version, software] = line?.slice(1) ?? []
  return {
    address,
    ended,
    banner: quote(line?.[0] ?? bytes, 100),
    version,
    /** Name and version of the server's software. */
    software: software && sanitize(software, 100),
    ms: context.now() - start,
  }
}

/** A version 2 server that also supports version 1 says 1.99. */
export const isSsh = ({ ended, version }: Pick<Greeting, 'ended' | 'version'>): boolean =>
  ended === 'met' && (version === '2.0' || version === '1.99')

/** The key that a server presents. The server proves that it owns the key only if the key is known. */
export type HostKey = { readonly type: string; readonly fingerprint: string }

export function hostKeyOf(blob: Buffer): HostKey {
  const length = blob.length < 4 ? 0 : blob.readUInt32BE(0)
  const type = sanitize(blob.subarray(4, 4 + Math.min(length, 64)), 64)
  return { type, fingerprint: `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=$/, '')}` }
}

export type Credentials = {
  readonly username: string
  readonly password: string | undefined
  readonly key: ParsedKey | undefined
}

type CredentialSettings = {
  readonly username?: string | undefined
  readonly password?: Secret | undefined
  readonly privateKey?: Secret | undefined
  readonly passphrase?: Secret | undefined
}

/**
 * Reads the secrets. Throws ProbeError `internal` for a key that cannot be used; the message never contains the key.
 */
export async function credentialsOf(
  settings: CredentialSettings,
  files: ConfiguredFiles,
): Promise<{ readonly credentials: Credentials; readonly secrets: readonly string[] }> {
  const password = await settings.password?.reveal(files)
  const pem = await settings.privateKey?.reveal(files)
  const passphrase = await settings.passphrase?.reveal(files)
  const secrets = [password, passphrase].filter((secret) => secret !== undefined)
  const username = settings.username ?? ''
  if (pem === undefined) return { credentials: { username, password, key: undefined }, secrets }
  const ssh2 = await loadSsh2()
  const key = ssh2.utils.parseKey(`${pem}\n`, passphrase)
  const origin = settings.privateKey?.origin
  if (key instanceof Error) {
    const locked = /passphrase|encrypted|decrypt|integrity/i.test(key.message)
    const why = locked ? 'its passphrase is missing or wrong' : 'it is not a private key in OpenSSH or PEM format'
    throw new ProbeError('internal', `the private key ${origin} cannot be used: ${why}`)
  }
  if (!key.isPrivateKey())
    throw new ProbeError('internal', `${origin} is a public key; privateKey requires the private key`)
  return { credentials: { username, password, key }, secrets }
}

export const loadSsh2 = async () => loadDriver('sftp')

/** The outcome of the key exchange and the sign-in. */
export type Handshake = {
  readonly hostKey: HostKey
  /**
   * The client after the sign-in; undefined if the sign-in failed, or if the server's key is unknown, in which case no
   * credentials were sent.
   */
  readonly client?: Client
  /** Why the sign-in at a server with a known key failed: ProbeError `auth`, or another error. */
  readonly cause?: unknown
}

/**
 * Exchanges keys and, with credentials, signs in if the server's key is one of `fingerprints`. Without credentials it
 * stops as soon as the server has proved that it owns the key. Throws ProbeError, or a socket's error, if
 * the connection fails before the server's key is rejected or the sign-in starts.
 */
export async function handshake(
  socket: PeerSocket,
  target: PeerAddress,
  fingerprints: readonly string[],
  credentials: Credentials | undefined,
  redact: Redact,
  step: (check: string) => void,
): Promise<Handshake> {
  const ssh2 = await loadSsh2()
  const client = new ssh2.Client()
  const username = credentials?.username ?? ''
  let hostKey: HostKey | undefined
  const auth = credentials && authentication(credentials)
  return await new Promise((resolve, reject) => {
    const isKnown = (blob: Buffer): boolean => {
      hostKey = hostKeyOf(blob)
      return fingerprints.some((one) => one.replace(/=$/, '') === hostKey?.fingerprint)
    }
    let refusedKey = false
    const failed = (cause: unknown): void => {
      if (hostKey === undefined || !(refusedKey || auth?.started())) reject(cause)
      else resolve(refusedKey ? { hostKey } : { hostKey, cause })
    }
    client.on('error', (error: Error) =>
      failed(sshFault(error, { target, redact, username, methods: auth?.methods() ?? [] })),
    )
    client.once('ready', () => {
      if (hostKey) resolve({ client, hostKey })
    })
    client.once('close', () => {
      const during = auth?.started() ? 'the sign-in' : 'the key exchange'
      failed(new ProbeError('protocol', `${target.address} closed the connection during ${during}`))
    })
    client.connect({
      sock: socket,
      username,
      // The monitor's own deadline ends the handshake.
      readyTimeout: 0,
      hostVerifier: (blob: Buffer) => {
        refusedKey = !isKnown(blob)
        return !refusedKey
      },
      authHandler: (left, _, next) => {
        if (auth === undefined) {
          if (hostKey) resolve({ hostKey })
          client.destroy()
          return
        }
        if (!auth.started()) step('sign-in')
        next(auth.next(left) as AnyAuthMethod)
      },
    })
  })
}

/** Tries each configured credential once, and only with a method that the server offers. */
function authentication({ username, password, key }: Credentials) {
  const methods: string[] = []
  let started = false
  const keyboard = (): AnyAuthMethod => ({
    type: 'keyboard-interactive',
    username,
    prompt: (_name, _instructions, _language, prompts, finish) => {
      const [only] = prompts
      // Answers only a single prompt without echo, with the password; answers no other prompts.
      const answer = prompts.length === 1 && only?.echo === false && !methods.includes('answered')
      if (answer) methods.push('answered')
      finish(answer ? [password ?? ''] : [])
    },
  })
  return {
    started: () => started,
    methods: () => methods.filter((one) => one !== 'answered'),
    next: (left: readonly AuthenticationType[] | null): AnyAuthMethod | false => {
      // The first attempt has no credential: its refusal lists the methods that the server offers.
      if (!started) {
        started = true
        return { type: 'none', username }
      }
      const can = (type: AuthenticationType): boolean => !methods.includes(type) && (left ?? []).includes(type)
      const use = (type: AuthenticationType, method: AnyAuthMethod): AnyAuthMethod => {
        methods.push(type)
        return method
      }
      if (key && can('publickey')) return use('publickey', { type: 'publickey', username, key })
      if (password === undefined || methods.includes('password')) return false
      if (can('password')) return use('password', { type: 'password', username, password })
      return can('keyboard-interactive') ? use('keyboard-interactive', keyboard()) : false
    },
  }
}

type At = {
  readonly target: PeerAddress
  readonly redact: Redact
  readonly methods: readonly string[]
  readonly username: string
}

/** Classifies an error of the driver or of the server. */
function sshFault(error: Error, { target, redact, methods, username }: At): unknown {
  if (error instanceof ProbeError) return error
  const { level, code, message } = error as Error & { readonly level?: unknown; readonly code?: unknown }
  const { address } = target
  const who = quote(redact(username), 64)
  const reason = sanitize(redact(message), 200)
  if (level === 'client-authentication' || (methods.length > 0 && /authentication/i.test(message))) {
    if (methods.length === 0) return refusedSignIn(address, who, 'it offers none of the configured methods')
    const how = `by ${methods.join(' and ')}`
    return new RefusedSignInError(`${address} refused the sign-in of ${who} ${how}`, `sign-in ${how}`)
  }
  if (level === 'client-socket' && typeof code === 'string') {
    const reset = code === 'ECONNRESET' || code === 'EPIPE'
    return reset
      ? new ProbeError(
          'protocol',
          `${address} reset the connection during the ${methods.length > 0 ? 'sign-in' : 'key exchange'}`,
        )
      : error
  }
  if (/signature verification/i.test(message)) {
    return new ProbeError(
      'tls',
      `${address} could not prove that it owns the key it presented: possibly a man in the middle`,
    )
  }
  if (/no matching/.test(message))
    return new ProbeError('protocol', `${address} and svc have no algorithm in common: ${reason}`)
  if (typeof code === 'number') return new ProbeError('protocol', `${address} closed the session: "${reason}"`)
  return new ProbeError('protocol', `${address} violates the SSH protocol`, [reason])
}
