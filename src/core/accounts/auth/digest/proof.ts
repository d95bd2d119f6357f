import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Authenticate } from '../../../protocol/index.ts'
import type { SignedRequest } from '../../../protocol/service/service.ts'
import { type Algorithm, algorithms, realm } from './secret.ts'

/** A name, and a value that is a token or a quoted string. Each character can be read in one way only. */
const parameter =
  /[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64})[ \t]*=[ \t]*(?:"((?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*)"|([!#$%&'*+\-.^_`|~0-9A-Za-z]+))[ \t]*(,|$)/y

/** Enough for every parameter that a client sends, with some to spare. */
const maxParameters = 20

/**
 * Reads the parameters of `Authorization: Digest` (RFC 7616, 3.4), each character of `text` being one byte as Node gives
 * header values. Names are in lower case; text in quotes is without them. Undefined for anything else, such as a
 * parameter that repeats: another reader could choose the other one.
 */
export function readParameters(text: string): ReadonlyMap<string, string> | undefined {
  const values = new Map<string, string>()
  parameter.lastIndex = 0
  for (let more = true; more; ) {
    const match = parameter.exec(text)
    if (!match || values.size === maxParameters) return undefined
    const [, name = '', quoted, token = '', end] = match
    const key = name.toLowerCase()
    if (values.has(key)) return undefined
    values.set(key, quoted === undefined ? token : quoted.replace(/\\(.)/gs, '$1'))
    more = end === ','
  }
  return values
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of UTF-8 bytes. Undefined when they are something else. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** `UTF-8''J%C3%A4s%C3%B8n` (RFC 8187), the only charset that the challenge offers. */
const extended = /^utf-8'[A-Za-z0-9-]{0,64}'((?:[!#$&+\-.^_`|~0-9A-Za-z]|%[0-9A-Fa-f]{2})+)$/i

/** The user name, from `username` or `username*`. Undefined without either, with both, and when it is not UTF-8. */
export function userNameOf(parameters: ReadonlyMap<string, string>): string | undefined {
  const [plain, encoded] = [parameters.get('username'), parameters.get('username*')]
  if (plain !== undefined) return encoded === undefined ? decoded(Buffer.from(plain, 'latin1')) : undefined
  const text = extended.exec(encoded ?? '')?.[1]
  if (text === undefined) return undefined
  const bytes = text.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return decoded(Buffer.from(bytes, 'latin1'))
}

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

/** The proof that a client presents to sign in by digest, complete and in the right form, but not yet compared. */
export type Proof = {
  readonly userName: string
  readonly algorithm: Algorithm
  readonly nonce: string
  readonly uri: string
  /** As sent; the digest contains it. */
  readonly nc: string
  readonly cnonce: string
  /** Lower-case hex, as long as the algorithm's. */
  readonly response: string
  /** Undefined where the client does not return it. */
  readonly opaque: string | undefined
}

const nc = /^[0-9a-fA-F]{8}$/
/** Graphic ASCII without quotes and colons, which separate the parts of the digest. */
const cnonce = /^[!#-9;-[\]-~]{1,256}$/
const maxName = 512

/** The six challenge fields of the body, from which the length of the response tells the algorithm (A12). */
export function proofOfBody(request: Authenticate): Proof | undefined {
  const { UserName: userName, nonce, uri, qop, nc, cnonce, response = '' } = request
  const algorithm = (Object.keys(algorithms) as Algorithm[]).find((name) => algorithms[name].length === response.length)
  return complete({ userName, algorithm, nonce, uri, qop, nc, cnonce, response, opaque: undefined })
}

/** Whether the body has any of the challenge fields. */
export const hasProof = ({ nonce, uri, response, qop, nc, cnonce }: Authenticate): boolean =>
  [nonce, uri, response, qop, nc, cnonce].some((field) => field !== undefined)

/** The parameters of `Authorization: Digest`. Undefined when they can never sign anybody in. */
export function proofOfHeader({ digest = '' }: SignedRequest): Proof | undefined {
  const parameters = readParameters(digest)
  if (!parameters || parameters.get('realm') !== realm) return undefined
  if ((parameters.get('userhash') ?? 'false').toLowerCase() !== 'false') return undefined
  // Without the parameter, a client means MD5.
  const name = (parameters.get('algorithm') ?? 'MD5').toUpperCase()
  return complete({
    userName: userNameOf(parameters),
    algorithm: Object.hasOwn(algorithms, name) ? (name as Algorithm) : undefined,
    nonce: parameters.get('nonce'),
    uri: parameters.get('uri'),
    qop: parameters.get('qop'),
    nc: parameters.get('nc'),
    cnonce: parameters.get('cnonce'),
    response: parameters.get('response') ?? '',
    opaque: parameters.get('opaque'),
  })
}

type Parts = { readonly [P in keyof Proof]: Proof[P] | undefined } & { readonly qop?: string | undefined }

function complete({ userName, algorithm, nonce, uri, qop, response, opaque, ...counts }: Parts): Proof | undefined {
  if (userName === undefined || userName.trim() === '' || userName.length > maxName) return undefined
  if (algorithm === undefined || nonce === undefined || uri === undefined || qop !== 'auth') return undefined
  if (!nc.test(counts.nc ?? '') || !cnonce.test(counts.cnonce ?? '')) return undefined
  if (response?.length !== algorithms[algorithm].length || !/^[0-9a-f]+$/.test(response)) return undefined
  const { nc: count = '', cnonce: own = '' } = counts
  return { userName, algorithm, nonce, uri, nc: count, cnonce: own, response, opaque }
}
