import { Resolver } from 'node:dns/promises'
import { isIP, SocketAddress } from 'node:net'
import {
  atLeast,
  atMost,
  type CheckContext,
  checksOn,
  fail,
  latencySetting,
  machineKind,
  notChecked,
  ok,
  type Result,
  warn,
} from '../engine/index.ts'
import { showDuration } from '../format.ts'
import { daysBetween, formatDay } from '../net/certificates.ts'
import { aliasOf } from '../net/connect.ts'
import { queryCode, querySignatures } from '../net/dns-query.ts'
import { count, quote, sanitize } from '../net/text.ts'
import { ProbeError } from '../probe-error.ts'
import type { SettingsSpec, Values } from '../settings/index.ts'

const recordTypes = ['A', 'AAAA', 'CAA', 'CNAME', 'MX', 'NS', 'PTR', 'SOA', 'SRV', 'TXT'] as const
type RecordType = (typeof recordTypes)[number]

/** A datagram may get lost: c-ares asks again after this many milliseconds, and doubles the wait each time. */
const firstTryMs = 1_000

/** What to look up; every check names it. */
const questionSettings = {
  // Not `name`, which is the name of the monitor itself.
  query: { type: 'text', required: true, doc: 'Name to look up' },
  type: { type: 'choice', values: recordTypes, default: 'A', doc: 'Record type' },
} as const satisfies SettingsSpec
type Question = Values<typeof questionSettings>

type NameServers = {
  readonly resolver: Resolver
  /** Their addresses, as shown in messages. */
  readonly servers: string
}

type Answer = {
  /** The name servers that were queried. */
  readonly server: string
  readonly ms: number
  readonly records: readonly string[]
  /** Without records: the name at the end of the aliases (CNAME), if it is another one. */
  readonly alias?: string | undefined
}

const check = checksOn<NameServers>()

/** Queries once for all checks. Throws ProbeError. */
async function lookUp(
  { resolver, servers }: NameServers,
  { query: name, type }: Question,
  { signal, now, step }: CheckContext,
): Promise<Answer> {
  step('answer', servers)
  const cancel = (): void => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  const start = now()
  try {
    const records = recordTexts(type, await resolver.resolve(name, type))
    const ms = now() - start
    const alias = records.length === 0 ? await aliasOf(resolver, name, 'ENODATA') : undefined
    return { server: servers, ms, records, alias }
  } catch (error) {
    if (signal.aborted) throw error
    const afterMs = now() - start
    const code = await readableCode(resolver, (error as NodeJS.ErrnoException).code ?? '', { name, type, signal })
    const alias = await aliasOf(resolver, name, code)
    throw dnsFault(code, { name, type, servers, afterMs, alias })
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/**
 * The error code of a look-up. c-ares calls an answer without the question unreadable, and Unbound refuses a client in
 * this way: then the response code is read over TCP. Rejects only when the signal aborts.
 */
async function readableCode(
  resolver: Resolver,
  code: string,
  { name, type, signal }: { readonly name: string; readonly type: RecordType; readonly signal: AbortSignal },
): Promise<string> {
  if (code !== 'EBADRESP') return code
  const { host: ip, port } = placeOf(resolver.getServers()[0] ?? '')
  const limit = AbortSignal.any([signal, AbortSignal.timeout(overTcpMs)])
  try {
    return responseCodes[await queryCode({ ip, port, name, type, signal: limit })] ?? code
  } catch {
    signal.throwIfAborted()
    return code
  }
}

/** The codes of RFC 1035, 4.1.1, that come without a question, as c-ares names them. */
const responseCodes: Readonly<Record<number, string>> = { 2: 'ESERVFAIL', 5: 'EREFUSED' }

const answer = check({
  depth: 'Basic',
  results: { answer: 'The server returns records' },
  settings: questionSettings,
  observe: lookUp,
  evaluate: ({ server, records, alias }, { query, type }) => {
    const about: Partial<Result> = {
      address: server,
      measurement: { value: records.length, unit: 'count' },
      details: recordDetails(records),
    }
    return records.length > 0
      ? ok('answer', `${sanitize(query, 128)} ${type} is ${summaryOf(records)}`, about)
      : fail('answer', 'dns', noRecord({ server, alias }, query, type), about)
  },
})

/** Maximum number of records in the details. An answer over TCP may have thousands. */
const maxDetails = 50

function recordDetails(records: readonly string[]): readonly string[] {
  const first = records.slice(0, maxDetails).map((record) => sanitize(record))
  return records.length > maxDetails ? [...first, `and ${records.length - maxDetails} more`] : first
}

const noRecord = ({ server, alias }: Pick<Answer, 'server' | 'alias'>, query: string, type: RecordType): string =>
  alias === undefined
    ? `${server} returned no ${type} record for ${sanitize(query, 128)}`
    : `${server} reports that ${sanitize(query, 128)} is an alias of ${sanitize(alias, 128)}, which has no ${type} record`

export const latency = check({
  depth: 'Basic',
  results: { latency: 'The answer arrives in time' },
  settings: {
    ...questionSettings,
    latency: latencySetting({ warn: 500, limit: 3_000 }, 'How long the answer may take'),
  },
  observe: lookUp,
  evaluate: ({ server, ms: value }, { latency: threshold }) =>
    atMost({ check: 'latency', what: `${server} answered in`, value, unit: 'duration', threshold, address: server }),
})

const expected = check({
  depth: 'Standard',
  results: { expected: 'With `expect`: the expected records are returned' },
  settings: {
    ...questionSettings,
    expect: {
      type: 'texts',
      doc: 'Records that the answer must contain: an address, a name, "10 mail.example.com" (MX), "10 5 443 host" (SRV), a text',
    },
    exact: { type: 'flag', default: false, doc: 'The answer may contain no records other than those of `expect`' },
  },
  applies: (_, { expect }) => expect !== undefined,
  observe: lookUp,
  evaluate: ({ server, records }, { query, type, expect = [], exact }) => {
    const required = expect.map((record) => canonical(type, record))
    const actual = records.map((record) => canonical(type, record))
    const missing = expect.filter((_, index) => !actual.includes(required[index] ?? ''))
    const extra = exact ? records.filter((_, index) => !required.includes(actual[index] ?? '')) : []
    const wrong = [
      ...(missing.length > 0 ? [`lacks ${summaryOf(missing)}`] : []),
      ...(extra.length > 0 ? [`also has ${summaryOf(extra)}`] : []),
    ]
    const subject = `${sanitize(query, 128)} ${type}`
    if (wrong.length === 0) return ok('expected', `${subject} is as expected`, { address: server })
    const message = `${subject} at ${server} ${wrong.join(' and ')}; it is ${summaryOf(records)}`
    return fail('expected', 'data', message, { address: server })
  },
})

export const records = check({
  depth: 'Standard',
  results: { records: 'With `records`: the number of records' },
  settings: {
    ...questionSettings,
    records: { type: 'threshold', unit: 'count', doc: 'Minimum number of records in the answer' },
  },
  applies: (_, settings) => settings.records !== undefined,
  observe: lookUp,
  evaluate: ({ server, records: { length: value } }, { query, type, records: threshold = {} }) => {
    const what = `${sanitize(query, 128)} ${type} records:`
    return atLeast({ check: 'records', what, value, unit: 'count', threshold, address: server })
  },
})

export const serials = check({
  depth: 'Advanced',
  results: {
    serial: 'All name servers of the zone have the same serial; with type SOA or NS, or with `nameServers`',
  },
  settings: {
    ...questionSettings,
    nameServers: {
      type: 'texts',
      doc: 'Name servers of the zone `query`, as ip, ip:port or [ip6]:port; by default those in its NS records',
    },
  },
  applies: (_, { type, nameServers }) => nameServers !== undefined || type === 'SOA' || type === 'NS',
  observe: async ({ resolver }, { query: zone, nameServers }, { signal }) => ({
    zone,
    serials: await Promise.all(
      (nameServers ?? (await nameServersOf(resolver, zone))).slice(0, maxNameServers).map(async (place) => {
        const own = new Resolver({ timeout: firstTryMs, tries: 2 })
        const cancel = (): void => own.cancel()
        signal.addEventListener('abort', cancel, { once: true })
        try {
          own.setServers([isIP(place) === 6 ? `[${place}]` : place])
          return { place, serial: (await own.resolveSoa(zone)).serial }
        } catch (error) {
          signal.throwIfAborted()
          return { place, problem: (error as NodeJS.ErrnoException).code ?? 'unknown' }
        } finally {
          signal.removeEventListener('abort', cancel)
        }
      }),
    ),
  }),
  evaluate: ({ zone, serials: all }) => {
    const reported = all.flatMap((one) => (one.serial === undefined ? [] : [one.serial]))
    const subject = `zone ${sanitize(zone, 128)}`
    const details = all.map(({ place, serial, problem }) =>
      serial === undefined ? `${place}: no serial (${sanitize(problem ?? '', 32)})` : `${place}: serial ${serial}`,
    )
    if (reported.length === 0)
      return notChecked(
        'serial',
        'missing',
        `none of ${count(all.length, 'name server')} of ${subject} reports a serial`,
        { details },
      )
    const value = Math.max(...reported) - Math.min(...reported)
    const more: Partial<Result> = { details, measurement: { value, unit: 'count', warn: 0, bound: 'atMost' } }
    const silent = all.length - reported.length
    if (value > 0) {
      const different = summaryOf([...new Set(reported)].map(String))
      const message = `${subject} has the serials ${different} at ${count(reported.length, 'name server')}: a zone transfer is late or fails`
      return warn('serial', message, more)
    }
    if (silent > 0)
      return warn(
        'serial',
        `${count(silent, 'name server')} of ${all.length} of ${subject} did not report a serial`,
        more,
      )
    return ok('serial', `${subject} has the serial ${reported[0]} at ${count(reported.length, 'name server')}`, more)
  },
})

export const signatures = check({
  depth: 'Advanced',
  results: {
    signatures: 'The DNSSEC signatures (RRSIG) of the answer remain valid long enough; left out if it has none',
  },
  settings: {
    ...questionSettings,
    signatures: {
      type: 'threshold',
      unit: 'days',
      default: { warn: 7, limit: 2 },
      doc: 'Minimum remaining validity of the DNSSEC signatures of the answer, in days',
    },
    signed: { type: 'flag', default: false, doc: 'The answer must be signed' },
  },
  last: true,
  observe: async ({ resolver }, { query: name, type }, { signal, date }) => {
    const [place = ''] = resolver.getServers()
    const { host, port } = placeOf(place)
    const limit = AbortSignal.any([signal, AbortSignal.timeout(overTcpMs)])
    try {
      return { place, at: date(), all: await querySignatures({ ip: host, port, name, type, signal: limit }) }
    } catch (error) {
      const isUnreachable = !(error instanceof ProbeError) || error.fault === 'timeout' || error.fault === 'refused'
      if (signal.aborted || !isUnreachable) throw error
      return { place, at: date(), all: undefined }
    }
  },
  evaluate: ({ place, at, all }, { query, type, signatures: threshold, signed }) => {
    const subject = `${sanitize(query, 128)} ${type}`
    if (all === undefined) {
      // Firewalls often let only UDP through, and the other checks work without TCP.
      const why = `${place} does not answer over TCP, which signed answers need`
      if (signed) return notChecked('signatures', 'missing', why, { address: place })
      return warn('signatures', `not checked: ${why}`, { address: place, notChecked: 'missing' })
    }
    const [first] = all.toSorted((a, b) => a.to.getTime() - b.to.getTime())
    if (first === undefined) {
      const message = `${place} returned no signature for ${subject}: the zone is not signed, or the server leaves them out`
      return signed ? fail('signatures', 'data', message, { address: place }) : []
    }
    const early = all.find(({ from }) => from > at)
    if (early) {
      const message = `a signature of ${subject} is valid only from ${formatDay(early.from)}: signed too early, or a wrong clock`
      return fail('signatures', 'data', message, { address: place })
    }
    const value = daysBetween(at, first.to)
    if (first.to < at) {
      const ago = `${daysBetween(first.to, at)} d ago`
      const message = `a signature of ${subject} expired on ${formatDay(first.to)}, ${ago}: resolvers that validate answer SERVFAIL`
      const measurement = { value, unit: 'days', ...threshold, bound: 'atLeast', at: first.to } as const
      return fail('signatures', 'data', message, { address: place, measurement })
    }
    const what = `${count(all.length, 'signature')} of ${subject}: the first expires on ${formatDay(first.to)}, in`
    return atLeast({ check: 'signatures', what, value, unit: 'days', threshold, at: first.to, address: place })
  },
})

/** Milliseconds for a query over TCP: a firewall may drop it without a word. */
const overTcpMs = 3_000
/** Maximum number of name servers that are compared; zones have two to thirteen. */
const maxNameServers = 32

/** The addresses of the name servers in the NS records of a zone. Throws ProbeError. */
async function nameServersOf(resolver: Resolver, zone: string): Promise<readonly string[]> {
  const names = await resolver.resolveNs(zone).catch(() => [])
  if (names.length === 0) throw new ProbeError('dns', `${sanitize(zone, 128)} has no NS records: set nameServers`)
  const addresses = await Promise.all(
    names.slice(0, maxNameServers).map(async (name) => {
      const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
      return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    }),
  )
  const all = [...new Set(addresses.flat())]
  if (all.length === 0) throw new ProbeError('dns', `no name server of ${sanitize(zone, 128)} has an address`)
  return all
}

/** The address and the port of a server as the resolver lists it. */
function placeOf(place: string): { readonly host: string; readonly port: number } {
  if (isIP(place)) return { host: place, port: 53 }
  const [, host = '', port = ''] = /^\[?([^\]]*)\]?:(\d+)$/.exec(place) ?? []
  return { host, port: Number(port) }
}

const settings = {
  ...questionSettings,
  server: { type: 'text', doc: 'Name server as ip, ip:port or [ip6]:port; by default those of this machine' },
} as const satisfies SettingsSpec

/** Sends nothing yet. Throws ProbeError `data` for a server that is not an address. */
function openResolver({ server }: Values<typeof settings>): NameServers {
  const resolver = new Resolver({ timeout: firstTryMs, tries: 4 })
  if (server !== undefined) {
    try {
      resolver.setServers([isIP(server) === 6 ? `[${server}]` : server])
    } catch {
      throw new ProbeError('data', `server ${quote(server, 64)} is not of the form ip, ip:port or [ip6]:port`)
    }
  }
  return { resolver, servers: resolver.getServers().join(', ') }
}

/** Queries a name server directly: bypasses the hosts file and every cache of this machine. */
export default machineKind({
  name: 'dns',
  title: 'A name resolves to the expected records',
  runsOn: 'network',
  settings,
  target: ({ server }) => (server === undefined ? {} : { host: server }),
  validate: ({ expect }) => (expect?.length === 0 ? 'expect is empty: list the records, or remove it' : undefined),
  open: openResolver,
  close: ({ resolver }) => resolver.cancel(),
  checks: [answer, latency, expected, records, serials, signatures],
})

/** Names a few records and counts the rest. */
function summaryOf(records: readonly string[]): string {
  const first = records.slice(0, 4).map((record) => sanitize(record, 80))
  const rest = records.length - first.length
  return `${first.join(', ') || 'nothing'}${rest > 0 ? ` and ${count(rest, 'more', 'more')}` : ''}`
}

type Fields = Readonly<Record<string, unknown>>

/** Formats each record as in a zone file: `10 mail.example.com`, `10 5 443 host`. */
export function recordTexts(type: RecordType, answer: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(answer) ? answer : [answer]
  return all.map((record) => {
    if (typeof record === 'string') return record
    // A TXT record consists of strings of up to 255 bytes.
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

/** The canonical text of a record: names in lower case without the final dot, addresses in one form. */
export function canonical(type: RecordType, record: string): string {
  if (type === 'TXT' || type === 'CAA') return record
  const text = record.trim().toLowerCase().replace(/\.$/, '').replace(/\s+/g, ' ')
  return isIP(text) === 6 ? new SocketAddress({ address: text, family: 'ipv6' }).address : text
}

type FailedLookUp = {
  readonly name: string
  readonly type: RecordType
  readonly servers: string
  readonly afterMs: number
  /** The name at the end of the aliases (CNAME), if it is another one. */
  readonly alias: string | undefined
}

/** Classifies a failed look-up: a fault of the name, of the server, or of the path to it. */
function dnsFault(code: string, lookUp: FailedLookUp): ProbeError {
  const { servers, type } = lookUp
  const name = sanitize(lookUp.name, 128)
  const took = showDuration(lookUp.afterMs)
  switch (code) {
    case 'ENOTFOUND':
      if (lookUp.alias !== undefined) {
        const what = `${name} is an alias of ${sanitize(lookUp.alias, 128)}, which does not exist (NXDOMAIN)`
        return new ProbeError('dns', `${servers} reports that ${what}`, [code])
      }
      return new ProbeError('dns', `${servers} reports that ${name} does not exist (NXDOMAIN)`, [code])
    case 'ENODATA':
      if (lookUp.alias !== undefined)
        return new ProbeError('dns', noRecord({ server: servers, alias: lookUp.alias }, lookUp.name, type), [code])
      return new ProbeError('dns', `${servers} knows ${name}, but has no ${type} record for it`, [code])
    case 'ESERVFAIL':
      return new ProbeError(
        'dns',
        `${servers} failed to resolve ${name} (SERVFAIL): check its upstream, zone or DNSSEC, not the network`,
        [code],
      )
    case 'EREFUSED':
      return new ProbeError(
        'dns',
        `${servers} refuses to answer for ${name} (REFUSED): it does not serve this zone, or not this client`,
        [code],
      )
    case 'ETIMEOUT':
      return new ProbeError('timeout', `${servers} did not answer within ${took}`, [code])
    case 'ECONNREFUSED':
      return new ProbeError(
        'refused',
        `${servers} refused the query after ${took}: host up, no name server on that port`,
        [code],
      )
    case 'EBADNAME':
      return new ProbeError('data', `${name} is not a valid DNS name`, [code])
    default:
      return new ProbeError('protocol', `${servers} sent an unreadable answer for ${name} (${sanitize(code, 64)})`, [
        code,
      ])
  }
}
