import { expect, test } from 'vitest'
import {
  AssignRolesResponse,
  AuthenticateResponse,
  ErrorResponse,
  HealthCheckResponse,
} from '../../../src/core/protocol/index.ts'
import { decodeAnswer, encodeJson } from '../../../src/core/protocol/wire/index.ts'
import { faultOf } from './samples.ts'

const health = {
  Status: 'Success',
  StatusMessage: 'm,"q" /Date(1)/',
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
  ExecutionMetrics: { StartDateTime: new Date(1614834367089), EndDateTime: new Date(1614834368323), Duration: 1234 },
}

test('C3 a recorded answer of 5.8', () => {
  const body =
    '{"Status":"Success","StatusMessage":"m,\\"q\\" \\/Date(1)\\/","CorrelationId":"c1","FailedMonitorCount":0,"MonitorSummaries":[{"MonitorName":"App","Status":"Success","Results":[{"MonitoringName":"ping","Status":"Success","StatusMessage":"ok"}],"ErrorMessages":[]}],"ExecutionMetrics":{"StartDateTime":"\\/Date(1614834367089-0500)\\/","EndDateTime":"\\/Date(1614834368323-0500)\\/","Duration":"PT1.234S"}}'
  expect(decodeAnswer(HealthCheckResponse, body)).toEqual(health)
})

test('C3 the dialect of 10.x has camelCase, ISO 8601, .NET durations and extra fields', () => {
  const body =
    '\ufeff{"status":"success","statusMessage":"m,\\"q\\" /Date(1)/","correlationId":"c1","failedMonitorCount":0,"monitorSummaries":[{"monitorName":"App","status":1,"results":[{"monitoringName":"ping","status":"Success","statusMessage":"ok","extra":[[]]}],"errorMessages":[null]}],"executionMetrics":{"startDateTime":"2021-03-04T05:06:07.0890000Z","endDateTime":"2021-03-04T06:06:08.3230000+01:00","duration":"00:00:01.2340000"},"more":{"__proto__":{}}}'
  expect(decodeAnswer(HealthCheckResponse, body)).toEqual(health)
})

test('C3 an empty ResponseStatus on success is ignored', () => {
  expect(decodeAnswer(AuthenticateResponse, '{"UserId":1,"Roles":["Admin"],"ResponseStatus":{}}')).toEqual({
    UserId: '1',
    Roles: ['Admin'],
    ResponseStatus: {},
  })
})

test('C3 an error of either dialect is read', () => {
  const error = {
    ErrorCode: 'ValidationException',
    Message: 'x',
    Errors: [{ FieldName: 'UserName', Meta: { a: 'b' } }],
  }
  const pascal =
    '{"ResponseStatus":{"ErrorCode":"ValidationException","Message":"x","Errors":[{"FieldName":"UserName","Meta":{"a":"b","c":null}}]}}'
  const camel =
    '{"responseStatus":{"errorCode":"ValidationException","message":"x","errors":[{"fieldName":"UserName","meta":{"a":"b"}}]}}'
  expect(decodeAnswer(ErrorResponse, pascal)).toEqual({ ResponseStatus: error })
  expect(decodeAnswer(ErrorResponse, camel)).toEqual({ ResponseStatus: error })
})

test('C3 the bare NaN of .NET counts as unset, and the text NaN stays a text', () => {
  const body =
    '{"ServerState":{"UsedCpuPercent":NaN,"TotalRamInMb":-Infinity,"ServerName":"\\" NaN"},"StatusMessage":"Infinity"}'
  expect(decodeAnswer(HealthCheckResponse, body)).toEqual({
    ServerState: { ServerName: '" NaN' },
    StatusMessage: 'Infinity',
  })
})

test('C3 an empty text in a field that is not a text counts as unset', () => {
  expect(
    decodeAnswer(HealthCheckResponse, '{"Status":"","ExecutionMetrics":{"Duration":""},"StatusMessage":""}'),
  ).toEqual({ ExecutionMetrics: {}, StatusMessage: '' })
})

test.each([
  '',
  '<html>secret</html>',
  '{"Status":"Success","StatusMessage":"secret',
  '"secret"',
  '[]',
  'null',
  `{"x":${'['.repeat(100)}${']'.repeat(100)}}`,
])('K7 the answer %s is an error that does not repeat it', (body) => {
  const fault = faultOf(() => decodeAnswer(HealthCheckResponse, body))
  expect(fault).toMatchObject({ fault: 'UnreadableAnswer', exitCode: 8 })
  expect(fault.message).not.toContain('secret')
  expect(fault.cause).toBeUndefined()
})

test.each([
  '{"Status":"Degraded"}',
  '{"Status":0}',
  '{"Status":true}',
  '{"MonitorSummaries":"none"}',
  '{"MonitorSummaries":["none"]}',
  '{"ExecutionMetrics":[]}',
  '{"ExecutionMetrics":{"Duration":{}}}',
])('K7 the value in %s is rejected rather than interpreted', (body) => {
  expect(faultOf(() => decodeAnswer(HealthCheckResponse, body)).fault).toBe('UnreadableAnswer')
})

test('C3 an empty answer to a sign-out is accepted', () => {
  expect(decodeAnswer(AssignRolesResponse, '{}')).toEqual({})
})

test.each(['PascalCase', 'camelCase', 'snake_case'] as const)('C3 N9 an answer in %s is read completely', (style) => {
  const value = {
    Status: 'Failure',
    StatusMessage: 'App is unhealthy',
    FailedMonitorCount: 1,
    MonitorSummaries: [{ MonitorName: 'http shop', Status: 'Failure', Results: [], ErrorMessages: ['status: 500'] }],
  }
  expect(decodeAnswer(HealthCheckResponse, encodeJson(HealthCheckResponse, value, undefined, style))).toEqual(value)
})
