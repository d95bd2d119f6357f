import { Fault } from '../errors.ts'
import type { Call, Credential } from '../service.ts'
import { type CredentialSource, presenting, tokenOf } from './credential.ts'
import type { ClientAsk, Received } from './exchange.ts'
import type { SentRequest } from './refusal.ts'
import { refusalOf } from './verdict.ts'

/** A request for anything that a server has. */
export type RawRequest = {
  /** In capitals. */
  readonly method: string
  /** Below the base URL: begins with a slash, and may hold a query. */
  readonly path: string
  /** In place of the usual ones of the same name, in any letter case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer | undefined
}

/** What came back, and what it means for the call when that is no success. */
export type RawAnswer = {
  readonly status: number
  readonly reason: string
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[]
  readonly contentType: string
  readonly bytes: Buffer
  readonly fault: Fault | undefined
}

/** What is sent: JSON is asked for and sent unless the request says otherwise (C1). */
export function rawAsk(
  { method, path, headers, body }: RawRequest,
  call: Call,
  client: { readonly prefix: string; readonly userAgent: string },
): ClientAsk {
  const all: readonly (readonly [string, string])[] = [
    ['Accept', 'application/json'],
    ['User-Agent', client.userAgent],
    ['X-Correlation-Id', call.correlationId],
    ...(body && body.length > 0 ? [['Content-Type', 'application/json'] as const] : []),
    ...headers,
    // Without a body Node says the length of nothing where a server may insist on it.
    ...(body ? [['Content-Length', String(body.length)] as const] : []),
  ]
  // The last of a name wins.
  const allHeaders = new Map(all.map(([name, value]) => [name.toLowerCase(), [name, value] as const]))
  return { method, path: `${client.prefix}${path}`, headers: Object.fromEntries(allHeaders.values()), body }
}

/** Sign-in, sign-out and renewal: a 401 to these is no reason to renew what is stored. */
const signsIn = /\/(?:auth(?:enticate)?(?:\/[^/]*)?|(?:get)?access-?token)(?:\.\w+)?\/?(?:\?.*)?$/is

/**
 * Asks as whoever is signed in, renewed once after a 401 (C5). The server's answer is the result, also where it refuses:
 * then with the `Fault` that the refusal means. Rejects when there is no answer.
 */
export async function askRaw(
  { method, path }: ClientAsk,
  place: Omit<SentRequest, 'operation'>,
  call: Call,
  source: CredentialSource | undefined,
  signal: AbortSignal,
  travel: (
    credential: Credential | undefined,
    request: SentRequest,
    came: (received: Received) => void,
  ) => Promise<Received>,
): Promise<RawAnswer> {
  const { decodeAnswer } = await import('../wire/index.ts')
  const own = call.credential !== undefined || (method !== 'GET' && signsIn.test(path))
  const how = { own, first: async () => tokenOf(call) ?? (await source?.current()) }
  let last: Received | undefined
  const came = (received: Received): void => {
    last = received
  }
  try {
    return await presenting(how, source, signal, async (credential) => {
      last = undefined
      const received = await travel(credential, place, came)
      if (received.status >= 200 && received.status < 300) return answerOf(received, undefined)
      throw refusalOf(received, place, decodeAnswer)
    })
  } catch (error) {
    // The fault is about what came last: the refusal itself, why it stays one, or where it does not send us.
    if (!last || !(error instanceof Fault) || error.details.remoteStatus !== last.status) throw error
    return answerOf(last, error)
  }
}

const answerOf = ({ status, reason, rawHeaders, headers, bytes }: Received, fault: Fault | undefined): RawAnswer => ({
  status,
  reason,
  rawHeaders,
  contentType: headers['content-type'] ?? '',
  bytes,
  fault,
})
