import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Dto,
  limits,
  neverInQuery,
  type OperationSpec,
  operations,
  replyRoutes,
  schemaOf,
} from '../../../src/core/protocol/index.ts'
import { portable } from '../../../src/core/protocol/metadata/constraints.ts'
import { allowed, type OwnPage, ownPages, router } from '../../../src/core/server/routes.ts'
import { type Accounts, bearer, password, startAccounts } from '../../server/accounts.ts'
import { ask, type Got } from '../../server/site.ts'
import {
  document,
  canonical as forGenerators,
  type Operation,
  operationAt,
  responseTo,
  valid,
} from '../../support/wire/openapi.ts'
import { rules } from './openapi-rules.ts'

const { document: canonical } = forGenerators
const rows: readonly OperationSpec[] = Object.values(operations)
const described = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([verb]) => verb !== 'parameters')
    .map(([verb, operation]) => ({ path, verb: verb.toUpperCase(), operation: operation as Operation })),
)

type Texts = {
  readonly type?: string | readonly string[]
  readonly pattern?: string
  readonly enum?: readonly unknown[]
}

/** Every object in the document. */
function* objects(value: unknown): Generator<Readonly<Record<string, unknown>>> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield value as Readonly<Record<string, unknown>>
  for (const part of Object.values(value)) yield* objects(part)
}

describe('R6 the document is OpenAPI 3.1', () => {
  test('R6 its members are those of OpenAPI, and no others', () => {
    const ajv = new Ajv2020({ allErrors: true, strict: false })
    expect(ajv.validate(rules, document) ? [] : ajv.errors).toEqual([])
    const spoiled = structuredClone(document) as unknown as { paths: Record<string, { get: { responses: object } }> }
    const health = spoiled.paths['/healthcheck']
    if (health) health.get.responses = {}
    expect(ajv.validate(rules, spoiled)).toBe(false)
  })

  test('R6 each reference resolves', () => {
    const results = [...objects(document)].flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : []))
    expect(results.length).toBeGreaterThan(500)
    const there = new Set(
      Object.entries(document.components).flatMap(([kind, parts]) =>
        Object.keys(parts as object).map((name) => `#/components/${kind}/${name}`),
      ),
    )
    expect(results.filter((one) => !there.has(one))).toEqual([])
  })

  test('R6 each schema is valid in the 2020-12 dialect, by the strict rules of a validator', () => {
    const schemas = [...objects(document)].flatMap(({ schema }) => (schema === undefined ? [] : [schema as object]))
    expect(schemas.length).toBeGreaterThan(100)
    // What a body must hold stands beside a reference to its properties, where that one rule does not look.
    const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true })
    // As a schema among others, so that the strict rules are for schemas and not for what is around them.
    const own = (schema: unknown): object =>
      JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"own:')) as object
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      ajv.addSchema({ ...own(schema), $id: `own:${name}` })
    }
    for (const schema of new Set(schemas.map((each) => JSON.stringify(each)))) {
      expect(() => ajv.compile(own(JSON.parse(schema)))).not.toThrow()
    }
    expect(() => ajv.compile({ type: 'string', patern: 'x' })).toThrow(/unknown keyword/)
  })

  test('R6 operations have unique ids, tags that are listed, and schemes that exist', () => {
    const ids = described.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    const tags = (document['tags'] as { name: string }[]).map(({ name }) => name)
    const schemes = Object.keys(document.components['securitySchemes'] as object)
    for (const { operation } of described) {
      expect(tags).toEqual(expect.arrayContaining(operation['tags'] as string[]))
      for (const way of (operation['security'] ?? []) as object[]) {
        expect(schemes).toEqual(expect.arrayContaining(Object.keys(way)))
      }
    }
  })

  test('R6 the parameters of each path are declared, and no others', () => {
    for (const [path, item] of Object.entries(document.paths)) {
      const parameters = (item['parameters'] ?? []) as { in?: string; name?: string }[]
      const declared = parameters.flatMap((each) => (each.in === 'path' ? [each.name] : []))
      expect(declared).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name))
    }
  })
})

describe('R6 openapi.json has each operation once', () => {
  const methods = Object.entries(canonical.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, operation]) => ({ path, verb, operation: operation as Operation })),
  )

  test.each([
    ['openapi.json', canonical],
    ['openapi-all.json', document],
  ])('R6 %s is valid by a validator of OpenAPI 3.1', async (_, each) => {
    const validator = new Validator()
    expect(await validator.validate(structuredClone(each) as Record<string, unknown>)).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
    const spoiled = { ...structuredClone(each), info: {} } as Record<string, unknown>
    expect((await validator.validate(spoiled)).valid).toBe(false)
  })

  test('R6 its members are those of OpenAPI, and no others', () => {
    const ajv = new Ajv2020({ allErrors: true, strict: false })
    expect(ajv.validate(rules, canonical) ? [] : ajv.errors).toEqual([])
  })

  test('R6 it has one method for each row of the table, named after the operation', () => {
    expect(methods.map(({ operation }) => operation.operationId)).toEqual(rows.map(({ name }) => name))
    for (const { path, verb, operation } of methods) {
      const routes = rows.find(({ name }) => name === operation.operationId)?.routes ?? []
      expect(
        routes.some((route) => route.path === path && (route.verbs as string[]).includes(verb.toUpperCase())),
      ).toBe(true)
    }
  })

  test('R6 each body and each answer has one type: JSON, under its own status', () => {
    for (const { operation } of methods) {
      expect(Object.keys(operation.responses)).not.toContain('default')
      for (const [status, response] of Object.entries(operation.responses)) {
        const shared = response.$ref === undefined ? response : canonical.components.responses[nameIn(response.$ref)]
        expect([status, Object.keys(shared?.content ?? {})]).toEqual([status, ['application/json']])
      }
      const body = operation['requestBody'] as { content: object } | undefined
      expect(Object.keys(body?.content ?? {})).toEqual(body === undefined ? [] : ['application/json'])
    }
  })

  test('R6 every component is used, and every reference resolves', () => {
    const refs = new Set([...objects(canonical)].flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : [])))
    const { securitySchemes, ...parts } = canonical.components as Record<string, object>
    expect(Object.keys(securitySchemes ?? {}).length).toBeGreaterThan(0)
    const components = Object.entries(parts).flatMap(([kind, each]) =>
      Object.keys(each).map((name) => `#/components/${kind}/${name}`),
    )
    expect([...refs].toSorted()).toEqual(components.toSorted())
  })

  test('R6 openapi-all.json marks every other place of an operation as an alias', () => {
    const places = described.filter(({ operation }) => operation['tags'] !== undefined)
    const names = new Set(rows.map(({ name }) => name))
    const aliases = places.filter(({ operation }) => operation['x-svc-alias-of'] !== undefined)
    expect(aliases.length).toBeGreaterThan(100)
    for (const { operation } of aliases) expect(names).toContain(operation['x-svc-alias-of'])
    const others = places.filter(
      ({ verb, operation }) =>
        operation['x-svc-alias-of'] === undefined &&
        verb !== 'OPTIONS' &&
        !(operation['tags'] as string[]).includes('Server'),
    )
    expect(others.map(({ path, verb }) => [path, verb.toLowerCase()])).toEqual(
      methods.map(({ path, verb }) => [path, verb]),
    )
  })
})

const nameIn = (ref: string): string => ref.split('/').at(-1) ?? ''

describe('S4 R6 every constraint on a request is in the document', () => {
  const component = (dto: Dto) =>
    canonical.components.schemas[dto.name] as { properties?: Record<string, Record<string, unknown>> } | undefined

  test('S4 R6 the limits on all requests', () => {
    expect(canonical['x-svc-limits']).toEqual(limits)
    const values = new Set([...objects(canonical)].flatMap((each) => Object.entries(each)).map(String))
    expect(values).toContain(`maxItems,${limits.listItems}`)
    expect(values).toContain(`maxLength,${limits.nameCharacters}`)
    expect(values).toContain(`maxProperties,${limits.metaEntries}`)
    expect(values).toContain(`maxLength,${limits.metaValueCharacters}`)
  })

  test('S4 R6 the limits of each field', () => {
    const declared = rows.flatMap(({ request, routes }) => {
      const isBody = (routes[0].verbs as readonly string[]).includes('POST')
      return isBody ? Object.entries(request.fields).map(([name, field]) => ({ request, name, field })) : []
    })
    for (const { request, name, field } of declared) {
      const schema = schemaOf(field)
      const item = schema.kind === 'list' ? schema.item : schema
      const written = component(request)?.properties?.[name]
      const part = (schema.kind === 'list' ? written?.['items'] : written) as Record<string, unknown> | undefined
      const label = `${request.name}.${name}`
      if (item.kind === 'text') {
        const most = item.max ?? (schema.kind === 'list' ? limits.nameCharacters : undefined)
        expect([label, part?.['maxLength'], part?.['pattern']]).toEqual([
          label,
          most,
          item.pattern && portable(item.pattern()),
        ])
        const required = (component(request) as { required?: string[] } | undefined)?.required ?? []
        expect([label, required.includes(name)]).toEqual([label, item.needed === true])
      }
      if (item.kind === 'number' && item.min !== undefined)
        expect([label, part?.['minimum']]).toEqual([label, item.min])
      if (item.kind === 'number' && item.max !== undefined)
        expect([label, part?.['maximum']]).toEqual([label, item.max])
    }
    expect(declared.length).toBeGreaterThan(20)
  })

  test('R6 a pattern in the document matches what the declared one matches, for every character', () => {
    const fields = rows.flatMap(({ request }) => Object.values(request.fields).map(schemaOf))
    const patterns = fields.flatMap((field) => (field.kind === 'text' && field.pattern ? [field.pattern()] : []))
    expect(patterns.length).toBeGreaterThan(4)
    for (const pattern of new Set(patterns)) {
      const written = new RegExp(portable(pattern), 'u')
      for (let code = 0; code <= 0x10ffff; code++) {
        if (code === 0xd800) code = 0xe000
        // Unicode has no characters in the planes 4 to 13.
        if (code === 0x4_0000) code = 0xe_0000
        const text = String.fromCodePoint(code)
        if (pattern.test(text) !== written.test(text)) expect.fail(`${pattern} at ${code.toString(16)}`)
      }
    }
  })

  test('S2 R6 no text in a path or query allows a control character, which no target may contain', () => {
    const texts = described.flatMap(({ path, verb, operation }) =>
      (operation.parameters ?? []).flatMap(({ in: place, name, schema }) => {
        const { type, pattern = '', enum: choices } = (schema ?? {}) as Texts
        const isText = [type].flat().includes('string') && choices === undefined
        return isText && place !== 'header' ? [{ label: `${verb} ${path} ${name}`, pattern }] : []
      }),
    )
    expect(texts.length).toBeGreaterThan(20)
    const allowing = texts.filter(({ pattern }) => new RegExp(pattern, 'u').test('a\u0003a'))
    expect(allowing.map(({ label }) => label)).toEqual([])
  })

  test('S4 R6 the name of a user and of a provider has a limit wherever a request contains one', () => {
    const names = rows.flatMap(({ request }) =>
      Object.entries(request.fields).filter(([name]) => name === 'UserName' || name === 'provider'),
    )
    expect(names.length).toBeGreaterThan(3)
    for (const [, field] of names) expect(schemaOf(field)).toMatchObject({ max: limits.nameCharacters })
  })
})

describe('R6 the document matches the server', () => {
  const route = router()
  const at = (path: string) => route(path.replace(/\{\w+\}/g, 'x').toLowerCase())

  test('R6 each path is routed, with exactly those verbs', () => {
    for (const [path, item] of Object.entries(document.paths)) {
      const verbs = Object.keys(item)
        .filter((name) => name !== 'parameters')
        .map((verb) => verb.toUpperCase())
      expect([path, verbs.toSorted()]).toEqual([path, allowed(at(path).verbs).split(', ').toSorted()])
    }
  })

  test('R6 each path of the table is present: with its suffixes, by name, and in batches where it accepts them', () => {
    const paths = new Set(Object.keys(document.paths))
    for (const { name, routes, batch = false } of rows) {
      for (const { path } of routes) {
        for (const suffix of ['', '.json', '.csv', '.jsv']) expect(paths).toContain(path + suffix)
      }
      for (const { prefix } of replyRoutes) {
        expect(paths).toContain(`${prefix}/${name}`)
        expect([`${prefix}/${name}[]`, paths.has(`${prefix}/${name}[]`)]).toEqual([`${prefix}/${name}[]`, batch])
      }
    }
    for (const path of ['/', '/livez', '/readyz', '/metrics', '/metadata', '/openapi.json', '/types/typescript']) {
      expect(paths).toContain(path)
    }
  })

  test('R6 each field is a parameter of a GET, except those that a query may not contain', () => {
    for (const { path, verb, operation } of described.filter(({ verb }) => verb === 'GET')) {
      const result = at(path)
      if (result.kind === 'own' || result.batch) continue
      const row: OperationSpec = operations[result.operation]
      const pathNames = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const declaredNames = (operation.parameters ?? []).flatMap(({ in: place, name }) =>
        place === 'query' && name !== 'format' ? [name] : [],
      )
      const expectedNames = Object.keys(row.request.fields).filter(
        (name) => !neverInQuery(row).includes(name) && !pathNames.includes(name),
      )
      expect([path, verb, declaredNames]).toEqual([path, verb, expectedNames])
    }
  })

  test('R6 it describes the callers: sign-in is optional except where a role is needed', () => {
    expect(document['security']).toContainEqual({})
    for (const { path, verb, operation } of described) {
      const result = at(path)
      const guarded = result.kind === 'operation' && operations[result.operation].caller !== 'anyone'
      if (verb !== 'OPTIONS') expect([path, 'security' in operation]).toEqual([path, guarded])
    }
    expect(operationAt('POST', '/assignroles')?.['security']).toContainEqual({ bearer: ['Admin'] })
  })
})

describe('R6 the answers of the server match the document', () => {
  let site: Accounts
  beforeAll(async () => {
    site = await startAccounts()
  })
  afterAll(() => site.close())

  /** Asks, and holds the answer against the document: its status is one that is written out. */
  async function checked(method: string, target: string, options: Parameters<typeof ask>[2] = {}): Promise<Got> {
    const got = await ask(site.port, target, { method, ...options })
    valid(method, target, got.status, got.headers['content-type'], got.text)
    const operation = operationAt(method, target)
    if (operation)
      expect([target, operation.responses]).toEqual([
        target,
        expect.objectContaining({ [got.status]: expect.anything() }),
      ])
    return got
  }
  const json = { 'content-type': 'application/json' }
  const post = (target: string, body: unknown, headers: Record<string, string> = {}): Promise<Got> =>
    checked('POST', target, { headers: { ...json, ...headers }, body: JSON.stringify(body) })

  const question = 'ExecutionMode=Standard&ServerType'
  test.each([
    [200, `/healthcheck?${question}=App&IncludeServerStateInformation=true`],
    [503, `/healthcheck?${question}=Mongo`],
    [200, `/healthcheck?${question}=Mongo&SuppressErrorCodes=true`],
    [400, '/healthcheck?ExecutionMode=Foo'],
    [503, `/healthcheck.csv?${question}=Mongo`],
    [200, `/healthcheck.csv?${question}=App`],
    [200, `/HealthCheck.JSON/?${question}=App`],
    [503, `/healthcheck?${question}=Mongo&callback=a.b`],
    [400, `/healthcheck?${question}=Mongo&callback=a-b`],
    [200, `/healthcheck?${question}=Mongo&format=prtg`],
    [503, `/healthcheck?${question}=Mongo&format=nagios`],
    [503, `/healthcheck?${question}=Mongo&format=prometheus`],
    [200, `/api/HealthCheckRequest?${question}=App&format=prtg`],
    [200, `/csv/reply/HealthCheckRequest?${question}=App`],
    [503, `/json/oneway/HealthCheckRequest?${question}=Mongo`],
  ])('R6 %i GET %s', async (status, target) => {
    expect((await checked('GET', target)).status).toBe(status)
    expect((await checked('HEAD', target)).status).toBe(status)
  })

  test('R6 health as application/health+json', async () => {
    const headers = { accept: 'application/health+json' }
    for (const [type, status] of [
      ['App', 200],
      ['Mongo', 503],
    ] as const) {
      const got = await checked('GET', `/healthcheck?${question}=${type}`, { headers })
      expect([got.status, got.headers['content-type']]).toEqual([status, 'application/health+json; charset=utf-8'])
    }
  })

  test('R6 signing in, who is signed in, refreshing and signing out', async () => {
    const answer = await post('/auth/credentials', { UserName: 'Ann', Password: password, RememberMe: true })
    expect(answer.status).toBe(200)
    const { BearerToken, RefreshToken } = answer.json as unknown as { BearerToken: string; RefreshToken: string }
    const statuses = [
      await checked('GET', '/auth', { headers: bearer(BearerToken) }),
      await checked('GET', '/auth.csv', { headers: bearer(BearerToken) }),
      await checked('GET', '/auth?callback=cb'),
      await post('/auth', { UserName: 'Ann', Password: 'wrong' }),
      await post('/auth', { provider: 'credentials' }),
      await post('/auth/nope', {}),
      await checked('GET', '/auth/credentials'),
      await post('/auth/credentials', 'no object'),
      await checked('POST', '/auth', { headers: { 'content-type': 'image/png' }, body: 'x' }),
      await checked('POST', '/auth', {
        headers: { origin: 'https://evil.example', ...json },
        body: '{"UserName":"a"}',
      }),
      await post('/access-token', { RefreshToken }),
      await post('/api/GetAccessToken', {}),
      await post('/api/GetAccessToken.csv', { RefreshToken: 'garbage' }),
      await checked('DELETE', '/auth/credentials', { headers: bearer(BearerToken) }),
      await checked('GET', '/auth', { headers: { host: 'evil.example' } }),
    ].map(({ status }) => status)
    expect(statuses).toEqual([200, 200, 401, 401, 400, 404, 405, 400, 415, 403, 200, 400, 400, 200, 421])
  })

  test('R6 roles, alone and in batches', async () => {
    const ann = bearer((await site.signIn()).BearerToken)
    const ned = bearer((await site.signIn({ UserName: 'Ned' })).BearerToken)
    const change = { UserName: 'Ned', Roles: ['Reader'] }
    const batch = '/api/AssignRoles[]'
    const statuses = [
      await post('/assignroles', change),
      await post('/assignroles', change, ned),
      await post('/assignroles', {}, ann),
      await post('/unassignroles.csv', { UserName: 'nobody' }, ann),
      await post('/assignroles', change, ann),
      await post('/csv/reply/AssignRoles', change, ann),
      await post('/unassignroles', { UserName: 'Ann', Roles: ['Admin'] }, ann),
      await post(batch, [change, change], ann),
      await post(batch, [change, { UserName: 'nobody' }], ann),
      await post(batch, [change], ned),
      await post(batch, { a: 1 }, ann),
      await post('/json/reply/UnAssignRoles%5B%5D', [], ann),
      await post('/json/oneway/HealthCheckRequest[]', [{ ExecutionMode: 'Basic', ServerType: 'App' }]),
      await post('/api/HealthCheckRequest[]', [{ ExecutionMode: 'Basic', ServerType: 'Mongo' }]),
      await post('/api/Authenticate[]', []),
    ].map(({ status }) => status)
    expect(statuses).toEqual([401, 403, 400, 404, 200, 200, 409, 200, 404, 403, 400, 200, 200, 503, 400])
  })

  test('R6 pages, OPTIONS, and unknown paths', async () => {
    const pages = ['/', '/livez', '/readyz', '/metrics', '/metadata', '/openapi.json', '/types/typescript']
    for (const path of [...pages, '/types/metadata', '/types/metadata.json', '/metadata/app', '/metadata/app.json']) {
      for (const method of ['GET', 'HEAD', 'OPTIONS'])
        expect([path, (await checked(method, path)).status]).toEqual([path, 200])
      expect((await checked('POST', path)).status).toBe(path === '/' ? 400 : 405)
    }
    for (const path of Object.keys(document.paths)) {
      expect((await checked('OPTIONS', path.replace(/\{\w+\}/, 'x'))).status).toBe(200)
    }
    for (const path of Object.values<OwnPage>(ownPages).flatMap(({ paths }) => paths)) {
      for (const target of [path.replace(/\{\w+\}/, 'x'), `${path.replace(/\{\w+\}/, 'x')}?type=Nope&format=%22`]) {
        for (const method of ['GET', 'HEAD', 'POST', 'PUT']) await checked(method, target)
      }
    }
    expect((await checked('GET', '/drills/opened/x')).status).toBe(404)
    for (const path of ['/nothing', '/openapi.yaml', '/metadata.csv', '/api/Foo']) {
      expect((await checked('GET', path)).status).toBe(path === '/api/Foo' ? 405 : 404)
    }
  })
})

describe('the validator itself', () => {
  const healthy = {
    Status: 'Success',
    StatusMessage: 'fine',
    CorrelationId: 'x',
    FailedMonitorCount: 0,
    MonitorSummaries: [],
    ExecutionMetrics: { StartDateTime: '/Date(1-0000)/', EndDateTime: '/Date(2-0000)/', Duration: 'PT0.001S' },
  }
  const schemas =
    (body: unknown, status = 200, type = 'application/json') =>
    () =>
      valid('GET', '/healthcheck?x=y', status, type, JSON.stringify(body))

  test('a valid answer passes, and each invalid one is refused', () => {
    expect(schemas(healthy)).not.toThrow()
    expect(schemas({ ...healthy, Status: undefined })).toThrow(/Status/)
    expect(schemas({ ...healthy, Status: 'Perhaps' })).toThrow(/allowed values/)
    expect(schemas({ ...healthy, Extra: 1 })).toThrow(/additional properties/)
    expect(schemas({ ...healthy, ServerState: { ServerName: 'a', Extra: 1 } })).toThrow(/additional properties/)
    const metrics = healthy.ExecutionMetrics
    expect(schemas({ ...healthy, ExecutionMetrics: { ...metrics, EndDateTime: '2026-11-20T12:00:00Z' } })).toThrow(
      /pattern/,
    )
    for (const Duration of ['P', 'PT', '1s', 'PT1.12345678S', 'P1M', '']) {
      expect(schemas({ ...healthy, ExecutionMetrics: { ...metrics, Duration } })).toThrow(/pattern/)
    }
    expect(schemas(healthy, 503)).toThrow()
    expect(schemas(healthy, 418)).toThrow(/no such status/)
    expect(schemas(healthy, 200, 'text/html')).toThrow(/media types/)
    expect(() => valid('GET', '/healthcheck', 200, 'text/javascript', JSON.stringify(healthy))).toThrow(/not a call/)
    expect(() => valid('HEAD', '/healthcheck', 200, 'application/json', '{}')).toThrow(/no body/)
    expect(() => valid('GET', '/nothing', 200, 'application/json', '{}')).toThrow(/no such status/)
    expect(responseTo('GET', '/auth/x.csv', 200)?.content).toEqual({ 'text/csv': { schema: { type: 'string' } } })
  })
})
