import { decodeText } from '../../base/encoding.ts'
import { count, showBytes } from '../../base/format.ts'
import { parseExactly } from '../../base/json.ts'
import { deepestJson, readJson } from '../../base/net/json.ts'
import { quote, type Redact, safeUrl, sanitize } from '../../base/net/text.ts'
import { inPascalCase } from '../../protocol/index.ts'
import { fail, ok, type Result, warn } from '../engine/index.ts'
import { type DocumentAnswer, pathProblem, unmetValues } from './document.ts'
import { codeOf, type LinkEntry } from './link-settings.ts'
import { evaluateMeasures } from './measure.ts'
import type { XmlRead } from './xml.ts'

/** One complete answer, as its checks see it. */
export type Content = {
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** True when the answer was longer than maxBody. */
  readonly more: boolean
  readonly redact: Redact
  /** The wall clock when it arrived. Dates in it are compared with this. */
  readonly at: Date
  /** The answer as XML, if that is needed. */
  readonly xml: XmlRead | undefined
}

/**
 * Combines several assertions of one sort into one result. The first that fails is the message, the others are details.
 */
export function together<const Name extends string>(
  check: Name,
  address: string,
  mismatches: readonly string[],
  actual: string,
): Result<Name> {
  const [first, ...rest] = mismatches
  if (first === undefined) return ok(check, `${address}: ${actual}`, { address })
  const others = rest.length > 0 ? ` (and ${count(rest.length, 'other')})` : ''
  return fail(check, 'data', `${address}: ${first}${others}`, { address, details: rest })
}

/** The body as text, in the encoding that the answer declares. */
export const textOf = ({ body, headers }: Content): string => decodeText(body, { contentType: headers['content-type'] })

type Document = { readonly value: unknown } | { readonly problem: string }

/** The body as JSON, or why it cannot be parsed. */
export function jsonIn(content: Content): Document {
  if (content.more)
    return {
      problem: `the answer is longer than maxBody (${showBytes(content.body.length)}), so its JSON cannot be read`,
    }
  const read = readJson(textOf(content), deepestJson, parseExactly)
  if ('json' in read) return { value: read.json }
  if (read.problem === 'tooDeep') return { problem: `the answer nests JSON more than ${deepestJson} deep` }
  const type = quote(content.headers['content-type'] ?? 'no content type', 64)
  return { problem: `the answer is not JSON: ${showBytes(content.body.length)} of ${type}` }
}

/** The answer, for queries by path. A truncated answer is not evaluated: the missing part might be the worst. */
export const answerOf = (content: Content): DocumentAnswer => ({
  json: () => jsonIn(content),
  xml:
    content.xml && content.more
      ? { problem: `is longer than maxBody (${showBytes(content.body.length)})` }
      : content.xml,
})

type Assertions = Pick<LinkEntry, 'json' | 'xml' | 'measure' | 'codes'>

/** Evaluates the expected values, numbers, dates and counts. `parsed`: the answer must be XML anyway. */
export function evaluateAssertions(
  content: Content,
  assertions: Assertions,
  parsed = false,
): readonly Result<'json' | 'xml' | 'measure'>[] {
  const { json, xml, measure, codes } = assertions
  const { address, redact, at } = content
  const answer = answerOf(content)
  const code = codeOf(codes)
  const read = answer.xml
  const unread = read && 'problem' in read ? `${address}: ${code('parse')}the answer ${read.problem}` : undefined
  // Reported once: an unreadable answer cannot be evaluated in any other way either.
  if (unread !== undefined && (xml || parsed)) return [fail('xml', 'protocol', unread, { address })]
  return [
    ...(json ? [evaluateValues('json', content, json, code)] : []),
    ...(xml ? [evaluateValues('xml', content, xml, code)] : []),
    ...evaluateMeasures(measure ?? [], { answer, at, address, redact, code }),
  ]
}

/** Evaluates the expected values: path → text, pattern or comparison. */
function evaluateValues(
  check: 'json' | 'xml',
  content: Content,
  expected: Readonly<Record<string, string>>,
  code: (key: string) => string,
): Result<'json' | 'xml'> {
  const { address } = content
  const read = check === 'json' ? jsonIn(content) : undefined
  if (read && 'problem' in read)
    return fail('json', 'protocol', `${address}: ${code('parse')}${read.problem}`, { address })
  const failures = Object.entries(expected).flatMap(([path, expectation]) => {
    const problem = pathProblem(path, check)
    if (problem !== undefined) return [problem]
    return unmetValues(answerOf(content), { [path]: expectation }, content.redact).map(
      ([, why]) => `${code(path)}${why}`,
    )
  })
  return together(check, address, failures, `${count(Object.keys(expected).length, 'value')} as expected`)
}

/** Evaluates the /healthcheck of another server. Its body decides; its status code proves nothing. */
export function evaluateHealth(content: Content): Result<'health'> {
  const { address } = content
  const read = jsonIn(content)
  if ('problem' in read) return fail('health', 'protocol', `${address}: ${read.problem}`, { address })
  const value = inPascalCase(read.value)
  const document = typeof value === 'object' && value !== null ? value : {}
  return evaluateHealthDocument(content, document as Readonly<Record<string, unknown>>)
}

/** The result of a parsed health document: the interface's document, with members in PascalCase. */
export function evaluateHealthDocument(
  { address, redact }: Pick<Content, 'address' | 'redact'>,
  body: Readonly<Record<string, unknown>>,
): Result<'health'> {
  const { Status: status, StatusMessage: message, FailedMonitorCount: failed, MonitorSummaries: summaries } = body
  const reason = typeof message === 'string' && message !== '' ? `: ${quote(redact(message), 200)}` : ''
  const number = typeof failed === 'number' ? failed : undefined
  const failedParts = failures(summaries, redact)
  if (status === 'Failure') {
    const many = number === undefined ? '' : `, ${count(number, 'failed monitor')}`
    const more = {
      address,
      details: failedParts,
      ...(number === undefined ? {} : { measurement: { value: number, unit: 'count' as const, limit: 0 } }),
    }
    return fail('health', 'data', `${address} reports Failure${many}${reason}`, more)
  }
  if (status !== 'Success') {
    return fail(
      'health',
      'protocol',
      `${address} reports neither Success nor Failure: not an answer of a /healthcheck`,
      { address },
    )
  }
  const contradicting = Math.max(number ?? 0, failedParts.length)
  if (contradicting > 0) {
    return fail(
      'health',
      'protocol',
      `${address} reports Success, but also ${count(contradicting, 'failed monitor')}${reason}`,
      { address, details: failedParts },
    )
  }
  if (Array.isArray(summaries) && summaries.length === 0) {
    return warn('health', `${address} reports Success, but ran no monitor: nothing was checked`, { address })
  }
  return ok('health', `${address} reports Success${reason}`, { address })
}

const isFailure = (result: unknown): boolean =>
  typeof result === 'object' && result !== null && (result as { readonly Status?: unknown }).Status === 'Failure'

/** One line for each failed monitor of the peer, at most ten. */
function failures(summaries: unknown, redact: Redact): readonly string[] {
  if (!Array.isArray(summaries)) return []
  return (summaries as readonly unknown[])
    .slice(0, 1000)
    .flatMap((one) => {
      const {
        MonitorName: name,
        Status: status,
        Results: results,
        ErrorMessages: errors,
      } = (one ?? {}) as Readonly<Record<string, unknown>>
      const failed = status === 'Failure' || (Array.isArray(results) && results.slice(0, 1000).some(isFailure))
      if (!failed || typeof name !== 'string') return []
      const first: unknown = Array.isArray(errors) ? errors[0] : undefined
      return [sanitize(`${redact(name)}${typeof first === 'string' ? `: ${redact(first)}` : ''}`)]
    })
    .slice(0, 10)
}

/** The target of a redirect, sanitized. Invalid URLs are quoted. */
export function shownLocation(location: string, base: URL): string {
  const url = URL.parse(location, base.href)
  return url === null ? quote(location, 80) : safeUrl(url)
}
