import type { IncomingMessage } from 'node:http'
import { Fault } from '../errors.ts'

/**
 * S2: what Node's parser lets through although two readers of one request could understand it
 * differently. Answers the fault, or nothing when the request is plain. Whoever sends such a thing
 * gets no further request answered on that connection.
 */
export function gate(request: IncomingMessage, headerCount: number): Fault | undefined {
  const { rawHeaders, url = '' } = request
  if (rawHeaders.length > headerCount * 2) {
    return new Fault('HeadersTooLarge', `A request may have at most ${headerCount} headers`)
  }
  return version(request) ?? headersOf(request) ?? target(url) ?? bodyOf(request)
}

function version({ httpVersion }: IncomingMessage): Fault | undefined {
  if (httpVersion === '1.1' || httpVersion === '1.0') return undefined
  return new Fault('BadRequest', 'This server speaks HTTP/1.1')
}

/** Names that change who is asked, who asks, or how the body is read. */
const single = new Map([
  [4, 'host'],
  [12, 'content-type'],
  [13, 'authorization'],
])

function headersOf({ rawHeaders, headers }: IncomingMessage): Fault | undefined {
  let seen = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    const { length } = name
    // Three lengths tell almost every header apart from the three names.
    if (length !== 4 && length !== 12 && length !== 13) continue
    if (name.toLowerCase() !== single.get(length)) continue
    const bit = 1 << length
    if (seen & bit) return new Fault('BadRequest', `The header ${name} must be given only once`)
    seen |= bit
  }
  if (headers.host === undefined || headers.host === '') return new Fault('BadRequest', 'The Host header is missing')
  const { expect } = headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
    return new Fault('BadRequest', 'The only expectation that is met is 100-continue')
  }
  return undefined
}

/** Raw or encoded control characters, spaces, `#`, backslashes and anything outside ASCII. */
const unsafe = /[^\x21\x22\x24-\x5b\x5d-\x7e]|%(?:[01][0-9a-f]|7f)/i

function target(url: string): Fault | undefined {
  if (url.charCodeAt(0) !== 47) {
    return new Fault('BadRequest', 'The request target must be a path that begins with a slash')
  }
  if (url.charCodeAt(1) === 47) {
    return new Fault('BadRequest', 'The request target must not begin with two slashes')
  }
  if (unsafe.test(url)) return new Fault('BadRequest', 'The request target holds a character that is not allowed there')
  return undefined
}

function bodyOf({ method, headers, httpVersion }: IncomingMessage): Fault | undefined {
  const chunked = headers['transfer-encoding'] !== undefined
  if (chunked && httpVersion === '1.0') return new Fault('BadRequest', 'HTTP/1.0 has no Transfer-Encoding')
  if (method === 'POST' || method === 'DELETE') return undefined
  const length = headers['content-length']
  if (!chunked && (length === undefined || length === '0')) return undefined
  return new Fault('BadRequest', `${method} must not have a body`)
}
