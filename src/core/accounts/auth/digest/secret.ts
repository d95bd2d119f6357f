import { createHash } from 'node:crypto'
import type { DigestSecret } from '../../../store/index.ts'

/** The realm of every secret. A client computes it into its digest, so changing it would invalidate all secrets. */
export const realm = 'svc'

/** The algorithms of RFC 7616 that are accepted, the strongest first. Each `-sess` variant is refused. */
export const algorithms = {
  'SHA-256': { hash: 'sha256', length: 64 },
  MD5: { hash: 'md5', length: 32 },
} as const
export type Algorithm = keyof typeof algorithms

/** H(text) of an algorithm, in lower-case hex. */
export const hashed = (algorithm: Algorithm, text: string): string =>
  createHash(algorithms[algorithm].hash).update(text, 'utf8').digest('hex')

/** The secret that signs a user in by digest (A12): whoever has it can sign in, without the password. */
export function digestSecret(userName: string, password: string, forAdmin: boolean): DigestSecret {
  const text = `${userName}:${realm}:${password}`
  return { realm, sha256: hashed('SHA-256', text), md5: hashed('MD5', text), forAdmin }
}

/** The response that the client computes from its secret (RFC 7616, 3.4.1, with qop=auth). */
export function digestResponse(
  algorithm: Algorithm,
  secret: string,
  proof: {
    readonly method: string
    readonly uri: string
    readonly nonce: string
    readonly nc: string
    readonly cnonce: string
  },
): string {
  const { method, uri, nonce, nc, cnonce } = proof
  return hashed(algorithm, `${secret}:${nonce}:${nc}:${cnonce}:auth:${hashed(algorithm, `${method}:${uri}`)}`)
}
