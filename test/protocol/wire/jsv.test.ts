import { describe, expect, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import {
  AssignRoles,
  Authenticate,
  ErrorResponse,
  HealthCheckRequest,
  HealthCheckResponse,
} from '../../../src/core/protocol/index.ts'
import { errorResponse, formats, readBatch, readBody } from '../../../src/core/protocol/wire/index.ts'
import { expectGolden } from './golden.ts'
import { asyncFaultOf, failing, faultOf, passing } from './samples.ts'

const { decode, encode, contentType } = await formats.jsv()
const bytes = (text: string) => Buffer.from(text)

test('F6 answers are JSV', () => {
  expect(contentType).toBe('application/jsv; charset=utf-8')
  expectGolden('healthcheck.passing.jsv', encode(HealthCheckResponse, passing))
  expectGolden('healthcheck.failing.jsv', encode(HealthCheckResponse, failing))
  expectGolden('error.forbidden.jsv', encode(ErrorResponse, errorResponse(new Fault('Forbidden'))))
  expect(encode(AssignRoles, {})).toBe('{}')
})

test('F6 the bytes equal those of a real server', () => {
  const recorded =
    '{Status:Success,StatusMessage:"m,""q""",CorrelationId:c1,FailedMonitorCount:0,MonitorSummaries:[{MonitorName:App,Status:Success,Results:[{MonitoringName:ping,Status:Success,StatusMessage:ok}],ErrorMessages:[]}],ExecutionMetrics:{StartDateTime:2021-03-04T10:06:07.0890000Z,EndDateTime:2021-03-04T10:06:08.3230000Z,Duration:PT1.234S}}'
  const value = decode(HealthCheckResponse, recorded)
  expect(value).toMatchObject({
    Status: 'Success',
    StatusMessage: 'm,"q"',
    ExecutionMetrics: { StartDateTime: new Date('2021-03-04T10:06:07.089Z'), Duration: 1234 },
  })
  // Both forms of the date are the same instant to every reader.
  expect(encode(HealthCheckResponse, value)).toBe(recorded.replaceAll(/(\d{3})0000Z/g, '$1Z'))
})

test.each([
  ['{UserName:ann,Password:x}', { UserName: 'ann', Password: 'x' }],
  ['{username:ann,PASSWORD:""}', { UserName: 'ann', Password: '' }],
  ['{"UserName":"ann, ""the"" one",RememberMe:True}', { UserName: 'ann, "the" one', RememberMe: true }],
  ['{UserName:ann,UserName2:{a:[{b:"}"}]},unknown:[1,[2]],Meta:{k:v,"a:b":""}}', { Meta: { k: 'v', 'a:b': '' } }],
  [' \r\n{ UserName:ann, Password: x }\n', { UserName: 'ann', Password: ' x ' }],
  ['{UserName:ann,RememberMe:,Meta:,Password:}', { UserName: 'ann' }],
  ['\ufeff{UserName:ann}', { UserName: 'ann' }],
  ['{username:ann,UserName:ann,USERNAME:ann}', { UserName: 'ann' }],
  ['{}', {}],
])('N7 the body %j is read', async (body, expected) => {
  const read = await readBody(Authenticate, 'application/jsv', bytes(body))
  expect(read.body).toEqual({ ...('UserName' in expected ? {} : { UserName: 'ann' }), ...expected, ...noName(body) })
  expect(await readBody(Authenticate, 'text/jsv; charset=utf-8', bytes(body))).toEqual(read)
})
const noName = (body: string): object => (body === '{}' ? { UserName: undefined } : {})

test('N1 N4 numbers, choices, durations and dates are read', () => {
  expect(decode(HealthCheckRequest, '{ExecutionMode:advanced,ServerType:2,SuppressErrorCodes:1}')).toEqual({
    ExecutionMode: 'Advanced',
    ServerType: 'Sql',
    SuppressErrorCodes: true,
  })
})

test('H3 one answer names all wrong fields, and repeats no value that may be a secret', () => {
  const invalid = faultOf(() =>
    decode(HealthCheckRequest, '{executionMode:Foo,ServerType:Bar,SuppressErrorCodes:maybe}'),
  )
  expect(invalid).toMatchObject({ status: 400, message: "Unable to bind to request 'HealthCheckRequest'" })
  expect(invalid.details.fields?.map(({ Message }) => Message)).toEqual([
    "'Foo' is an Invalid value for 'executionMode'",
    "'Bar' is an Invalid value for 'ServerType'",
    "'SuppressErrorCodes' must be true or false",
  ])
  const secret = faultOf(() => decode(Authenticate, '{Meta:hunter2,RememberMe:hunter2}'))
  expect(JSON.stringify([secret.message, secret.details])).not.toContain('hunter2')
})

test.each([
  '',
  'UserName:ann',
  '[]',
  '{UserName:ann',
  '{UserName:ann}}',
  '{UserName:ann}x',
  '{UserName}',
  '{UserName:"ann}',
  '{UserName:"ann"x}',
  '{Meta:[a}',
  '{Meta:{a}}',
  '{x:[a}]',
  '{"UserName":',
])('E2 %j is a 400 that does not repeat it', (body) => {
  const fault = faultOf(() => decode(Authenticate, body))
  expect(fault).toMatchObject({ status: 400, errorCode: 'SerializationException' })
  expect(fault.message).toMatch(/^(?:Could not deserialize 'application\/jsv' request using|Unable to bind)/)
  expect(fault.message).not.toContain('ann')
})

describe('S4 hostile JSV', () => {
  const refused = async (body: string) => {
    const fault = await asyncFaultOf(() => readBody(Authenticate, 'application/jsv', bytes(body)))
    expect(fault.status).toBe(400)
    return fault.details.fields?.map(({ FieldName }) => FieldName)
  }

  test('S4 JSV nested deeper than 32 is a 400 that names the field', async () => {
    const nested = (open: string, close: string, depth: number) =>
      `{UserName:a,deep:${open.repeat(depth - 1)}${close.repeat(depth - 1)}}`
    expect(await readBody(Authenticate, 'application/jsv', bytes(nested('[', ']', 32)))).toEqual({
      body: { UserName: 'a' },
    })
    expect(await refused(nested('[', ']', 33))).toEqual(['deep'])
    expect(await refused(nested('{a:', '}', 33))).toEqual(['deep'])
    expect(await refused(`{deep:${'['.repeat(500_000)}`)).toEqual(['deep'])
    expect(await refused('{'.repeat(500_000))).toBeUndefined()
  })

  test.each(['__proto__', 'constructor', 'prototype', '"__proto__"'])(
    'S4 the key %s is refused at any depth',
    async (key) => {
      const name = key.replaceAll('"', '')
      expect(await refused(`{${key}:{UserName:x}}`)).toEqual([name])
      expect(await refused(`{Meta:{${key}:x}}`)).toEqual([name])
      expect(await refused(`{x:[{y:[{${key}:1}]}]}`)).toEqual([name])
    },
  )

  test.each([
    ['{UserName:a,UserName:b}', 'UserName'],
    ['{UserName:a,"UserName":b}', 'UserName'],
    ['{UserName:a, UserName :b}', 'UserName'],
    ['{Meta:{a:1,b:2,a:1}}', 'a'],
    ['{unknown:[{},{x:{y:1,y:2}}]}', 'y'],
  ])('S2 a member that occurs twice in %s is a 400 that names it', async (body, name) => {
    expect(await refused(body)).toEqual([name])
  })

  test('S4 lists, names and Meta have the limits of JSON', async () => {
    const many = Array.from({ length: 257 }, (_, at) => `r${at}`)
    const fault = await asyncFaultOf(() => readBody(AssignRoles, 'text/jsv', bytes(`{Roles:[${many.join(',')}]}`)))
    expect(fault.details.fields?.[0]?.FieldName).toBe('Roles')
    expect(await refused(`{UserName:${'n'.repeat(129)}}`)).toEqual(['UserName'])
    expect(await refused(`{Meta:{a:${'x'.repeat(1025)}}}`)).toEqual(['Meta'])
  })

  test('S4 bytes that are not UTF-8 are refused', async () => {
    const bad = Buffer.concat([bytes('{UserName:'), Buffer.from([0xc3, 0x28]), bytes('}')])
    expect((await asyncFaultOf(() => readBody(Authenticate, 'application/jsv', bad))).status).toBe(400)
  })
})

describe('R3 batches in JSV and CSV', () => {
  const requests = async (type: string, body: string) =>
    (await readBatch(AssignRoles, type, bytes(body))).map((read) => read())

  test('R3 a JSV list is a batch, and each request is read in its turn', async () => {
    expect(await requests('application/jsv', '[{UserName:a,Roles:[x]},{username:b}]')).toEqual([
      { UserName: 'a', Roles: ['x'] },
      { UserName: 'b' },
    ])
    expect(await requests('text/jsv', ' [ ] ')).toEqual([])
    const [first, second] = await readBatch(AssignRoles, 'application/jsv', bytes('[{UserName:a},{Roles:x}]'))
    expect(first?.()).toEqual({ UserName: 'a' })
    expect(faultOf(() => second?.()).details.fields?.[0]?.FieldName).toBe('Roles')
  })

  test('R3 the rows of a CSV body are a batch', async () => {
    expect(await requests('text/csv', 'UserName,Roles\r\na,"[x,y]"\r\n\r\nb,\r\n')).toEqual([
      { UserName: 'a', Roles: ['x', 'y'] },
      { UserName: 'b' },
    ])
    expect(await requests('text/csv', 'UserName,Roles\r\n')).toEqual([])
    const [first, second] = await readBatch(AssignRoles, 'text/csv', bytes('UserName,Roles\na,[]\nb'))
    expect(first?.()).toEqual({ UserName: 'a', Roles: [] })
    expect(faultOf(() => second?.()).status).toBe(400)
  })

  test.each([
    ['application/jsv', (count: number) => `[${Array(count).fill('{}').join(',')}]`],
    ['text/csv', (count: number) => `UserName\n${'a\n'.repeat(count)}`],
  ])('R3 a batch of more than 64 requests in %s is a 400', async (type, body) => {
    expect(await readBatch(AssignRoles, type, bytes(body(64)))).toHaveLength(64)
    expect((await asyncFaultOf(() => readBatch(AssignRoles, type, bytes(body(65))))).status).toBe(400)
    expect((await asyncFaultOf(() => readBatch(AssignRoles, 'application/jsv', bytes('{}')))).status).toBe(400)
  })
})
