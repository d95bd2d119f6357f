import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { administration } from '../../../src/core/protocol/index.ts'
import { type Accounts, bearer, password, startAccounts } from '../../server/accounts.ts'
import { ask, type Got } from '../../server/site.ts'
import { runsOf } from '../../support/suite/runs.ts'
import { canonical, type Operation } from '../../support/wire/openapi.ts'

/**
 * Requests made from the schemas of openapi.json, against a real server: what the document allows is not refused as
 * malformed, what it does not allow is, and every answer is one that it describes.
 */
type Schema = {
  readonly $ref?: string
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly type?: string | readonly string[]
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}
type Parameter = { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema: Schema }

const { document } = canonical
const ajv = new Ajv2020({ strict: false })
ajv.addSchema({ $id: 'svc:', components: document.components })
const checks = new Map<object, ValidateFunction>()
/** Compiled once for each schema. */
function checkOf(schema: object): ValidateFunction {
  const existing = checks.get(schema)
  if (existing) return existing
  const own = JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"svc:#/components/')) as object
  const check = ajv.compile(own)
  checks.set(schema, check)
  return check
}

const resolved = (schema: Schema): Schema =>
  schema.$ref === undefined ? schema : (document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] as Schema)

/** Texts that mean something to the server, so that some requests succeed. */
const meaningful: Readonly<Record<string, readonly string[]>> = {
  UserName: ['Ned', 'Ann', 'nobody'],
  Password: [password, 'wrong'],
  // Of the permission to silence, the present name and the former one, which is refused.
  Permissions: ['silence', 'quiet'],
  provider: ['credentials', 'login', 'logout', 'nope', ' '],
}

/** Values that a schema allows. Rules between fields are left to the caller. */
function arbitraryFor(input: Schema, name = ''): fc.Arbitrary<unknown> {
  const schema = resolved(input)
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((each) => arbitraryFor(each, name)))
  if (schema.enum) return fc.constantFrom(...schema.enum)
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])
  return fc.oneof(...types.map((type) => ofType(type, schema, name)))
}

function ofType(type: string, schema: Schema, name: string): fc.Arbitrary<unknown> {
  const { minimum: min, maximum: max, maxLength, pattern, items, properties, required = [] } = schema
  switch (type) {
    case 'null':
      return fc.constant(null)
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer({ min: Math.max(min ?? 0, -(2 ** 31)), max: Math.min(max ?? 9, 2 ** 31 - 1) })
    case 'number':
      return fc.double({ ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }), noNaN: true })
    case 'array':
      return fc.array(arbitraryFor(items ?? {}, name), { maxLength: 4 })
    case 'object':
      return properties === undefined
        ? fc.dictionary(fc.string({ minLength: 1, maxLength: 9 }), fc.string({ unit: 'grapheme', maxLength: 40 }))
        : fc.record(
            Object.fromEntries(Object.entries(properties).map(([key, each]) => [key, arbitraryFor(each, key)])),
            { requiredKeys: required as never[] },
          )
    default: {
      const text = pattern === undefined ? fc.string({ unit: 'grapheme' }) : fc.stringMatching(new RegExp(pattern, 'u'))
      const bounded = text.filter((each) => maxLength === undefined || [...each].length <= maxLength)
      const names = meaningful[name]
      return names === undefined ? bounded : fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...names) }, bounded)
    }
  }
}

/** A wrong value in the place of a right one. */
const invalid = fc.constantFrom<unknown>(
  ...[0, -1, 1.5, 1e300, true, [], {}, [null], [0], [[]], { a: 1 }, { constructor: 'x' }],
  ...['', ' ', '\u0000', 'a\u200b', 'P', 'PT', 'PT0.5S', 'P101D', '2026-02-30', '/Date(x)/', 'x'.repeat(129)],
  ...['x'.repeat(1_001), 'x'.repeat(4_001), ['x'.repeat(129)], [''], ['\u0000'], ['quiet'], Array(257).fill('x'), null],
  ...[Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`k${at}`, ''])), { a: 'x'.repeat(1_025) }],
  { ['k'.repeat(129)]: '' },
)

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([verb, operation]) => ({ path, verb: verb.toUpperCase(), ...(operation as Operation) })),
)
const malformed = new Set([400, 413, 415])

/** Operations with a rule that no keyword of JSON Schema expresses. */
const beyond: Readonly<Record<string, string>> = {
  GetAccessToken: 'a refresh token has a checksum',
  ChangePassword: 'a new password must not be a common one',
  StartDrill: 'the server has no receivers',
  EndSession: 'one of three fields says which sessions end',
  SilenceMonitors: 'each pattern matches a monitor, and one of two fields says for how long',
  EndSilence: 'an id exists once something was silenced',
  ForgetNode: 'nodes need a PostgreSQL store',
  AddUser: 'a password must not be a common one, and Email is an address',
  SetPassword: 'a password must not be a common one',
  UnlockUser: 'From is an IP address',
  LinkUser: 'the server has no providers',
  UnlinkUser: 'the server has no providers',
  RemoveUser: 'a user can be removed once',
  CreateKey: 'a key has rights that its user has',
  RevokeKey: 'a name exists once a key was created',
  ForgetHeartbeat: 'a name exists once an agent has reported',
  AcknowledgeFault: 'at most one of two fields says for how long, and a fault of the monitor is open',
}

const administers = new Set<string>(Object.values(administration).map(({ name }) => name))
/** Ann asks, so that nobody may disable her, or set her password. */
const harmsAnn = (operation: string, body: unknown): boolean =>
  administers.has(operation) && /^ann$/i.test(String(Reflect.get(Object(body), 'UserName')))

let site: Accounts
let token: string
beforeAll(async () => {
  site = await startAccounts()
})
// An operation may end the sessions of its caller.
beforeEach(async () => {
  token = (await site.signIn()).BearerToken
})
afterAll(() => site.close())

/** Asks as Ann, and holds the answer against the document. A sign-in presents no session, which it would end. */
async function checked(verb: string, target: string, body?: unknown): Promise<Got> {
  const got = await ask(site.port, target, {
    method: verb,
    headers: {
      ...(target === '/auth' ? {} : bearer(token)),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  canonical.valid(verb, target, got.status, got.headers['content-type'], got.text)
  for (const [name, header] of headersOf(verb, target, got.status)) {
    const value = got.headers[name.toLowerCase()]
    if (header.required) expect([name, value]).toEqual([name, expect.anything()])
    const typed = header.schema.type === 'integer' ? Number(value) : String(value)
    if (value !== undefined) expect([name, value, checkOf(header.schema)(typed)]).toEqual([name, value, true])
  }
  return got
}

type Header = { readonly required: boolean; readonly schema: Schema }

function headersOf(verb: string, target: string, status: number): readonly (readonly [string, Header])[] {
  const { headers = {} } = canonical.responseTo(verb, target, status) as {
    headers?: Readonly<Record<string, { $ref: string }>>
  }
  const shared = document.components['headers'] as Readonly<Record<string, Header>>
  return Object.entries(headers).map(([name, { $ref }]) => [name, shared[$ref.split('/').at(-1) ?? ''] as Header])
}

const bodyOf = (operation: Operation): Schema | undefined =>
  (operation['requestBody'] as { content: Record<string, { schema: Schema }> } | undefined)?.content['application/json']
    ?.schema

/** Bodies that succeed, tried before the generated ones: not every seed names a user who exists. */
const successful: Readonly<Record<string, object>> = {
  Authenticate: { provider: 'credentials', UserName: 'Ned', Password: password },
  AssignRoles: { UserName: 'Ned', Permissions: ['silence'] },
  UnAssignRoles: { UserName: 'Ned', Permissions: ['silence'] },
  RemoveDigest: { UserName: 'Ned' },
  DisableUser: { UserName: 'Ned' },
  EnableUser: { UserName: 'Ned' },
}

describe('R6 requests made from openapi.json', () => {
  const withBody = operations.flatMap((each) => {
    const schema = bodyOf(each)
    return schema === undefined ? [] : [{ ...each, schema, name: each.operationId }]
  })
  // A password costs the processor 100 ms.
  const runs = (name: string): number => runsOf(name === 'ChangePassword' ? 5 : name === 'Authenticate' ? 30 : 100)

  test.each(withBody)(
    'R6 $name: a body that the document allows is not malformed',
    async ({ path, verb, schema, name }) => {
      const allowed = checkOf(schema)
      const statuses = new Set<number>()
      const property = fc.asyncProperty(
        arbitraryFor(schema).filter((body) => allowed(body) && !harmsAnn(name, body)),
        async (body) => {
          const { status } = await checked(verb, path, body)
          statuses.add(status)
          if (!(name in beyond)) expect([body, malformed.has(status)]).toEqual([body, false])
        },
      )
      const examples = successful[name] === undefined ? [] : [[successful[name]] as [unknown]]
      await fc.assert(property, { numRuns: runs(name), examples })
      if (!(name in beyond)) expect(statuses).toContain(200)
    },
  )

  test.each(withBody)(
    'S4 R6 $name: a body that the document does not allow is refused',
    async ({ path, verb, schema, name }) => {
      const allowed = checkOf(schema)
      const fields = Object.keys(resolved(schema).properties ?? {})
      const spoiled = fc
        .tuple(arbitraryFor(schema), fc.constantFrom(...fields), invalid)
        .map(([body, field, value]) => ({ ...(body as object), [field]: value }))
        .filter((body) => !allowed(body) && !harmsAnn(name, body))
      const property = fc.asyncProperty(spoiled, async (body) => {
        const { status } = await checked(verb, path, body)
        expect([body, status >= 400 && status < 500]).toEqual([body, true])
      })
      await fc.assert(property, { numRuns: runs(name) })
    },
  )

  /** Statuses with which an operation refuses a right query. */
  const refusals: Readonly<Record<string, readonly number[]>> = {
    HealthCheckRequest: [503],
    // Nodes need a PostgreSQL store.
    GetNodes: [409],
    // The audit answers for times since the store was made.
    GetRoleHolders: [400, 409],
  }
  const withQuery = operations
    .map((each) => ({ ...each, name: each.operationId }))
    .filter((each) => bodyOf(each) === undefined)

  test.each(withQuery)(
    'R6 $name: a query that the document allows is answered',
    async ({ path, verb, name, parameters = [] }) => {
      const queries = (parameters as readonly Parameter[]).filter((each) => each.in === 'query')
      const record = fc.record(
        Object.fromEntries(queries.map((each) => [each.name, arbitraryFor(each.schema, each.name)])),
        { requiredKeys: queries.flatMap((each) => (each.required ? [each.name] : [])) as never[] },
      )
      const property = fc.asyncProperty(record, async (query) => {
        const { status } = await checked(verb, `${path}?${new URLSearchParams(query as Record<string, string>)}`)
        expect([query, status === 200 || (refusals[name] ?? [404]).includes(status)]).toEqual([query, true])
      })
      await fc.assert(property, { numRuns: runsOf(25) })
    },
  )

  test('H3 R6 HealthCheckRequest: a query that the document does not allow is a 400', async () => {
    const queries = [
      '',
      'ExecutionMode=Basic',
      'ServerType=App',
      'ExecutionMode=0&ServerType=App',
      'ExecutionMode=4&ServerType=App',
    ]
    for (const query of [
      ...queries,
      ...['Foo', '14', '-1', '1.5', '', '1,2'].map((each) => `ExecutionMode=1&ServerType=${each}`),
    ]) {
      expect([query, (await checked('GET', `/healthcheck?${query}`)).status]).toEqual([query, 400])
    }
    for (const value of ['2', 'yes', 'null', '[]', '%20']) {
      const query = `ExecutionMode=1&ServerType=1&SuppressErrorCodes=${value}`
      expect([query, (await checked('GET', `/healthcheck?${query}`)).status]).toEqual([query, 400])
    }
  })
})
