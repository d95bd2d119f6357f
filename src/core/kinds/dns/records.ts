import { isIP, SocketAddress } from 'node:net'
import { showDuration } from '../../format.ts'
import { said } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'

export const recordTypes = ['A', 'AAAA', 'CAA', 'CNAME', 'MX', 'NS', 'PTR', 'SOA', 'SRV', 'TXT'] as const
export type RecordType = (typeof recordTypes)[number]

type Fields = Readonly<Record<string, unknown>>

/** Records as one text each, in the order of a zone file: `10 mail.example.com`, `10 5 443 host`. */
export function recordTexts(type: RecordType, answer: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(answer) ? answer : [answer]
  return all.map((record) => {
    if (typeof record === 'string') return record
    // A TXT record comes in pieces of 255 bytes.
    if (Array.isArray(record)) return record.join('')
    const fields = record as Fields
    if (type === 'MX') return pick(fields, ['priority', 'exchange'])
    if (type === 'SRV') return pick(fields, ['priority', 'weight', 'port', 'name'])
    if (type === 'SOA') return pick(fields, ['nsname', 'hostmaster', 'serial', 'refresh', 'retry', 'expire', 'minttl'])
    const [tag, value] = Object.entries(fields).find(([name]) => name !== 'critical' && name !== 'type') ?? ['', '']
    return `${String(fields.critical)} ${tag} ${String(value)}`
  })
}
const pick = (fields: Fields, names: readonly string[]): string => names.map((name) => String(fields[name])).join(' ')

/** Two records that mean the same have one canonical text: names without case and final dot, addresses in one form. */
export function canonical(type: RecordType, record: string): string {
  if (type === 'TXT' || type === 'CAA') return record
  const text = record.trim().toLowerCase().replace(/\.$/, '').replace(/\s+/g, ' ')
  return isIP(text) === 6 ? new SocketAddress({ address: text, family: 'ipv6' }).address : text
}

type Asked = { readonly name: string; readonly type: RecordType; readonly servers: string; readonly afterMs: number }

/** What a failed look-up means: of the name, of the server, or of the way there. */
export function dnsFault(error: NodeJS.ErrnoException, asked: Asked): ProbeError {
  const { servers, type } = asked
  const name = said(asked.name, 128)
  const code = error.code ?? ''
  const took = showDuration(asked.afterMs)
  switch (code) {
    case 'ENOTFOUND':
      return new ProbeError('dns', `${servers} says there is no such name as ${name} (NXDOMAIN)`, [code])
    case 'ENODATA':
      return new ProbeError('dns', `${servers} knows ${name}, but no ${type} record of it`, [code])
    case 'ESERVFAIL':
      return new ProbeError(
        'dns',
        `${servers} failed over ${name} (SERVFAIL): its upstream, zone or DNSSEC, not the network`,
        [code],
      )
    case 'EREFUSED':
      return new ProbeError(
        'dns',
        `${servers} refuses to answer for ${name} (REFUSED): not its zone, or not its client`,
        [code],
      )
    case 'ETIMEOUT':
      return new ProbeError('timeout', `${servers} did not answer within ${took}`, [code])
    case 'ECONNREFUSED':
      return new ProbeError(
        'refused',
        `${servers} refused the question in ${took}: host up, no name server on that port`,
        [code],
      )
    case 'EBADNAME':
      return new ProbeError('data', `${name} is no name that DNS can be asked for`, [code])
    default:
      return new ProbeError(
        'protocol',
        `${servers} answered for ${name} what cannot be read (${said(code || error.message, 64)})`,
        [code],
      )
  }
}
