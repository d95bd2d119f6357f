import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../../core/base/errors.ts'
import type { Call } from '../../../core/protocol/service/service.ts'
import { askProvider, type DiscoveredProvider, type ProviderLink, printable, safeAddress } from './issuer.ts'
import type { OpenIdProvider } from './server-providers.ts'
import { refusalIn, requestTokens, type TokenAnswer } from './tokens.ts'

/** Seconds between two requests where the provider names none, and that it may name. */
const usualInterval = 5
const maxInterval = 60
/** Seconds that a code is good for where the provider does not say, and the longest that svc waits. */
const usualLife = 300
const maxLife = 1_800

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

export type DeviceCode = {
  /** A secret. */
  readonly deviceCode: string
  /** Also a secret: of PKCE, which Keycloak requires here too if a client is set to it. Others ignore it. */
  readonly verifier: string
  /** For people, as they type it. */
  readonly userCode: string
  readonly verification: URL
  /** Contains the code, so that nobody has to type it. */
  readonly complete: URL | undefined
  /** Seconds. */
  readonly interval: number
  readonly life: number
}

/** Requests a device code (RFC 8628, 3.1). */
export async function requestDeviceCode(
  issuer: DiscoveredProvider,
  at: URL,
  { clientId, scope }: OpenIdProvider,
  link: ProviderLink,
  call: Call,
): Promise<DeviceCode> {
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const form = { client_id: clientId, scope, code_challenge: challenge, code_challenge_method: 'S256' }
  const { status, json } = await askProvider(at, { method: 'POST', form }, link, call)
  const refused = refusalIn(issuer, { status, json }, clientId)
  if (refused) throw refused.refused
  const { device_code: deviceCode, user_code: code, verification_uri, verification_uri_complete } = json ?? {}
  const verification = safeAddress(verification_uri)
  const userCode = typeof code === 'string' ? printable(code).slice(0, 64) : ''
  if (status !== 200 || typeof deviceCode !== 'string' || userCode === '' || !verification) {
    throw new Fault('UnreadableAnswer', `${printable(issuer.issuer)} returned no usable device code (${status})`, {
      remoteStatus: status,
    })
  }
  return {
    deviceCode,
    verifier,
    userCode,
    verification,
    complete: safeAddress(verification_uri_complete),
    interval: Math.min(maxInterval, Math.max(1, secondsIn(json?.['interval']) ?? usualInterval)),
    life: Math.min(maxLife, secondsIn(json?.['expires_in']) ?? usualLife),
  }
}

const secondsIn = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined

/**
 * Asks for the tokens until the user has decided (RFC 8628, 3.4). Rejects with `Fault` Unauthorized when the user
 * declines, Timeout when the code expires, and with the last failure of the network if that lasts until then.
 */
export async function pollForTokens(
  issuer: DiscoveredProvider,
  { deviceCode, verifier, interval, life }: DeviceCode,
  { clientId }: OpenIdProvider,
  link: ProviderLink,
  call: Call,
  wait: (ms: number) => Promise<void> = (ms) => pause(ms, undefined, { signal: call.signal }),
): Promise<Extract<TokenAnswer, { readonly idToken: string | undefined }>> {
  const form = { grant_type: deviceGrant, device_code: deviceCode, client_id: clientId, code_verifier: verifier }
  let seconds = interval
  let failure: Fault | undefined
  for (let elapsed = 0; elapsed < life; ) {
    await wait(seconds * 1_000)
    elapsed += seconds
    const answer = await requestTokens(issuer, form, link, call).catch((error: unknown) => {
      if (call.signal.aborted || !(error instanceof Fault) || !passing.has(error.fault)) throw error
      return error
    })
    if (answer instanceof Fault) {
      failure = answer
      seconds = Math.min(maxInterval, seconds * 2)
      continue
    }
    failure = undefined
    if (!('error' in answer)) return answer
    if (answer.error === 'slow_down') seconds = Math.min(maxInterval, seconds + 5)
    else if (answer.error !== 'authorization_pending') throw ending(issuer, answer.error, answer.refused)
  }
  throw failure ?? expired(issuer)
}

/** Failures of the network that may pass. */
const passing: ReadonlySet<string> = new Set(['Timeout', 'Unreachable'])

const expired = ({ issuer }: DiscoveredProvider): Fault =>
  new Fault('Timeout', `the code of ${printable(issuer)} has expired before anyone used it`, {
    hints: ['Run svc login again for a new code.'],
  })

function ending(issuer: DiscoveredProvider, error: string, refused: Fault): Fault {
  if (error === 'expired_token') return expired(issuer)
  if (error !== 'access_denied') return refused
  return new Fault('Unauthorized', `the sign-in was declined at ${printable(issuer.issuer)}`)
}
