import { HealthCheckResponse, type OperationSpec, type ReplyRoute, type Route, replyRoutes } from '../protocol/index.ts'
import { rows } from './shapes.ts'

export type Format = 'json' | 'csv'

/** One path of an operation. */
export type Place = {
  readonly path: string
  readonly row: OperationSpec
  readonly verbs: readonly string[]
  /** The format that the path fixes. */
  readonly format: Format | undefined
  readonly kind: 'route' | 'reply' | 'batch'
}

function atRoute(row: OperationSpec, { path, verbs }: Route): readonly Place[] {
  return ([undefined, 'json', 'csv'] as const).map((format) => ({
    path: format === undefined ? path : `${path}.${format}`,
    row,
    verbs,
    format,
    kind: 'route',
  }))
}

function byName(row: OperationSpec, { prefix, format, batches }: ReplyRoute): readonly Place[] {
  const path = `${prefix}/${row.name}`
  const named = (suffix: Format | undefined): Place => ({
    path: suffix === undefined ? path : `${path}.${suffix}`,
    row,
    verbs: row.replyVerbs,
    format: format ?? suffix,
    kind: 'reply',
  })
  return [
    named(undefined),
    ...(format === undefined ? [named('json'), named('csv')] : []),
    ...(batches && row.batch
      ? ['[]', ...(format === undefined ? ['[].json'] : [])].map(
          (mark) => ({ path: path + mark, row, verbs: ['POST'], format: 'json', kind: 'batch' }) as const,
        )
      : []),
  ]
}

export const isHealth = ({ response }: OperationSpec): boolean => response === HealthCheckResponse

/** `get`, `/auth/{provider}.csv` → getAuthProviderCsv; an array of requests → Batch. */
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
export const places = (): readonly Place[] =>
  rows.flatMap((row) => [
    ...row.routes.flatMap((route) => atRoute(row, route)),
    ...replyRoutes.flatMap((route) => byName(row, route)),
  ])
