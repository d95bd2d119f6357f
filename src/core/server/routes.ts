import { Fault } from '../errors.ts'
import { type Operation, type OperationSpec, operations, type ReplyRoute, replyRoutes } from '../protocol/index.ts'
import type { FormatName, Pair } from '../wire/index.ts'
import { clean } from './log.ts'
import { ownPages, type PageName } from './own-pages.ts'

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
      throw new Fault('MethodNotAllowed', `The operation '${clean(name)}' does not exist for this service`, {
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
  new Fault('NotFound', `There is nothing at ${clean(path)}: ask GET /healthcheck, or open / in a browser`)

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
