import { decodeText } from '../../base/encoding.ts'
import { count, showBytes } from '../../base/format.ts'
import { parseExactly } from '../../base/json.ts'
import { undecodedCoding } from '../../base/net/http/coding.ts'
import { deepestJson, readJson } from '../../base/net/json.ts'
import { quote, type Redact, safeUrl, sanitize } from '../../base/net/text.ts'
import type { Expectation } from '../../base/settings/index.ts'
import { inPascalCase } from '../../protocol/index.ts'
import { fail, notChecked, ok, type Result, warn } from '../engine/index.ts'
import { type DocumentAnswer, pathProblem, unmetValues } from './document.ts'
import { containsMismatch, isNegation, patternMismatch, UnseenError } from './expectation.ts'
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
  /** Why it does not show what the server serves, although its status is accepted: words that follow the address. */
  readonly unseen?: string | undefined
  readonly redact: Redact
  /** The wall clock when it arrived. Dates in it are compared with this. */
  readonly at: Date
  /** The answer as XML, if that is needed. */
  readonly xml: XmlRead | undefined
}

/**
 * Combines several assertions of one sort into one result. The first that fails is the message, the others are details.
 * `unseen`: without a failure, the check is not checked, for this reason.
 */
export function together<const Name extends string>(
  check: Name,
  address: string,
  mismatches: readonly string[],
  actual: string,
  unseen?: string,
): Result<Name> {
  const [first, ...rest] = mismatches
  if (first === undefined && unseen !== undefined)
    return notChecked(check, 'missing', `${address}: ${unseen}`, { address })
  if (first === undefined) return ok(check, `${address}: ${actual}`, { address })
  const others = rest.length > 0 ? ` (and ${count(rest.length, 'other')})` : ''
  return fail(check, 'data', `${address}: ${first}${others}`, { address, details: rest })
}

/** Why an answer does not prove that something is absent from its body: words that follow the address. */
const unseenIn = ({ unseen, more, body, headers }: Content): string | undefined => {
  if (unseen !== undefined) return unseen
  if (more) return `only the first ${showBytes(body.length)} of the answer were read, \`not\` needs all: raise maxBody`
  const coding = undecodedCoding(headers['content-encoding'])
  return coding && `the answer has the content-encoding "${coding}", which svc does not know`
}

/**
 * Evaluates the expectations of one part of an answer: each with its mismatches, in words that follow the address. A
 * negation is met only by what was seen whole; `unseen` says why that is not so.
 */
export function evaluateEach<const Name extends string>(
  check: Name,
  address: string,
  actual: string,
  unseen: string | undefined,
  each: readonly (readonly [Expectation, () => readonly string[]])[],
): Result<Name> {
  let open: string | undefined
  const all = each.flatMap(([expectation, evaluate]) => {
    try {
      const mismatches = evaluate()
      if (mismatches.length === 0 && isNegation(expectation)) open ??= unseen
      return mismatches
    } catch (error) {
      if (!(error instanceof UnseenError)) throw error
      open ??= `the answer ${error.message}`
      return []
    }
  })
  return together(check, address, all, actual, open)
}

/** Evaluates the text of a body, and never shows it: it may contain anything. */
export function evaluateText<const Name extends string>(
  check: Name,
  content: Content,
  { contains, matches }: { readonly contains?: Expectation | undefined; readonly matches?: Expectation | undefined },
): Result<Name> {
  const { address, headers, body, more, redact } = content
  const text = textOf(content)
  const part = more ? `the first ${showBytes(body.length)} of the answer` : 'the answer'
  const coding = undecodedCoding(headers['content-encoding'])
  const why = coding === undefined ? '' : `; its content-encoding is "${coding}", which svc does not know`
  const mismatch = (problem: string | undefined) => (problem === undefined ? [] : [`${part} ${problem}${why}`])
  return evaluateEach(check, address, `${part} has the expected content`, unseenIn(content), [
    ...(contains === undefined ? [] : [[contains, () => mismatch(containsMismatch(text, contains, redact))] as const]),
    ...(matches === undefined ? [] : [[matches, () => mismatch(patternMismatch(text, matches))] as const]),
  ])
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
  const unseen = unseenIn(content)
  // What was not read to its end, and only has to lack something, is not blamed for being unreadable.
  const isOpen = (expected: Expectations): boolean => unseen !== undefined && Object.values(expected).every(isNegation)
  const evaluate = (check: 'json' | 'xml', expected: Expectations): Result<'json' | 'xml'> =>
    isOpen(expected) ? together(check, address, [], '', unseen) : evaluateValues(check, content, expected, code)
  const unread = read && 'problem' in read ? `${address}: ${code('parse')}the answer ${read.problem}` : undefined
  // Reported once: an unreadable answer cannot be evaluated in any other way either.
  if (unread !== undefined && (parsed || (xml && !isOpen(xml)))) return [fail('xml', 'protocol', unread, { address })]
  return [
    ...(json ? [evaluate('json', json)] : []),
    ...(xml ? [evaluate('xml', xml)] : []),
    ...evaluateMeasures(measure ?? [], { answer, at, address, redact, code }),
  ]
}

type Expectations = Readonly<Record<string, Expectation>>

/** Evaluates the expected values: path → text, pattern or comparison. */
function evaluateValues(
  check: 'json' | 'xml',
  content: Content,
  expected: Expectations,
  code: (key: string) => string,
): Result<'json' | 'xml'> {
  const { address } = content
  const read = check === 'json' ? jsonIn(content) : undefined
  if (read && 'problem' in read)
    return fail('json', 'protocol', `${address}: ${code('parse')}${read.problem}`, { address })
  const each = Object.entries(expected).map(([path, expectation]) => {
    const evaluate = (): readonly string[] => {
      const problem = pathProblem(path, check)
      if (problem !== undefined) return [problem]
      const unmet = unmetValues(answerOf(content), { [path]: expectation }, content.redact)
      return unmet.map(([, why]) => `${code(path)}${why}`)
    }
    return [expectation, evaluate] as const
  })
  return evaluateEach(check, address, `${count(each.length, 'value')} as expected`, unseenIn(content), each)
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
