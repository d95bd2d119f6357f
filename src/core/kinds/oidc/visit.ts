import { randomBytes } from 'node:crypto'
import { type CheckContext, eachAddress, includes, type Problem, type Unreached } from '../../engine/index.ts'
import type { Chain } from '../../net/chain.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { ProbeError } from '../../probe-error.ts'
import { type Answer, type Json, object, type Provider, providerAt } from './http.ts'
import { aheadBy, isTime, readToken, unsigned } from './jwt.ts'
import { inspectKeys, type KeySet } from './keys.ts'
import { discoveryUrl, type OidcSettings, placeOf } from './settings.ts'
import {
  byClient,
  byPassword,
  byRefresh,
  endpointAt,
  introspect,
  revoke,
  type Session,
  showWrongSecret,
  type Tokens,
  type WrongSecret,
} from './token.ts'

type At = { readonly address: string }
export type OidcSeen =
  | ({ readonly see: 'discovery'; readonly answer: Answer } & At)
  | ({ readonly see: 'document'; readonly document: Json; readonly loopback: boolean } & At)
  | ({ readonly see: 'keys'; readonly answer: Answer; readonly keys: KeySet } & At)
  | ({ readonly see: 'key age'; readonly newest: Date; readonly at: Date } & At)
  | { readonly see: 'certificate'; readonly chain: Chain }
  | ({ readonly see: 'token'; readonly check: 'token' | 'user'; readonly form: string; readonly ms: number } & At &
      Pick<Tokens, 'type' | 'expiresIn'>)
  | ({
      readonly see: 'signature'
      readonly wrong: string | undefined
      readonly alg: unknown
      readonly kid: unknown
    } & At)
  | ({ readonly see: 'claims'; readonly claims: Json; readonly at: Date } & At)
  /** Milliseconds by which the provider is ahead, by each thing that tells it. */
  | ({ readonly see: 'clock'; readonly ahead: readonly { readonly by: string; readonly ms: number }[] } & At)
  | ({ readonly see: 'introspection'; readonly active: boolean } & At)
  | ({ readonly see: 'refresh'; readonly rotated: boolean; readonly left: boolean; readonly ms: number } & At)
  | ({ readonly see: 'wrong secret' } & At & WrongSecret)
  | Problem
  | Unreached

export const signsInToOidc = (given: OidcSettings, mode: CheckContext['mode']): boolean =>
  given.clientId !== undefined && includes(mode, 'Advanced')

type Look = (check: string, look: () => Promise<OidcSeen | readonly OidcSeen[]>) => AsyncGenerator<OidcSeen>

/** Reads what a provider publishes, and in Advanced gets tokens of it. */
export async function* visitOidc(given: OidcSettings, context: CheckContext): AsyncGenerator<OidcSeen> {
  const ask = { ...placeOf(new URL(given.issuer)), which: 'any', check: 'discovery' } as const
  yield* eachAddress<OidcSeen>(context, ask, async function* (at) {
    const provider = await providerAt(given, at, context)
    const answer = await provider.ask(discoveryUrl(given))
    const { address } = provider
    yield { see: 'discovery', address, answer }
    const document = documentOf(answer)
    if (document === undefined || !includes(context.mode, 'Standard')) return
    yield { see: 'document', address, document, loopback: provider.loopback }
    const [own] = provider.chains()
    if (own) yield { see: 'certificate', chain: own }
    const look = looker(at, context)
    const session: Session = { provider, given, document }
    let keys: KeySet | undefined
    yield* look('keys', async () => {
      const read = await lookAtKeys(session)
      keys = read.keys
      return { see: 'keys', address, ...read }
    })
    if (includes(context.mode, 'Advanced')) yield* lookDeeper(session, keys, look, context)
    for (const chain of provider.chains().slice(1)) yield { see: 'certificate', chain }
  })
}

/** What was answered, where it is a document at all. */
export function documentOf({ status, body }: Answer): Json | undefined {
  const plain = 'json' in body && typeof body.json === 'object' && body.json !== null && !Array.isArray(body.json)
  return status === 200 && plain ? object(body.json) : undefined
}

async function lookAtKeys(session: Session): Promise<{ readonly answer: Answer; readonly keys: KeySet }> {
  const answer = await session.provider.ask(endpointAt(session, 'jwks_uri'))
  const { status, body, address } = answer
  if (status !== 200)
    throw new ProbeError('data', `${address} answered ${status} to the request for its keys (jwks_uri)`)
  if ('problem' in body)
    throw new ProbeError('protocol', `${address} answered the request for its keys with ${body.problem}`)
  return { answer, keys: inspectKeys(body.json, session.given.keyBits) }
}

async function* lookDeeper(
  session: Session,
  keys: KeySet | undefined,
  look: Look,
  context: CheckContext,
): AsyncGenerator<OidcSeen> {
  const { given, document, provider } = session
  const { address } = provider
  if (keys?.newest) yield { see: 'key age', address, newest: keys.newest, at: context.date() }
  if (given.clientId === undefined) return
  if (document.issuer !== given.issuer) {
    // Discovery 1.0, 4.3: such a document must not be used.
    const cause = new ProbeError('dependency', 'nothing was sent: the document is that of another issuer')
    const check = given.clientSecret === undefined ? 'user' : 'token'
    yield { see: 'problem', check, address, cause, afterMs: 0 }
    return
  }
  let refresh: string | undefined
  let looked = false
  const get = (check: 'token' | 'user', grant: (session: Session) => Promise<Tokens>) =>
    look(check, async () => {
      const tokens = await grant(session)
      refresh = tokens.refresh ?? refresh
      const first = !looked
      looked = true
      return lookAtTokens(check, tokens, provider, first ? keys : 'seen')
    })
  let entered: Tokens | undefined
  if (given.clientSecret !== undefined) {
    yield* get('token', async () => {
      entered = await byClient(session)
      return entered
    })
    if (entered === undefined) return
    const { access } = entered
    if (given.introspect)
      yield* look('introspection', async () => ({
        see: 'introspection',
        address,
        ...(await introspect(session, access)),
      }))
  }
  if (given.user !== undefined) yield* get('user', byPassword)
  const held = refresh
  if (held !== undefined) yield* look('refresh', () => refreshed(session, held, context))
  if (!given.refusesWrongSecret || given.clientSecret === undefined) return
  // Nobody's real secret: unlike any that may have been given out.
  const wrong = randomBytes(24).toString('base64url')
  yield* look('wrong secret', async () => ({
    see: 'wrong secret',
    address,
    ...(await showWrongSecret(session, wrong)),
  }))
}

/** What a token tells; the keys only for the first one, the others are made alike. */
async function lookAtTokens(
  check: 'token' | 'user',
  { answer, access, type, expiresIn }: Tokens,
  { address, hide }: Provider,
  keys: KeySet | 'seen' | undefined,
): Promise<readonly OidcSeen[]> {
  const token = readToken(access, hide)
  const seen: OidcSeen[] = [{ see: 'token', check, address, form: token.form, ms: answer.ms, type, expiresIn }]
  if (keys === 'seen') return seen
  const { sent, heard, headers } = answer
  const ahead: { by: string; ms: number }[] = []
  if (token.form === 'signed') {
    const { header, claims } = token
    const wrong =
      keys === undefined
        ? 'not verified: the keys of the provider were not read'
        : await unsigned(access, header, keys.signing)
    seen.push({ see: 'signature', address, wrong, alg: header.alg, kid: header.kid })
    seen.push({ see: 'claims', address, claims, at: heard })
    if (isTime(claims.iat)) ahead.push({ by: 'iat of the token', ms: aheadBy(claims.iat, sent, heard) })
  }
  const date = Date.parse(headers.date ?? '')
  if (!Number.isNaN(date)) ahead.push({ by: 'its Date header', ms: aheadBy(date / 1_000, sent, heard) })
  if (ahead.length > 0) seen.push({ see: 'clock', address, ahead })
  return seen
}

/** Gets a new token for a refresh token, and then ends what it stands for: a session that nobody needs. */
async function refreshed(session: Session, refresh: string, context: CheckContext): Promise<OidcSeen> {
  const start = context.now()
  const tokens = await byRefresh(session, refresh)
  const ms = context.now() - start
  const ended = await revoke(session, tokens.refresh ?? refresh).catch((error: unknown) => {
    if (context.signal.aborted) throw error
    return false
  })
  const { address } = session.provider
  return {
    see: 'refresh',
    address,
    rotated: tokens.refresh !== undefined && tokens.refresh !== refresh,
    left: !ended,
    ms,
  }
}

/** One check that cannot look does not hide the others; the deadline ends them all. */
const looker = ({ address, signal, step }: PeerAddress, context: CheckContext): Look =>
  async function* (check, look) {
    step(check)
    const since = context.now()
    try {
      const seen = await look()
      if (Array.isArray(seen)) yield* seen as readonly OidcSeen[]
      else yield seen as OidcSeen
    } catch (cause) {
      if (signal.aborted) throw cause
      yield { see: 'problem', check, address, cause, afterMs: context.now() - since }
    }
  }
