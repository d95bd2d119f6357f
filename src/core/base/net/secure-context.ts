import type { SecureContext, SecureContextOptions } from 'node:tls'

/** The certificates, as PEM, and the protocols of a connection, of which OpenSSL makes a context. */
export type ContextOptions = Pick<SecureContextOptions, 'minVersion' | 'ciphers'> & {
  /** The trusted CAs. Undefined: those that come with Node. */
  readonly ca?: string | readonly string[] | undefined
  /** The client certificate, and its key. */
  readonly cert?: string
  readonly key?: string
}

/** A context with the bundle of a distribution takes a megabyte. */
const maxContexts = 16
const contexts = new Map<string, SecureContext>()

/**
 * The context for a connection. It is kept by the contents of the files, so that a changed file takes effect at once,
 * and without a session, so that each connection makes a full handshake. Throws the error of OpenSSL for text that it
 * cannot read.
 */
export function secureContextFor({ ca: trusted, ...options }: ContextOptions): SecureContext {
  const ca = trusted === undefined ? undefined : [trusted].flat()
  // The key stays out of it: only one key belongs to a certificate.
  const id = [options.minVersion, options.ciphers, options.cert, ca && 'only', ...(ca ?? [])].join('\0')
  const context =
    contexts.get(id) ?? process.getBuiltinModule('node:tls').createSecureContext({ ...options, ...(ca && { ca }) })
  contexts.delete(id)
  contexts.set(id, context)
  const [oldest = id] = contexts.keys()
  if (contexts.size > maxContexts) contexts.delete(oldest)
  return context
}
