import { HealthCheckRequest } from '../protocol/index.ts'
import { overHttp, type ReportName } from '../reports/index.ts'
import { formatNamed, type Negotiated, type Pair, parsePairs, type Values } from '../wire/index.ts'
import { clean } from './log.ts'
import type { RouteMatch, Router } from './routes.ts'

const healthFields = new Set(Object.keys(HealthCheckRequest.fields).map((name) => name.toLowerCase()))

/**
 * The target for a log line: of the query only a format that exists, and what a health check asks for
 * where one is asked for. Anywhere else a value may be a secret, whatever its name.
 */
export function loggedPath(path: string, pairs: readonly Pair[], isHealthCheck: boolean): string {
  const loggable = pairs.filter(([written, value]) => {
    const name = written.toLowerCase()
    return name === 'format' ? isFormat(value) : isHealthCheck && healthFields.has(name)
  })
  const left = loggable.length < pairs.length ? ['…'] : []
  const query = [...loggable.map(([name, value]) => `${name}=${value}`), ...left].join('&')
  return clean(query === '' ? path : `${path}?${query}`)
}

const isFormat = (value: string): boolean =>
  formatNamed(value) !== undefined || overHttp.format.some((name) => name === value.toLowerCase())

/** In what form an answer is wanted. */
export type ResponseNegotiation = {
  readonly method: string
  readonly accept: string | undefined
  readonly negotiated: Negotiated
  /** F5: for health answers. */
  readonly report: ReportName | undefined
  /** The run document, for health answers: what another svc asks for. */
  readonly run: boolean
}

/** What a request target stands for. */
export type RequestTarget = {
  readonly route: RouteMatch
  readonly pairs: readonly Pair[]
  /** `?format=`, `?callback=` and `?jsconfig=`, in any letter case. */
  readonly format: string | undefined
  readonly callback: string | undefined
  readonly jsconfig: string | undefined
  readonly logged: string
  /** The request that a bodiless call makes of it, once it has been read and found good. */
  request: Values | undefined
  /** The form in which it was asked for last. */
  negotiation: ResponseNegotiation | undefined
}

/** Splits a request target that has passed the gate. Throws BadRequest for a query that cannot be decoded. */
export function splitTarget(url: string): { readonly path: string; readonly pairs: readonly Pair[] } {
  const mark = url.indexOf('?')
  if (mark < 0) return { path: url, pairs: [] }
  return { path: url.slice(0, mark), pairs: parsePairs(url.slice(mark + 1)) }
}

/** The longest target that is remembered, and how many are. */
const longest = 256
const most = 256

/**
 * Reads targets. Pollers ask the same few again and again, so the good ones are remembered: a target
 * means the same every time. Throws what the router throws.
 */
export function targetReader(route: Router): (url: string) => RequestTarget {
  const targets = new Map<string, RequestTarget>()
  return (url) => {
    const before = targets.get(url)
    if (before) return before
    const { path, pairs } = splitTarget(url)
    const match = route(path)
    const target: RequestTarget = {
      route: match,
      pairs,
      format: firstNamed(pairs, 'format'),
      callback: firstNamed(pairs, 'callback'),
      jsconfig: firstNamed(pairs, 'jsconfig'),
      logged: loggedPath(path, pairs, isHealthCheck(match)),
      request: undefined,
      negotiation: undefined,
    }
    // Only what is polled is worth it, and other operations may hold what nobody should remember.
    if (url.length <= longest && isHealthCheck(target.route)) {
      // Whoever makes up targets empties the memory and gains nothing by it.
      if (targets.size >= most) targets.clear()
      targets.set(url, target)
    }
    return target
  }
}

const isHealthCheck = (match: RouteMatch): boolean => match.kind === 'operation' && match.operation === 'healthCheck'

/** The first value given under a name (in lower case), whatever its letter case; undefined when absent or empty. */
function firstNamed(pairs: readonly Pair[], name: string): string | undefined {
  const match = pairs.find(([written]) => written.length === name.length && written.toLowerCase() === name)
  return match === undefined || match[1] === '' ? undefined : match[1]
}
