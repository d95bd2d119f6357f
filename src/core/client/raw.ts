import { Fault } from '../base/errors.ts'
import type { Call, Credential } from '../protocol/service/service.ts'
import { type CredentialSource, presenting, tokenOf } from './credential.ts'
import type { ClientAsk, Received } from './exchange.ts'
import type { SentRequest } from './failure.ts'
import { refusalOf } from './verdict.ts'

/** A request for any path of a server. */
export type RawRequest = {
  /** In capitals. */
  readonly method: string
  /** Relative to the base URL. Begins with a slash and may contain a query. */
  readonly path: string
  /** Override the default headers of the same name, in any letter case. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer | undefined
}

/** The answer of the server, and its fault when it is not a success. */
export type RawAnswer = {
  readonly status: number
  readonly reason: string
  /** Names and values alternate, as received. */
  readonly rawHeaders: readonly string[]
  readonly contentType: string
  readonly bytes: Buffer
  readonly fault: Fault | undefined
}

/** Builds the request. Asks for JSON and sends JSON unless the headers say otherwise (C1). */
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
    // Without a body Node sends no Content-Length, which some servers require.
    ...(body ? [['Content-Length', String(body.length)] as const] : []),
  ]
  // The last header of a name wins.
  const allHeaders = new Map(all.map(([name, value]) => [name.toLowerCase(), [name, value] as const]))
  return { method, path: `${client.prefix}${path}`, headers: Object.fromEntries(allHeaders.values()), body }
}

/** Sign-in, sign-out and renewal. A 401 to these does not renew the stored credential. */
const signsIn = /\/(?:auth(?:enticate)?(?:\/[^/]*)?|(?:get)?access-?token)(?:\.\w+)?\/?(?:\?.*)?$/is

/**
 * Sends the request with the stored credential, which is renewed once after a 401 (C5). Resolves with the server's
 * answer even when it is an error, then together with its `Fault`. Rejects when there is no answer.
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
  const { decodeAnswer } = await import('../protocol/wire/index.ts')
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
    // The fault belongs to the last answer: a refusal, a failed renewal, or a redirect that is not followed.
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
