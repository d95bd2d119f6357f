import { performance } from 'node:perf_hooks'
import type { HttpAnswer } from './answer.ts'
import { swallow, unread } from './body.ts'
import { latestOn, type RequestContext, type ServerContext } from './context.ts'
import { escapeControls } from './log.ts'
import { corsHeaders } from './origins.ts'

const nothingAllowed = "default-src 'none'; frame-ancestors 'none'"

/** F4, S6: what every response says, also those to requests that could not be parsed; flat. */
export function commonHeaders(
  correlationId: string,
  variesBy: string,
  contentSecurityPolicy = nothingAllowed,
): string[] {
  return [
    'X-Correlation-Id',
    correlationId,
    'Vary',
    variesBy,
    'Cache-Control',
    'no-store',
    'X-Content-Type-Options',
    'nosniff',
    'Content-Security-Policy',
    contentSecurityPolicy,
    'Referrer-Policy',
    'no-referrer',
  ]
}

export const varies = (server: ServerContext): string => (server.origins.size > 0 ? 'Accept, Origin' : 'Accept')

/** Writes the answer, counts it and logs it. A request is answered at most once. */
export function send(server: ServerContext, context: RequestContext, answer: HttpAnswer): void {
  const { request, response } = context
  if (response.headersSent) return
  const gone = response.destroyed || context.request.socket.destroyed
  note(server, context, gone ? 499 : answer.status)
  if (gone) return

  const { body = '', contentType } = answer
  const leftover = unread(request)
  const headers = commonHeaders(context.correlationId, varies(server), answer.contentSecurityPolicy)
  const length = Buffer.byteLength(body)
  headers.push('Content-Length', String(length))
  if (contentType !== undefined) headers.push('Content-Type', contentType)
  if (answer.headers) headers.push(...answer.headers)
  if (server.origins.size > 0) headers.push(...corsHeaders(request.headers, server.origins))
  // A draining server answers nothing behind `Connection: close`, so it waits for the latest request to say so.
  const drained = server.draining && latestOn(server, request.socket)?.response === response
  if (context.last || leftover || drained) headers.push('Connection', 'close')
  response.writeHead(answer.status, headers)
  if (!leftover) {
    // ASCII needs no encoding; the bytes are the same.
    response.end(body, length === body.length ? 'latin1' : 'utf8')
    return
  }
  // The whole answer goes out now; the connection closes when the caller has had time to read it.
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
    msg: status === 499 ? 'the caller went away' : 'answered',
    method: logFields.method,
    // Of a target that was refused nothing but the path is shown.
    path: logFields.path === '' ? escapeControls(context.request.url?.split('?', 1)[0] ?? '') : logFields.path,
    status,
    ms,
    correlationId,
    runId: logFields.runId,
    address: caller.address,
    stack: logFields.stack,
  })
}
