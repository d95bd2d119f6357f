import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  AssignRoles,
  AssignRolesResponse,
  Authenticate,
  AuthenticateResponse,
  ErrorResponse,
  HealthCheckRequest,
  HealthCheckResponse,
  ServerState,
} from '../../../src/core/protocol/index.ts'
import { encodeJson, formats } from '../../../src/core/protocol/wire/index.ts'
import { parseByToken } from '../../../src/core/protocol/wire/json-read.ts'
import { expectGolden } from './golden.ts'
import { failing, faultOf, passing, signedIn } from './samples.ts'

const { decode, encode, contentType } = await formats.json()

test('N1 a response has the names of the interface in its order, whatever the order in memory', () => {
  const { Status, ...rest } = passing
  expectGolden('healthcheck.passing.json', encode(HealthCheckResponse, { ...rest, Status }))
  expectGolden('authenticate.signed-in.json', encode(AuthenticateResponse, signedIn))
})

test('N2 unset properties are omitted; 0, false, "" and [] are written', () => {
  expect(contentType).toBe('application/json; charset=utf-8')
  expect(encode(AssignRolesResponse, { AllRoles: [], AllPermissions: null, Meta: undefined })).toBe('{"AllRoles":[]}')
  expect(encode(Authenticate, { RememberMe: false, UserName: '' })).toBe('{"UserName":"","RememberMe":false}')
  expect(encode(ServerState, { TotalRamInMb: 0, UsedCpuPercent: Number.NaN })).toBe('{"TotalRamInMb":0}')
  expect(encode(AssignRoles, {})).toBe('{}')
})

test('N2 what the schema does not define is never written', () => {
  const row = { AllRoles: ['x'], PasswordHash: 'secret', toJSON: () => 'secret' }
  expect(encode(AssignRolesResponse, row)).toBe('{"AllRoles":["x"]}')
})

test('H1 a failed health answer ends with a ResponseStatus', () => {
  const error: ErrorResponse = { ResponseStatus: { ErrorCode: 'HealthCheckFailed', Message: 'Ftp: down', Errors: [] } }
  const text = encodeJson(HealthCheckResponse, failing, { schema: ErrorResponse, value: error })
  expectGolden('healthcheck.failing.json', text)
  expect(Object.keys(JSON.parse(text)).at(-1)).toBe('ResponseStatus')
  expect(encodeJson(AssignRoles, {}, { schema: ErrorResponse, value: error })).toBe(encode(ErrorResponse, error))
  expect(encodeJson(AssignRoles, { UserName: 'a' }, { schema: ErrorResponse, value: {} })).toBe('{"UserName":"a"}')
})

test('N1 request names match in any letter case, and one name may repeat with the same value', () => {
  expect(decode(Authenticate, '{"username":"a","PASSWORD":"b"}')).toEqual({ UserName: 'a', Password: 'b' })
  expect(decode(Authenticate, '{"username":"a","UserName":"a","USERNAME":"a"}')).toEqual({ UserName: 'a' })
  const map = '{"Meta":{"a":"1","b":"2"},"meta":{"a":"1","b":"2"}}'
  expect(decode(Authenticate, map)).toEqual({ Meta: { a: '1', b: '2' } })
})

test('N1 only ASCII letters match in another case: the Kelvin sign is not k', () => {
  expect(decode(Authenticate, '{"AccessTo\u212aen":"x"}')).toEqual({})
})

test.each([
  ['"Advanced"', 'Advanced'],
  ['"aDVANCED"', 'Advanced'],
  ['3', 'Advanced'],
  ['"1"', 'Basic'],
])('N1 the choice %s is accepted', (text, mode) => {
  expect(decode(HealthCheckRequest, `{"ExecutionMode":${text}}`)).toEqual({ ExecutionMode: mode })
})

test.each(['0', '4', '-1', '1.5', '"0"', '""', '"Foo"', '" Basic"', '"Basic,Standard"', '1e0000'])(
  'N1 the choice %s is refused unless it is the number of a choice',
  (text) => {
    if (text === '1e0000')
      expect(decode(HealthCheckRequest, `{"ExecutionMode":${text}}`)['ExecutionMode']).toBe('Basic')
    else {
      const fault = faultOf(() => decode(HealthCheckRequest, `{"executionMode":${text}}`))
      expect(fault).toMatchObject({ status: 400, errorCode: 'SerializationException' })
      expect(fault.message).toBe("Unable to bind to request 'HealthCheckRequest'")
      expect(fault.details.fields).toEqual([
        {
          ErrorCode: 'SerializationException',
          FieldName: 'executionMode',
          Message: `'${JSON.parse(text)}' is an Invalid value for 'executionMode'`,
        },
      ])
    }
  },
)

test('N1 unknown properties are ignored, whatever their form', () => {
  expect(decode(AssignRoles, '{"isAdmin":true,"x":{"y":[1,{"z":null}]},"UserName":"a"}')).toEqual({ UserName: 'a' })
})

test.each([
  [Authenticate, '{"UserName":5}', 'UserName'],
  [Authenticate, '{"Password":12345}', 'Password'],
  [Authenticate, '{"Password":["hunter2"]}', 'Password'],
  [Authenticate, '{"rememberMe":"yes"}', 'rememberMe'],
  [Authenticate, '{"rememberMe":""}', 'rememberMe'],
  [Authenticate, '{"RememberMe":1}', 'RememberMe'],
  [Authenticate, '{"UserName":"\\ud800"}', 'UserName'],
  [Authenticate, '{"Meta":{"a":1}}', 'Meta'],
  [Authenticate, '{"Meta":["a"]}', 'Meta'],
  [Authenticate, '{"Meta":"{a:b}"}', 'Meta'],
  [AssignRoles, '{"Roles":"single"}', 'Roles'],
  [AssignRoles, '{"roles":["a",null,7]}', 'roles'],
  [AssignRoles, '{"Roles":{"0":"a"}}', 'Roles'],
  [HealthCheckResponse, '{"FailedMonitorCount":1.5}', 'FailedMonitorCount'],
  [HealthCheckResponse, '{"FailedMonitorCount":"1.5"}', 'FailedMonitorCount'],
  [HealthCheckResponse, '{"FailedMonitorCount":"1e3"}', 'FailedMonitorCount'],
  [HealthCheckResponse, '{"ExecutionMetrics":{"duration":"long"}}', 'ExecutionMetrics.duration'],
  [
    HealthCheckResponse,
    '{"MonitorSummaries":[{"Status":"Success"},{"Status":7},{"Status":8}]}',
    'MonitorSummaries.Status',
  ],
])('N5 a wrong type is a 400 that names the field: %# %s', (schema, body, field) => {
  const fault = faultOf(() => decode(schema, body))
  expect(fault.status).toBe(400)
  expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual([field])
})

test.each([
  [Authenticate, 'RememberMe', '"true"', true],
  [Authenticate, 'RememberMe', '"False"', false],
  [HealthCheckResponse, 'FailedMonitorCount', '"12"', 12],
  [Authenticate, 'UserName', '"true"', 'true'],
])('N5 a boolean may be the text true or false, and a number its digits: %# %s', (schema, name, written, value) => {
  expect(decode(schema, `{"${name}":${written}}`)).toEqual({ [name]: value })
})

test('N5 each wrong field is named in one answer, and no secret is repeated', () => {
  const fault = faultOf(() => decode(Authenticate, '{"UserName":true,"Password":31337,"RememberMe":"hunter2"}'))
  expect(fault.details.fields?.map(({ Message }) => Message)).toEqual([
    "'UserName' must be a string of valid Unicode",
    "'Password' must be a string of valid Unicode",
    "'RememberMe' must be true or false",
  ])
})

test('N5 null means unset everywhere but in a list', () => {
  expect(decode(Authenticate, '{"UserName":null,"RememberMe":null,"Meta":{"a":null,"b":"c"}}')).toEqual({
    Meta: { b: 'c' },
  })
})

test.each(['expires', 'EXPIRES'])(
  'O8 an end of null in the Meta of an assignment is a 400 that names it: %s',
  (key) => {
    const fault = faultOf(() => decode(AssignRoles, `{"UserName":"bob","Roles":["Admin"],"Meta":{"${key}":null}}`))
    expect([fault.status, fault.details.fields?.[0]?.FieldName]).toEqual([400, `Meta.${key}`])
    expect(decode(AssignRoles, '{"UserName":"bob","Meta":{"reason":null}}')).toEqual({ UserName: 'bob', Meta: {} })
  },
)

test.each(['', ' ', 'not json', '{"Password":"hunter2",', '{"Password":hunter2}', "{'Password':'hunter2'}", '{}x'])(
  'E2 the text %s is not valid JSON, and is not repeated',
  (body) => {
    const fault = faultOf(() => decode(Authenticate, body))
    expect(fault).toMatchObject({ status: 400, errorCode: 'SerializationException' })
    expect(fault.message).toMatch(/^Could not deserialize 'application\/json' request using 'Authenticate': /)
    expect(fault.message).not.toContain('hunter2')
    expect(fault.cause).toBeUndefined()
  },
)

test.each(['[1,2]', '"text"', '5', 'null', 'true'])('E2 the JSON %s is not an object', (body) => {
  expect(faultOf(() => decode(Authenticate, body)).message).toMatch(/^Could not deserialize 'application\/json'/)
})

test('a key with an escape is read literally, whatever keys precede it', () => {
  for (const [before, key] of [
    ['\\', '\n'],
    ['\\', '"'],
    ['a\\', 'a"'],
    ['é\\', 'é\t'],
  ] as const) {
    const meta = (name: string) => ({ Meta: { x: 'y', [name]: 'v' } })
    // By itself the engine takes the second for the first.
    JSON.parse(JSON.stringify(meta(before)))
    expect(decode(Authenticate, encode(Authenticate, meta(key)))).toEqual(meta(key))
    expect(decode(Authenticate, encode(Authenticate, meta(before)))).toEqual(meta(before))
  }
})

test('the reader of escaped keys accepts and refuses what the engine does', () => {
  const outcome = (read: (text: string) => unknown, text: string) => {
    try {
      return JSON.stringify(read(text))
    } catch {
      return 'refused'
    }
  }
  const agree = (text: string) => {
    expect([text, outcome(parseByToken, text)]).toEqual([text, outcome(JSON.parse, text)])
  }
  const words = ['"a"', '"\\n"', '"\\q"', '"', '1', '-0', '01', '1.', 'null', 'nul', '"__proto__":1']
  const piece = fc.constantFrom(...'{}[],: \n\u00a0'.split(''), ...words)
  const text = fc.array(piece, { maxLength: 8 }).map((parts) => parts.join(''))
  fc.assert(fc.property(text, agree), { numRuns: 2000 })
  fc.assert(fc.property(fc.json({ stringUnit: fc.constantFrom('a', 'é', ' ', '1', '{', ':') }), agree))
  '{} [] {,} [,] {"a":1,} [1,] {"a":1] [1} {"a"} {1:1} {}{}'.split(' ').forEach(agree)
})
