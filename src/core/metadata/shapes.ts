import {
  type Choice,
  type Dto,
  ErrorResponse,
  type NameStyle,
  type OperationSpec,
  operations,
  type Schema,
  schemaOf,
} from '../protocol/index.ts'

/** A page of the server itself, beside the operations. */
export type DescribedPage = {
  /** The first is the one to write down. */
  readonly paths: readonly string[]
  readonly summary: string
  readonly contentType: string
}

/** A form of health answers that is not the protocol's own (F5). */
export type DescribedReport = {
  readonly name: string
  /** Whether `?format=` asks for it by its name, or `Accept` by its type. */
  readonly by: 'format' | 'accept'
  readonly contentType: string
}

/** What a server says of itself when its interface is described; everything else is read off the protocol. */
export type Described = {
  /** Its address as the caller knows it, without a slash at the end. */
  readonly base: string
  readonly pages: readonly DescribedPage[]
  readonly reports: readonly DescribedReport[]
  readonly jsonp: boolean
  /** How members of JSON answers are spelled (N9). */
  readonly names: NameStyle
  /** Whether HTTP Basic counts (A9). */
  readonly basic: boolean
}

/** The version of the interface: it changes with what clients may rely on, and says nothing about the program. */
export const interfaceVersion = '1.0'
export const interfaceTitle = 'Application features service'

/** What stands wherever an OpenAPI document wants an object. */
export type Json = { readonly [key: string]: unknown }

/** A reference to one of the shared parts. */
export const pointTo = (kind: 'headers' | 'parameters' | 'responses', name: string): Json => ({
  $ref: `#/components/${kind}/${name}`,
})

/** Whether a shape is sent by callers or by the server: callers may write some values in more than one way. */
export type Side = 'request' | 'answer'
export type Shape = { readonly schema: Dto | Choice; readonly side: Side }

export const rows: readonly OperationSpec[] = Object.values(operations)

/** Every DTO and enumeration of the interface by its name, each behind those that it is made of. */
export function shapes(): ReadonlyMap<string, Shape> {
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

/** The verb that a client uses where it may choose: POST, or GET where only that is on the routes. */
export const usualVerb = ({ routes }: OperationSpec): 'GET' | 'POST' =>
  routes.some(({ verbs }) => verbs.includes('POST')) ? 'POST' : 'GET'

/** Parameters of a path: `/auth/{provider}` → provider. */
export const parametersOf = (path: string): readonly string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) => name ?? [])

/** Who may call, for a person. */
export function callerOf({ caller }: OperationSpec): string {
  if (caller === 'anyone') return 'Anyone'
  if (typeof caller === 'string') return `Who is signed in and holds the role ${caller}`
  return `Who is signed in and holds the permission ${caller.permission}, or the role Admin`
}

/** What answers of the interface always hold; other fields are left out where there is nothing to say (N2). */
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
  ReportHeartbeatResponse: ['Name', 'ReceivedAt'],
}
