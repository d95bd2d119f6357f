import { performance } from 'node:perf_hooks'
import type { Answer } from './answer.ts'
import { swallow, unread } from './body.ts'
import type { Exchange } from './exchange.ts'
import { clean } from './log.ts'
import { corsHeaders } from './origins.ts'
import { latestOn, type Site } from './site.ts'

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

export const varies = (site: Site): string => (site.origins.size > 0 ? 'Accept, Origin' : 'Accept')

/** Writes the answer, counts it and logs it. An exchange is answered at most once. */
export function send(site: Site, exchange: Exchange, answer: Answer): void {
  const { request, response } = exchange
  if (response.headersSent) return
  const gone = response.destroyed || exchange.request.socket.destroyed
  note(site, exchange, gone ? 499 : answer.status)
  if (gone) return

  const { body = '', contentType } = answer
  const leftover = unread(request)
  const headers = commonHeaders(exchange.correlationId, varies(site), answer.contentSecurityPolicy)
  headers.push('Content-Length', String(Buffer.byteLength(body)))
  if (contentType !== undefined) headers.push('Content-Type', contentType)
  if (answer.headers) headers.push(...answer.headers)
  if (site.origins.size > 0) headers.push(...corsHeaders(request.headers, site.origins))
  // A draining server answers nothing behind `Connection: close`, so it waits for the latest request to say so.
  const drained = site.draining && latestOn(site, request.socket)?.response === response
  if (exchange.last || leftover || drained) headers.push('Connection', 'close')
  response.writeHead(answer.status, headers)
  if (!leftover) {
    response.end(body)
    return
  }
  // The whole answer goes out now; the connection closes when the caller has had time to read it.
  response.flushHeaders()
  if (body !== '') response.write(body)
  swallow(request, site.limits, () => response.end())
}

function note(site: Site, exchange: Exchange, status: number): void {
  const { told, caller, correlationId } = exchange
  site.metrics.answered(told.label, told.method, status)
  const ms = Math.round((performance.now() - exchange.started) * 10) / 10
  site.log({
    level: told.stack === undefined ? 'info' : 'error',
    msg: status === 499 ? 'the caller went away' : 'answered',
    method: told.method,
    // Of a target that was refused nothing but the path is shown.
    path: told.path === '' ? clean(exchange.request.url?.split('?', 1)[0] ?? '') : told.path,
    status,
    ms,
    correlationId,
    runId: told.runId,
    address: caller.address,
    stack: told.stack,
  })
}
