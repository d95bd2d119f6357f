import { answerOf, type Content, evaluateAssertions, evaluateHealth, together } from '../../assert/content.ts'
import { statusAllowed, unmatched, unmet } from '../../assert/expectation.ts'
import { valuesWithNonce, withNonce } from '../../assert/nonce.ts'
import {
  addressesResult,
  atMost,
  evaluateExpiry,
  fail,
  httpsCertificateSetting,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import { showBytes } from '../../format.ts'
import { count, quoted, said } from '../../net/text.ts'
import type { SettingsSpec, Threshold } from '../../settings/index.ts'
import {
  body,
  bodyDoc,
  bodySettings,
  documentResults,
  judgeFrom,
  ofAnswer,
  onHttp,
  response,
  statusDoc,
} from './connection.ts'
import { links } from './links.ts'
import { sameVersion, version } from './version.ts'

const codes = {
  type: 'map',
  doc: 'What messages begin with: `parse`, a path of json or xml, or the name of a measure to text',
} as const satisfies SettingsSpec[string]
const { health: healthSetting, json: jsonSetting, xml: xmlSetting, measure: measureSetting } = bodySettings

export const status = onHttp({
  depth: 'Basic',
  results: { status: statusDoc },
  settings: {
    status: {
      type: 'texts',
      default: ['<500'],
      doc: 'Status codes that are well: 200, 2xx, 200-299, <500. With credentials, Basic asks without them and accepts <500',
    },
  },
  applies: ({ sends }) => sends,
  async observe(http, _, context) {
    const { status, signedIn, redirects, location } = await response(http, undefined, context)
    return { address: http.at.address, status, signedIn, withheld: http.route.withheld, redirects, location }
  },
  evaluate({ address, status, signedIn, withheld, redirects, location }, settings) {
    // Without its credentials a server may answer something else.
    const allowed = withheld ? ['<500'] : settings.status
    const after = redirects > 0 ? ` after ${count(redirects, 'redirect')}` : ''
    const to = status >= 300 && status < 400 && location !== undefined ? ` to ${location}` : ''
    const text = `${address} answered ${status}${to}${after}`
    const more: Partial<Result> = { measurement: { value: status, unit: 'count' } }
    try {
      const isAllowed = statusAllowed(status, allowed)
      // `<500` lets a 401 pass, but not of a server that was shown credentials; a list that names 401 does.
      if (status === 401 && signedIn && !allowed.some((entry) => /^4(?:01|xx)$/i.test(entry))) {
        return fail('status', 'auth', `${text}: the sign-in of this monitor was refused`, more)
      }
      if (isAllowed) return ok('status', text, more)
      return fail('status', 'data', `${text} (expected ${allowed.join(', ')})`, more)
    } catch (error) {
      return fail('status', 'data', `${text}, which cannot be judged: ${(error as RangeError).message}`, more)
    }
  },
})

export const latency = onHttp({
  depth: 'Basic',
  results: { latency: 'The whole answer is there in time', body: bodyDoc },
  settings: {
    latency: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 1_000, limit: 5_000 },
      doc: 'How long connection, redirects and the whole answer may take',
    },
  },
  applies: ({ sends }) => sends,
  async observe(http, _, context) {
    const { bytes, ms } = await body(http, undefined, context)
    return { address: http.at.address, size: bytes.length, ms }
  },
  evaluate: ({ address, size, ms }, { latency: threshold }) => {
    const what = `${address} answered ${showBytes(size)} in`
    return atMost({ check: 'latency', what, value: ms, unit: 'duration', threshold })
  },
})

/** Headers whose values are credentials, whoever sends them. */
const secretHeaders = new Set(['set-cookie', 'cookie', 'authorization', 'proxy-authorization', 'x-api-key'])

export const header = onHttp({
  ...ofAnswer,
  results: { header: 'Response headers are as expected' },
  settings: {
    header: { type: 'map', doc: 'Response headers expected: name to text, /pattern/ or comparison such as >= 3' },
    judgeFrom,
  },
  when: ['header'],
  evaluate: ({ content, nonce, patterns }, { header = {} }) =>
    patterns.within(() => evaluateHeaders(content, valuesWithNonce(header, nonce))),
})

function evaluateHeaders({ address, headers, hide }: Content, expected: Readonly<Record<string, string>>) {
  const problems = Object.entries(expected).flatMap(([name, expectation]) => {
    const key = name.toLowerCase()
    const value = Object.hasOwn(headers, key) ? headers[key] : undefined
    if (value === undefined) return [`the answer has no header ${said(name, 64)}`]
    // A redirect's query may hold a token.
    const hideQuery = (text: string | Uint8Array): string => hide(text).replace(/\?.*/, '?…')
    const problem = unmet(value, expectation, key === 'location' ? hideQuery : hide)
    if (problem === undefined) return []
    return [
      secretHeaders.has(key) ? `header ${key} is not as expected (not shown)` : `header ${said(name, 64)} ${problem}`,
    ]
  })
  return together('header', address, problems, `${count(Object.keys(expected).length, 'header')} as expected`)
}

export const content = onHttp({
  ...ofAnswer,
  results: { content: 'The body contains and matches what is expected' },
  settings: {
    contains: { type: 'text', doc: 'Text that the body contains' },
    matches: {
      type: 'text',
      doc: 'Regular expression that the first 64 KiB of the body match; given up after 250 ms',
    },
    judgeFrom,
  },
  when: ['contains', 'matches'],
  evaluate: ({ content, nonce, patterns }, { contains, matches }) =>
    patterns.within(() => evaluateText(content, withNonce(contains, nonce), withNonce(matches, nonce))),
})

/** Of the body itself nothing is shown: it may hold anything. */
function evaluateText(
  { address, headers, body, more }: Content,
  contains: string | undefined,
  matches: string | undefined,
) {
  const text = body.toString('utf8')
  const part = more ? `the first ${showBytes(body.length)} of the answer` : 'the answer'
  const packed = headers['content-encoding']
  const why = packed === undefined ? '' : `; it came as content-encoding ${quoted(packed, 32)}, which was not asked for`
  const problems: string[] = []
  if (contains !== undefined && !text.includes(contains))
    problems.push(`${part} does not contain ${quoted(contains, 80)}${why}`)
  const mismatch = matches === undefined ? undefined : unmatched(text, matches)
  if (mismatch !== undefined) problems.push(`${part} ${mismatch}${why}`)
  return together('content', address, problems, `${part} holds what is expected`)
}

/** What cannot be read as XML cannot be evaluated in any other way either: `xml` reports that once, for all. */
const isUnreadableXml = (content: Content, xml: Readonly<Record<string, string>> | undefined): boolean => {
  const read = xml && answerOf(content).xml
  return read !== undefined && 'problem' in read
}

export const json = onHttp({
  ...ofAnswer,
  results: { json: documentResults.json },
  settings: { json: jsonSetting, xml: xmlSetting, codes, judgeFrom },
  when: ['json'],
  evaluate: ({ content, nonce, patterns }, { json, xml, codes }) =>
    isUnreadableXml(content, xml)
      ? []
      : (patterns.within(() =>
          evaluateAssertions(content, { json: valuesWithNonce(json, nonce), codes }),
        ) as readonly Result<'json'>[]),
})

export const xml = onHttp({
  ...ofAnswer,
  results: { xml: documentResults.xml },
  settings: { xml: xmlSetting, codes, judgeFrom },
  when: ['xml'],
  evaluate: ({ content, nonce, patterns }, { xml, codes }) =>
    patterns.within(() =>
      evaluateAssertions(content, { xml: valuesWithNonce(xml, nonce), codes }),
    ) as readonly Result<'xml'>[],
})

export const measure = onHttp({
  ...ofAnswer,
  results: { measure: documentResults.measure },
  settings: { measure: measureSetting, xml: xmlSetting, codes, judgeFrom },
  when: ['measure'],
  evaluate: ({ content, patterns }, { measure, xml, codes }) =>
    isUnreadableXml(content, xml)
      ? []
      : (patterns.within(() => evaluateAssertions(content, { measure, codes })) as readonly Result<'measure'>[]),
})

export const health = onHttp({
  ...ofAnswer,
  results: { health: "The other server's own health answer says Success" },
  settings: { health: healthSetting, judgeFrom },
  when: ['health'],
  evaluate: ({ content }) => evaluateHealth(content),
})

export const certificate = onHttp({
  depth: 'Advanced',
  results: { certificate: 'Every certificate of the chain stays valid long enough' },
  settings: { certificate: httpsCertificateSetting },
  first: true,
  observe: ({ chain }) => Promise.resolve({ chain }),
  evaluate: ({ chain }, { certificate }) => (chain ? evaluateExpiry('certificate', chain, certificate) : []),
})

export const clock = onHttp({
  depth: 'Advanced',
  results: { clock: 'The Date header agrees with our clock' },
  settings: {
    clock: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 2_000, limit: 30_000 },
      doc: 'How far the Date header may be from our clock; `off` where another monitor of the same server looks at it',
    },
  },
  last: true,
  applies: (_, { clock }) => hasLimits(clock),
  async *observe(http, _, context) {
    const { headers, sent, received } = await body(http, undefined, context)
    const { date, age } = headers
    if (date !== undefined) yield { address: http.at.address, skewMs: skewOf(date, age, sent, received) }
  },
  evaluate({ address, skewMs }, { clock: threshold }) {
    if (skewMs === undefined) return warn('clock', `${address} sent a Date header that is no date`)
    const what = `the clock of ${address} is ${skewMs < 0 ? 'behind' : 'ahead of'} ours by`
    return atMost({ check: 'clock', what, value: Math.abs(skewMs), unit: 'duration', threshold })
  },
})

/** `off` leaves both limits out. */
const hasLimits = ({ warn, limit }: Threshold): boolean => warn !== undefined || limit !== undefined

/**
 * Milliseconds by which their clock is ahead of ours (negative: behind), as far as it is proved: the header counts
 * whole seconds, and the request was under way for a while. Undefined: unreadable.
 */
function skewOf(date: string, age: string | undefined, sent: Date, received: Date): number | undefined {
  const theirs = Date.parse(date) + (age !== undefined && /^\d{1,9}$/.test(age) ? Number(age) * 1_000 : 0)
  if (Number.isNaN(theirs)) return undefined
  if (theirs > received.getTime()) return theirs - received.getTime()
  return Math.min(0, theirs + 1_000 - sent.getTime())
}

/** In the order of the reference. */
export const checks = [
  status,
  latency,
  header,
  content,
  json,
  xml,
  measure,
  links,
  health,
  version,
  addressesResult('Standard', 'Every address is probed by itself; told when there are too many'),
  sameVersion,
  certificate,
  clock,
] as const
