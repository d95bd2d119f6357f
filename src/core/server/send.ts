import { type IncomingMessage, STATUS_CODES } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { Duplex } from 'node:stream'
import { Fault } from '../base/errors.ts'
import { ErrorResponse } from '../protocol/index.ts'
import { encodeJson, errorResponse } from '../protocol/wire/index.ts'
import { type HttpAnswer, SharedText } from './answer.ts'
import { correlationOf, latestOn, type RequestContext, type ServerContext } from './context.ts'
import { escapeControls } from './log.ts'
import { corsHeaders, resourcePolicy } from './origins.ts'
import { swallow, unread } from './receive.ts'
import { markedAnswer, markedFault, rehearsalHeaders } from './rehearsal.ts'
import { headersOf } from './response.ts'
import { publicPath } from './routes.ts'

const nothingAllowed = "default-src 'none'; frame-ancestors 'none'"

/** The headers of every response, even of those to requests that could not be parsed (F4, S6). A flat list. */
export function commonHeaders(
  server: ServerContext,
  correlationId: string,
  request: Pick<IncomingMessage, 'headers'> = { headers: {} },
  {
    contentSecurityPolicy = nothingAllowed,
    isForAnyPage = false,
  }: Pick<HttpAnswer, 'contentSecurityPolicy' | 'isForAnyPage'> = {},
): string[] {
  const { origins, strictTransport } = server
  return [
    'X-Correlation-Id',
    correlationId,
    'Vary',
    origins.size > 0 ? 'Accept, Origin' : 'Accept',
    'Cache-Control',
    // For proxies of images that keep what they may not.
    isForAnyPage ? 'no-cache, max-age=0' : 'no-store',
    'X-Content-Type-Options',
    'nosniff',
    'Content-Security-Policy',
    contentSecurityPolicy,
    'Referrer-Policy',
    'no-referrer',
    'Cross-Origin-Resource-Policy',
    isForAnyPage ? 'cross-origin' : resourcePolicy(request.headers, origins),
    ...(strictTransport === undefined ? [] : ['Strict-Transport-Security', strictTransport]),
    ...rehearsalHeaders(server),
  ]
}

/** Sends the answer, counts it and logs it. Each request is answered at most once. */
export function send(server: ServerContext, context: RequestContext, made: HttpAnswer): void {
  const answer = markedAnswer(server, made)
  const { request, response } = context
  if (response.headersSent) return
  const gone = response.destroyed || context.request.socket.destroyed
  note(server, context, gone ? 499 : answer.status)
  if (gone) return

  const { contentType, stored } = answer
  const isGzipped = stored !== undefined && acceptsGzip(request.headers['accept-encoding'])
  const body = stored === undefined ? (answer.body ?? '') : isGzipped ? stored.gzipped : stored.plain
  const leftover = unread(request)
  const headers = commonHeaders(server, context.correlationId, request, answer)
  if (stored) headers.push('Vary', 'Accept-Encoding')
  if (isGzipped) headers.push('Content-Encoding', 'gzip')
  const length = body instanceof SharedText ? body.length : Buffer.byteLength(body)
  headers.push('Content-Length', String(length))
  if (contentType !== undefined) headers.push('Content-Type', contentType)
  if (answer.headers) headers.push(...answer.headers)
  if (server.origins.size > 0) headers.push(...corsHeaders(request.headers, server.origins))
  // `Connection: close` must be on the last answer of a connection, so a draining server waits for the latest request.
  const drained = server.draining && latestOn(server, request.socket)?.response === response
  if (context.last || leftover || drained) headers.push('Connection', 'close')
  response.writeHead(answer.status, headers)
  if (!leftover) {
    if (body instanceof SharedText) {
      response.cork()
      for (const part of body.parts) response.write(part)
      response.end()
    }
    // Pure ASCII yields the same bytes in latin1 and needs no encoding.
    else if (typeof body === 'string') response.end(body, length === body.length ? 'latin1' : 'utf8')
    else response.end(body)
    server.waiting.answer(request.socket, response, length)
    return
  }
  // Sends the whole answer now. The connection closes after the caller has had time to read it.
  response.flushHeaders()
  if (length > 0) response.write(body instanceof SharedText ? String(body) : body)
  server.waiting.answer(request.socket, response, length)
  swallow(request, server.limits, () => response.end())
}

/** Whether the header allows gzip, by its name or by `*` (RFC 9110). Without the header, the body is sent as it is. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  const codings = new Map(
    String(header ?? '')
      .toLowerCase()
      .split(',')
      .map((entry) => entry.split(';').map((part) => part.trim()))
      .map(([name = '', weight = '']) => [name, !/^q=0(?:\.0*)?$/.test(weight)] as const),
  )
  return codings.get('gzip') ?? codings.get('x-gzip') ?? codings.get('*') ?? false
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

/** Turns an error of Node's parser or timeouts into a fault (E2). Undefined when the caller simply disconnected. */
function parserFault(error: Error & { code?: string }, limits: ServerContext['limits']): Fault | undefined {
  switch (error.code) {
    case 'ECONNRESET':
    case 'EPIPE':
      return undefined
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Fault('RequestTimeout', 'The request did not arrive in time')
    case 'HPE_HEADER_OVERFLOW':
      return new Fault('HeadersTooLarge', `Request line and headers may have at most ${limits.headerBytes} bytes`)
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Fault('TooLarge', 'The chunk extensions are too large')
    default:
      return new Fault('BadRequest', 'Not a valid HTTP/1.1 request')
  }
}

/**
 * Handles a connection whose input cannot be parsed any further. Earlier complete requests get a moment to be
 * answered, an incomplete one is refused when its turn comes, and then the connection closes.
 */
export function refuseUnparsed(server: ServerContext, error: Error & { code?: string }, socket: Duplex): void {
  const fault = parserFault(error, server.limits)
  if (!fault || !socket.writable) {
    socket.destroy()
    return
  }
  const isSilenced = server.silenced.has(socket)
  server.silenced.add(socket)
  // Every further packet raises another error. The answer to the first one is on its way, and the connection closes.
  if (isSilenced) return
  const latest = latestOn(server, socket)
  if (latest === undefined) {
    answerRaw(server, socket, fault, 'other')
    return
  }
  latest.last = true
  if (latest.response.headersSent) latest.response.once('close', () => socket.end())
  else if (!latest.request.complete) latest.cancel(fault)
  setTimeout(() => socket.destroy(), server.limits.lingerMs)
}

/**
 * Writes the answer directly to the socket, with the headers and body of any other error, and closes the connection.
 */
export function answerRaw(server: ServerContext, socket: Duplex, raised: Fault, method: string): void {
  const fault = markedFault(server, raised)
  const correlationId = correlationOf({})
  const body = encodeJson(ErrorResponse, errorResponse(fault, correlationId), undefined, server.options.names)
  const headers = [
    ...commonHeaders(server, correlationId),
    'Date',
    new Date().toUTCString(),
    'Content-Type',
    'application/json; charset=utf-8',
    'Content-Length',
    String(Buffer.byteLength(body)),
    ...headersOf(fault),
    'Connection',
    'close',
  ]
  let head = `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status] ?? ''}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  server.metrics.answered('other', method, fault.status)
  server.log({ level: 'info', msg: `refused: ${fault.message}`, method, status: fault.status, correlationId })
  // A reset would destroy the answer, so the caller gets a limited time to read it.
  socket.on('error', () => {})
  socket.end(`${head}\r\n${body}`)
  socket.resume()
  setTimeout(() => socket.destroy(), server.limits.lingerMs)
}
