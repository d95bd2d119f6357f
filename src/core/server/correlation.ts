import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const sane = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
/** W3C Trace Context: version 00 has exactly four parts, later ones may have more; ff is not a version. */
const trace =
  /^(?:00-([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}|(?!00|ff)[0-9a-f]{2}-([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?)$/
const noTrace = '0'.repeat(32)

/** H6: the caller's own id, or its trace's, when it is one that a log can hold; else a new one. */
export function correlationOf(headers: IncomingHttpHeaders): string {
  const given = headers['x-correlation-id']
  if (typeof given === 'string' && sane.test(given)) return given
  const { traceparent } = headers
  if (typeof traceparent === 'string') {
    const found = trace.exec(traceparent)
    const id = found?.[1] ?? found?.[2]
    if (id !== undefined && id !== noTrace) return id
  }
  return randomUUID()
}
