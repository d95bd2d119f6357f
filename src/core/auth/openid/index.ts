import { emptyField, Fault } from '../../errors.ts'
import type { Authenticate } from '../../protocol/index.ts'
import type { Call } from '../../service.ts'
import { beginUnnamed } from '../attempts.ts'
import { addressOf } from '../identify.ts'
import { refuse as refuseFields } from '../names.ts'
import type { OpenIdSettings, Provider, ProviderContext, VerifiedUser } from '../providers/provider.ts'
import { ProviderProblem } from './ask.ts'
import { displayNameFrom, namesFrom, rolesFrom } from './claims.ts'
import { Issuer } from './issuer.ts'
import type { Json } from './json.ts'
import { pauseMs } from './kept.ts'
import { loadJose, maxToken, Refusal, readJwt, verifyJwt } from './token.ts'

type OpenIdCall = Pick<Call, 'caller' | 'correlationId' | 'signal'>

/** What this process knows of each configured provider, such as its keys. */
const issuers = new WeakMap<OpenIdSettings, Issuer>()

function issuerOf(settings: OpenIdSettings): Issuer {
  const known = issuers.get(settings) ?? new Issuer(settings)
  issuers.set(settings, known)
  return known
}

/** Loads what sign-ins use, so that a missing file is an error at the start. */
export const preloadOpenId = async (): Promise<void> => {
  await loadJose()
}

/** Signs in with a token of an OpenID provider (A13, T7). */
export function openIdProvider(settings: OpenIdSettings): Provider {
  const issuer = issuerOf(settings)
  return {
    signIn: (world, request, call) => signIn(world, issuer, request, call),
  }
}

async function signIn(
  world: ProviderContext,
  issuer: Issuer,
  request: Authenticate,
  call: OpenIdCall,
): Promise<VerifiedUser> {
  const token = request.AccessToken?.trim() ?? ''
  if (token === '') refuseFields([emptyField('AccessToken', 'Access Token')])
  return await attempted(world, issuer, call, async () => {
    if (token.length > maxToken) throw new Refusal(`the token is longer than ${maxToken} characters`)
    const jwt = readJwt(token)
    if (!jwt) throw new Refusal('it is not a signed token')
    return await verifyJwt(issuer, token, jwt, { now: world.now })
  })
}

/**
 * Verifies claims with `verify` and returns their user. Counts and audits a refusal, and tells the caller nothing but
 * that there is one. Throws Fault Unavailable while the provider is needed and does not answer.
 */
async function attempted(
  world: ProviderContext,
  issuer: Issuer,
  call: OpenIdCall,
  verify: () => Promise<Json>,
): Promise<VerifiedUser> {
  const { settings } = issuer
  const attempt = await beginUnnamed(world, call.caller)
  const actor = { who: '-', address: addressOf(call), correlationId: call.correlationId }
  try {
    const claims = await verify()
    const user = await userFor(world, issuer, claims, actor)
    if (user.disabled) throw new Refusal(`the user ${user.userName} is disabled`)
    return { ...user, claimedRoles: rolesFrom(settings, claims) }
  } catch (error) {
    if (error instanceof Refusal) {
      await attempt.failed()
      await world.data.audit.write('signin.failed', undefined, {
        ...actor,
        reason: `${settings.name}: ${error.message}`,
      })
      throw new Fault('Unauthorized')
    }
    if (error instanceof ProviderProblem) {
      // Callers that follow within the pause get the same problem, which is recorded once.
      if (!recorded.has(error)) {
        recorded.add(error)
        await world.data.audit.write('signin.failed', undefined, {
          ...actor,
          reason: `${settings.name}: ${error.message}`,
        })
      }
      throw new Fault('Unavailable', `The sign-in provider ${settings.name} does not answer`, {
        retryAfter: pauseMs / 1_000,
        cause: error,
      })
    }
    throw error
  }
}

const recorded = new WeakSet<ProviderProblem>()

/** The user behind an identity. The first sign-in adds one; it never takes over an existing user (T7). */
async function userFor(
  { data }: ProviderContext,
  { settings }: Issuer,
  claims: Json,
  actor: { readonly who: string; readonly address: string | undefined; readonly correlationId: string },
) {
  const identity = { issuer: settings.issuer, subject: String(claims['sub']) }
  const known = await data.identities.find(identity.issuer, identity.subject)
  if (known) return known
  const names = namesFrom(settings, claims)
  const reason = `first sign-in with ${settings.name}`
  return await data.identities.addUser(identity, { names, displayName: displayNameFrom(claims) }, { ...actor, reason })
}
