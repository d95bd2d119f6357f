import {
  type Field,
  HealthCheckResponse,
  maxBatch,
  type OperationRoute,
  type OperationSpec,
  operations,
  type ReplyRoute,
  replyRoutes,
  schemaOf,
} from '../protocol/index.ts'
import { bodySchema, type Described, type Json, parameterSchema, parametersOf, pointTo, rows } from './schemas.ts'

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
export const operationId = (verb: string, path: string): string =>
  verb +
  path
    .replace('[]', 'Batch')
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

/** A media type without its parameters. */
export const essence = (contentType: string): string => (contentType.split(';', 1)[0] ?? '').trim()

/** Every path of every operation. */
export const places = (): readonly RequestPlace[] =>
  rows.flatMap((row) => [
    ...row.routes.flatMap((route) => atRoute(row, route)),
    ...replyRoutes.flatMap((route) => byName(row, route)),
  ])

/** The parameters of an operation for a verb, except those of every request and of the path. */
export function parameters(place: RequestPlace, verb: string, described: Described): readonly Json[] {
  const { row, kind, format } = place
  const pathParameters = parametersOf(place.path)
  const fields = Object.entries(row.request.fields).filter(
    ([name]) => !pathParameters.includes(name) && !row.neverInQuery.includes(name),
  )
  return [
    ...(verb === 'get' && kind !== 'batch' ? fields.map(([name, field]) => queryParameter(name, field)) : []),
    ...(format === undefined && kind !== 'batch' ? [formatParameter(row, described)] : []),
    ...(verb === 'get' && described.jsonp && kind !== 'batch' && (format === undefined || format === 'json')
      ? [pointTo('parameters', 'callback')]
      : []),
    ...(row === operations.authenticate && verb === 'post' ? [pointTo('parameters', 'continue')] : []),
    ...(verb === 'post' ? [pointTo('parameters', 'methodOverride')] : []),
    ...(isHealth(row) ? [pointTo('parameters', 'fresh')] : []),
  ]
}

/** Parameters of every request. */
export const common: readonly Json[] = [pointTo('parameters', 'correlationId'), pointTo('parameters', 'traceparent')]

const queryParameter = (name: string, field: Field): Json => ({
  name,
  in: 'query',
  ...(field.kind === 'required' ? { required: true } : {}),
  schema: parameterSchema(schemaOf(field)),
})

const formatParameter = (row: OperationSpec, { reports }: Described): Json => ({
  name: 'format',
  in: 'query',
  description: 'The format of the answer. Unknown values are ignored',
  schema: {
    type: 'string',
    examples: [
      'json',
      'csv',
      'jsv',
      ...(isHealth(row) ? reports.flatMap(({ by, name }) => (by === 'format' ? [name] : [])) : []),
    ],
  },
})

export function requestBody({ path, row, kind }: RequestPlace, { names }: Described): Json {
  const schema = bodySchema(row.request, parametersOf(path), names)
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
