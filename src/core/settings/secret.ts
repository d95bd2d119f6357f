import { Fault } from '../errors.ts'
import { ProbeError } from '../probe-error.ts'
import { Secret } from './setting.ts'

/** Where a monitor connects to, as configured. */
export type Target = {
  readonly host?: string | undefined
  readonly port?: number | undefined
  /** What tells one database of a server from another. */
  readonly database?: string | undefined
}

/** What a keychain keeps under a name: a secret and the only place that it may be sent to. */
export type KeptSecret = { readonly secret: string; readonly host: string; readonly port: number }

/** Where secrets are looked for. */
export type SecretSources = {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder against which a relative `{file: …}` is resolved: that of svc.yaml. */
  readonly folder: string
  /** Reads the OS keychain; undefined for a name that it does not hold. Absent: there is none to read. */
  readonly keychain?: ((name: string) => Promise<KeptSecret | undefined>) | undefined
  /** Where the monitor that the secret belongs to connects to, once its settings are read. */
  readonly target?: (() => Target | undefined) | undefined
}

/** Bytes: a key file fits, a log file named by mistake does not fill the memory. */
const maxSecret = 64 * 1024

/**
 * A secret in an environment variable. Revealing throws ProbeError `internal`, and not `auth`:
 * nothing was refused by anyone, so the next run may try again at once.
 */
export function envSecret(name: string, sources: SecretSources): Secret {
  const origin = `{env: ${name}}`
  return new Secret(origin, async () => {
    const value = sources.env[name]
    if (value === undefined) throw unread(origin, `the variable ${name} is not set`)
    if (value === '') throw unread(origin, `the variable ${name} is set but empty`)
    return value
  })
}

/** A secret in a file, read when it is used, so that a rotated one is picked up. Throws like `envSecret`. */
export function fileSecret(path: string, sources: SecretSources): Secret {
  const origin = `{file: ${path}}`
  return new Secret(origin, async () => {
    const value = await readSecret(path, sources.folder).catch((error: unknown) => {
      throw error instanceof ProbeError ? error : unread(origin, whyNot(error))
    })
    if (value === undefined) throw unread(origin, 'it is not UTF-8 text')
    if (value === '') throw unread(origin, 'the file is empty')
    return value
  })
}

/**
 * A secret in the OS keychain, which belongs to one host and port: whoever changes svc.yaml cannot have
 * it sent elsewhere. Throws like `envSecret`, for another place before anything is sent.
 */
export function keychainSecret(name: string, sources: SecretSources): Secret {
  const origin = `{keychain: ${name}}`
  return new Secret(origin, async () => {
    const target = sources.target?.()
    if (target?.host === undefined || target.port === undefined) {
      throw unread(origin, 'it belongs to a host and port, and this monitor connects to none; use {file: /path}')
    }
    const place = hostAndPort(target.host, target.port)
    if (!sources.keychain) throw unread(origin, 'no keychain is read here; use {file: /path}')
    const stored = await sources.keychain(name).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error
      throw new ProbeError('internal', `${origin}: ${error.message}`, error.details.hints)
    })
    // A line made for pasting: a host with other characters in it is not put there.
    const command = plainHost.test(target.host.replace(/^\[(.*)\]$/, '$1'))
      ? `svc secrets set ${name} --for ${place}`
      : 'svc secrets set'
    if (!stored) throw unread(origin, `nothing is kept under that name: ${command}`)
    const bound = hostAndPort(stored.host, stored.port)
    if (bound === place) return stored.secret
    throw unread(
      origin,
      `it is kept for ${bound}, and this monitor asks ${place}: nothing was sent. If that is right: ${command}`,
    )
  })
}

/** What names and addresses are made of. Much else ends a URL's host or falls out of it, and is part of a name here. */
const plainHost = /^[\p{L}\p{M}\p{N}._:。．｡-]+$/u

/**
 * A host and port as one text that is the same for every spelling of the same host: letter case, IDN, IPv6. A name
 * server is asked for `a.internal/.b.example` as it stands, so that is never taken for `a.internal`.
 */
export function hostAndPort(host: string, port: number): string {
  const bare = host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
  const written = bare.includes(':') ? `[${bare}]` : bare
  const url = plainHost.test(bare) ? URL.parse(`http://${written}`) : null
  return `${url?.hostname ?? written.toLowerCase()}:${port}`
}

async function readSecret(path: string, folder: string): Promise<string | undefined> {
  const [{ constants, open }, paths] = await Promise.all([import('node:fs/promises'), import('node:path')])
  // Non-blocking, so that a named pipe cannot hold the run up; links are followed, as mounts use them.
  const file = await open(paths.resolve(folder, path), constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw unread(`{file: ${path}}`, 'it is not a regular file')
    const buffer = Buffer.alloc(maxSecret + 1)
    let length = 0
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    if (length > maxSecret) throw unread(`{file: ${path}}`, 'it is larger than 64 KiB: is it the right file?')
    return decode(buffer.subarray(0, length))
  } finally {
    await file.close()
  }
}

/** Text without the one newline that editors and `echo` put at the end; undefined when it is not UTF-8. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
  } catch {
    return undefined
  }
}

const unread = (origin: string, why: string): ProbeError =>
  new ProbeError('internal', `the secret ${origin} cannot be read: ${why}`)

function whyNot(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'this account may not read the file'
  if (code === 'EISDIR') return 'it is a folder'
  return typeof code === 'string' ? code : 'reading it failed'
}
