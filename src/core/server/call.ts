import { readsHealth } from '../protocol/index.ts'
import type { AnswerFacts, Call } from '../protocol/service/service.ts'
import { ownOrigin, type RequestContext, type ServerContext, signedRequest } from './context.ts'
import { presented } from './credential.ts'
import { refuseForeignChange } from './origins.ts'
import type { OperationMatch, ResponseNegotiation } from './routes.ts'
import type { AuthCall } from './sign-in.ts'

/** The credential of the request (A9). Throws Forbidden for a change that a page of another site requests (T6). */
export function credentialFor(
  server: ServerContext,
  context: RequestContext,
  { operation }: OperationMatch,
  { negotiated }: Pick<ResponseNegotiation, 'negotiated'>,
  auth?: AuthCall,
): Call['credential'] {
  const { headers } = context.request
  const { credential, ambient } =
    auth?.presented ??
    presented(headers, {
      ambient: negotiated.callback === undefined,
      basic: server.options.basic,
      signed: signedRequest(server, context),
    })
  // Sign-in and sign-out write cookies, so no other site may make a browser request them.
  const guarded = auth ? auth.changes : ambient && !readsHealth(operation)
  if (guarded) {
    refuseForeignChange(context.request, context.caller, ownOrigin(server, context), server.origins)
  }
  return credential
}

/** The call as the transport knows it. The Service authorizes it. */
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
    stored: /\bmax-stale\b/i.test(headers['cache-control'] ?? ''),
    timeoutMs: scrapeDeadline(headers['x-prometheus-scrape-timeout-seconds']),
    calledByPeer: Number(headers['x-svc-hops'] ?? 0) > 0,
    note,
  }
}

/** The scrape timeout of Prometheus in milliseconds, less half a second so that the answer still arrives in time. */
function scrapeDeadline(header: string | string[] | undefined): number | undefined {
  const seconds = Number(header ?? Number.NaN)
  if (!Number.isFinite(seconds) || seconds <= 0) return undefined
  return Math.max(100, Math.min(seconds * 1_000 - 500, 3_600_000))
}
