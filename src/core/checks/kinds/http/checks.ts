import { count, showBytes } from '../../../base/format.ts'
import type { Chain } from '../../../base/net/certificates.ts'
import { httpsAdvice, onlyHttp2, supportsTls } from '../../../base/net/http/diagnose.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { needsClientCertificate } from '../../../base/net/tls-reasons.ts'
import { hostOf } from '../../../base/net/url.ts'
import {
  type Expectation,
  headerNameMistake,
  type SettingsSpec,
  sameHeader,
  type Threshold,
  type Values,
} from '../../../base/settings/index.ts'
import {
  answerOf,
  type Content,
  evaluateAssertions,
  evaluateEach,
  evaluateHealth,
  evaluateText,
  jsonIn,
} from '../../assert/content.ts'
import { jsonText, jsonValueMistake, parseJsonPath, readJsonPath } from '../../assert/document.ts'
import { describeMismatch, expectationMistake, isAbsence, isNegation } from '../../assert/expectation.ts'
import { measuresIn } from '../../assert/measure.ts'
import { valuesWithNonce, withNonce } from '../../assert/nonce.ts'
import {
  atMost,
  type CheckContext,
  certificateCheck,
  fail,
  httpsCertificateSetting,
  includes,
  isPlain,
  latencySetting,
  notChecked,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import {
  acceptedResponse,
  answer,
  body,
  bodyDoc,
  bodySettings,
  documentResults,
  type Http,
  isAccepted,
  isRefusedSignIn,
  judgeFrom,
  limitOnHttp,
  ofAnswer,
  onHttp,
  response,
  statusDoc,
  statusSetting,
} from './connection.ts'
import { links } from './links.ts'

const versionSetting = {
  type: 'group',
  doc: 'Version that must be running; a mismatch is deployment-related',
  fields: {
    expected: {
      type: 'text',
      required: true,
      negatable: true,
      mistake: expectationMistake,
      doc: 'Text, /pattern/ or comparison',
    },
    json: {
      type: 'text',
      default: '$.version',
      mistake: jsonValueMistake,
      doc: 'JSON path of the version in the body',
    },
    header: {
      type: 'text',
      mistake: headerNameMistake,
      doc: 'Response header that contains the version, instead of json',
    },
  },
} as const satisfies SettingsSpec[string]

export const version = onHttp({
  ...ofAnswer,
  results: { version: 'The expected version is running' },
  settings: { version: versionSetting, judgeFrom },
  when: ['version'],
  evaluate: ({ content, patterns }, { version }) =>
    version === undefined ? [] : patterns.within(() => evaluateVersion(content, version)),
})

type ExpectedVersion = NonNullable<Values<{ version: typeof versionSetting }>['version']>
type Version = { readonly version: string } | { readonly problem: string }

/** Version skew is deployment-related: SuppressDeploymentErrors tolerates it (H5). */
function evaluateVersion(content: Content, expected: ExpectedVersion): Result<'version'> {
  const { address, redact } = content
  const read = versionIn(content, expected)
  if ('problem' in read) return fail('version', 'data', `${address}: ${read.problem}`, { deployment: true })
  const version = redact(read.version)
  const more = { deployment: true, facts: { version: sanitize(version, 80) } }
  const problem = describeMismatch(read.version, expected.expected, redact)
  if (problem !== undefined) return fail('version', 'data', `${address}: the version ${problem}`, more)
  return ok('version', `${address} runs ${quote(version, 80)}`, more)
}

/** The version in an answer, or why it has none. */
function versionIn(content: Content, { header, json }: ExpectedVersion): Version {
  if (header !== undefined) {
    const value = content.headers[header.toLowerCase()]
    return value === undefined
      ? { problem: `the answer has no header ${sanitize(header, 64)}, so no version` }
      : { version: value }
  }
  const read = jsonIn(content)
  if ('problem' in read) return read
  const steps = parseJsonPath(json)
  if (steps === undefined) return { problem: `${quote(json, 80)} is not a JSON path such as $.a.b[0].c` }
  const value = readJsonPath(read.value, steps)
  return value === undefined
    ? { problem: `the answer has no ${sanitize(json, 80)}, so no version` }
    : { version: jsonText(value.value) }
}

export const sameVersion = onHttp({
  depth: 'Advanced',
  results: { 'same version': 'With `version` and several addresses: all of them run the same version' },
  settings: { version: versionSetting },
  when: ['version'],
  emptyWhere: 'fewer than two addresses report a version',
  async observe(http, { version }, context) {
    const { content } = await answer(http, undefined, context)
    const read = version && versionIn(content, version)
    return { version: read && 'version' in read ? content.redact(read.version) : undefined }
  },
  evaluate: () => [],
  /** A pattern or a comparison may accept several versions, so this check compares the addresses. */
  compare(all) {
    const running = all.flatMap(({ address, observation: { version } }) =>
      version === undefined ? [] : { address, version },
    )
    if (running.length < 2) return []
    // The most common version first, so that deviating addresses follow it.
    const versions = [...Map.groupBy(running, ({ version }) => version)]
      .map(([version, group]) => ({ version, addresses: group.map(({ address }) => address) }))
      .sort((a, b) => b.addresses.length - a.addresses.length)
    const [first, ...others] = versions
    const more = { deployment: true }
    if (others.length === 0)
      return ok('same version', `${running.length} addresses run ${quote(first?.version ?? '', 80)}`, more)
    const groups = versions.map(({ version, addresses: [one = '', ...rest] }) => {
      const where = rest.length === 0 ? one : `${one} (and ${count(rest.length, 'other')})`
      return `${quote(version, 40)} at ${where}`
    })
    const message = `${running.length} addresses run ${versions.length} versions: ${groups.join(', ')}`
    const details = versions.map(({ version, addresses }) => `${quote(version, 80)} at ${addresses.join(', ')}`)
    return fail('same version', 'data', message, { ...more, details })
  },
})

const codes = {
  type: 'map',
  doc: 'Prefixes of messages: `parse`, a path of json or xml, or the name of a measure, to text',
} as const satisfies SettingsSpec[string]
const { health: healthSetting, json: jsonSetting, xml: xmlSetting, measure: measureSetting } = bodySettings

export const status = onHttp({
  depth: 'Basic',
  results: { status: statusDoc },
  settings: {
    status: statusSetting,
  },
  privilege: 'read access to url, for the account or for anonymous callers',
  applies: ({ sends }) => sends,
  async observe(http, settings, context) {
    const { status, headers, signedIn, redirects, location } = await response(http, undefined, context)
    const { at } = http
    // With a list, svc.yaml says what a healthy answer is.
    const readsCause = settings.status === undefined && includes(context.mode, 'Standard')
    return {
      address: at.address,
      status,
      signedIn,
      accepted: http.accepted,
      redirects,
      location,
      challenge: headers['www-authenticate'],
      refusal: readsCause ? await refusalOf(http, context) : undefined,
    }
  },
  evaluate({ address, status, signedIn, accepted, redirects, location, challenge, refusal }, settings) {
    const after = redirects > 0 ? ` after ${count(redirects, 'redirect')}` : ''
    const to = status >= 300 && status < 400 && location !== undefined ? ` to ${location}` : ''
    const text = `${address} answered ${status}${to}${after}`
    const more: Partial<Result> = { measurement: { value: status, unit: 'count' } }
    try {
      const isAllowed = isAccepted(accepted, status, signedIn)
      if (isRefusedSignIn(accepted, status, signedIn)) {
        const message = `${text}: the sign-in of this monitor was refused`
        return fail('status', 'auth', message, { ...more, refusal: `status ${status}` })
      }
      if (isAllowed) return ok('status', text, more)
      if (refusal) return fail('status', refusal.fault, `${address} ${refusal.message} (it answered ${status})`, more)
      if (settings.status === undefined && (status === 401 || status === 403)) {
        return fail('status', 'auth', `${text}${requiredSignIn(status, signedIn, challenge)}`, more)
      }
      if (settings.status === undefined && redirecting.has(status)) {
        return fail('status', 'data', `${address} ${unexpectedRedirect(status, location, redirects)}`, more)
      }
      const details = status === 429 || status === 503 ? [readLimit] : []
      return fail('status', 'data', `${text} (expected ${accepted.join(', ')})`, { ...more, details })
    } catch (error) {
      return fail('status', 'data', `${text}, which cannot be evaluated: ${(error as RangeError).message}`, more)
    }
  },
})

const readLimit =
  'next: it is overloaded, at a limit, or in maintenance: curl -i with this url shows which server says so, and its log has the cause'

/** The texts of servers where TLS lacks a certificate of the client: nginx, IIS. */
const needsCertificate = /no required ssl certificate|client certificate/i

/** The text of Node's server, which answers so over TLS to a client of HTTP/1.1 where it speaks HTTP/2 only. */
const needsHttp2 = /(?:missing|unknown) ALPN protocol/i

/**
 * Why a server refuses every request on this connection: it expects TLS, HTTP/2, or a certificate of the client. Undefined where
 * the answer is about something else.
 */
async function refusalOf(http: Http, context: CheckContext) {
  const { status, url } = await response(http, undefined, context)
  const { at, route } = http
  // After a redirect to another origin, the connection is not to the address that is checked.
  if (url.origin !== route.url.origin) return undefined
  if (status === 400 && url.protocol === 'http:') {
    const isTls = await supportsTls(at, hostOf(url), { date: context.date, servername: route.servername })
    return isTls ? { fault: 'protocol' as const, message: httpsAdvice(url) } : undefined
  }
  if ((status !== 400 && status !== 403) || url.protocol !== 'https:') return undefined
  const { bytes } = await body(http, undefined, context)
  const text = bytes.toString('latin1', 0, 8_192)
  if (needsHttp2.test(text)) return { fault: 'protocol' as const, message: onlyHttp2 }
  return needsCertificate.test(text) ? { fault: 'tls' as const, message: needsClientCertificate } : undefined
}

/** The status codes with which a server sends its client to another URL (RFC 9110, 15.4). */
const redirecting: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Where a redirect leads, and the settings that follow or accept it: continues the address. */
function unexpectedRedirect(status: number, location: string | undefined, followed: number): string {
  const after = followed > 0 ? ` after ${count(followed, 'redirect')}` : ''
  const accept = `status: [${status}] if that is the healthy answer`
  if (location === undefined) return `answered ${status} without Location${after}, which leads nowhere: set ${accept}`
  return `redirects to ${location} (${status})${after}: name it in url, or set redirects: ${followed + 3}, or ${accept}`
}

/** The requirement of an answer with 401 or 403, and the remedy: continues the sentence about the answer. */
function requiredSignIn(status: number, signedIn: boolean, challenge: string | undefined): string {
  if (signedIn) return ': the account of this monitor may not read this URL: allow it on the server'
  const schemes = authenticationSchemes(challenge)
  const names = schemes.length === 0 ? '' : ` (${schemes.join(', ')})`
  if (status === 401) {
    return `: it requires a sign-in${names}: set ${credentialsFor(schemes)}, or status: [401] if that is the healthy answer`
  }
  return `: it forbids access without a sign-in${names}, or from this address: set username and password, or token, allow this machine, or set status: [403] if that is the healthy answer`
}

/** The settings with which svc answers one of the schemes. */
function credentialsFor(schemes: readonly string[]): string {
  const names = schemes.map((scheme) => scheme.toLowerCase())
  if (names.includes('basic')) return 'username and password'
  if (names.includes('bearer')) return 'token'
  return schemes.length === 0 ? 'username and password, or token' : 'token to a value that the server accepts'
}

/** The schemes of a WWW-Authenticate header (RFC 9110, 11.6.1): `Basic realm="a, b", Bearer` has Basic and Bearer. */
function authenticationSchemes(challenge = ''): readonly string[] {
  const unquoted = challenge.slice(0, 2_048).replaceAll(/"[^"]*"/g, '')
  const schemes = unquoted.split(',').flatMap((part) => /^\s*([A-Za-z][\w-]{0,31})(?![\w-]|\s*=)/.exec(part)?.[1] ?? [])
  return [...new Set(schemes)].slice(0, 4)
}

export const latency = onHttp({
  depth: 'Basic',
  results: { latency: 'The whole answer arrives in time', body: bodyDoc },
  settings: {
    latency: latencySetting(
      { warn: 1_000, limit: 5_000 },
      'How long the connection, redirects and the whole answer may take',
    ),
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

const textSettings = {
  contains: { type: 'text', negatable: true, doc: 'Text that the body must contain' },
  matches: { type: 'text', negatable: true, doc: 'Regular expression that the first 64 KiB of the body must match' },
} as const satisfies SettingsSpec

const emptyBodySettings = { status: statusSetting, version: versionSetting, ...textSettings, ...bodySettings } as const
type EmptyBodySettings = Values<typeof emptyBodySettings>

/** Whether a status without a body may be healthy, or something is expected of the body, which fails by itself. */
const isExpected = (settings: EmptyBodySettings): boolean => {
  const { status, version, contains, matches, health, json, xml, measure, links } = settings
  const texts = [contains, matches].filter((text) => !isNegation(text))
  return health || [status, version, ...texts, json, xml, measure, links].some((value) => value !== undefined)
}

/** A server that lost its application, or a proxy in its place, often answers 200 and nothing. */
export const emptyBody = onHttp({
  depth: 'Standard',
  results: { 'empty body': 'An answer with 200 to a GET has a body; reported only if it has none' },
  settings: emptyBodySettings,
  impossibleWith: (settings: EmptyBodySettings) => isExpected(settings),
  applies: ({ sends, route }) => sends && !route.withheld && route.method === 'GET',
  async observe(http, _, context) {
    const { status } = await response(http, undefined, context)
    const { bytes } = await body(http, undefined, context)
    return { address: http.at.address, isEmpty: status === 200 && bytes.length === 0 }
  },
  evaluate({ address, isEmpty }, settings) {
    if (!isEmpty || isExpected(settings)) return []
    return warn(
      'empty body',
      `${address} answered 200 with an empty body: set contains or json, or status: [200] if that is healthy`,
    )
  },
})

/** Headers whose values are credentials, whoever sets them. */
const secretHeaders = new Set(['set-cookie', 'cookie', 'authorization', 'proxy-authorization', 'x-api-key'])

export const header = onHttp({
  ...ofAnswer,
  results: { header: 'The response headers are as expected' },
  settings: {
    header: {
      type: 'map',
      negatable: true,
      mistake: (expectation: string, name: string) => headerNameMistake(name) ?? expectationMistake(expectation),
      sameKey: sameHeader,
      doc: 'Expected response headers: name to text, /pattern/ or comparison such as >= 3; {not: present} for none',
    },
    judgeFrom,
  },
  when: ['header'],
  evaluate: ({ content, nonce, patterns }, { header = {} }) =>
    patterns.within(() => evaluateHeaders(content, valuesWithNonce(header, nonce))),
})

function evaluateHeaders(
  { address, headers, redact, unseen }: Content,
  expected: Readonly<Record<string, Expectation>>,
) {
  const each = Object.entries(expected).map(([name, expectation]) => {
    const evaluate = (): readonly string[] => {
      const key = name.toLowerCase()
      const value = Object.hasOwn(headers, key) ? headers[key] : undefined
      if (isAbsence(expectation)) return value === undefined ? [] : [`the answer has the header ${sanitize(name, 64)}`]
      if (value === undefined) return [`the answer has no header ${sanitize(name, 64)}`]
      // The query of a redirect may contain a token.
      const hideQuery = (text: string | Uint8Array): string => redact(text).replace(/\?.*/, '?…')
      const problem = describeMismatch(value, expectation, key === 'location' ? hideQuery : redact)
      if (problem === undefined) return []
      return [
        secretHeaders.has(key)
          ? `header ${key} is not as expected (value not shown)`
          : `header ${sanitize(name, 64)} ${problem}`,
      ]
    }
    return [expectation, evaluate] as const
  })
  return evaluateEach('header', address, `${count(each.length, 'header')} as expected`, unseen, each)
}

/**
 * The tolerance for clock differences between two machines, in milliseconds. A date further in the future proves
 * nothing.
 */
const maxAheadMs = 60_000

/** Compares with our clock, because a cache that serves an old answer also sends its old Date header. */
export const lastModified = limitOnHttp({
  ...ofAnswer,
  check: 'last modified',
  proves: 'The content was changed recently enough (Last-Modified)',
  setting: 'lastModified',
  unit: 'duration',
  doc: 'How long ago the content may have changed, according to the header Last-Modified, which is then required',
  settings: { judgeFrom },

  applies: (http, { lastModified = {} }) => ofAnswer.applies(http) && hasLimits(lastModified),
  async observe(http, _, context) {
    const { headers, received } = await acceptedResponse(http, context)
    const { at, route } = http
    return { address: at.address, header: headers['last-modified'], received, redact: route.redact }
  },
  evaluate({ address, header, received, redact }, compare) {
    if (header === undefined) return fail('last modified', 'data', `${address} sent no Last-Modified header`)
    const modified = httpDate(header)
    if (modified === undefined) {
      return fail(
        'last modified',
        'data',
        `${address} sent a Last-Modified header that is not a date: ${quote(redact(header), 40)}`,
      )
    }
    const ms = received.getTime() - modified
    if (ms < -maxAheadMs) {
      const message = `${address} reports a change of its content in the future: ${new Date(modified).toISOString()}`
      return fail('last modified', 'data', message)
    }
    const what = `${address}: content changed`
    const at = new Date(modified)
    const value = Math.max(0, ms)
    return compare({ what, value, after: 'ago', at })
  },
})

/** Parses an HTTP date in any of its three forms (RFC 9110, 5.6.7) to milliseconds since 1970. */
function httpDate(text: string): number | undefined {
  if (text.length > 40) return undefined
  // The asctime form has no time zone, and is in UTC like the others.
  const isAsctime = /^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/.test(text)
  if (!isAsctime && !/^\w+, \d\d[ -]\w{3}[ -]\d{2,4} \d\d:\d\d:\d\d GMT$/.test(text)) return undefined
  const ms = Date.parse(isAsctime ? `${text} GMT` : text)
  return Number.isNaN(ms) ? undefined : ms
}

export const content = onHttp({
  ...ofAnswer,
  results: { content: 'The body has the expected content' },
  settings: { ...textSettings, judgeFrom },
  when: ['contains', 'matches'],
  evaluate: ({ content, nonce, patterns }, { contains, matches }) =>
    patterns.within(() =>
      evaluateText('content', content, { contains: withNonce(contains, nonce), matches: withNonce(matches, nonce) }),
    ),
})

/** A body that is not valid XML cannot be evaluated by any other XML check either, so only `xml` reports it. */
const isUnreadableXml = (content: Content, xml: Readonly<Record<string, Expectation>> | undefined): boolean => {
  const read = xml && answerOf(content).xml
  return read !== undefined && 'problem' in read
}

export const json = onHttp({
  ...ofAnswer,
  results: { json: documentResults.json },
  settings: { json: jsonSetting, xml: xmlSetting, codes, judgeFrom },
  when: ['json'],
  emptyWhere: 'the answer is not the XML that `xml` needs',
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
  emptyWhere: 'the answer is not the XML that `xml` needs',
  items: measuresIn,
  evaluate: ({ content, patterns }, { measure, xml, codes }) =>
    isUnreadableXml(content, xml)
      ? []
      : (patterns.within(() => evaluateAssertions(content, { measure, codes })) as readonly Result<'measure'>[]),
})

export const health = onHttp({
  ...ofAnswer,
  results: { health: 'The other server reports Success for its own health' },
  settings: { health: healthSetting, judgeFrom },
  when: ['health'],
  evaluate({ content, status }) {
    const result = evaluateHealth(content)
    if (status !== 503 || result.status === 'failed') return result
    const { address } = content
    return fail('health', 'protocol', `${address} answered 503 with a document that reports Success`, { address })
  },
})

export const certificate = {
  ...certificateCheck({
    depth: 'Advanced',
    setting: httpsCertificateSetting,
    chain: ({ chain }: Http) => chain,
    first: true,
  }),
  impossibleWith: isPlain('https'),
}

/** The certificates behind redirects count as the first one does: a client needs each of them. */
const redirectCertificates = onHttp({
  depth: certificate.depth,
  results: certificate.results,
  settings: certificate.settings,
  provesNoReading: true,
  elsewhere: true,
  impossibleWith: ({ redirects }: { readonly redirects: number }) => redirects === 0,
  applies: ({ route, sends }) => sends && route.redirects > 0,
  async *observe(http, _, context): AsyncGenerator<{ readonly chain: Chain }> {
    const { chains } = await response(http, undefined, context)
    for (const chain of chains) yield { chain }
  },
  evaluate: (observation, settings) => certificate.evaluate(observation, settings),
})

export const clock = limitOnHttp({
  depth: 'Advanced',
  check: 'clock',
  proves: 'The clock of the server, from its Date header, agrees with ours',
  setting: 'clock',
  unit: 'duration',
  default: { warn: 2_000, limit: 30_000 },
  doc: 'Maximum clock difference, from the Date header; `off` if another monitor of the same server checks it. A server need not send the header: without it, the clock is not checked if this is set, and otherwise left out',
  last: true,
  applies: (_, { clock }) => hasLimits(clock),
  async observe(http, _, context) {
    const { headers, sent, received } = await body(http, undefined, context)
    const { date, age } = headers
    const skewMs = date === undefined ? undefined : skewOf(date, age, sent, received)
    const isRequired = context.isConfigured('clock')
    return { address: http.at.address, isDated: date !== undefined, isRequired, skewMs }
  },
  evaluate({ address, isDated, isRequired, skewMs }, compare) {
    // A server without a reliable clock sends no Date (RFC 9110, 6.6.1).
    if (!isDated && !isRequired) return []
    if (!isDated) return notChecked('clock', 'missing', `${address} sent no Date header, which the clock is read from`)
    if (skewMs === undefined) return warn('clock', `${address} sent a Date header that is not a date`)
    const what = `the clock of ${address} is ${skewMs < 0 ? 'behind' : 'ahead of'} ours by`
    return compare({ what, value: Math.abs(skewMs) })
  },
})

/** False for `off`, which has neither limit. */
const hasLimits = ({ warn, limit }: Threshold): boolean => warn !== undefined || limit !== undefined

/**
 * The milliseconds by which the server's clock is ahead of ours (negative: behind), as far as the measurement proves
 * it: the header has whole seconds, and the request took some time. A cache adds Age to the Date of the server, unless
 * it relays Age and sets its own Date; the smaller difference counts. Undefined if the header is invalid.
 */
function skewOf(date: string, age: string | undefined, sent: Date, received: Date): number | undefined {
  const written = Date.parse(date)
  if (Number.isNaN(written)) return undefined
  const skew = (theirs: number): number =>
    theirs > received.getTime() ? theirs - received.getTime() : Math.min(0, theirs + 1_000 - sent.getTime())
  const [fresh, stored] = [skew(written), skew(written + (ageOf(age) ?? 0))]
  return Math.abs(stored) < Math.abs(fresh) ? stored : fresh
}

/** The milliseconds of an Age header, the first if there are several. Undefined without a number (RFC 9111, 5.1). */
function ageOf(age = ''): number | undefined {
  const seconds = /^\d{1,9}(?=\s*(?:,|$))/.exec(age)?.[0]
  return seconds === undefined ? undefined : Number(seconds) * 1_000
}

/** A cache answers for an application that has stopped. */
export const cache = onHttp({
  ...ofAnswer,
  results: { cache: 'Where content is expected, the answer is not an old one from a cache; left out without Age' },
  settings: {
    maxAge: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 60_000 },
      doc: 'Maximum age of an answer that a cache has stored (Age header), where content is expected',
    },
    ...textSettings,
    ...bodySettings,
    version: versionSetting,
    judgeFrom,
  },
  when: ['contains', 'matches', 'json', 'xml', 'measure', 'links', 'health', 'version'],
  emptyWhere: 'the answer has no Age header',
  evaluate({ content: { address, headers } }, { maxAge: threshold }) {
    const value = ageOf(headers['age'])
    if (value === undefined || !hasLimits(threshold)) return []
    const what = `${address} answered from a cache, which stored the answer`
    return atMost({ check: 'cache', what, value, unit: 'duration', after: 'ago', threshold })
  },
})

/** In the order of the reference. */
export const checks = [
  status,
  latency,
  emptyBody,
  header,
  lastModified,
  content,
  json,
  xml,
  measure,
  links,
  health,
  version,
  cache,
  sameVersion,
  certificate,
  redirectCertificates,
  clock,
] as const
