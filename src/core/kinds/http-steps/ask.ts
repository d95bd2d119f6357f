import { shownLocation } from '../../assert/content.ts'
import { readXml } from '../../assert/xml.ts'
import type { CheckContext } from '../../engine/index.ts'
import { call } from '../../net/http/call.ts'
import { type Link, open, type Route } from '../../net/http/route.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { ProbeError } from '../../probe-error.ts'
import { type Captured, captured } from './capture.ts'
import type { CookieJar } from './cookies.ts'
import { allExpected } from './expected.ts'
import { outcomeOf } from './outcome.ts'
import { requestOf, templatesOf } from './request.ts'
import type { Answered } from './seen.ts'
import { allowedBy, type CleanupStep, type RequestStep, type Step, type StepsSettings, writes } from './settings.ts'
import type { StepValues } from './values.ts'

/** What lasts from step to step. */
export type Run = {
  readonly given: StepsSettings
  readonly context: CheckContext
  readonly target: PeerAddress
  readonly route: Route
  readonly values: StepValues
  readonly jar: CookieJar
  /** Steps that were sent and not refused: what they made is there, or may be. */
  readonly made: Set<string>
  /** The connection that was opened first, until a step uses it. */
  first: Link | undefined
}

/** A path as it may be shown: a value that is not there stays a placeholder. */
export function shownPath({ given, values }: Run, step: RequestStep): string {
  const path = step.path ?? ''
  const base = new URL(given.url).pathname.replace(/\/$/, '')
  const filled =
    values.missing(path) === undefined ? values.fill(path, (value) => encodeURIComponent(value.toWellFormed())) : path
  return values.hide(`${base}${filled}`).replace(/\?.*/s, '?…').slice(0, 200)
}

/** Sends one step once, and takes what it captures. Throws ProbeError, or what the socket threw. */
export async function ask(run: Run, step: Step | CleanupStep, asked: string, signal: AbortSignal): Promise<Answered> {
  const { given, context, target, route, values, jar, made } = run
  const { address } = target
  const lost = templatesOf(step, given)
    .map((template) => values.missing(template))
    .find((name) => name !== undefined)
  if (lost !== undefined) throw new ProbeError('dependency', `not sent: \${${lost}} was never captured`)
  const request = requestOf(step, given, values, jar)
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
    const head = await call(socket, address, request, values.hide)
    // A request that was refused has made nothing; after a 5xx nobody knows.
    if (head.status >= 400 && head.status < 500) made.delete(step.name)
    for (const line of head.cookies) {
      const value = jar.take(line, request.path.replace(/\?.*/s, ''), context.date())
      if (value) values.hush(value)
    }
    const { bytes, more } = await head.read(given.maxBody)
    const ms = context.now() - start
    const captures = Object.entries('capture' in step ? (step.capture ?? {}) : {})
    const wantsXml =
      allExpected(step).some(({ xml }) => xml !== undefined) || captures.some(([, from]) => from.startsWith('/'))
    const xml = wantsXml ? await readXml(bytes, head.headers['content-type']) : undefined
    const { hide } = values
    const content = { address, headers: head.headers, body: bytes, more, hide, at: context.date(), xml }
    const found = captures.map(([name, from]) => [name, captured(from, content, jar)] as const)
    // Hidden before anything is told of this answer, be it the last one or not.
    values.hushPassing(found.flatMap(([name, one]) => (given.show.includes(name) ? [] : heldIn(one))))
    const outcome = outcomeOf(step, given, { content, status: head.status, values })
    const uncaptured: string[] = []
    for (const [name, one] of outcome.is === 'unfinished' ? [] : found) {
      if ('problem' in one) uncaptured.push(`the answer ${one.problem}, so no \${${name}}`)
      else values.set(name, one.value, !given.show.includes(name))
    }
    const { location } = head.headers
    const redirects = head.status >= 300 && head.status < 400 && location !== undefined
    return {
      see: 'answered',
      name: step.name,
      undoes: 'undoes' in step ? step.undoes : undefined,
      address,
      asked,
      status: head.status,
      location: redirects ? hide(shownLocation(location, route.url)) : undefined,
      ms,
      content,
      outcome,
      waited: undefined,
      uncaptured,
      signIn: 'signIn' in step && step.signIn,
      allowed: allowedBy(step),
      hide,
    }
  } finally {
    signal.removeEventListener('abort', stop)
    socket.destroy()
  }
}

const makes = (step: Step | CleanupStep): boolean => 'signIn' in step && (step.signIn || writes(step.method))

const heldIn = (found: Captured): readonly string[] => {
  const held = 'value' in found ? found.value : found.held
  return held === undefined ? [] : [held]
}
