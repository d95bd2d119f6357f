import type { Authenticate } from '../../protocol/index.ts'
import type { SignedRequest } from '../../service.ts'
import { readParameters, userNameOf } from './header.ts'
import { type Algorithm, algorithms, realm } from './secret.ts'

/** What a client presents to sign in by digest, complete and in the right form, but not yet compared. */
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
