import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { Fault } from '../errors.ts'
import { ErrorResponse } from '../protocol/index.ts'
import { encodeJson, errorResponse } from '../wire/index.ts'
import { correlationOf, latestOn, type ServerContext } from './context.ts'
import { commonHeaders, varies } from './send.ts'

/** E2: what Node's parser or its clock refused, as a fault; undefined when the caller simply went away. */
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
 * For what cannot be understood any further: requests that came whole before it get a moment to be answered, one that
 * broke off is refused in its turn, and then the connection closes.
 */
export function refuseUnparsed(server: ServerContext, error: Error & { code?: string }, socket: Duplex): void {
  const fault = parserFault(error, server.limits)
  if (!fault || !socket.writable) {
    socket.destroy()
    return
  }
  const isSilenced = server.silenced.has(socket)
  server.silenced.add(socket)
  // Every further packet is a further error; what follows the first is on its way, and the connection ends.
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

/** Answers on the bare connection, with the headers and the body that every other error has, and closes it. */
export function answerRaw(server: ServerContext, socket: Duplex, fault: Fault, method: string): void {
  const correlationId = correlationOf({})
  const body = encodeJson(ErrorResponse, errorResponse(fault, correlationId), undefined, server.options.names)
  const headers = [
    ...commonHeaders(correlationId, varies(server)),
    'Date',
    new Date().toUTCString(),
    'Content-Type',
    'application/json; charset=utf-8',
    'Content-Length',
    String(Buffer.byteLength(body)),
    ...Object.entries(fault.details.headers ?? {}).flat(),
    'Connection',
    'close',
  ]
  let head = `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status] ?? ''}\r\n`
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`
  server.metrics.answered('other', method, fault.status)
  server.log({ level: 'info', msg: `refused: ${fault.message}`, method, status: fault.status, correlationId })
  // An answer cut off by a reset explains nothing: the caller gets a moment to read it, and no longer.
  socket.on('error', () => {})
  socket.end(`${head}\r\n${body}`)
  socket.resume()
  setTimeout(() => socket.destroy(), server.limits.lingerMs)
}
