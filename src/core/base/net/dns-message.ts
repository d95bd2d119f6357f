/** Numbers of record types (RFC 1035, RFC 2782, RFC 3596, RFC 4034, RFC 8659). */
export const typeNumbers = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  CAA: 257,
} as const

/** A record of an answer. Names are in lower case, without the final dot. */
type Section = readonly DnsRecord[]
export type DnsRecord = {
  readonly name: string
  readonly type: number
  /** Seconds for which it may be cached. */
  readonly ttl: number
  /** Where its data begins and ends in the message. */
  readonly at: number
  readonly end: number
}

/** An answer, as far as svc reads it by itself. */
export type DnsMessage = {
  /** The response code (RFC 1035, 4.1.1). */
  readonly code: number
  /** The server is authoritative for the name (AA). */
  readonly isAuthoritative: boolean
  /** The server resolves names of other servers' zones for this client (RA). */
  readonly resolvesOthers: boolean
  readonly answers: Section
  readonly authority: Section
  /** The name in the data of an NS or CNAME record. */
  readonly nameIn: (record: DnsRecord) => string
  /** The serial in the data of an SOA record. */
  readonly serialIn: (record: DnsRecord) => number
  /** The data of a record as in a zone file: `10 mail.example.com`. */
  readonly textIn: (record: DnsRecord) => string
}

const headerBytes = 12
const maxNameBytes = 255

/** Reads an answer. Throws RangeError for a message that ends early or whose names point in a circle. */
export function readMessage(message: Buffer): DnsMessage {
  const [high, low] = [message.readUInt8(2), message.readUInt8(3)]
  let at = headerBytes
  for (let left = message.readUInt16BE(4); left > 0; left -= 1) at = nameAt(message, at).end + 4
  const section = (count: number): Section => {
    const records: DnsRecord[] = []
    for (let left = count; left > 0; left -= 1) {
      const { name, end } = nameAt(message, at)
      const data = end + 10
      const next = data + message.readUInt16BE(end + 8)
      if (next > message.length) throw new RangeError('record')
      records.push({ name, type: message.readUInt16BE(end), ttl: message.readUInt32BE(end + 4), at: data, end: next })
      at = next
    }
    return records
  }
  return {
    code: low & 15,
    isAuthoritative: (high & 4) !== 0,
    resolvesOthers: (low & 128) !== 0,
    answers: section(message.readUInt16BE(6)),
    authority: section(message.readUInt16BE(8)),
    nameIn: (record) => nameAt(message, record.at).name,
    serialIn: (record) => message.readUInt32BE(nameAt(message, nameAt(message, record.at).end).end),
    textIn: (record) => dataText(message, record),
  }
}

/** The data of a record as text. Throws RangeError for data that end early. */
function dataText(message: Buffer, { type, at, end }: DnsRecord): string {
  const numbers = (count: number) => Array.from({ length: count }, (_, index) => message.readUInt16BE(at + 2 * index))
  const behind = (count: number): string => [...numbers(count), nameAt(message, at + 2 * count).name].join(' ')
  if (type === typeNumbers.A) return message.subarray(at, end).join('.')
  if (type === typeNumbers.AAAA)
    return numbers(8)
      .map((group) => group.toString(16))
      .join(':')
  if (type === typeNumbers.MX) return behind(1)
  if (type === typeNumbers.SRV) return behind(3)
  if (type === typeNumbers.CAA) {
    const value = at + 2 + message.readUInt8(at + 1)
    return `${message.readUInt8(at)} ${message.toString('latin1', at + 2, value)} ${message.toString('latin1', value, end)}`
  }
  if (type === typeNumbers.TXT) {
    let text = ''
    for (let from = at; from < end; from += message.readUInt8(from) + 1)
      text += message.toString('utf8', from + 1, from + 1 + message.readUInt8(from))
    return text
  }
  const first = nameAt(message, at)
  if (type !== typeNumbers.SOA) return first.name
  const second = nameAt(message, first.end)
  const times = [0, 4, 8, 12, 16].map((offset) => message.readUInt32BE(second.end + offset))
  return [first.name, second.name, ...times].join(' ')
}

/** A name, and the offset after it. A name may end with a pointer to an earlier one (RFC 1035, 4.1.4). */
function nameAt(message: Buffer, from: number): { readonly name: string; readonly end: number } {
  const labels: string[] = []
  let at = from
  let end: number | undefined
  let bytes = 0
  for (;;) {
    const length = message.readUInt8(at)
    // Each step adds to the name or follows a pointer, and a name is short: a circle ends here.
    bytes += Math.max(1, length & 63) + 1
    if (bytes > 2 * maxNameBytes) throw new RangeError('name')
    if (length >= 0xc0) {
      end ??= at + 2
      at = message.readUInt16BE(at) & 0x3fff
    } else if (length === 0) {
      return { name: labels.join('.').toLowerCase(), end: end ?? at + 1 }
    } else {
      if (at + 1 + length > message.length) throw new RangeError('label')
      labels.push(message.toString('latin1', at + 1, at + 1 + length))
      at += length + 1
    }
  }
}

/** The records of a type. */
export const recordsOf = (section: Section, type: keyof typeof typeNumbers): Section =>
  section.filter((record) => record.type === typeNumbers[type])

/** The types that an answer without records of the requested type contains: CNAME, DNAME, and signatures of both. */
const aliasTypes: ReadonlySet<number> = new Set([typeNumbers.CNAME, 39, 46])

/** The serial of a zone in the answer to a question for SOA. Undefined without one. */
export function serialOf(message: DnsMessage): number | undefined {
  const [record] = recordsOf(message.answers, 'SOA')
  return record && message.serialIn(record)
}

/**
 * The last alias (CNAME) of a name where a server without recursion leaves it to others: it has no record of it and does
 * not claim that there is none. Undefined for every other answer.
 */
export function aliasElsewhere(message: DnsMessage): string | undefined {
  const aliases = recordsOf(message.answers, 'CNAME')
  const last = aliases.at(-1)
  const hasRecords = message.answers.some(({ type }) => !aliasTypes.has(type))
  const isComplete = hasRecords || recordsOf(message.authority, 'SOA').length > 0
  if (message.code !== 0 || message.resolvesOthers || last === undefined || isComplete) return undefined
  return message.nameIn(last)
}

/** The zone and the servers to which an answer refers. Undefined for an answer that is not a referral. */
export function referralIn(
  message: DnsMessage,
): { readonly zone: string; readonly servers: readonly string[] } | undefined {
  const servers = recordsOf(message.authority, 'NS')
  const [first] = servers
  const isReferral = message.code === 0 && !message.isAuthoritative && message.answers.length === 0
  if (!isReferral || first === undefined || recordsOf(message.authority, 'SOA').length > 0) return undefined
  return { zone: first.name, servers: servers.map((record) => message.nameIn(record)) }
}
