import { resolve } from 'node:path'
import { Fault } from '../errors.ts'
import { fileProblem } from '../file-errors.ts'
import type { ConfiguredFiles } from '../files/index.ts'
import { bareHost } from '../loopback.ts'
import { ProbeError } from '../probe-error.ts'
import { Secret } from './setting.ts'

/** Where a monitor connects to, as configured. */
export type Target = {
  readonly host?: string | undefined
  readonly port?: number | undefined
  /** Distinguishes the databases of one server. */
  readonly database?: string | undefined
}

/** An entry of the keychain: a secret, and the only place that it may be sent to. */
export type KeptSecret = { readonly secret: string; readonly host: string; readonly port: number }

/** Where secrets are read from. */
export type SecretSources = {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder of svc.yaml, to which a relative `{file: …}` refers. */
  readonly folder: string
  /** Reads the OS keychain. Returns undefined for an unknown name. Absent when there is no keychain. */
  readonly keychain?: ((name: string) => Promise<KeptSecret | undefined>) | undefined
  /** Where the secret's monitor connects to, once its settings have been read. */
  readonly target?: (() => Target | undefined) | undefined
}

/** Bytes. A key file fits; a log file named by mistake must not fill the memory. */
const maxSecret = 64 * 1024

/**
 * A secret in an environment variable. Revealing throws ProbeError `internal` and not `auth`: no peer has refused
 * anything, so the next run may try again at once.
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

/** A secret in a file. It is read at each use, so that a rotated one takes effect. Throws like `envSecret`. */
export function fileSecret(path: string, sources: SecretSources): Secret {
  const origin = `{file: ${path}}`
  return new Secret(origin, async (files) => {
    const value = await readSecret(path, sources.folder, files).catch((error: unknown) => {
      throw error instanceof ProbeError ? error : unread(origin, `it ${secretProblem(error)}`)
    })
    if (value === undefined) throw unread(origin, 'it is not UTF-8 text')
    if (value === '') throw unread(origin, 'the file is empty')
    return value
  })
}

/**
 * A secret in the OS keychain. It is bound to one host and port, so that a change of svc.yaml cannot send it elsewhere.
 * Throws like `envSecret`; for another place, it throws before anything is sent.
 */
export function keychainSecret(name: string, sources: SecretSources): Secret {
  const origin = `{keychain: ${name}}`
  return new Secret(origin, async () => {
    const target = sources.target?.()
    if (target?.host === undefined || target.port === undefined) {
      throw unread(origin, 'it is bound to a host and port, but this monitor connects to none; use {file: /path}')
    }
    const place = hostAndPort(target.host, target.port)
    if (!sources.keychain) throw unread(origin, 'no keychain is available here; use {file: /path}')
    const stored = await sources.keychain(name).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error
      throw new ProbeError('internal', `${origin}: ${error.message}`, error.details.hints)
    })
    // Users paste this line into a shell, so it contains only plain hosts.
    const command = plainHost().test(bareHost(target.host))
      ? `svc secrets set ${name} --for ${place}`
      : 'svc secrets set'
    if (!stored) throw unread(origin, `the keychain has no secret of that name: ${command}`)
    const bound = hostAndPort(stored.host, stored.port)
    if (bound === place) return stored.secret
    throw unread(
      origin,
      `it is bound to ${bound}, but this monitor connects to ${place}: nothing was sent. If that is intended: ${command}`,
    )
  })
}

/**
 * The characters of names and addresses. Many others end a URL's host or are dropped from it, but would be part of the
 * name here.
 */
const plainHost = () => /^[\p{L}\p{M}\p{N}._:。．｡-]+$/u

/**
 * A host and port as one text, the same for every spelling of the host: letter case, IDN, IPv6. A name server gets
 * `a.internal/.b.example` unchanged, so it never counts as `a.internal`.
 *
 * @example
 * ```ts
 * hostAndPort('::1', 5432) // '[::1]:5432'
 * ```
 */
export function hostAndPort(host: string, port: number): string {
  const bare = bareHost(host).replace(/\.$/, '')
  const written = bare.includes(':') ? `[${bare}]` : bare
  const url = plainHost().test(bare) ? URL.parse(`http://${written}`) : null
  return `${url?.hostname ?? written.toLowerCase()}:${port}`
}

async function readSecret(path: string, folder: string, files: ConfiguredFiles): Promise<string | undefined> {
  // Links are followed, because mounts use them.
  const { content } = await files('read', { path: resolve(folder, path), maxBytes: maxSecret })
  return decode(Buffer.from(content, 'base64'))
}

/** The text without the final newline that editors and `echo` add. Undefined when it is not UTF-8. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
  } catch {
    return undefined
  }
}

const unread = (origin: string, why: string): ProbeError =>
  new ProbeError('internal', `the secret ${origin} cannot be read: ${why}`)

const secretProblem = (error: unknown): string =>
  (error as { code?: unknown } | null)?.code === 'EFBIG'
    ? 'is larger than 64 KiB: is it the right file?'
    : fileProblem(error)
