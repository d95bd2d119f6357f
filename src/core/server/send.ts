import type { IncomingMessage } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { HttpAnswer } from './answer.ts'
import { latestOn, type RequestContext, type ServerContext } from './context.ts'
import { escapeControls } from './log.ts'
import { corsHeaders, resourcePolicy } from './origins.ts'
import { swallow, unread } from './receive.ts'
import { publicPath } from './routes.ts'

const nothingAllowed = "default-src 'none'; frame-ancestors 'none'"

/** The headers of every response, even of those to requests that could not be parsed (F4, S6). A flat list. */
export function commonHeaders(
  server: ServerContext,
  correlationId: string,
  request: Pick<IncomingMessage, 'headers'> = { headers: {} },
  contentSecurityPolicy = nothingAllowed,
): string[] {
  const { origins, strictTransport } = server
  return [
    'X-Correlation-Id',
    correlationId,
    'Vary',
    origins.size > 0 ? 'Accept, Origin' : 'Accept',
    'Cache-Control',
    'no-store',
    'X-Content-Type-Options',
    'nosniff',
    'Content-Security-Policy',
    contentSecurityPolicy,
    'Referrer-Policy',
    'no-referrer',
    'Cross-Origin-Resource-Policy',
    resourcePolicy(request.headers, origins),
    ...(strictTransport === undefined ? [] : ['Strict-Transport-Security', strictTransport]),
  ]
}

/** Sends the answer, counts it and logs it. Each request is answered at most once. */
export function send(server: ServerContext, context: RequestContext, answer: HttpAnswer): void {
  const { request, response } = context
  if (response.headersSent) return
  const gone = response.destroyed || context.request.socket.destroyed
  note(server, context, gone ? 499 : answer.status)
  if (gone) return

  const { body = '', contentType } = answer
  const leftover = unread(request)
  const headers = commonHeaders(server, context.correlationId, request, answer.contentSecurityPolicy)
  const length = Buffer.byteLength(body)
  headers.push('Content-Length', String(length))
  if (contentType !== undefined) headers.push('Content-Type', contentType)
  if (answer.headers) headers.push(...answer.headers)
  if (server.origins.size > 0) headers.push(...corsHeaders(request.headers, server.origins))
  // `Connection: close` must be on the last answer of a connection, so a draining server waits for the latest request.
  const drained = server.draining && latestOn(server, request.socket)?.response === response
  if (context.last || leftover || drained) headers.push('Connection', 'close')
  response.writeHead(answer.status, headers)
  if (!leftover) {
    // Pure ASCII yields the same bytes in latin1 and needs no encoding.
    response.end(body, length === body.length ? 'latin1' : 'utf8')
    return
  }
  // Sends the whole answer now. The connection closes after the caller has had time to read it.
  response.flushHeaders()
  if (body !== '') response.write(body)
  swallow(request, server.limits, () => response.end())
}

function note(server: ServerContext, context: RequestContext, status: number): void {
  const { logFields, caller, correlationId } = context
  server.metrics.answered(logFields.label, logFields.method, status)
  const ms = Math.round((performance.now() - context.started) * 10) / 10
  server.log({
    level: logFields.stack === undefined ? 'info' : 'error',
    msg: status === 499 ? 'client disconnected' : 'answered',
    method: logFields.method,
    // The log shows only the path of a refused target.
    path:
      logFields.path === '' ? escapeControls(publicPath(context.request.url?.split('?', 1)[0] ?? '')) : logFields.path,
    status,
    ms,
    correlationId,
    runId: logFields.runId,
    address: caller.address,
    stack: logFields.stack,
  })
}
