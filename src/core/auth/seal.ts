import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** What a rotation gave: told again for a few seconds to whoever presents the same token (T4). */
export type Pair = { readonly accessToken: string; readonly refreshToken: string }

const algorithm = 'aes-256-gcm'
const saltBytes = 16
const nonceBytes = 12
const tagBytes = 16

/**
 * The pair, readable only with the token that was presented for it: the store knows that token's hash
 * alone, so what lies there is of no use to a thief of the store.
 */
export function seal(presented: string, pair: Pair): string {
  const salt = randomBytes(saltBytes)
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, keyFrom(presented, salt), nonce)
  const text = Buffer.concat([cipher.update(JSON.stringify(pair), 'utf8'), cipher.final()])
  return Buffer.concat([salt, nonce, cipher.getAuthTag(), text]).toString('base64url')
}

/** Throws for another token, and for a sealed text that was changed. */
export function unseal(presented: string, sealed: string): Pair {
  const bytes = Buffer.from(sealed, 'base64url')
  const salt = bytes.subarray(0, saltBytes)
  const nonce = bytes.subarray(saltBytes, saltBytes + nonceBytes)
  const tag = bytes.subarray(saltBytes + nonceBytes, saltBytes + nonceBytes + tagBytes)
  const decipher = createDecipheriv(algorithm, keyFrom(presented, salt), nonce, { authTagLength: tagBytes })
  decipher.setAuthTag(tag)
  const text = Buffer.concat([decipher.update(bytes.subarray(saltBytes + nonceBytes + tagBytes)), decipher.final()])
  return JSON.parse(text.toString('utf8')) as Pair
}

const keyFrom = (presented: string, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', presented, salt, 'svc refresh successor', 32))
