import { changesRequest, type Dto, type OperationSpec, type Schema, schemaOf } from '../index.ts'
import { type Described, interfaceTitle, interfaceVersion, type Json, rows, shapes, usualVerb } from './schemas.ts'

/** The namespace where ServiceStack tools look for types. They copy its last part into generated code. */
export const namespace = 'Svc.ServiceModel'

/** /types/metadata.json: types and operations in the form of ServiceStack tools. */
export function typesMetadata({ base }: Pick<Described, 'base'>): Json {
  const requests = new Set<unknown>(rows.map(({ request }) => request))
  const responses = new Set<unknown>(rows.map(({ response }) => response))
  const others = [...shapes().values()].filter(({ schema }) => !requests.has(schema) && !responses.has(schema))
  return {
    config: { baseUrl: base },
    namespaces: [namespace],
    types: others.map(({ schema }) =>
      schema.kind === 'choice'
        ? {
            name: schema.name,
            namespace,
            isEnum: true,
            enumNames: schema.values,
            enumValues: schema.values.map(number),
          }
        : type(schema),
    ),
    operations: rows.map(operation),
  }
}

/** Enumeration values count from 1 (N1). */
const number = (_: string, index: number): string => String(index + 1)

/** The address of the server that a document was loaded from. */
const ownAddress = { base: '/' }

/** /metadata/app.json: the first document that ServiceStack tools request. Its addresses are relative. */
export const appMetadata = (described: Pick<Described, 'names' | 'providers'>): Json => ({
  app: { baseUrl: ownAddress.base, serviceName: interfaceTitle, serviceDescription: '', jsTextCase: described.names },
  config: { debugMode: false },
  contentTypeFormats: { 'application/json': 'json', 'text/csv': 'csv', 'application/jsv': 'jsv' },
  httpHandlers: { 'API HTML': '/metadata', 'API JSON': '/api/{Request}' },
  plugins: {
    loaded: ['auth', 'metadata', 'autobatch'],
    auth: {
      hasAuthRepository: true,
      includesRoles: true,
      authProviders: [{ name: 'credentials', type: 'credentials' }, ...(described.providers ?? [])],
    },
  },
  api: typesMetadata(ownAddress),
  meta: { interfaceVersion, [changesRequest.key]: changesRequest.value },
})

function operation(row: OperationSpec): Json {
  const { caller } = row
  return {
    request: { ...type(row.request), description: row.summary },
    response: type(row.response),
    actions: row.replyVerbs.filter((verb) => verb !== 'OPTIONS'),
    returnsVoid: false,
    method: usualVerb(row),
    returnType: { name: row.response.name, namespace },
    routes: row.routes.map(({ path, verbs }) => ({ path, verbs: verbs.join(','), summary: row.summary })),
    requiresAuth: caller !== 'anyone',
    ...(caller === 'Admin' ? { requiredRoles: [caller] } : {}),
    ...(typeof caller === 'object' ? { requiredPermissions: [caller.permission] } : {}),
    tags: [],
  }
}

const type = (dto: Dto): Json => ({
  name: dto.name,
  namespace,
  properties: Object.entries(dto.fields).map(([name, field], index) => {
    const schema = schemaOf(field)
    return {
      name,
      ...clrType(schema),
      ...(field.kind === 'required' ? { isRequired: true } : {}),
      ...(schema.kind === 'choice' ? { isEnum: true, allowableValues: schema.values } : {}),
      dataMember: { name, order: index + 1 },
    }
  }),
})

type Clr = { readonly type: string; readonly namespace: string; readonly genericArgs?: readonly string[] }

/** The .NET type of a value, which those tools translate. Optional values are Nullable. */
function clrType(schema: Schema): Clr & { readonly isValueType?: true } {
  switch (schema.kind) {
    case 'text':
      return { type: 'String', namespace: 'System' }
    case 'flag':
      return nullable('Boolean')
    case 'number':
      return nullable(schema.integer ? 'Int64' : 'Double')
    case 'date':
      return nullable('DateTime')
    case 'duration':
      return nullable('TimeSpan')
    case 'choice':
      return { ...nullable(schema.name), isValueType: true }
    case 'dto':
      return { type: schema.name, namespace }
    case 'map':
      return generic('Dictionary`2', ['String', 'String'])
    case 'list':
      return generic('List`1', [clrType(schema.item).genericArgs?.[0] ?? clrType(schema.item).type])
  }
}

const generic = (name: string, genericArgs: readonly string[]): Clr => ({
  type: name,
  namespace: 'System.Collections.Generic',
  genericArgs,
})
const nullable = (name: string): Clr & { readonly isValueType: true } => ({
  type: 'Nullable`1',
  namespace: 'System',
  isValueType: true,
  genericArgs: [name],
})
