import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { Fault } from '../errors.ts'
import { ErrorResponse } from '../protocol/index.ts'
import { encodeJson, errorResponse } from '../wire/index.ts'
import { correlationOf, latestOn, type ServerContext } from './context.ts'
import { headersOf } from './response.ts'
import { commonHeaders } from './send.ts'

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
export function answerRaw(server: ServerContext, socket: Duplex, fault: Fault, method: string): void {
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
