import type { AnswerFacts, Call } from '../service.ts'
import { ownOrigin, type RequestContext, type ServerContext } from './context.ts'
import { presented } from './credential.ts'
import { refuseForeignChange } from './origins.ts'
import type { OperationMatch, ResponseNegotiation } from './routes.ts'
import type { AuthCall } from './sign-in.ts'

/** What the request presents of itself (A9). Throws Forbidden for a change that a page of another site asks for (T6). */
export function credentialFor(
  server: ServerContext,
  context: RequestContext,
  { operation }: OperationMatch,
  { negotiated }: Pick<ResponseNegotiation, 'negotiated'>,
  auth?: AuthCall,
): Call['credential'] {
  const { headers } = context.request
  const { credential, ambient } =
    auth?.presented ?? presented(headers, { ambient: negotiated.callback === undefined, basic: server.options.basic })
  // A sign-in and a sign-out write cookies, so that no other site may make a browser do either.
  const guarded = auth ? auth.changes : ambient && operation !== 'healthCheck'
  if (guarded) refuseForeignChange(context.request, ownOrigin(server, context), server.origins)
  return credential
}

/** What the transport knows about a call. The Service judges it. */
export function callOf(
  { request, caller, correlationId, signal }: RequestContext,
  credential: Call['credential'],
  note: (facts: AnswerFacts) => void,
): Call {
  const { headers } = request
  return {
    caller,
    credential,
    correlationId,
    signal,
    fresh: /\bno-cache\b/i.test(headers['cache-control'] ?? ''),
    timeoutMs: scrapeDeadline(headers['x-prometheus-scrape-timeout-seconds']),
    calledByPeer: Number(headers['x-svc-hops'] ?? 0) > 0,
    note,
  }
}

/** Prometheus gives up after so many seconds; an answer half a second earlier still reaches it. */
function scrapeDeadline(header: string | string[] | undefined): number | undefined {
  const seconds = Number(header ?? Number.NaN)
  if (!Number.isFinite(seconds) || seconds <= 0) return undefined
  return Math.max(100, Math.min(seconds * 1_000 - 500, 3_600_000))
}
