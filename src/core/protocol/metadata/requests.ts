import {
  type Field,
  HealthCheckResponse,
  maxBatch,
  neverInQuery,
  type OperationRoute,
  type OperationSpec,
  operations,
  type ReplyRoute,
  replyRoutes,
  type Verb,
} from '../index.ts'
import { pathParameter, queryParameter, requestDtoSchema, textOfTarget } from './constraints.ts'
import { type Described, type Json, parametersOf, pointTo, refTo, rows } from './schemas.ts'

export type PathFormat = 'json' | 'csv' | 'jsv'

/** One path of an operation. */
export type RequestPlace = {
  readonly path: string
  readonly row: OperationSpec
  readonly verbs: readonly string[]
  /** The format that the path fixes. */
  readonly format: PathFormat | undefined
  readonly kind: 'route' | 'reply' | 'batch'
}

function atRoute(row: OperationSpec, { path, verbs }: OperationRoute): readonly RequestPlace[] {
  return ([undefined, 'json', 'csv', 'jsv'] as const).map((format) => ({
    path: format === undefined ? path : `${path}.${format}`,
    row,
    verbs,
    format,
    kind: 'route',
  }))
}

function byName(row: OperationSpec, { prefix, format }: ReplyRoute): readonly RequestPlace[] {
  const path = `${prefix}/${row.name}`
  const placeFor = (suffix: PathFormat | undefined): RequestPlace => ({
    path: suffix === undefined ? path : `${path}.${suffix}`,
    row,
    verbs: row.replyVerbs,
    format: format ?? suffix,
    kind: 'reply',
  })
  const suffixed = ['json', 'csv', 'jsv'] as const
  const batchPlace = (suffix: PathFormat | ''): RequestPlace => ({
    path: `${path}[]${suffix === '' ? '' : `.${suffix}`}`,
    row,
    verbs: ['GET', 'POST'],
    format: format ?? (suffix === '' ? 'json' : suffix),
    kind: 'batch',
  })
  return [
    placeFor(undefined),
    ...(format === undefined ? suffixed.map(placeFor) : []),
    ...(row.batch ? [batchPlace(''), ...(format === undefined ? suffixed.map(batchPlace) : [])] : []),
  ]
}

export const isHealth = ({ response }: OperationSpec): boolean => response === HealthCheckResponse

/** `get`, `/auth/{provider}.csv` → getAuthProviderCsv. A path for an array of requests gets the suffix Batch. */
export const pathId = (verb: string, path: string): string =>
  verb +
  path
    .replace('[]', 'Batch')
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

/** Where clients should call an operation: the first of its paths, with POST where that takes it. */
export function canonicalPlace({ routes }: OperationSpec): { readonly path: string; readonly verb: Verb } {
  const [{ path, verbs }] = routes
  return { path, verb: verbs.includes('POST') ? 'POST' : (verbs.find((verb) => verb !== 'OPTIONS') ?? 'GET') }
}

/** The operationId: the operation's name at its canonical place, and at an alias the verb and the path. */
export function operationId({ row, path }: Pick<RequestPlace, 'row' | 'path'>, verb: string): string {
  const canonical = canonicalPlace(row)
  return canonical.path === path && canonical.verb.toLowerCase() === verb ? row.name : pathId(verb, path)
}

/** A media type without its parameters. */
export const essence = (contentType: string): string => (contentType.split(';', 1)[0] ?? '').trim()

/** Every path of every operation. */
export const places = (): readonly RequestPlace[] =>
  rows.flatMap((row) => [
    ...row.routes.flatMap((route) => atRoute(row, route)),
    ...replyRoutes.flatMap((route) => byName(row, route)),
  ])

/** The parameters of an operation for a verb, except those of every request and of the path. */
export function parametersAt(place: RequestPlace, verb: string, described: Described): readonly Json[] {
  const { row, kind, format } = place
  return [
    ...(verb === 'get' && kind !== 'batch' ? fieldParameters(place) : []),
    ...(format === undefined && kind !== 'batch' ? [formatParameter(row, described)] : []),
    ...(verb === 'get' && described.jsonp && kind !== 'batch' && (format === undefined || format === 'json')
      ? [pointTo('parameters', 'callback')]
      : []),
    ...(row === operations.authenticate && verb === 'post' ? [pointTo('parameters', 'continue')] : []),
    ...(verb === 'post' ? [pointTo('parameters', 'methodOverride')] : []),
    ...(isHealth(row) ? [pointTo('parameters', 'fresh')] : []),
  ]
}

/** The fields of a request as parameters of the query, except those that the path sets or no query may hold (N7). */
function fieldParameters({ path, row }: Pick<RequestPlace, 'path' | 'row'>): readonly Json[] {
  const fromPath = parametersOf(path)
  const refused = neverInQuery(row)
  return Object.entries(row.request.fields)
    .filter(([name]) => !fromPath.includes(name) && !refused.includes(name))
    .map(([name, field]) => queryParameter(name, field))
}

/** The parameters that a generated client needs: of the path, the fields where there is no body, and for every request. */
export const canonicalParameters = (place: Pick<RequestPlace, 'path' | 'row'>, verb: string): readonly Json[] => [
  ...pathParametersOf(place),
  ...(verb === 'post' ? [] : fieldParameters(place)),
  ...(isHealth(place.row) ? [pointTo('parameters', 'fresh')] : []),
  ...common,
]

/** Parameters of every request. */
export const common: readonly Json[] = [pointTo('parameters', 'correlationId'), pointTo('parameters', 'traceparent')]

/** The parameters of the path itself. */
export const pathParametersOf = ({ path, row }: Pick<RequestPlace, 'path' | 'row'>): readonly Json[] =>
  parametersOf(path).map((name) => pathParameter(name, fieldNamed(row, name)))

function fieldNamed({ request }: OperationSpec, name: string): Field {
  const field = request.fields[name]
  if (field === undefined) throw new Error(`${request.name} has no field ${name}, which a path of it gives`)
  return field
}

const formatParameter = (row: OperationSpec, { reports }: Described): Json => ({
  name: 'format',
  in: 'query',
  description: 'The format of the answer. Unknown values are ignored',
  schema: {
    type: 'string',
    ...textOfTarget,
    examples: [
      'json',
      'csv',
      'jsv',
      ...(isHealth(row) ? reports.flatMap(({ by, name }) => (by === 'format' ? [name] : [])) : []),
    ],
  },
})

/** The schema of a body as JSON. A path that sets a required field has a schema of its own. */
function bodySchema({ path, row: { request } }: Pick<RequestPlace, 'path' | 'row'>, { names }: Described): Json {
  const fromPath = parametersOf(path)
  return fromPath.length === 0 ? refTo(request.name) : requestDtoSchema(request, names, fromPath)
}

/** A body as JSON alone. */
export function jsonBody(place: Pick<RequestPlace, 'path' | 'row'>, described: Described): Json {
  const { required } = requestDtoSchema(place.row.request, described.names, parametersOf(place.path))
  return {
    ...(required === undefined ? {} : { required: true }),
    content: { 'application/json': { schema: bodySchema(place, described) } },
  }
}

export function requestBody(place: RequestPlace, described: Described): Json {
  const { kind } = place
  const schema = bodySchema(place, described)
  if (kind === 'batch') {
    const array = { type: 'array', items: schema, maxItems: maxBatch }
    const text = { schema: { type: 'string' } }
    return {
      content: {
        'application/json': { schema: array },
        'text/plain': { schema: array },
        'text/csv': text,
        'application/jsv': text,
      },
    }
  }
  return {
    content: {
      'application/json': { schema },
      'application/x-www-form-urlencoded': { schema },
      'multipart/form-data': { schema },
      'text/csv': { schema: { type: 'string' } },
      'application/jsv': { schema: { type: 'string' } },
      // JSON from clients that do not declare it.
      ...(kind === 'reply' ? { 'text/plain': { schema: { type: 'string' } } } : {}),
    },
  }
}
