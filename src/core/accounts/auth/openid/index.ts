import { emptyField, Fault, invalidField } from '../../../base/errors.ts'
import type { JsonObject } from '../../../base/json.ts'
import type { Authenticate } from '../../../protocol/index.ts'
import type { BrowserSignIn, Call } from '../../../protocol/service/service.ts'
import { beginUnnamed } from '../attempts.ts'
import { addressOf } from '../identify.ts'
import { refuseFields } from '../names.ts'
import type { BrowserStep, OpenIdSettings, Provider, ProviderContext, VerifiedUser } from '../providers/provider.ts'
import { ProviderProblem } from './ask.ts'
import { arrive, comesBack, leave, type Wishes } from './browser.ts'
import { OpenIdIssuer, pauseMs } from './issuer.ts'
import {
  displayNameFrom,
  introspect,
  loadJose,
  maxToken,
  namesFrom,
  Refusal,
  readJwt,
  rolesFrom,
  verifyJwt,
} from './token.ts'

type OpenIdCall = Pick<Call, 'caller' | 'correlationId' | 'signal'>

/** The state of each configured provider in this process, such as its keys. */
const issuers = new WeakMap<OpenIdSettings, OpenIdIssuer>()

function issuerOf(settings: OpenIdSettings): OpenIdIssuer {
  const issuer = issuers.get(settings) ?? new OpenIdIssuer(settings)
  issuers.set(settings, issuer)
  return issuer
}

/** Loads what sign-ins use, so that a missing file is an error at the start. */
export const preloadOpenId = async (): Promise<void> => {
  await loadJose()
}

/** Signs in with a token of an OpenID provider (A13, T7). */
export function openIdProvider(settings: OpenIdSettings): Provider {
  const issuer = issuerOf(settings)
  return {
    signIn: (context, request, call) => signIn(context, issuer, request, call),
    browse: (context, browser, wishes, call) => browse(context, issuer, { browser, wishes }, call),
  }
}

async function signIn(
  context: ProviderContext,
  issuer: OpenIdIssuer,
  request: Authenticate,
  call: OpenIdCall,
): Promise<VerifiedUser> {
  const ofOauth1 = (['oauth_token', 'oauth_verifier', 'AccessTokenSecret'] as const).filter((name) => request[name])
  if (ofOauth1.length > 0) {
    refuseFields(
      ofOauth1.map((name) => invalidField(name, `belongs to OAuth 1.0a, which ${issuer.settings.name} is not`)),
    )
  }
  const token = request.AccessToken?.trim() ?? ''
  if (token === '') refuseFields([emptyField('AccessToken', 'Access Token')])
  return await attempted(context, issuer, call, async () => {
    if (token.length > maxToken) throw new Refusal(`the token is longer than ${maxToken} characters`)
    const jwt = readJwt(token)
    if (!jwt) return await introspect(issuer, token, context.now)
    return await verifyJwt(issuer, token, jwt, { now: context.now })
  })
}

/** A step of a browser sign-in: to the provider, and back from it. */
async function browse(
  context: ProviderContext,
  issuer: OpenIdIssuer,
  { browser, wishes }: { readonly browser: BrowserSignIn; readonly wishes: Wishes },
  call: OpenIdCall,
): Promise<BrowserStep> {
  const { data, now } = context
  if (!comesBack(browser)) {
    const left = await orUnavailable(context, issuer, call, () => leave(issuer, data, now, browser.origin, wishes))
    return { kind: 'leave', ...left }
  }
  const came: { wishes: Wishes | undefined } = { wishes: undefined }
  const user = await attempted(context, issuer, call, async () => {
    const arrived = await arrive(issuer, data, now, browser)
    came.wishes = arrived.wishes
    return arrived.claims
  })
  return { kind: 'arrive', user, permanent: came.wishes?.permanent === true, continueTo: came.wishes?.continueTo }
}

/**
 * Verifies claims with `verify` and returns their user. Counts and audits a refusal, and tells the caller nothing but
 * that there is one. Throws Fault Unavailable while the provider is needed and does not answer.
 */
async function attempted(
  context: ProviderContext,
  issuer: OpenIdIssuer,
  call: OpenIdCall,
  verify: () => Promise<JsonObject>,
): Promise<VerifiedUser> {
  const { settings } = issuer
  const attempt = await beginUnnamed(context, call.caller)
  const actor = actorOf(call)
  try {
    return await orUnavailable(context, issuer, call, async () => {
      const claims = await verify()
      const user = await userFor(context, issuer, claims, actor)
      if (user.disabled) throw new Refusal(`the user ${user.userName} is disabled`)
      return { ...user, claimedRoles: rolesFrom(settings, claims) }
    })
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    await attempt.failed()
    await writeFailure(context, issuer, call, error.message)
    throw new Fault('Unauthorized')
  }
}

const actorOf = (call: OpenIdCall) => ({ who: '-', address: addressOf(call), correlationId: call.correlationId })

const writeFailure = (
  { data }: ProviderContext,
  { settings }: OpenIdIssuer,
  call: OpenIdCall,
  why: string,
): Promise<void> =>
  data.audit.write('signin.failed', undefined, { ...actorOf(call), reason: `${settings.name}: ${why}` })

/** Turns a problem of the provider into Fault Unavailable, and records it. */
async function orUnavailable<T>(
  context: ProviderContext,
  issuer: OpenIdIssuer,
  call: OpenIdCall,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ProviderProblem)) throw error
    // Callers that follow within the pause get the same problem, which is recorded once.
    if (!auditedProblems.has(error)) {
      auditedProblems.add(error)
      await writeFailure(context, issuer, call, error.message)
    }
    throw new Fault('Unavailable', `The sign-in provider ${issuer.settings.name} does not answer`, {
      retryAfter: pauseMs / 1_000,
      cause: error,
    })
  }
}

const auditedProblems = new WeakSet<ProviderProblem>()

/** The user behind an identity. The first sign-in adds one; it never takes over an existing user (T7). */
async function userFor(
  { data }: ProviderContext,
  { settings }: OpenIdIssuer,
  claims: JsonObject,
  actor: { readonly who: string; readonly address: string | undefined; readonly correlationId: string },
) {
  const identity = { issuer: settings.issuer, subject: String(claims['sub']) }
  const user = await data.identities.find(identity.issuer, identity.subject)
  if (user) return user
  const names = namesFrom(settings, claims)
  const reason = `first sign-in with ${settings.name}`
  return await data.identities.addUser(identity, { names, displayName: displayNameFrom(claims) }, { ...actor, reason })
}
