import { Fault } from '../errors.ts'
import {
  HealthCheckRequest,
  type Operation,
  type OperationSpec,
  operations,
  type ReplyRoute,
  replyRoutes,
} from '../protocol/index.ts'
import { overHttp, type ReportName } from '../reports/index.ts'
import { type FormatName, formatNamed, type Negotiated, type Pair, parsePairs, type Values } from '../wire/index.ts'
import { escapeControls } from './log.ts'

/** The server's own pages, beside the operations of the interface: one row a page, read by the router and by OpenAPI. */
export type OwnPage = {
  /** The first is the one to write down; others answer the same. */
  readonly paths: readonly [string, ...string[]]
  readonly summary: string
  readonly contentType: string
  /** Whether it answers under any Host (S1). */
  readonly anyHost: boolean
}

const htmlType = 'text/html; charset=utf-8'
const jsonType = 'application/json; charset=utf-8'
const textType = 'text/plain; charset=utf-8'

export const ownPages = {
  page: {
    paths: ['/'],
    summary: 'Where each server type stands, for a person',
    contentType: htmlType,
    anyHost: false,
  },
  livez: {
    paths: ['/livez'],
    summary: 'Whether the process answers; asks no store and runs no monitor',
    contentType: textType,
    anyHost: true,
  },
  readyz: {
    paths: ['/readyz'],
    summary: 'Whether the store answers and the server is not stopping',
    contentType: textType,
    anyHost: true,
  },
  metrics: {
    paths: ['/metrics'],
    summary: 'The latest runs, requests and the process, for Prometheus; runs no monitor',
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    anyHost: false,
  },
  metadata: {
    paths: ['/metadata'],
    summary: 'The interface, for a person',
    contentType: htmlType,
    anyHost: false,
  },
  openapi: {
    paths: ['/openapi.json'],
    summary: 'The interface as OpenAPI 3.1',
    contentType: jsonType,
    anyHost: false,
  },
  typescript: {
    paths: ['/types/typescript'],
    summary: 'The interface as TypeScript, for @servicestack/client',
    contentType: textType,
    anyHost: false,
  },
  types: {
    paths: ['/types/metadata.json', '/types/metadata'],
    summary: 'The types and operations of the interface, for ServiceStack tools',
    contentType: jsonType,
    anyHost: false,
  },
  app: {
    paths: ['/metadata/app.json', '/metadata/app'],
    summary: 'This application and its interface, for ServiceStack tools',
    contentType: jsonType,
    anyHost: false,
  },
} as const satisfies Record<string, OwnPage>

export type PageName = keyof typeof ownPages

/** What a path stands for. */
export type RouteMatch =
  | {
      readonly kind: 'operation'
      /** The path's template: one of few values, for metrics. */
      readonly label: string
      readonly verbs: readonly string[]
      readonly operation: Operation
      /** Fields that the path gives. */
      readonly pathValues: readonly Pair[]
      /** A route of the interface, or one named after the request (R2). */
      readonly style: 'route' | 'reply'
      /** Whether an array of requests is taken (R3). */
      readonly batch: boolean
      /** The format that the path fixes. */
      readonly format: FormatName | undefined
    }
  | { readonly kind: 'own'; readonly label: string; readonly verbs: readonly string[]; readonly page: PageName }

export type OperationMatch = Extract<RouteMatch, { kind: 'operation' }>

const suffixes: Readonly<Record<string, FormatName>> = { json: 'json', csv: 'csv' }

type RouteTable = {
  /** Paths without parameters, in lower case. */
  readonly fixed: ReadonlyMap<string, RouteMatch>
  /** What stands before the last segment of a path whose last segment is a parameter. */
  readonly before: ReadonlyMap<string, Before>
}
type Before = ((last: string, format: FormatName | undefined) => RouteMatch) & {
  /** What follows may hold dots: only a format's suffix is one. */
  readonly dots?: boolean
}

export type Router = (path: string) => RouteMatch

/**
 * The routes of the interface, read off its table, and the server's own pages. Throws NotFound for
 * an unknown path and MethodNotAllowed for an unknown request name.
 */
export function router(): Router {
  const table = readTable()
  return (path) => table.fixed.get(path) ?? search(table, path)
}

function readTable(): RouteTable {
  const fixed = new Map<string, RouteMatch>()
  const before = new Map<string, Before>()
  for (const [page, { paths }] of Object.entries(ownPages) as [PageName, (typeof ownPages)[PageName]][]) {
    for (const path of paths) fixed.set(path, { kind: 'own', label: paths[0], verbs: ['GET'], page })
  }
  for (const [operation, row] of Object.entries(operations) as [Operation, OperationSpec][]) {
    for (const { path, verbs, dots = false } of row.routes) {
      const operationAt = (pathValues: readonly Pair[], format: FormatName | undefined): RouteMatch => ({
        kind: 'operation',
        label: path,
        verbs,
        operation,
        pathValues,
        style: 'route',
        batch: false,
        format,
      })
      const parameter = /^(.*)\/\{(\w+)\}$/.exec(path)
      if (parameter) {
        const [, parent = '', name = ''] = parameter
        before.set(
          parent,
          Object.assign((last: string, format?: FormatName) => operationAt([[name, last]], format), { dots }),
        )
      } else {
        fixed.set(path, operationAt([], undefined))
        for (const [suffix, format] of Object.entries(suffixes)) fixed.set(`${path}.${suffix}`, operationAt([], format))
      }
    }
  }
  for (const route of replyRoutes) before.set(route.prefix, reply(route))
  return { fixed, before }
}

function reply({ prefix, format, batches }: ReplyRoute) {
  const byName = new Map<string, Operation>()
  for (const [operation, row] of Object.entries(operations) as [Operation, OperationSpec][]) {
    byName.set(row.name.toLowerCase(), operation)
  }
  return (last: string, suffix: FormatName | undefined): RouteMatch => {
    // Only /api takes a suffix; elsewhere the format is already said, and a dot belongs to the name.
    const name = format !== undefined && suffix !== undefined ? `${last}.${suffix}` : last
    const batch = batches && suffix !== 'csv' && name.endsWith(batchMark)
    const operation = byName.get((batch ? name.slice(0, -batchMark.length) : name).toLowerCase())
    if (operation === undefined) {
      throw new Fault('MethodNotAllowed', `The operation '${escapeControls(name)}' does not exist for this service`, {
        errorCode: 'NotImplementedException',
        headers: { Allow: '' },
      })
    }
    const { replyVerbs } = operations[operation] as OperationSpec
    return {
      kind: 'operation',
      label: `${prefix}/{Request}${batch ? batchMark : ''}`,
      verbs: batch ? ['POST'] : replyVerbs,
      operation,
      pathValues: [],
      style: 'reply',
      batch,
      format: format ?? suffix,
    }
  }
}

/** What stands behind a request's name where several are sent (R3). */
const batchMark = '[]'

/** R1: letter case, a trailing slash and doubled slashes inside do not matter. */
function search(table: RouteTable, path: string): RouteMatch {
  const segments = path.split('/').filter((segment) => segment !== '')
  const plain = segments.map(decodedSegment)
  // An encoded slash is part of a name and never a boundary between names.
  const key = `/${plain.map((segment, i) => (segment.includes('/') ? segments[i] : segment)).join('/')}`.toLowerCase()
  const fixed = table.fixed.get(key)
  if (fixed) return fixed
  const parent = table.before.get(key.slice(0, key.lastIndexOf('/')))
  const last = plain.at(-1) ?? ''
  const dot = last.lastIndexOf('.')
  const suffix = last.slice(dot + 1).toLowerCase()
  const hasSuffix = dot >= 0 && Object.hasOwn(suffixes, suffix)
  if (!parent || (dot >= 0 && !hasSuffix && !parent.dots)) throw nothingAt(path)
  return !hasSuffix ? parent(last, undefined) : parent(last.slice(0, dot), suffixes[suffix])
}

function decodedSegment(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new Fault('BadRequest', 'The path is not percent-encoded UTF-8')
  }
}

const nothingAt = (path: string): Fault =>
  new Fault('NotFound', `There is nothing at ${escapeControls(path)}: ask GET /healthcheck, or open / in a browser`)

/** The verbs for an Allow header: HEAD goes wherever GET does (R4), OPTIONS everywhere (R5). */
export function allowed(verbs: readonly string[]): string {
  const all = verbs.includes('GET') ? ['GET', 'HEAD', ...verbs, 'OPTIONS'] : [...verbs, 'OPTIONS']
  return [...new Set(all)].join(', ')
}

/** Throws MethodNotAllowed, with Allow, unless the verb belongs to what was found. */
export function requireVerb(operationAt: RouteMatch, verb: string): void {
  if (verb === 'OPTIONS' || operationAt.verbs.includes(verb) || (verb === 'HEAD' && operationAt.verbs.includes('GET')))
    return
  const headers = { Allow: allowed(operationAt.verbs) }
  if (operationAt.kind === 'operation' && operationAt.style === 'reply') {
    const name = `${operations[operationAt.operation].name}${operationAt.batch ? batchMark : ''}`
    const method = verb.charAt(0) + verb.slice(1).toLowerCase()
    throw new Fault('MethodNotAllowed', `Could not find method named ${method}(${name}) or Any(${name})`, {
      errorCode: 'NotImplementedException',
      headers,
    })
  }
  throw new Fault('MethodNotAllowed', `${verb} is not allowed here: ${headers.Allow} are`, { headers })
}

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
  return escapeControls(query === '' ? path : `${path}?${query}`)
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
