import { expect, test } from 'vitest'
import { operations, ServerType } from '../../../src/core/protocol/index.ts'
import { appMetadata, typesMetadata } from '../../../src/core/protocol/metadata/index.ts'

const described = {
  base: 'http://localhost:1',
  pages: [],
  reports: [],
  jsonp: true,
  basic: false,
  names: 'PascalCase' as const,
}
type Property = { readonly name: string; readonly type: string; readonly genericArgs?: readonly string[] }
type Type = { readonly name: string; readonly properties: readonly Property[] }
type Metadata = {
  readonly config: { readonly baseUrl: string }
  readonly types: readonly (Type & { readonly isEnum?: boolean; enumNames?: string[]; enumValues?: string[] })[]
  readonly operations: readonly {
    readonly request: Type
    readonly response: Type
    readonly method: string
    readonly routes: readonly { readonly path: string; readonly verbs: string }[]
    readonly requiresAuth: boolean
    readonly requiredRoles?: readonly string[]
    readonly requiredPermissions?: readonly string[]
  }[]
}
const metadata = typesMetadata(described) as unknown as Metadata
const operation = (name: string) => metadata.operations.find(({ request }) => request.name === name)

test('N9 tools learn the letter case of names', () => {
  for (const names of ['PascalCase', 'camelCase'] as const) {
    expect(appMetadata({ ...described, names })).toMatchObject({ app: { jsTextCase: names } })
  }
})

test('R6 the metadata has each operation with its fields, routes and answer', () => {
  expect(metadata.config.baseUrl).toBe('http://localhost:1')
  for (const { name, request, response, routes } of Object.values(operations)) {
    const result = operation(name)
    expect(result?.request.properties.map((property) => property.name)).toEqual(Object.keys(request.fields))
    expect(result?.response.name).toBe(response.name)
    expect(result?.routes.map(({ path, verbs }) => [path, verbs])).toEqual(
      routes.map(({ path, verbs }) => [path, verbs.join(',')]),
    )
  }
})

test('R6 it describes the types as .NET has them, and enumerations with their numbers from 1', () => {
  const types = operation('HealthCheckRequest')?.request.properties
  expect(types?.map(({ type, genericArgs }) => [type, ...(genericArgs ?? [])])).toEqual([
    ['Nullable`1', 'ExecutionMode'],
    ['Nullable`1', 'ServerType'],
    ['Nullable`1', 'Boolean'],
    ['Nullable`1', 'Boolean'],
    ['Nullable`1', 'Boolean'],
    ['Nullable`1', 'SilenceHandling'],
  ])
  const roles = operation('AssignRoles')?.request.properties
  expect(roles?.map(({ type }) => type)).toEqual(['String', 'List`1', 'List`1', 'Dictionary`2'])
  const server = metadata.types.find(({ name }) => name === 'ServerType')
  expect([server?.isEnum, server?.enumNames, server?.enumValues?.at(-1)]).toEqual([true, ServerType.values, '13'])
})

test('R6 it describes who may call', () => {
  expect(operation('AssignRoles')).toMatchObject({ requiresAuth: true, requiredRoles: ['Admin'], method: 'POST' })
  expect(operation('ReportHeartbeat')).toMatchObject({ requiresAuth: true, requiredPermissions: ['heartbeat'] })
  expect(operation('HealthCheckRequest')).toMatchObject({ requiresAuth: false, method: 'GET' })
})

test('R6 each type that is referenced is present', () => {
  const typeNames = new Set([
    ...metadata.types.map(({ name }) => name),
    ...metadata.operations.flatMap(({ request, response }) => [request.name, response.name]),
    ...['String', 'Boolean', 'Int64', 'Double', 'DateTime', 'TimeSpan', 'Nullable`1', 'List`1', 'Dictionary`2'],
  ])
  const all = [...metadata.types, ...metadata.operations.flatMap(({ request, response }) => [request, response])]
  const referencedNames = all.flatMap(({ properties = [] }) =>
    properties.flatMap(({ type, genericArgs = [] }) => [type, ...genericArgs]),
  )
  expect(referencedNames.filter((name) => !typeNames.has(name))).toEqual([])
})

test('R6 the application is described with its name, its address and the same types', () => {
  expect(appMetadata(described)).toMatchObject({
    app: { baseUrl: '/' },
    // Stored for all callers, so it names no address.
    api: { ...metadata, config: { ...metadata.config, baseUrl: '/' } },
  })
})
