import { createCipheriv, createDecipheriv, createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { type JsonObject, member } from '../../../base/json.ts'
import type { BrowserSignIn } from '../../../protocol/service/service.ts'
import type { Data } from '../../../store/index.ts'
import { ProviderProblem } from './ask.ts'
import type { Endpoints, OpenIdIssuer } from './issuer.ts'
import { maxToken, Refusal, readJwt, verifyJwt } from './token.ts'

/** A person has this long to sign in at the provider. Milliseconds. */
export const signInMs = 600_000
/** Characters. A cookie may have 4 KB, which the sealed state with such a URL does not reach. */
const maxUrlLength = 1_024
const maxCodeLength = 2_048

/** The state that the browser keeps while it is at the provider, encrypted, so that any node can continue. */
type State = {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  /** The address that the provider sends the browser back to. */
  readonly callback: string
  readonly continueTo: string | undefined
  readonly permanent: boolean
  readonly endsAt: number
}

export type Wishes = { readonly permanent: boolean; readonly continueTo: string | undefined }

/** Whether the browser comes back from the provider. */
export const comesBack = ({ parameter }: BrowserSignIn): boolean =>
  parameter('state') !== undefined && (parameter('code') !== undefined || parameter('error') !== undefined)

/** Where the browser signs in (OpenID Connect Core, 3.1.2.1), and what it keeps meanwhile. */
export async function leave(
  issuer: OpenIdIssuer,
  data: Data,
  now: () => number,
  origin: string,
  { permanent, continueTo }: Wishes,
): Promise<{ readonly url: string; readonly sealed: string }> {
  const { name, clientId, scope } = issuer.settings
  const { authorization } = await issuer.endpoints(now)
  if (!authorization) throw new ProviderProblem('the discovery document has no authorization_endpoint with https')
  const state: State = {
    state: secret(),
    nonce: secret(),
    verifier: secret(),
    callback: `${origin}/auth/${name}`,
    continueTo: continueTo !== undefined && continueTo.length <= maxUrlLength ? continueTo : undefined,
    permanent,
    endsAt: now() + signInMs,
  }
  const url = new URL(authorization)
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: state.callback,
    scope,
    state: state.state,
    nonce: state.nonce,
    code_challenge: createHash('sha256').update(state.verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }
  for (const [parameter, value] of Object.entries(parameters)) url.searchParams.set(parameter, value)
  return { url: url.href, sealed: seal(await data.identities.sealingKey(), name, state) }
}

const secret = (): string => randomBytes(32).toString('base64url')

/** The claims of the person who comes back. Each state counts once, on whichever node. Throws Refusal. */
export async function arrive(
  issuer: OpenIdIssuer,
  data: Data,
  now: () => number,
  browser: BrowserSignIn,
): Promise<{ readonly claims: JsonObject; readonly wishes: Wishes }> {
  const state = await presentedState(issuer, data, now, browser)
  const { settings } = issuer
  const endpoints = await issuer.endpoints(now)
  const issuerName = browser.parameter('iss')
  // Another provider may have sent the browser (RFC 9207).
  if (issuerName === undefined ? endpoints.namesItself : issuerName !== settings.issuer) {
    throw new Refusal('the answer to the browser does not name the issuer')
  }
  const error = browser.parameter('error')
  if (error !== undefined) {
    throw new Refusal(`the provider refused the sign-in (${/^[a-z_]{1,40}$/.test(error) ? error : 'unknown error'})`)
  }
  const code = browser.parameter('code') ?? ''
  if (code.length > maxCodeLength) throw new Refusal('the code is too long')
  const token = await exchange(issuer, endpoints, state, code)
  const jwt = readJwt(token)
  if (!jwt) throw new Refusal('the provider sent no signed ID token')
  const claims = await verifyJwt(issuer, token, jwt, { now, nonce: state.nonce })
  return { claims, wishes: { permanent: state.permanent, continueTo: state.continueTo } }
}

async function presentedState(
  issuer: OpenIdIssuer,
  data: Data,
  now: () => number,
  { sealed, parameter, origin }: BrowserSignIn,
): Promise<State> {
  const { name } = issuer.settings
  if (sealed === undefined) throw new Refusal('the browser did not begin this sign-in here')
  const state = unseal(await data.identities.sealingKey(), name, sealed)
  if (!state) throw new Refusal('the browser did not begin this sign-in here')
  if (!same(state.state, parameter('state') ?? '')) throw new Refusal('state is not that of this browser')
  if (now() >= state.endsAt) throw new Refusal('the sign-in took longer than ten minutes')
  if (state.callback !== `${origin}/auth/${name}`) throw new Refusal('the browser began at another address')
  if (!(await data.identities.use(digest(state.state).toString('hex'), state.endsAt))) {
    throw new Refusal('state was used before')
  }
  return state
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
const same = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other))

/** The ID token for a code (RFC 6749, 4.1.3, with PKCE). */
async function exchange(
  issuer: OpenIdIssuer,
  { token, basic }: Endpoints,
  state: State,
  code: string,
): Promise<string> {
  if (!token) throw new ProviderProblem('the discovery document has no token_endpoint with https')
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: state.callback,
    code_verifier: state.verifier,
  })
  const { status, json } = await issuer.post(token, form, basic)
  if (status >= 500) throw new ProviderProblem(`the token endpoint answered ${status}`)
  const idToken = member(json, 'id_token')
  if (status !== 200) throw new Refusal(`the provider did not accept the code (${status})`)
  if (typeof idToken !== 'string' || idToken.length > maxToken) throw new Refusal('the provider sent no ID token')
  return idToken
}

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/** Encrypts a state for this provider: nobody without the key of the store can read or make one. */
function seal(keyHex: string, provider: string, state: State): string {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, Buffer.from(keyHex, 'hex'), nonce)
  cipher.setAAD(Buffer.from(provider))
  const text = Buffer.concat([cipher.update(JSON.stringify(state), 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url')
}

function unseal(keyHex: string, provider: string, sealed: string): State | undefined {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length <= nonceBytes + tagBytes) return undefined
  const options = { authTagLength: tagBytes }
  const nonce = bytes.subarray(0, nonceBytes)
  const decipher = createDecipheriv(algorithm, Buffer.from(keyHex, 'hex'), nonce, options)
  decipher.setAAD(Buffer.from(provider))
  decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
  try {
    const text = Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()])
    return JSON.parse(text.toString('utf8')) as State
  } catch {
    return undefined
  }
}
