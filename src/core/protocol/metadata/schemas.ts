import {
  type Choice,
  type Dto,
  ErrorResponse,
  inStyle,
  type NameStyle,
  type OperationSpec,
  operations,
  type Schema,
  schemaOf,
} from '../index.ts'

/** A page of the server itself, besides the operations. */
export type DescribedPage = {
  /** The first path is the documented one. */
  readonly paths: readonly string[]
  readonly summary: string
  readonly contentType: string
  /** The effect of a POST of a form to the page, and the fields of the form. */
  readonly post?: { readonly summary: string; readonly form?: Pick<Dto, 'name'> } | undefined
}

/** A report format of health answers (F5). */
export type DescribedReport = {
  readonly name: string
  /** Whether clients select it by `?format=` with its name, or by `Accept` with its type. */
  readonly by: 'format' | 'accept'
  readonly contentType: string
}

/** The facts about a server that its description needs. Everything else derives from the protocol. */
export type Described = {
  /** Its address as the caller knows it, without a trailing slash. */
  readonly base: string
  readonly pages: readonly DescribedPage[]
  readonly reports: readonly DescribedReport[]
  readonly jsonp: boolean
  /** The name style of JSON answers (N9). */
  readonly names: NameStyle
  /** Whether HTTP Basic is enabled (A9). */
  readonly basic: boolean
  /** The ways to sign in besides passwords. */
  readonly providers?: readonly DescribedProvider[] | undefined
}
export type DescribedProvider = {
  readonly name: string
  readonly type: string
  readonly label?: string | undefined
  readonly meta?: Readonly<Record<string, string>> | undefined
}

/** The version of the interface. It changes only when the contract with clients changes, independent of the program. */
export const interfaceVersion = '1.0'
export const interfaceTitle = 'Application features service'

/** Any object in an OpenAPI document. */
export type Json = { readonly [key: string]: unknown }

/** A reference to a shared component. */
export const pointTo = (kind: 'headers' | 'parameters' | 'responses', name: string): Json => ({
  $ref: `#/components/${kind}/${name}`,
})

/** Whether callers or the server send a shape: only requests have constraints. */
export type Side = 'request' | 'answer'
export type Shape = { readonly schema: Dto | Choice; readonly side: Side }

export const rows: readonly OperationSpec[] = Object.values(operations)

let allShapes: ReadonlyMap<string, Shape> | undefined

/** Every DTO and enumeration of the interface by name, each after those that it consists of. */
export function shapes(): ReadonlyMap<string, Shape> {
  allShapes ??= collectedShapes()
  return allShapes
}

function collectedShapes(): ReadonlyMap<string, Shape> {
  const shapesByName = new Map<string, Shape>()
  for (const { request } of rows) collect(request, 'request', shapesByName)
  for (const { response } of rows) collect(response, 'answer', shapesByName)
  collect(ErrorResponse, 'answer', shapesByName)
  return shapesByName
}

function collect(schema: Schema, side: Side, into: Map<string, Shape>): void {
  if (schema.kind === 'list') collect(schema.item, side, into)
  if (schema.kind === 'choice') into.set(schema.name, into.get(schema.name) ?? { schema, side })
  if (schema.kind !== 'dto' || into.has(schema.name)) return
  for (const field of Object.values(schema.fields)) collect(schemaOf(field), side, into)
  into.set(schema.name, { schema, side })
}

/** The verb that clients should use: POST, or GET where the routes have only that. */
export const usualVerb = ({ routes }: OperationSpec): 'GET' | 'POST' =>
  routes.some(({ verbs }) => verbs.includes('POST')) ? 'POST' : 'GET'

/**
 * The parameters of a path: `/auth/{provider}` → provider.
 *
 * @example
 * ```ts
 * parametersOf('/auth/{provider}') // ['provider']
 * ```
 */
export const parametersOf = (path: string): readonly string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) => name ?? [])

/** Who may call, as text. */
export function callerOf({ caller }: OperationSpec): string {
  if (caller === 'anyone') return 'Anyone'
  if (caller === 'user') return 'A signed-in user, not a key'
  if (typeof caller === 'string') return `A signed-in user with the role ${caller}`
  return `A signed-in user with the permission ${caller.permission} or the role Admin`
}

/** The members that answers always contain. Other members are left out when they are unset (N2). */
export const always: Readonly<Record<string, readonly string[]>> = {
  ResponseError: ['ErrorCode', 'FieldName', 'Message'],
  ResponseStatus: ['ErrorCode', 'Message', 'Errors'],
  ErrorResponse: ['ResponseStatus'],
  HealthCheckResponse: [
    'Status',
    'StatusMessage',
    'CorrelationId',
    'FailedMonitorCount',
    'MonitorSummaries',
    'ExecutionMetrics',
  ],
  MonitorSummary: ['MonitorName', 'Status', 'Results', 'ErrorMessages'],
  MonitoringResult: ['MonitoringName', 'Status', 'StatusMessage', 'ErrorMessages'],
  MonitorExecutionMetrics: ['StartDateTime', 'EndDateTime', 'Duration'],
  GetAccessTokenResponse: ['accessToken'],
  AssignRolesResponse: ['AllRoles', 'AllPermissions'],
  UnAssignRolesResponse: ['AllRoles', 'AllPermissions'],
  GiveBackRolesResponse: ['AllRoles', 'AllPermissions'],
  ReportHeartbeatResponse: ['Name', 'ReceivedAt'],
}

/** JSON Schema of the 2020-12 dialect, as OpenAPI 3.1 uses it. */
export type JsonSchema = { readonly [keyword: string]: unknown }

export const refTo = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

const writtenDate = '^/Date\\(-?\\d{1,16}-0000\\)/$'
/** Durations without zero parts, but with at least one part (N4). */
const writtenDuration = '^-?P(?=[\\dT])(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+(\\.\\d{1,7})?S)?)?$'

/** The JSON Schema of a value in an answer. DTOs and enumerations are references to components. */
export function answerSchema(schema: Schema): JsonSchema {
  switch (schema.kind) {
    case 'text':
      return { type: 'string' }
    case 'flag':
      return { type: 'boolean' }
    case 'number':
      return { type: schema.integer ? 'integer' : 'number' }
    case 'date':
      return { type: 'string', pattern: writtenDate, examples: ['/Date(1795262400000-0000)/'] }
    case 'duration':
      return { type: 'string', pattern: writtenDuration, examples: ['PT0.0151S', 'PT5M'] }
    case 'list':
      return { type: 'array', items: answerSchema(schema.item) }
    case 'map':
      return { type: 'object', additionalProperties: { type: 'string' } }
    case 'choice':
    case 'dto':
      return refTo(schema.name)
  }
}

/** The component of a DTO of an answer, with the members that are always present. */
export function dtoSchema(dto: Dto, style: NameStyle): JsonSchema {
  const names = always[dto.name] ?? []
  return {
    type: 'object',
    properties: propertiesOf(dto, style),
    ...(names.length > 0 ? { required: names.map((name) => inStyle(name, style)) } : {}),
  }
}

/** The JSON Schema of a DTO as answers contain it in PascalCase, by a reference, with the definitions that it needs. */
export function definitionsOf(dto: Dto): { readonly ref: JsonSchema; readonly $defs: Json } {
  const needed = new Map<string, Shape>()
  collect(dto, 'answer', needed)
  const definitions = [...needed].map(([name, { schema }]) => [
    name,
    schema.kind === 'choice' ? { type: 'string', enum: schema.values } : dtoSchema(schema, 'PascalCase'),
  ])
  const moved = JSON.stringify(Object.fromEntries(definitions)).replaceAll('#/components/schemas/', '#/$defs/')
  return { ref: { $ref: `#/$defs/${dto.name}` }, $defs: JSON.parse(moved) as Json }
}

export const propertiesOf = (dto: Dto, style: NameStyle): JsonSchema =>
  Object.fromEntries(
    Object.entries(dto.fields).map(([name, field]) => [inStyle(name, style), answerSchema(schemaOf(field))]),
  )
