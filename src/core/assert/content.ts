import { fail, ok, type Result, warn } from '../engine/index.ts'
import { showBytes } from '../format.ts'
import { count, type Hide, quoted, safeUrl, said } from '../net/text.ts'
import { inPascalCase } from '../protocol/index.ts'
import { type Answer, pathProblem, unmetValues } from './document.ts'
import { unmatched, unmet } from './expectation.ts'
import { jsonText, parseJsonPath, readJsonPath } from './json-path.ts'
import { codeOf, type LinkEntry } from './link-settings.ts'
import { evaluateMeasures } from './measure.ts'
import type { XmlRead } from './xml.ts'

/** One whole answer, as the judges of its content see it. */
export type Content = {
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** True when the answer was longer than maxBody. */
  readonly more: boolean
  readonly hide: Hide
  /** The wall clock when it was there: dates in it are held against this. */
  readonly at: Date
  /** What it is as XML, where that is asked for. */
  readonly xml: XmlRead | undefined
}

/** Some assertions of one sort as one finding: the first that fails speaks, the others are details. */
function together(check: string, address: string, unmetOnes: readonly string[], met: string): Result {
  const [first, ...rest] = unmetOnes
  if (first === undefined) return ok(check, `${address}: ${met}`, { address })
  const others = rest.length > 0 ? ` (and ${count(rest.length, 'other')})` : ''
  return fail(check, 'data', `${address}: ${first}${others}`, { address, details: rest })
}

/** Headers whose values are credentials, whoever sends them. */
const unshown = new Set(['set-cookie', 'cookie', 'authorization', 'proxy-authorization', 'x-api-key'])

/** The headers that the configuration expects: name → text, pattern or comparison. */
export function evaluateHeaders(content: Content, expected: Readonly<Record<string, string>>): Result {
  const wrong = Object.entries(expected).flatMap(([name, expectation]) => {
    const header = name.toLowerCase()
    const value = Object.hasOwn(content.headers, header) ? content.headers[header] : undefined
    if (value === undefined) return [`the answer has no header ${said(name, 64)}`]
    // A redirect's query may hold a token.
    const shown =
      header === 'location' ? (heard: string | Uint8Array) => content.hide(heard).replace(/\?.*/, '?…') : content.hide
    const problem = unmet(value, expectation, shown)
    if (problem === undefined) return []
    return [
      unshown.has(header) ? `header ${header} is not as expected (not shown)` : `header ${said(name, 64)} ${problem}`,
    ]
  })
  return together('header', content.address, wrong, `${count(Object.keys(expected).length, 'header')} as expected`)
}

/** What the body contains and matches. Of the body itself nothing is shown: it may hold anything. */
export function evaluateBody(content: Content, contains: string | undefined, matches: string | undefined): Result {
  const text = content.body.toString('utf8')
  const wrong: string[] = []
  const seen = content.more ? `the first ${showBytes(content.body.length)} of the answer` : 'the answer'
  const packed = content.headers['content-encoding']
  const why = packed === undefined ? '' : `; it came as content-encoding ${quoted(packed, 32)}, which was not asked for`
  if (contains !== undefined && !text.includes(contains))
    wrong.push(`${seen} does not contain ${quoted(contains, 80)}${why}`)
  if (matches !== undefined) {
    const problem = unmatched(text, matches)
    if (problem !== undefined) wrong.push(`${seen} ${problem}${why}`)
  }
  return together('content', content.address, wrong, `${seen} holds what is expected`)
}

type Document = { readonly value: unknown } | { readonly problem: string }

function document(content: Content): Document {
  if (content.more)
    return {
      problem: `the answer is longer than maxBody (${showBytes(content.body.length)}), so its JSON cannot be read`,
    }
  try {
    return { value: JSON.parse(content.body.toString('utf8')) as unknown }
  } catch {
    const type = quoted(content.headers['content-type'] ?? 'no content type', 64)
    return { problem: `the answer is not JSON: ${showBytes(content.body.length)} of ${type}` }
  }
}

/** What paths lead to in a whole answer. A part of one is not judged: it might lack the worst. */
export const answerOf = (content: Content): Answer => ({
  json: () => document(content),
  xml:
    content.xml && content.more
      ? { problem: `is longer than maxBody (${showBytes(content.body.length)})` }
      : content.xml,
})

type Assertions = Pick<LinkEntry, 'json' | 'xml' | 'measure' | 'codes'>

/** The values, figures, dates and counts that are expected in an answer. `parsed`: it must be XML anyway. */
export function evaluateAssertions(content: Content, given: Assertions, parsed = false): readonly Result[] {
  const { json, xml, measure, codes } = given
  const { address, hide, at } = content
  const answer = answerOf(content)
  const code = codeOf(codes)
  const read = answer.xml
  const unread = read && 'problem' in read ? `${address}: ${code('parse')}the answer ${read.problem}` : undefined
  // Said once: what cannot be read cannot be judged in any other way either.
  if (unread !== undefined && (xml || parsed)) return [fail('xml', 'protocol', unread, { address })]
  return [
    ...(json ? [evaluateValues('json', content, json, code)] : []),
    ...(xml ? [evaluateValues('xml', content, xml, code)] : []),
    ...evaluateMeasures(measure ?? [], { answer, at, address, hide, code }),
  ]
}

/** The values that the configuration expects: path → text, pattern or comparison. */
function evaluateValues(
  check: 'json' | 'xml',
  content: Content,
  expected: Readonly<Record<string, string>>,
  code: (key: string) => string,
): Result {
  const { address } = content
  const read = check === 'json' ? document(content) : undefined
  if (read && 'problem' in read)
    return fail('json', 'protocol', `${address}: ${code('parse')}${read.problem}`, { address })
  const wrong = Object.entries(expected).flatMap(([path, expectation]) => {
    const problem = pathProblem(path, check)
    if (problem !== undefined) return [problem]
    return unmetValues(answerOf(content), { [path]: expectation }, content.hide).map(([, why]) => `${code(path)}${why}`)
  })
  return together(check, address, wrong, `${count(Object.keys(expected).length, 'value')} as expected`)
}

/** The /healthcheck of another server: its status code proves nothing, its body does. */
export function evaluateHealth(content: Content): Result {
  const { address, hide } = content
  const read = document(content)
  if ('problem' in read) return fail('health', 'protocol', `${address}: ${read.problem}`, { address })
  const value = inPascalCase(read.value)
  const body = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>
  const { Status: status, StatusMessage: message, FailedMonitorCount: failed, MonitorSummaries: summaries } = body
  const told = typeof message === 'string' && message !== '' ? `: ${quoted(hide(message), 200)}` : ''
  const number = typeof failed === 'number' ? failed : undefined
  if (status === 'Failure') {
    const many = number === undefined ? '' : `, ${count(number, 'failed monitor')}`
    const more = {
      address,
      details: failures(summaries, hide),
      ...(number === undefined ? {} : { measurement: { value: number, unit: 'count' as const, limit: 0 } }),
    }
    return fail('health', 'data', `${address} says Failure${many}${told}`, more)
  }
  if (status !== 'Success') {
    return fail(
      'health',
      'protocol',
      `${address} says neither Success nor Failure: this is no answer of a /healthcheck`,
      { address },
    )
  }
  if (number !== undefined && number > 0) {
    return fail('health', 'protocol', `${address} says Success, yet counts ${count(number, 'failed monitor')}${told}`, {
      address,
    })
  }
  if (Array.isArray(summaries) && summaries.length === 0) {
    return warn('health', `${address} says Success, but ran no monitor: nothing was checked there`, { address })
  }
  return ok('health', `${address} says Success${told}`, { address })
}

/** One line for each of the peer's failed monitors, but no more than ten. */
function failures(summaries: unknown, hide: Hide): readonly string[] {
  if (!Array.isArray(summaries)) return []
  return (summaries as readonly unknown[])
    .slice(0, 1000)
    .flatMap((one) => {
      const {
        MonitorName: name,
        Status: status,
        ErrorMessages: errors,
      } = (one ?? {}) as Readonly<Record<string, unknown>>
      if (status !== 'Failure' || typeof name !== 'string') return []
      const first: unknown = Array.isArray(errors) ? errors[0] : undefined
      return [said(`${hide(name)}${typeof first === 'string' ? `: ${hide(first)}` : ''}`)]
    })
    .slice(0, 10)
}

type Wanted = { readonly expected: string; readonly header?: string | undefined; readonly json: string }
type Version = { readonly version: string } | { readonly problem: string }

/** The version that an answer says, or why it says none. */
export const versionIn = (content: Content, wanted: Wanted): Version =>
  wanted.header === undefined ? versionInJson(content, wanted.json) : versionInHeader(content, wanted.header)

/** Version skew is deployment-related (H5): SuppressDeploymentErrors lets it pass. */
export function evaluateVersion(content: Content, wanted: Wanted): Result {
  const { address } = content
  const found = versionIn(content, wanted)
  const more = { address, deployment: true }
  if ('problem' in found) return fail('version', 'data', `${address}: ${found.problem}`, more)
  const problem = unmet(found.version, wanted.expected, content.hide)
  if (problem !== undefined) return fail('version', 'data', `${address}: the version ${problem}`, more)
  return ok('version', `${address} runs ${quoted(content.hide(found.version), 80)}`, more)
}

/** What one address of a name runs, without our secrets. */
export type Build = { readonly address: string; readonly version: string }

/** Whether all addresses run the same: a pattern or a comparison lets several versions pass. */
export function evaluateSameVersion(builds: readonly Build[]): Result {
  const versions = new Map<string, readonly string[]>()
  for (const { address, version } of builds) versions.set(version, [...(versions.get(version) ?? []), address])
  const more = { deployment: true }
  // The most common one first: whoever runs another stands out behind it.
  const sorts = [...versions].sort(([, a], [, b]) => b.length - a.length)
  const told = sorts.map(([version, addresses]) => {
    const [first = '', ...others] = addresses
    const where = others.length === 0 ? first : `${first} (and ${count(others.length, 'other')})`
    return `${quoted(version, 40)} at ${where}`
  })
  if (sorts.length === 1)
    return ok('same version', `${builds.length} addresses run ${quoted(sorts[0]?.[0] ?? '', 80)}`, more)
  const details = sorts.map(([version, addresses]) => `${quoted(version, 80)} at ${addresses.join(', ')}`)
  return fail('same version', 'data', `${builds.length} addresses run ${sorts.length} versions: ${told.join(', ')}`, {
    ...more,
    details,
  })
}

function versionInHeader(content: Content, name: string): Version {
  const value = content.headers[name.toLowerCase()]
  return value === undefined
    ? { problem: `the answer has no header ${said(name, 64)}, so no version` }
    : { version: value }
}

function versionInJson(content: Content, path: string): Version {
  const read = document(content)
  if ('problem' in read) return read
  const steps = parseJsonPath(path)
  if (steps === undefined) return { problem: `${quoted(path, 80)} is not a JSON path such as $.a.b[0].c` }
  const found = readJsonPath(read.value, steps)
  return found === undefined
    ? { problem: `the answer has no ${said(path, 80)}, so no version` }
    : { version: jsonText(found.value) }
}

/** Where a redirect points, fit to be shown; what is no URL is quoted. */
export function shownLocation(location: string, base: URL): string {
  const url = URL.parse(location, base.href)
  return url === null ? quoted(location, 80) : safeUrl(url)
}
