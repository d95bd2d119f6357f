import { Fault } from '../base/errors.ts'
import { type ReportName, reports } from '../checks/reports/index.ts'
import {
  AcknowledgeFault,
  Authenticate,
  type Dto,
  EndSilence,
  HealthCheckRequest,
  type Operation,
  type OperationSpec,
  operations,
  type ReplyRoute,
  replyRoutes,
  SilenceMonitors,
} from '../protocol/index.ts'
import { type LanguageName, languageNames, languages, parametersOf } from '../protocol/metadata/index.ts'
import { nodeQuestion } from '../protocol/service/service.ts'
import {
  type FormatName,
  formatNamed,
  type Negotiated,
  type Pair,
  parsePairs,
  type WireValues,
} from '../protocol/wire/index.ts'
import { escapeControls } from './log.ts'

/** The server's own pages besides the operations. The router and OpenAPI both read this table, one row per page. */
export type OwnPage = {
  /** The first path is the documented one; the others are aliases. */
  readonly paths: readonly [string, ...string[]]
  readonly summary: string
  readonly contentType: string
  /** Whether the page answers under any Host (S1). */
  readonly anyHost: boolean
  /** The effect of a POST of a form to the page, and the fields of the form. Absent: the page answers GET only. */
  readonly post?: { readonly summary: string; readonly form?: Dto } | undefined
}

const htmlType = 'text/html; charset=utf-8'
const jsonType = 'application/json; charset=utf-8'
const textType = 'text/plain; charset=utf-8'

const serverPages = {
  page: {
    paths: ['/'],
    summary: 'The status of each server type, as a page for people',
    contentType: htmlType,
    anyHost: false,
    post: { summary: 'Runs the check of a button of the page and redirects to its report', form: HealthCheckRequest },
  },
  board: {
    paths: ['/board'],
    summary: 'What is wrong, in large type for a wall display; ?type= limits the types',
    contentType: htmlType,
    anyHost: false,
  },
  signIn: {
    paths: ['/sign-in'],
    summary: 'The form to sign in with a browser',
    contentType: htmlType,
    anyHost: false,
    post: { summary: 'Signs in or, with the provider logout, out, and redirects to the page', form: Authenticate },
  },
  silenceForm: {
    paths: ['/forms/silence'],
    summary: 'Says where the form is',
    contentType: htmlType,
    anyHost: false,
    post: { summary: 'Silences a monitor and redirects to its page', form: SilenceMonitors },
  },
  acknowledgeForm: {
    paths: ['/forms/acknowledge'],
    summary: 'Says where the form is',
    contentType: htmlType,
    anyHost: false,
    post: { summary: 'Acknowledges the incidents of a monitor and redirects to its page', form: AcknowledgeFault },
  },
  endSilenceForm: {
    paths: ['/forms/end-silence'],
    summary: 'Says where the form is',
    contentType: htmlType,
    anyHost: false,
    post: {
      summary: 'Ends a silence or an acknowledgement and redirects to the page of the monitor',
      form: EndSilence,
    },
  },
  drillLink: {
    paths: ['/drills/opened/{Token}'],
    summary: 'The link in a message of a drill: a page whose button confirms that the message arrived',
    contentType: htmlType,
    anyHost: false,
    post: { summary: 'Confirms that the message arrived, and redirects to the page' },
  },
  badge: {
    paths: ['/badge/{Type}/{Monitor}.svg', '/badge/{Type}.svg'],
    summary: 'The state of a monitor or a type that `serve.badges` lists, as an image for pages of other sites',
    contentType: 'image/svg+xml; charset=utf-8',
    anyHost: false,
  },
  livez: {
    paths: ['/livez'],
    summary: 'Liveness: whether the process responds. Does not query the store or run monitors',
    contentType: textType,
    anyHost: true,
  },
  readyz: {
    paths: ['/readyz'],
    summary: 'Readiness: whether the store answers and the server is not stopping',
    contentType: textType,
    anyHost: true,
  },
  speaker: {
    paths: [nodeQuestion.path],
    summary: 'For other nodes of a store that none of them has: whether this one sends the messages',
    contentType: textType,
    anyHost: true,
  },
  metrics: {
    paths: ['/metrics'],
    summary: 'Metrics of the latest runs, the requests and the process, for Prometheus. Runs no monitors',
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    anyHost: false,
  },
  metadata: {
    paths: ['/metadata'],
    summary: 'The interface, as a page for people',
    contentType: htmlType,
    anyHost: false,
  },
  openapi: {
    paths: ['/openapi.json'],
    summary: 'The interface as OpenAPI 3.1, for generators of clients: each operation once, in JSON',
    contentType: jsonType,
    anyHost: false,
  },
  openapiAll: {
    paths: ['/openapi-all.json'],
    summary: 'Every path, verb and format as OpenAPI 3.1, with aliases and the pages of the server',
    contentType: jsonType,
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

/** The page of a language: `types/java`. */
export type TypesPage = `types/${LanguageName}`
export type ServerPage = keyof typeof serverPages
export type PageName = ServerPage | TypesPage

const typesPage = (name: LanguageName): readonly [TypesPage, OwnPage] => [
  `types/${name}`,
  {
    paths: [`/types/${name}`],
    summary: `The interface as ${languages[name].title}, for ${languages[name].client}`,
    contentType: textType,
    anyHost: false,
  },
]

export const ownPages = {
  ...serverPages,
  ...(Object.fromEntries(languageNames.map(typesPage)) as Record<TypesPage, OwnPage>),
}

const reportRows = Object.entries(reports) as [ReportName, (typeof reports)[ReportName]][]

/** The reports that `/healthcheck` offers besides the protocol's own formats (F5), by `?format=` and by `Accept`. */
export const overHttp = {
  format: reportRows.flatMap(([name, { overHttp: offer }]) => (offer === 'format' ? [name] : [])),
  accept: reportRows.flatMap(([name, { overHttp: offer }]) =>
    typeof offer === 'object' ? [{ type: offer.accept, name }] : [],
  ),
} as const

/** The match of a path. */
export type RouteMatch =
  | {
      readonly kind: 'operation'
      /** The path's template. It takes few values, so metrics can use it as a label. */
      readonly label: string
      readonly verbs: readonly string[]
      readonly operation: Operation
      /** Fields that the path sets. */
      readonly pathValues: readonly Pair[]
      /** `route`: a route of the interface. `reply`: one named after the request (R2). */
      readonly style: 'route' | 'reply'
      /** Whether the path accepts an array of requests (R3). */
      readonly batch: boolean
      /** The format that the path fixes. */
      readonly format: FormatName | undefined
    }
  | {
      readonly kind: 'own'
      readonly label: string
      readonly verbs: readonly string[]
      readonly page: PageName
      /** The values of the parameters of the path. */
      readonly pathValues: readonly string[]
    }

export type OperationMatch = Extract<RouteMatch, { kind: 'operation' }>

const suffixes: Readonly<Record<string, FormatName>> = { json: 'json', csv: 'csv', jsv: 'jsv' }

type RouteTable = {
  /** Paths without parameters, in lower case. */
  readonly fixed: ReadonlyMap<string, RouteMatch>
  readonly templates: readonly Template[]
}
/** A path with parameters, in any of its segments. */
type Template = {
  /** Literals in lower case; undefined for a parameter. */
  readonly segments: readonly (string | undefined)[]
  /** A parameter in the last segment may contain dots: only the suffix of a known format is removed. */
  readonly dots?: boolean | undefined
  /** With which the path must end, in any letter case; part of the last value. */
  readonly ending?: string | undefined
  /** Receives the values of the parameters in their order. */
  readonly match: (values: readonly string[], format: FormatName | undefined) => RouteMatch
}

export type Router = (path: string) => RouteMatch

/**
 * Builds the routes from the rows of the operations and the server's own pages. A path may have parameters in any of its
 * segments; of two rows that fit, the first one answers. The router throws NotFound for an unknown
 * path and MethodNotAllowed for an unknown request name.
 */
export function router(rows: Readonly<Record<string, OperationSpec>> = operations): Router {
  const table = readTable(rows)
  return (path) => table.fixed.get(path) ?? search(table, path)
}

function readTable(rows: Readonly<Record<string, OperationSpec>>): RouteTable {
  const fixed = new Map<string, RouteMatch>()
  const templates: Template[] = []
  for (const [page, { paths, post }] of Object.entries(ownPages) as [PageName, OwnPage][]) {
    const verbs = post ? ['GET', 'POST'] : ['GET']
    for (const path of paths) {
      const pageAt = (pathValues: readonly string[]): RouteMatch => ({
        kind: 'own',
        label: paths[0],
        verbs,
        page,
        pathValues,
      })
      const ending = /\}(\.\w+)$/.exec(path)?.[1]
      const template = { segments: segmentsOf(path), dots: ending !== undefined, ending, match: pageAt }
      if (parametersOf(path).length > 0) templates.push(template)
      else fixed.set(path, pageAt([]))
    }
  }
  for (const [operation, row] of Object.entries(rows) as [Operation, OperationSpec][]) {
    for (const { path, verbs, dots } of row.routes) {
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
      const names = parametersOf(path)
      if (names.length > 0) {
        const match: Template['match'] = (values, format) =>
          operationAt(
            names.map((name, i) => [name, values[i] ?? '']),
            format,
          )
        templates.push({ segments: segmentsOf(path), dots, match })
      } else {
        fixed.set(path, operationAt([], undefined))
        for (const [suffix, format] of Object.entries(suffixes)) fixed.set(`${path}.${suffix}`, operationAt([], format))
      }
    }
  }
  for (const route of replyRoutes) templates.push({ segments: segmentsOf(`${route.prefix}/{}`), match: reply(route) })
  templates.push({ segments: segmentsOf('/types/{}'), dots: true, match: noLanguage })
  return { fixed, templates }
}

const segmentsOf = (path: string): Template['segments'] =>
  path
    .slice(1)
    .split('/')
    .map((segment) => (segment.startsWith('{') ? undefined : segment.toLowerCase()))

function reply({ prefix, format }: ReplyRoute) {
  const byName = new Map<string, Operation>()
  for (const [operation, row] of Object.entries(operations) as [Operation, OperationSpec][]) {
    byName.set(row.name.toLowerCase(), operation)
  }
  return ([last = '']: readonly string[], suffix: FormatName | undefined): RouteMatch => {
    // Only /api takes a suffix. Elsewhere the format is already known and a dot belongs to the name.
    const name = format !== undefined && suffix !== undefined ? `${last}.${suffix}` : last
    const batch = name.endsWith(batchMark)
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
      verbs: batch ? batchVerbs : replyVerbs,
      operation,
      pathValues: [],
      style: 'reply',
      batch,
      format: format ?? suffix,
    }
  }
}

/** Any other name below /types (R6). */
function noLanguage([last = '']: readonly string[], suffix: FormatName | undefined): never {
  const name = suffix === undefined ? last : `${last}.${suffix}`
  throw new Fault(
    'NotFound',
    `There are no types for ${escapeControls(name)}. Available below /types: ${languageNames.join(', ')}`,
  )
}

/** Follows a request's name in the path of a batch (R3). */
const batchMark = '[]'
/** A GET has no body, so it is an empty batch and changes nothing. */
const batchVerbs = ['GET', 'POST']

/** Ignores letter case, a trailing slash and doubled slashes (R1). */
function search(table: RouteTable, path: string): RouteMatch {
  const segments = path.split('/').filter((segment) => segment !== '')
  const plain = segments.map(decodedSegment)
  // An encoded slash belongs to a name and never separates segments.
  const keys = plain.map((segment, i) => (segment.includes('/') ? (segments[i] ?? '') : segment).toLowerCase())
  const fixed = table.fixed.get(`/${keys.join('/')}`)
  if (fixed) return fixed
  const last = plain.at(-1) ?? ''
  const dot = last.lastIndexOf('.')
  const suffix = last.slice(dot + 1).toLowerCase()
  const hasSuffix = dot >= 0 && Object.hasOwn(suffixes, suffix)
  const stem = hasSuffix ? last.slice(0, dot) : last
  const template = table.templates.find(({ segments: parts, dots, ending = '' }) => {
    if (parts.length !== keys.length || (dot >= 0 && !hasSuffix && !dots)) return false
    if (!last.toLowerCase().endsWith(ending)) return false
    return parts.every((part, i) => part === undefined || part === (i < keys.length - 1 ? keys[i] : stem.toLowerCase()))
  })
  if (!template) throw suffix === 'xml' || (keys[0] === 'xml' && keys.length > 1) ? noXmlAt(path) : nothingAt(path)
  const values = [...plain.slice(0, -1), stem].filter((_, i) => template.segments[i] === undefined)
  return template.match(values, hasSuffix ? suffixes[suffix] : undefined)
}

function decodedSegment(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new Fault('BadRequest', 'The path is not valid percent-encoded UTF-8')
  }
}

const nothingAt = (path: string): Fault =>
  new Fault('NotFound', `There is nothing at ${escapeControls(path)}: try GET /healthcheck, or open / in a browser`)

const noXmlAt = (path: string): Fault =>
  new Fault(
    'NotFound',
    `There is nothing at ${escapeControls(path)}: XML is not offered, use JSON, JSV or CSV as in /json/reply/HealthCheckRequest`,
  )

/** The verbs of an Allow header. HEAD accompanies GET (R4), and OPTIONS is always allowed (R5). */
export function allowed(verbs: readonly string[]): string {
  const all = verbs.includes('GET') ? ['GET', 'HEAD', ...verbs, 'OPTIONS'] : [...verbs, 'OPTIONS']
  return [...new Set(all)].join(', ')
}

/** Throws MethodNotAllowed with an Allow header when the route does not support the verb. */
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
  throw new Fault('MethodNotAllowed', `${verb} is not allowed here. Allowed: ${headers.Allow}`, { headers })
}

const healthFields = new Set(Object.keys(HealthCheckRequest.fields).map((name) => name.toLowerCase()))

const unescaped = (text: string): string =>
  text.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

/** Names below `/auth/`: all others may be a secret that somebody typed in the wrong place (S7). */
const publicProviders: ReadonlySet<string> = new Set(['credentials', 'login', 'basic', 'logout'])

/**
 * A path as logged: below `/auth/`, `/heartbeats/` and `/drills/opened/`, wherever they occur and however they are encoded,
 * it keeps the names of providers only. A path that matches no route may be a mistyped one of these.
 */
export function publicPath(path: string): string {
  const parts = unescaped(unescaped(path)).split('/')
  const at = parts.findIndex((part) => /^(?:auth|heartbeats|opened)$/i.test(part))
  const below = parts.slice(at + 1).filter((part) => part !== '')
  if (at < 0 || below.length === 0) return path
  const [name = ''] = below
  const isProvider = parts[at]?.toLowerCase() === 'auth' && below.length === 1
  const provider = name.toLowerCase().replace(/\.(?:json|csv)$/, '')
  return isProvider && publicProviders.has(provider) ? path : `${parts.slice(0, at + 1).join('/')}/…`
}

/**
 * The target as logged. Of the query it keeps a known `format` and, for health checks, the fields of the request. Any
 * other value may be a secret, whatever its name.
 */
export function loggedPath(path: string, pairs: readonly Pair[], isHealthCheck: boolean): string {
  const loggable = pairs.filter(([written, value]) => {
    const name = written.toLowerCase()
    return name === 'format' ? isFormat(value) : isHealthCheck && healthFields.has(name)
  })
  const left = loggable.length < pairs.length ? ['…'] : []
  const query = [...loggable.map(([name, value]) => `${name}=${value}`), ...left].join('&')
  const logged = publicPath(path)
  return escapeControls(query === '' ? logged : `${logged}?${query}`)
}

const isFormat = (value: string): boolean =>
  formatNamed(value) !== undefined || overHttp.format.some((name) => name === value.toLowerCase())

/** The form in which the caller wants the answer. */
export type ResponseNegotiation = {
  readonly method: string
  readonly accept: string | undefined
  readonly negotiated: Negotiated
  /** The report for a health answer (F5). */
  readonly report: ReportName | undefined
  /** True when the caller wants the run document of a health answer, as another svc does. */
  readonly run: boolean
}

/** The parsed request target. */
export type RequestTarget = {
  readonly route: RouteMatch
  readonly pairs: readonly Pair[]
  /** `?format=`, `?callback=` and `?jsconfig=`; the names may be in any letter case. */
  readonly format: string | undefined
  readonly callback: string | undefined
  readonly jsconfig: string | undefined
  readonly logged: string
  /** The request that a call without a body makes of this target, once it has been read and validated. */
  request: WireValues | undefined
  /** The latest negotiation result. */
  negotiation: ResponseNegotiation | undefined
}

/** Splits a request target that has passed the gate. Throws BadRequest for a query that cannot be decoded. */
export function splitTarget(url: string): { readonly path: string; readonly pairs: readonly Pair[] } {
  const mark = url.indexOf('?')
  if (mark < 0) return { path: url, pairs: [] }
  return { path: url.slice(0, mark), pairs: parsePairs(url.slice(mark + 1)) }
}

/** The length of the longest target that is cached, and the size of the cache. */
const maxLength = 256
const most = 256

/**
 * Parses targets. Pollers repeat the same few, and a target always means the same, so valid ones are cached. Throws
 * what the router throws.
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
    // Only health checks are polled, and the targets of other operations may hold secrets.
    if (url.length <= maxLength && isHealthCheck(target.route)) {
      // A caller that invents targets empties the cache and gains nothing.
      if (targets.size >= most) targets.clear()
      targets.set(url, target)
    }
    return target
  }
}

const isHealthCheck = (match: RouteMatch): boolean => match.kind === 'operation' && match.operation === 'healthCheck'

/** The first value of a name (given in lower case), in any letter case. Undefined when absent or empty. */
function firstNamed(pairs: readonly Pair[], name: string): string | undefined {
  const match = pairs.find(([written]) => written.length === name.length && written.toLowerCase() === name)
  return match === undefined || match[1] === '' ? undefined : match[1]
}
