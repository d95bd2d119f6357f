import { createHash } from 'node:crypto'
import { ask, type Got } from './site.ts'

/** One challenge of `WWW-Authenticate: Digest`. */
export type Challenge = { readonly [name: string]: string }

/** The Digest challenges of an answer, in their order. Node joins the headers with commas. */
export const challengesOf = ({ headers }: Pick<Got, 'headers'>): readonly Challenge[] =>
  (headers['www-authenticate'] ?? '').split(/(?:^|, )(?=(?:Digest|Basic) )/).flatMap((one) => {
    if (!one.startsWith('Digest ')) return []
    const pairs = [...one.slice('Digest '.length).matchAll(/([a-z]+)=(?:"([^"]*)"|([^, ]+))/gi)]
    return [Object.fromEntries(pairs.map(([, key = '', quoted, token]) => [key, quoted ?? token ?? '']))]
  })

export type DigestParts = {
  readonly userName: string
  readonly password: string
  readonly nonce: string
  readonly uri: string
  readonly method?: string
  readonly nc?: string
  readonly cnonce?: string
  readonly realm?: string
  readonly algorithm?: string
  readonly qop?: string
}

/** The response of RFC 7616, computed by itself: not with the code under test. */
export function responseOf(parts: DigestParts): string {
  const { userName, password, nonce, uri, method = 'POST', nc = '00000001', cnonce = 'c1' } = parts
  const { realm = 'svc', algorithm = 'SHA-256', qop = 'auth' } = parts
  const hash = (text: string): string =>
    createHash(algorithm.startsWith('MD5') ? 'md5' : 'sha256')
      .update(text)
      .digest('hex')
  const first = hash(`${userName}:${realm}:${password}`)
  const secret = algorithm.endsWith('-sess') ? hash(`${first}:${nonce}:${cnonce}`) : first
  return hash([secret, nonce, nc, cnonce, qop, hash(`${method}:${uri}`)].join(':'))
}

/** The header that a client sends, with `more` in place of its own parameters. */
export function digestHeader(parts: DigestParts, more: Readonly<Record<string, string | undefined>> = {}): string {
  const { userName, nonce, uri, nc = '00000001', cnonce = 'c1', realm = 'svc', algorithm = 'SHA-256' } = parts
  const { qop = 'auth' } = parts
  const all: Record<string, string | undefined> = {
    username: `"${userName}"`,
    realm: `"${realm}"`,
    nonce: `"${nonce}"`,
    uri: `"${uri}"`,
    algorithm,
    qop,
    nc,
    cnonce: `"${cnonce}"`,
    response: `"${responseOf(parts)}"`,
    ...more,
  }
  const parameters = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
  return `Digest ${parameters.join(', ')}`
}

/** The body of a sign-in with the six challenge fields. */
export const digestBody = (parts: DigestParts) => ({
  UserName: parts.userName,
  nonce: parts.nonce,
  uri: parts.uri,
  qop: parts.qop ?? 'auth',
  nc: parts.nc ?? '00000001',
  cnonce: parts.cnonce ?? 'c1',
  response: responseOf(parts),
})

/** A new nonce, from the challenge of a refused sign-in. */
export async function freshNonce(port: number): Promise<string> {
  const got = await ask(port, '/auth/digest', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  return challengesOf(got)[0]?.['nonce'] ?? ''
}
