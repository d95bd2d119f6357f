import { expect, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import {
  AssignRoles,
  AssignRolesResponse,
  Authenticate,
  AuthenticateResponse,
  ErrorResponse,
  HealthCheckRequest,
  HealthCheckResponse,
} from '../../../src/core/protocol/index.ts'
import { attachment, errorResponse, formats } from '../../../src/core/protocol/wire/index.ts'
import { expectGolden } from './golden.ts'
import { failing, faultOf, passing, signedIn } from './samples.ts'

const { decode, encode, contentType } = await formats.csv()

test('F3 each DTO is a header row with its fields and one data row', () => {
  expect(contentType).toBe('text/csv; charset=utf-8')
  expect(attachment('HealthCheckRequest')).toBe('attachment;filename="HealthCheckRequest.csv"')
  expectGolden('healthcheck.passing.csv', encode(HealthCheckResponse, passing))
  expectGolden('healthcheck.failing.csv', encode(HealthCheckResponse, failing))
  expectGolden('authenticate.signed-in.csv', encode(AuthenticateResponse, signedIn))
  expectGolden('assignroles.done.csv', encode(AssignRolesResponse, { AllRoles: ['a', 'b,c'], AllPermissions: [] }))
  expectGolden('error.forbidden.csv', encode(ErrorResponse, errorResponse(new Fault('Forbidden'))))
})

test('F3 the bytes equal those of a real server', () => {
  // The recorded answer, in UTC.
  const recorded = {
    Status: 'Success',
    StatusMessage: 'm,"q"',
    CorrelationId: 'c1',
    FailedMonitorCount: 0,
    MonitorSummaries: [
      {
        MonitorName: 'App',
        Status: 'Success',
        Results: [{ MonitoringName: 'ping', Status: 'Success', StatusMessage: 'ok' }],
        ErrorMessages: [],
      },
    ],
    ExecutionMetrics: {
      StartDateTime: new Date('2021-03-04T05:06:07.089Z'),
      EndDateTime: new Date('2021-03-04T05:06:08Z'),
      Duration: 1234,
    },
  }
  expect(encode(HealthCheckResponse, recorded)).toBe(
    'ServerState,Status,StatusMessage,CorrelationId,FailedMonitorCount,MonitorSummaries,ExecutionMetrics\r\n' +
      ',Success,"m,""q""",c1,0,"[{MonitorName:App,Status:Success,Results:[{MonitoringName:ping,Status:Success,StatusMessage:ok}],ErrorMessages:[]}]","{StartDateTime:2021-03-04T05:06:07.089Z,EndDateTime:2021-03-04T05:06:08Z,Duration:PT1.234S}"\r\n',
  )
})

test.each([
  ['a,b', '"a,b"'],
  ['say "x"', '"say ""x"""'],
  ['[x', '"[x"'],
  ['{x', '"{x"'],
  ['x[', 'x['],
  ['l1\nl2', '"l1\nl2"'],
  ['l1\rl2', '"l1\rl2"'],
  ['', '""'],
  [' ', ' '],
  [' a ', ' a '],
  ['=1+1', '=1+1'],
  ['a:b', 'a:b'],
])('F3 the text %j is the cell %j', (text, cell) => {
  expect(encode(AssignRoles, { UserName: text })).toBe(`UserName,Permissions,Roles,Meta\r\n${cell},,,\r\n`)
})

test.each([
  [{ Roles: [] }, '"[]"'],
  [{ Roles: [''] }, '"[""""]"'],
  [{ Roles: ['a', ' b '] }, '"[a, b ]"'],
  [{ Roles: ['x,y', 'z'] }, '"[""x,y"",z]"'],
  [{ Roles: ['say "x"'] }, '"[""say """"x""""""]"'],
  [{ Roles: ['\r', '\n'] }, '"[""\r"",""\n""]"'],
  [{ Roles: ['a:b', '{', 'c\r\n'] }, '"[""a:b"",""{"",""c\r\n""]"'],
])('F3 the lists of %j are JSV', (value, cell) => {
  expect(encode(AssignRoles, value)).toBe(`UserName,Permissions,Roles,Meta\r\n,,${cell},\r\n`)
})

test('F3 maps are JSV and booleans are True and False', () => {
  expect(encode(AssignRoles, { Meta: { k: 'v', 'a:b': '' } })).toContain(',,,"{k:v,""a:b"":""""}"\r\n')
  expect(encode(AssignRoles, { Meta: {} })).toContain(',,,"{}"\r\n')
  expect(encode(HealthCheckRequest, { SuppressErrorCodes: true, IncludeServerStateInformation: false })).toContain(
    '\r\n,,False,True,,\r\n',
  )
})

test('N7 a CSV request is a header row with field names, in any order and letter case, and one data row', () => {
  expect(decode(Authenticate, 'password, username ,RememberMe,Unknown\n p ,ann,on,x\n')).toEqual({
    Password: ' p ',
    UserName: 'ann',
    RememberMe: true,
  })
  expect(decode(AssignRoles, '\ufeffUserName,Roles,Meta\r\nann,"[a,""b,c""]",{k:v}')).toEqual({
    UserName: 'ann',
    Roles: ['a', 'b,c'],
    Meta: { k: 'v' },
  })
  expect(decode(HealthCheckRequest, 'ExecutionMode,ServerType\n2,sql\n\n')).toEqual({
    ExecutionMode: 'Standard',
    ServerType: 'Sql',
  })
})

test('N1 a header may repeat in another letter case with the same value', () => {
  expect(decode(Authenticate, 'username,UserName,USERNAME\nb,b,b')).toEqual({ UserName: 'b' })
})

test.each([
  ['UserName', 'no row'],
  ['', 'nothing'],
  ['UserName\na\nb', 'two rows'],
  ['UserName,Password\nhunter2', 'a cell too few'],
  ['UserName\na,hunter2', 'a cell too many'],
  ['UserName\n"hunter2', 'an open quote'],
  ['UserName\nhunt"er2', 'a quote inside'],
  ['UserName\n"hunter2"x', 'text after a quote'],
])('E2 the CSV %j (%s) is a 400 that does not repeat it', (body) => {
  const fault = faultOf(() => decode(Authenticate, body))
  expect(fault).toMatchObject({ status: 400, errorCode: 'SerializationException' })
  expect(fault.message).toMatch(/^Could not deserialize 'text\/csv' request using 'Authenticate': /)
  expect(fault.message).not.toContain('hunter2')
  expect(fault.cause).toBeUndefined()
})

test('H3 each invalid cell is named in one answer', () => {
  const fault = faultOf(() => decode(HealthCheckRequest, 'executionMode,ServerType,SuppressErrorCodes\nFoo,Bar,yes'))
  expect(fault.details.fields?.map(({ Message }) => Message)).toEqual([
    "'Foo' is an Invalid value for 'executionMode'",
    "'Bar' is an Invalid value for 'ServerType'",
    "'yes' is an Invalid value for 'SuppressErrorCodes'",
  ])
})

test.each(['[a', 'a]', '[a]b', '[a,]', '["a]', '["a"b]', 'a', '{a:b}'])(
  'F3 the cell %s is not a valid list',
  (cell) => {
    const body = `Roles\n"${cell.replaceAll('"', '""')}"`
    expect(faultOf(() => decode(AssignRoles, body)).details.fields).toEqual([
      { ErrorCode: 'SerializationException', FieldName: 'Roles', Message: `'${cell}' is an Invalid value for 'Roles'` },
    ])
  },
)

test('F3 JSV is read with blanks around brackets and quotes, and with unknown and empty properties', () => {
  const body = 'MonitorSummaries\n"[ {MonitorName:""a"" , x:{y:[1,""}""]}, Results:[], Status:} , {} ]"'
  expect(decode(HealthCheckResponse, body)).toEqual({ MonitorSummaries: [{ MonitorName: 'a', Results: [] }, {}] })
})
