import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/*
 * A nonce is 6 bytes of its time in milliseconds, 10 random bytes, and 16 bytes of an HMAC over both under a key of the
 * store. Every node recognises it, and giving one to a stranger stores nothing.
 */
const timeBytes = 6
const bodyBytes = 16
const macBytes = 16
const shape = /^[A-Za-z0-9_-]{43}$/

/** Makes a nonce at a time, under the key of the store in hex. */
export function makeNonce(key: string, at: number): string {
  const body = randomBytes(bodyBytes)
  body.writeUIntBE(at, 0, timeBytes)
  return Buffer.concat([body, macOf(key, body)]).toString('base64url')
}

/** When a nonce was made. Undefined unless this store made it. */
export function nonceMadeAt(key: string, nonce: string): number | undefined {
  if (!shape.test(nonce)) return undefined
  const bytes = Buffer.from(nonce, 'base64url')
  // The last character has two bits that mean nothing, and a second spelling would be a second nonce.
  if (bytes.toString('base64url') !== nonce) return undefined
  const [body, mac] = [bytes.subarray(0, bodyBytes), bytes.subarray(bodyBytes)]
  return timingSafeEqual(mac, macOf(key, body)) ? body.readUIntBE(0, timeBytes) : undefined
}

/** The same for every challenge of this store. */
export const opaqueOf = (key: string): string => macOf(key, Buffer.from('opaque')).toString('base64url')

const macOf = (key: string, body: Buffer): Buffer =>
  createHmac('sha256', Buffer.from(key, 'hex')).update(body).digest().subarray(0, macBytes)
