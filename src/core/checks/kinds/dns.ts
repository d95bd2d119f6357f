import { Resolver } from 'node:dns/promises'
import { isIP, SocketAddress } from 'node:net'
import { count, showDuration } from '../../base/format.ts'
import { familyName, familyOf } from '../../base/net/addresses.ts'
import { daysBetween, formatDay } from '../../base/net/certificates.ts'
import { type Aliases, aliasesOf, aliasLoop, hostPort } from '../../base/net/connect.ts'
import { aliasElsewhere, type DnsMessage, recordsOf, referralIn, serialOf } from '../../base/net/dns-message.ts'
import {
  needsTcp,
  obstacleText,
  queryCode,
  queryMessage,
  querySignatures,
  refusalCode,
  rrsigType,
} from '../../base/net/dns-query.ts'
import { sanitize } from '../../base/net/text.ts'
import { hostPortMistake, parseHostPort } from '../../base/net/url.ts'
import { NotReachedError, ProbeError } from '../../base/probe-error.ts'
import { dnsNameMistake, type SettingsSpec, type Values } from '../../base/settings/index.ts'
import { limitsOn } from '../assert/limit-check.ts'
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
  oneFamilySettings,
  type Result,
  warn,
} from '../engine/index.ts'
import { bytes } from '../recognition/index.ts'

const recordTypes = ['A', 'AAAA', 'CAA', 'CNAME', 'MX', 'NS', 'PTR', 'SOA', 'SRV', 'TXT'] as const
type RecordType = (typeof recordTypes)[number]

/** The response codes by number (RFC 1035, 4.1.1). */
const rcodes = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED'] as const

/** A datagram may get lost: c-ares asks again after this many milliseconds, and doubles the wait each time. */
const firstTryMs = 1_000

/** The question of a lookup; every check names it. */
const questionSettings = {
  // Not `name`, which is the name of the monitor itself.
  query: { type: 'text', observed: true, required: true, mistake: dnsNameMistake, doc: 'Name to look up' },
  type: { type: 'choice', observed: true, values: recordTypes, default: 'A', doc: 'Record type' },
  rcode: {
    type: 'choice',
    observed: true,
    values: rcodes,
    doc: 'Expected response code; without it, records are. NXDOMAIN, the name is gone, is met by an answer without any record too (NOERROR), and by nothing else',
  },
  transport: {
    type: 'choice',
    observed: true,
    values: ['tcp'],
    doc: 'Query over TCP; by default UDP, and TCP for a long answer',
  },
  ttl: { type: 'threshold', unit: 'duration', doc: 'Maximum TTL of the records; a resolver counts it down' },
} as const satisfies SettingsSpec
type Question = Values<typeof questionSettings>

type NameServers = {
  /** The answer that all checks share. */
  answer?: Promise<Answer>
  readonly resolver: Resolver
  /** Their addresses, as shown in messages. */
  readonly servers: string
}

type Answer = {
  /** The name servers that were queried. */
  readonly server: string
  readonly ms: number
  readonly records: readonly string[]
  /** Without records: the name is an alias of this one, in a zone that the server leaves to others. */
  readonly elsewhere?: string
  /** With `rcode`, `transport` or `ttl`: the whole answer. */
  readonly whole?: DnsMessage | undefined
}

const check = checksOn<NameServers>()
const limitCheck = limitsOn<NameServers>()

/** Queries once for all checks. Throws ProbeError. */
async function lookUp(nameServers: NameServers, question: Question, context: CheckContext): Promise<Answer> {
  nameServers.answer ??= queryRecords(nameServers, question, context)
  return await nameServers.answer
}

async function queryRecords(
  { resolver, servers }: NameServers,
  { query: name, type, rcode, transport, ttl }: Question,
  { signal, now, step }: CheckContext,
): Promise<Answer> {
  step('answer', servers)
  const cancel = (): void => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  const question = { name, type, signal }
  const start = now()
  try {
    const isOurs = (rcode ?? transport ?? ttl) !== undefined
    const { records, failure, whole } = isOurs
      ? await queryWhole(resolver, question, transport)
      : await queryResolver(resolver, question)
    const ms = now() - start
    signal.throwIfAborted()
    if (records.length > 0 || (whole && rcode)) return { server: servers, ms, records, whole }
    const code = whole ? failure : await readableCode(resolver, failure, question)
    const message = code === 'ENODATA' ? (whole ?? (await messageOf(resolver, question))) : undefined
    const alias = message && aliasElsewhere(message)
    // A server without recursion may answer a loop like an alias of another zone: with the first alias alone.
    const aliases = await aliasesOf(resolver, name, code)
    signal.throwIfAborted()
    if (alias !== undefined && !aliases.loops) return { server: servers, ms, records, elsewhere: alias }
    throw dnsFault(code, { name, type, servers, afterMs: ms, aliases, referral: message && referralIn(message) })
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** The records of a name, and without any the code of the failure. */
type LookedUp = { readonly records: readonly string[]; readonly failure: string; readonly whole?: DnsMessage }

const queryResolver = (resolver: Resolver, { name, type }: NameQuestion): Promise<LookedUp> =>
  resolver.resolve(name, type).then(
    (all) => ({ records: recordTexts(type, all), failure: 'ENODATA' }),
    (error: NodeJS.ErrnoException) => ({ records: [], failure: error.code ?? '' }),
  )

/**
 * The whole answer of the first name server that gives one: c-ares keeps response codes and TTLs to itself, and uses TCP
 * for long answers only.
 */
async function queryWhole(resolver: Resolver, question: NameQuestion, transport?: 'tcp'): Promise<LookedUp> {
  let failure = ''
  for (const { host: ip, port } of resolver.getServers().map(placeOf)) {
    const query = { ip, port, ...question, overTcp: transport === 'tcp' }
    try {
      const extended = await queryMessage(query)
      // An old server refuses the extension, and not the question (RFC 6891, 7).
      const isOld = [1, 4].includes(extended.code)
      const whole = isOld ? await queryMessage({ ...query, isPlain: true }) : extended
      const code = responseCodes[whole.code] ?? rcodes[whole.code] ?? 'EBADRESP'
      const records = recordsOf(whole.answers, question.type).map((one) => canonical(question.type, whole.textIn(one)))
      return { records, failure: whole.code === 0 ? 'ENODATA' : code, whole }
    } catch (error) {
      question.signal.throwIfAborted()
      const code = error instanceof ProbeError ? error.details[0] : (error as NodeJS.ErrnoException).code
      if (code === undefined && !(error instanceof RangeError)) throw error
      failure = error instanceof RangeError ? 'EBADRESP' : (code ?? '')
    }
  }
  return { records: [], failure }
}

type NameQuestion = { readonly name: string; readonly type: RecordType; readonly signal: AbortSignal }

/** The whole answer of the first name server: c-ares gives no reason for a lack of records. Undefined without one. */
async function messageOf(resolver: Resolver, { name, type, signal }: NameQuestion): Promise<DnsMessage | undefined> {
  const { host: ip, port } = placeOf(resolver.getServers()[0] ?? '')
  try {
    return await queryMessage({ ip, port, name, type, signal })
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

/**
 * The error code of a look-up. c-ares calls an answer without the question unreadable, and Unbound refuses a client in
 * this way: then the response code is read over TCP. It also reports every error of a socket as a refusal (`refusalCode`),
 * and that of TCP after an answer that is cut off.
 * Rejects only when the signal aborts.
 */
async function readableCode(resolver: Resolver, code: string, { name, type, signal }: NameQuestion): Promise<string> {
  const { host: ip, port } = placeOf(resolver.getServers()[0] ?? '')
  if (code === 'ECONNREFUSED') {
    if (await needsTcp({ ip, port, name, type, signal })) return 'ETRUNCATED'
    return await refusalCode(resolver.getServers().map(placeOf), name, signal)
  }
  if (code !== 'EBADRESP') return code
  const limit = AbortSignal.any([signal, AbortSignal.timeout(overTcpMs)])
  try {
    return responseCodes[await queryCode({ ip, port, name, type, signal: limit })] ?? code
  } catch {
    signal.throwIfAborted()
    return code
  }
}

/** The codes of RFC 1035, 4.1.1, that come without a question, as c-ares names them. */
const responseCodes: Readonly<Record<number, string>> = { 2: 'ESERVFAIL', 3: 'ENOTFOUND', 5: 'EREFUSED' }

const answer = check({
  depth: 'Basic',
  results: { answer: 'The server returns records' },
  settings: questionSettings,
  observe: lookUp,
  evaluate: ({ server, records, elsewhere, whole }, { query, type, rcode }) => {
    if (whole && rcode) return evaluateRcode(whole, { server, subject: `${sanitize(query, 128)} ${type}`, rcode })
    const about: Partial<Result> = {
      address: server,
      measurement: { value: records.length, unit: 'count' },
      details: recordDetails(records),
    }
    const what = elsewhere === undefined ? `${type} is ${summaryOf(records)}` : aliasText(elsewhere)
    return ok('answer', `${sanitize(query, 128)} ${what}`, about)
  },
})

type ExpectedRcode = { readonly server: string; readonly subject: string; readonly rcode: (typeof rcodes)[number] }

/** A referral or an alias says nothing of whether the name exists elsewhere. */
function evaluateRcode(message: DnsMessage, { server, subject, rcode }: ExpectedRcode): Result<'answer'> {
  const received = rcodes[message.code] ?? `response code ${message.code}`
  const referral = referralIn(message)
  const records = message.answers.filter(({ type }) => type !== rrsigType).length
  const isEmpty = message.code === 0 && records === 0 && referral === undefined
  const what = referral ? `refers to ${summaryOf(referral.servers)}` : count(records, 'record')
  const text = `${server} answers ${received}${message.code === 0 ? ` (${what})` : ''} for ${subject}`
  if (received === rcode || (rcode === 'NXDOMAIN' && isEmpty)) return ok('answer', text, { address: server })
  return fail('answer', 'dns', `${text}, expected ${rcode}`, { address: server })
}

/** An alias that the server leaves to others: continues the name. */
const aliasText = (alias: string): string => `is an alias of ${sanitize(alias, 128)}, which is in another zone`

/** The result of a check of records where the server leaves the alias to others. Undefined where it does not. */
const undecided = <const Name extends string>(
  name: Name,
  { elsewhere, server }: Answer,
  query: string,
): Result<Name> | undefined => {
  if (elsewhere === undefined) return undefined
  const what = `${sanitize(query, 128)} ${aliasText(elsewhere)}`
  const why = `${what}, and ${server} does not resolve it: set server to a resolver, or type: CNAME`
  return notChecked(name, 'missing', why, { address: server })
}

/** Maximum number of records in the details. An answer over TCP may have thousands. */
const maxDetails = 50

function recordDetails(records: readonly string[]): readonly string[] {
  const first = records.slice(0, maxDetails).map((record) => sanitize(record))
  return records.length > maxDetails ? [...first, `and ${records.length - maxDetails} more`] : first
}

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
  evaluate: (looked, { query, type, expect = [], exact }) => {
    const { server, records } = looked
    const open = undecided('expected', looked, query)
    if (open) return open
    const required = expect.map((record) => canonical(type, record))
    const actual = records.map((record) => canonical(type, record))
    const missing = expect.filter((_, index) => !actual.includes(required[index] ?? ''))
    const extra = exact ? records.filter((_, index) => !required.includes(actual[index] ?? '')) : []
    const differences = [
      ...(missing.length > 0 ? [`lacks ${summaryOf(missing)}`] : []),
      ...(extra.length > 0 ? [`also has ${summaryOf(extra)}`] : []),
    ]
    const subject = `${sanitize(query, 128)} ${type}`
    if (differences.length === 0) return ok('expected', `${subject} is as expected`, { address: server })
    const message = `${subject} at ${server} ${differences.join(' and ')}; it is ${summaryOf(records)}`
    return fail('expected', 'data', message, { address: server })
  },
})

export const records = check({
  depth: 'Standard',
  results: { records: 'With `records`: the number of records' },
  settings: {
    ...questionSettings,
    records: { type: 'threshold', unit: 'count', isMinimum: true, doc: 'Minimum number of records in the answer' },
  },
  applies: (_, settings) => settings.records !== undefined,
  observe: lookUp,
  evaluate: (looked, { query, type, records: threshold = {} }) => {
    const {
      server,
      records: { length: value },
    } = looked
    const open = undecided('records', looked, query)
    if (open) return open
    const what = `${sanitize(query, 128)} ${type} records:`
    return atLeast({ check: 'records', what, value, unit: 'count', threshold, address: server })
  },
})

export const ttl = check({
  depth: 'Standard',
  results: { ttl: 'With `ttl`: no record may be cached for longer' },
  settings: questionSettings,
  applies: (_, settings) => settings.ttl !== undefined,
  observe: lookUp,
  evaluate: (looked, { query, type, ttl: threshold = {} }) => {
    const { server: address, whole } = looked
    const open = undecided('ttl', looked, query)
    if (open) return open
    const value = Math.max(...recordsOf(whole?.answers ?? [], type).map((record) => record.ttl)) * 1_000
    const what = `${sanitize(query, 128)} ${type} may be cached for`
    return atMost({ check: 'ttl', what, value, unit: 'duration', threshold, address })
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
      mistake: hostPortMistake,
      doc: 'Name servers of the zone `query`, as host, host:port or [ip6]:port; by default those in its NS records',
    },
  },
  applies: (_, { type, nameServers, rcode }) =>
    rcode === undefined && (nameServers !== undefined || type === 'SOA' || type === 'NS'),
  observe: async ({ resolver }, { query: zone, nameServers }, { signal, resolve }) => ({
    zone,
    serials: await Promise.all(
      (nameServers ?? (await nameServersOf(resolver, zone))).slice(0, maxNameServers).map(async (place) => {
        try {
          const [at = place] = await addressesOf(place, resolve)
          return { place, ...(await serialAt(at, zone, signal)) }
        } catch (error) {
          signal.throwIfAborted()
          return { place, problem: causeOf(error) }
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
    const silent = all.length - reported.length
    if (reported.length === 0)
      return notChecked(
        'serial',
        'missing',
        `none of ${count(all.length, 'name server')} of ${subject} reports a serial`,
        { details },
      )
    const value = Math.max(...reported) - Math.min(...reported)
    const more: Partial<Result> = { details, measurement: { value, unit: 'count', warn: 0, bound: 'atMost' } }
    if (value > 0) {
      const different = summaryOf([...new Set(reported)].map(String))
      const message = `${subject} has the serials ${different} at ${count(reported.length, 'name server')}: a zone transfer is late or fails`
      return warn('serial', message, more)
    }
    if (silent > 0) {
      const lame = all.filter(({ problem }) => problem === withoutAuthority)
      const what =
        lame.length === silent
          ? `${silent === 1 ? 'is' : 'are'} not authoritative: the zone is missing there`
          : 'did not report a serial'
      return warn('serial', `${count(silent, 'name server')} of ${all.length} of ${subject} ${what}`, more)
    }
    return ok('serial', `${subject} has the serial ${reported[0]} at ${count(reported.length, 'name server')}`, more)
  },
})

/** The problem of a server that answers for a zone from a cache, or by asking others. */
const withoutAuthority = 'not authoritative'

type Serial = { readonly serial?: number; readonly problem?: string }

/** The serial of a zone at one of its name servers, or why it has none. Throws ProbeError, or a socket's error. */
async function serialAt(place: string, zone: string, signal: AbortSignal): Promise<Serial> {
  const { host: ip, port } = placeOf(place)
  const message = await queryMessage({ ip, port, name: zone, type: 'SOA', recursion: false, signal })
  const serial = serialOf(message)
  const code = message.code === 0 ? 'ENODATA' : (responseCodes[message.code] ?? `code ${message.code}`)
  if (message.code === 0 && !message.isAuthoritative) return { problem: withoutAuthority }
  return serial === undefined ? { problem: code } : { serial }
}

const causeOf = (error: unknown): string =>
  (error instanceof ProbeError ? error.details[0] : undefined) ?? (error as NodeJS.ErrnoException).code ?? 'unknown'

export const signatures = limitCheck({
  depth: 'Advanced',
  check: 'signatures',
  proves: 'The DNSSEC signatures (RRSIG) of the answer remain valid long enough; left out if it has none',
  setting: 'signatures',
  unit: 'days',
  default: { warn: 7, limit: 2 },
  doc: 'Minimum remaining validity of the DNSSEC signatures of the answer, in days',
  bound: 'atLeast',
  settings: { ...questionSettings, signed: { type: 'flag', default: false, doc: 'The answer must be signed' } },
  last: true,
  applies: (_, { rcode }) => rcode === undefined,
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
  evaluate: ({ place, at, all }, compare, { query, type, signatures: threshold, signed }) => {
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
    return compare({ what, value, at: first.to, address: place })
  },
})

/** The types whose records name other hosts, and how to read the name. */
const targetNames: Readonly<Partial<Record<RecordType, (record: string) => string>>> = {
  MX: (record) => record.split(' ').at(-1) ?? '',
  SRV: (record) => record.split(' ').at(-1) ?? '',
  NS: (record) => record,
}

/** Maximum number of targets that are looked up. */
const maxTargets = 16

export const targets = check({
  depth: 'Standard',
  results: { targets: 'With type MX, NS or SRV: the hosts that the records name have addresses' },
  settings: questionSettings,
  applies: (_, { type }) => targetNames[type] !== undefined,
  observe: async (servers, settings, context) => {
    // The check `answer` reports a failure.
    const { records, server } = await lookUp(servers, settings, context).catch(() => ({ records: [], server: '' }))
    context.signal.throwIfAborted()
    const names = records.map((record) => targetNames[settings.type]?.(record) ?? '')
    // A name that consists of the root only says that there is no such service (RFC 7505, RFC 2782).
    const hosts = [...new Set(names.filter((name) => name !== '' && name !== '.'))].slice(0, maxTargets)
    context.step('targets', server)
    const looked = hosts.map(async (host) => ({ host, problem: await addressProblem(servers, host, context.signal) }))
    return { server, all: await Promise.all(looked) }
  },
  evaluate: ({ server: address, all }, { query, type }) => {
    if (all.length === 0) return []
    const subject = `${sanitize(query, 128)} ${type}`
    const details = all.flatMap(({ host, problem }) => (problem ? [`${sanitize(host, 128)}: ${problem.code}`] : []))
    const lost = all.filter(({ problem }) => problem?.isAbsent)
    if (lost.length > 0) {
      const names = summaryOf(lost.map(({ host }) => host))
      const message = `${subject} names ${names}, which ${lost.length === 1 ? 'has' : 'have'} no address`
      // With one host left, clients still reach the service.
      return lost.length === all.length
        ? fail('targets', 'dns', message, { address, details })
        : warn('targets', message, { address, details })
    }
    if (details.length > 0) {
      const why = `not checked: ${count(details.length, 'host')} of ${subject} could not be looked up`
      return warn('targets', why, { address, details, notChecked: 'missing' })
    }
    return ok('targets', `${count(all.length, 'host')} of ${subject} ${all.length === 1 ? 'has' : 'have'} an address`, {
      address,
    })
  },
})

type AddressProblem = { readonly code: string; readonly isAbsent: boolean }

/**
 * Why a host has no address, asked at the same server and, if that does not serve its zone, at the resolvers of this
 * machine. Undefined when it has one. Rejects only when the signal aborts.
 */
async function addressProblem(
  { resolver }: NameServers,
  host: string,
  signal: AbortSignal,
): Promise<AddressProblem | undefined> {
  const own = new Resolver({ timeout: firstTryMs, tries: 2 })
  const cancel = (): void => {
    resolver.cancel()
    own.cancel()
  }
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const first = await addressCode(resolver, host)
    if (first === undefined) return undefined
    if (first === 'ENOTFOUND') return { code: first, isAbsent: true }
    const message = first === 'ENODATA' ? await messageOf(resolver, { name: host, type: 'A', signal }) : undefined
    const isElsewhere =
      first !== 'ENODATA' || (message && (aliasElsewhere(message) ?? referralIn(message)) !== undefined)
    const code = isElsewhere ? await addressCode(own, host) : first
    signal.throwIfAborted()
    return code === undefined ? undefined : { code, isAbsent: code === 'ENOTFOUND' || code === 'ENODATA' }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** The error code of a look-up of both types of address. Undefined when there is an address. */
async function addressCode(resolver: Resolver, host: string): Promise<string | undefined> {
  const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  const codes = answers.flatMap((answer) => {
    if (answer.status === 'fulfilled') return answer.value.length > 0 ? [undefined] : ['ENODATA']
    return [(answer.reason as NodeJS.ErrnoException).code ?? 'unknown']
  })
  if (codes.includes(undefined)) return undefined
  // One type that could not be looked up may have had the address.
  return codes.find((code) => code !== 'ENOTFOUND' && code !== 'ENODATA') ?? codes[0]
}

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
  server: {
    type: 'text',
    observed: true,
    mistake: hostPortMistake,
    doc: 'Name server as host, host:port or [ip6]:port; by default those of this machine. With a name, all of its addresses',
  },
  ...oneFamilySettings,
} as const satisfies SettingsSpec

/** The addresses of a server, each with its port. Throws ProbeError `dns` for a name without one. */
async function addressesOf(place: string, resolve: CheckContext['resolve']): Promise<readonly string[]> {
  const { host, port } = parseHostPort(place, dnsPort) ?? { host: place, port: dnsPort }
  return (await resolve(host)).map((ip) => hostPort(ip, port))
}

const dnsPort = 53

/** Sends nothing to `server` yet. Throws ProbeError `dns` if its name has no address. */
async function openResolver(
  { server, family, sourceAddress: source }: Values<typeof settings>,
  { resolve }: CheckContext,
): Promise<NameServers> {
  const resolver = new Resolver({ timeout: firstTryMs, tries: 4 })
  if (server !== undefined) resolver.setServers(await addressesOf(server, resolve))
  const only = source === undefined ? family : familyOf(source)
  if (only !== undefined) {
    const servers = resolver.getServers().filter((one) => familyOf(placeOf(one).host) === only)
    if (servers.length === 0)
      throw new NotReachedError('configuration', `there is no name server with an ${familyName[only]} address to ask`)
    resolver.setServers(servers)
  }
  if (source !== undefined) resolver.setLocalAddress(source)
  return { resolver, servers: resolver.getServers().join(', ') }
}

/** A question for the name servers of the root, over TCP. */
const rootServers = bytes('0011 7376 0000 0001 0000 0000 0000 00 0002 0001')

/** Milliseconds for the answer of a name server of this machine. */
const nearbyMs = 1_000

/** Whether a server is a name server of a zone: a resolver answers for it, too, from what others say. */
async function hasZone(place: string, zone: string, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(nearbyMs)])
  const { serial } = await serialAt(place, zone, limit).catch((): Serial => ({}))
  return serial !== undefined
}

/** Queries a name server directly: bypasses the hosts file and every cache of this machine. */
export default machineKind({
  name: 'dns',
  title: 'A name resolves to the expected records',
  recognition: [
    {
      name: 'dns',
      greeting: rootServers,
      is: (reply) => reply.length >= 14 && reply.readUInt16BE(2) === 0x7376 && (reply[4] ?? 0) >= 0x80,
      pool: 'alike',
      propose: async ({ host, port, machine: { domain }, signal }, name) => {
        const entry = { kind: 'dns', name, server: hostPort(host, port) }
        if (domain !== undefined && (await hasZone(entry.server, domain, signal))) {
          return { entry: { ...entry, query: domain, type: 'SOA' } }
        }
        return { entry: { ...entry, query: 'localhost' }, note: 'set query to a name that clients look up here' }
      },
    },
  ],
  runsOn: 'network',
  optionalParts: [
    { part: 'EDNS record (OPT)', unasked: 'A server without it answers FORMERR or NOTIMP (RFC 6891, 7)' },
  ],
  cost: {
    unit: 'queries',
    Basic: [1, 1],
    Standard: [1, 1],
    Advanced: [2, 2],
    adds: [{ setting: 'nameServers', each: true, from: 'Advanced', connections: 1, requests: 1 }],
    besides:
      'With type MX, NS or SRV, each host in the answer adds queries for its addresses. With type SOA or NS, each name server of the zone adds one query. For an alias that the server leaves to others, up to eight queries follow it.',
  },
  settings,
  target: ({ server }) => (server === undefined ? {} : { host: parseHostPort(server, dnsPort)?.host ?? server }),
  validate: ({ expect, records, rcode, signed, ttl }) => {
    if (rcode !== undefined && (expect ?? records ?? ttl ?? (signed || undefined)) !== undefined)
      return 'rcode excludes expect, records, ttl and signed: without rcode, an answer has to have records'
    return expect?.length === 0 ? 'expect is empty: list the records, or remove it' : undefined
  },
  open: openResolver,
  close: ({ resolver }) => resolver.cancel(),
  checks: [answer, latency, expected, records, ttl, targets, serials, signatures],
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
  readonly aliases: Aliases
  /** The servers to which the answer refers. */
  readonly referral: ReturnType<typeof referralIn>
}

/** Classifies a failed look-up: a fault of the name, of the server, or of the path to it. */
function dnsFault(code: string, lookUp: FailedLookUp): ProbeError {
  const { servers, type, aliases, referral } = lookUp
  const alias = aliases.names.at(-1)
  if (aliases.loops) return new ProbeError('dns', `${servers} reports that ${aliasLoop(lookUp.name, aliases)}`, [code])
  const name = sanitize(lookUp.name, 128)
  const took = showDuration(lookUp.afterMs)
  const obstacle = obstacleText(code, servers)
  if (obstacle !== undefined) return new ProbeError('refused', obstacle, [code])
  switch (code) {
    case 'ENOTFOUND':
      if (alias !== undefined) {
        const what = `${name} is an alias of ${sanitize(alias, 128)}, which does not exist (NXDOMAIN)`
        return new ProbeError('dns', `${servers} reports that ${what}`, [code])
      }
      return new ProbeError('dns', `${servers} reports that ${name} does not exist (NXDOMAIN)`, [code])
    case 'ENODATA':
      if (alias !== undefined) {
        const what = `${name} is an alias of ${sanitize(alias, 128)}, which has no ${type} record`
        return new ProbeError('dns', `${servers} reports that ${what}`, [code])
      }
      if (referral) {
        const zone = sanitize(referral.zone, 128) || 'the root'
        const what = `does not serve ${name}, but refers to ${summaryOf(referral.servers)} for ${zone}`
        return new ProbeError('dns', `${servers} ${what}: set server to one of these, or to a resolver`, [code])
      }
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
    case 'ETRUNCATED':
      return new ProbeError(
        'refused',
        `${servers} has an answer for ${name} that is too long for UDP, and refuses TCP: let TCP reach its port`,
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
