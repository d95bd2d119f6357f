import type { PeerAddress } from '../../../base/net/addresses.ts'
import type { CookieJar } from '../../../base/net/http/cookies.ts'
import { callOver, open, type Route, type RouteLink } from '../../../base/net/http/route.ts'
import { type Redact, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { answerOf, type Content, shownLocation } from '../../assert/content.ts'
import { parseJsonPath, readJsonPath, select } from '../../assert/document.ts'
import { readXml } from '../../assert/xml.ts'
import type { CheckContext } from '../../engine/index.ts'
import { type ExpectationOutcome, expectationsOf, outcomeOf } from './expectations.ts'
import { requestOf, templatesOf } from './request.ts'
import { type CleanupStep, type RequestStep, type Step, type StepsSettings, writes } from './settings.ts'
import { maxValue, type StepValues } from './values.ts'

/** The state of a run that persists between steps. */
export type StepsRun = {
  readonly settings: StepsSettings
  readonly context: CheckContext
  readonly target: PeerAddress
  readonly route: Route
  readonly values: StepValues
  readonly jar: CookieJar
  /** Steps that were sent and not refused: the objects that they create exist, or may exist. */
  readonly made: Set<string>
  /** The connection that was opened first, until a step uses it. */
  first: RouteLink | undefined
}

/** The polling of `until`: the number of requests, including the last one, and the milliseconds. */
export type Polling = {
  readonly requests: number
  readonly ms: number
  /** Why it ended: an answer ended it, the time was up, or `most` requests had been sent. */
  readonly reason: 'over' | 'time' | 'most'
}

/** The answer to one step, and its outcome. */
export type StepAnswer = {
  readonly status: number
  /** The target of a redirect, safe to show. */
  readonly location: string | undefined
  readonly ms: number
  readonly content: Content
  /** The outcome, evaluated once against all expectations with the values of this run. */
  readonly outcome: ExpectationOutcome
  readonly polling: Polling | undefined
  /** The values that could not be captured, and why. */
  readonly uncaptured: readonly string[]
  readonly redact: Redact
}

/** A path that is safe to show; a missing value remains a placeholder. */
export function shownPath({ settings, values }: StepsRun, step: RequestStep): string {
  const path = step.path ?? ''
  const base = new URL(settings.url).pathname.replace(/\/$/, '')
  const filled =
    values.missing(path) === undefined ? values.fill(path, (value) => encodeURIComponent(value.toWellFormed())) : path
  return values.redact(`${base}${filled}`).replace(/\?.*/s, '?…').slice(0, 200)
}

/** Sends one step once, and captures its values. Throws ProbeError, or the socket's error. */
export async function send(run: StepsRun, step: Step | CleanupStep, signal: AbortSignal): Promise<StepAnswer> {
  const { settings, context, target, route, values, jar, made } = run
  const { address } = target
  const lost = templatesOf(step, settings)
    .map((template) => values.missing(template))
    .find((name) => name !== undefined)
  if (lost !== undefined) throw new ProbeError('dependency', `not sent: no step captured \${${lost}}`)
  const request = requestOf(step, settings, values, jar)
  const start = context.now()
  const ready = run.first
  run.first = undefined
  const link = ready && !ready.socket.destroyed ? ready : await open({ ...target, signal }, route.url, route, context)
  const { socket } = link
  const stop = (): void => void socket.destroy(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    if (makes(step)) made.add(step.name)
    const at = { ...target, signal }
    const head = await callOver({ socket, at, url: route.url }, request, route, context)
    // A 4xx means that nothing was created; after a 5xx, that is unknown.
    if (head.status >= 400 && head.status < 500) made.delete(step.name)
    for (const line of head.cookies) {
      const value = jar.take(line, request.path.replace(/\?.*/s, ''), context.date())
      if (value) values.hush(value)
    }
    const { bytes, more } = await head.read(settings.maxBody)
    const ms = context.now() - start
    const captures = Object.entries('capture' in step ? (step.capture ?? {}) : {})
    const expectsXml =
      expectationsOf(step).some(({ xml }) => xml !== undefined) || captures.some(([, from]) => from.startsWith('/'))
    const xml = expectsXml ? await readXml(bytes, head.headers['content-type']) : undefined
    const { redact } = values
    const content = { address, headers: head.headers, body: bytes, more, redact, at: context.date(), xml }
    const texts = captures.map(([name, from]) => [name, capture(from, content, jar)] as const)
    // Redacted before any part of this answer is shown, even if it is not the last one.
    values.hushPassing(texts.flatMap(([name, one]) => (settings.show.includes(name) ? [] : secretIn(one))))
    const outcome = outcomeOf(step, settings, { content, status: head.status, values })
    const uncaptured: string[] = []
    for (const [name, one] of outcome.type === 'unfinished' ? [] : texts) {
      if ('problem' in one) uncaptured.push(`the answer ${one.problem}, so no \${${name}}`)
      else values.set(name, one.value, !settings.show.includes(name))
    }
    const { location } = head.headers
    const redirects = head.status >= 300 && head.status < 400 && location !== undefined
    return {
      status: head.status,
      location: redirects ? redact(shownLocation(location, route.url)) : undefined,
      ms,
      content,
      outcome,
      polling: undefined,
      uncaptured,
      redact,
    }
  } finally {
    signal.removeEventListener('abort', stop)
    socket.destroy()
  }
}

const makes = (step: Step | CleanupStep): boolean => 'signIn' in step && (step.signIn || writes(step.method))

type Capture = { readonly value: string } | { readonly problem: string; readonly secret?: string }

/** The parts of an answer that must be redacted like a captured value. */
const secretIn = (captured: Capture): readonly string[] => {
  const secret = 'value' in captured ? captured.value : captured.secret
  return secret === undefined ? [] : [secret]
}

/** The value in an answer at `$.path`, `/xml/path`, `header:Name` or `cookie:Name`; otherwise why it cannot be used. */
function capture(from: string, content: Content, jar: CookieJar): Capture {
  const text = valueAt(from, content, jar)
  if ('problem' in text) return text
  if (text.value === '') return { problem: `has an empty ${sanitize(from, 64)}` }
  if (text.value.length > maxValue) {
    return {
      secret: text.value.slice(0, maxValue),
      problem: `has a ${sanitize(from, 64)} of ${text.value.length} characters (limit ${maxValue})`,
    }
  }
  return text
}

function valueAt(from: string, content: Content, jar: CookieJar): Capture {
  const absent = { problem: `has no ${sanitize(from, 64)}` }
  const [, source, name = ''] = /^(header|cookie):(.*)$/s.exec(from) ?? []
  if (source !== undefined) {
    const header = name.toLowerCase()
    const inHeader = Object.hasOwn(content.headers, header) ? content.headers[header] : undefined
    const value = source === 'cookie' ? jar.get(name) : inHeader
    return value === undefined ? absent : { value }
  }
  const steps = parseJsonPath(from)
  if (steps === undefined) {
    const items = select(answerOf(content), from)
    if ('problem' in items) return { problem: `cannot be read: ${items.problem}` }
    const [first] = items
    return first === undefined ? absent : { value: first.text }
  }
  const read = answerOf(content).json()
  if ('problem' in read) return { problem: `cannot be read: ${read.problem}` }
  const value = readJsonPath(read.value, steps)?.value
  if (value === undefined) return absent
  return typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'bigint' ||
    typeof value === 'boolean'
    ? { value: String(value) }
    : { problem: `has a ${sanitize(from, 64)} that is neither text nor a number` }
}
