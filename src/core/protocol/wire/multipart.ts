import { Fault } from '../../base/errors.ts'
import { limits } from '../index.ts'
import { parseHeaderValue } from './negotiate.ts'
import { type Pair, tooMany } from './query.ts'

const maxHead = 1024
const headEnd = '\r\n\r\n'

const malformed = (reason: string): Fault =>
  new Fault('Unreadable', `Could not deserialize 'multipart/form-data' request: ${reason}`)

/**
 * Reads the fields of a multipart form strictly (RFC 7578): the boundary comes first, and every part is a named text
 * field in UTF-8 or a file. No request has files, so they are ignored. Makes one pass over the bytes.
 */
export const readMultipart = (bytes: Uint8Array, boundary: string | undefined): readonly Pair[] => {
  if (boundary === undefined || boundary === '' || boundary.length > 70) throw malformed('the boundary is missing')
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  const first = delimiter.subarray(2)
  if (!body.subarray(0, first.length).equals(first)) throw malformed('it does not begin with its boundary')
  const pairs: Pair[] = []
  for (let at = first.length, parts = 0; ; parts++) {
    const after = body.toString('latin1', at, at + 2)
    if (after === '--') return pairs
    if (after !== '\r\n') throw malformed('a boundary is not followed by a line end')
    if (parts === limits.parameters) throw tooMany()
    const headStart = at + 2
    const headLength = body.subarray(headStart, headStart + maxHead).indexOf(headEnd)
    if (headLength === -1) throw malformed('a part has no header, or one that is too long')
    const name = fieldName(body.toString('latin1', headStart, headStart + headLength))
    const start = headStart + headLength + headEnd.length
    // A part without content may share the line end of its header with the boundary.
    const end = body.indexOf(delimiter, start - 2)
    if (end === -1) throw malformed('it does not end with its boundary')
    if (name !== undefined) pairs.push([name, text(body.subarray(start, Math.max(start, end)))])
    at = end + delimiter.length
  }
}

/** Undefined for a file. */
const fieldName = (head: string): string | undefined => {
  const headers = new Map(
    head.split('\r\n').map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1)]
    }),
  )
  const disposition = parseHeaderValue(headers.get('content-disposition') ?? '')
  const name = disposition?.parameters.get('name')
  if (disposition?.value !== 'form-data' || name === undefined) throw malformed('a part has no name')
  if (disposition.parameters.has('filename') || disposition.parameters.has('filename*')) return undefined
  const encoding = headers.get('content-transfer-encoding')?.trim().toLowerCase() ?? 'binary'
  if (!['7bit', '8bit', 'binary'].includes(encoding)) throw malformed('a part has a transfer encoding')
  return name
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const text = (bytes: Uint8Array): string => {
  try {
    return utf8.decode(bytes)
  } catch {
    throw malformed('a part is not valid UTF-8')
  }
}
