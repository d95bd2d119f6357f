import { expect, test } from 'vitest'
import { Fault, type FaultName, faults } from '../../../src/core/base/errors.ts'
import { AssignRolesResponse, AuthenticateResponse, remedyKey } from '../../../src/core/protocol/index.ts'
import { encodeJson, errorAnswer, errorResponse } from '../../../src/core/protocol/wire/index.ts'
import { expectGolden } from './golden.ts'

test('E1 each error body has ErrorCode, Message and Errors, in that order', () => {
  const body = (fault: Fault) => {
    const { schema, value } = errorAnswer(undefined, errorResponse(fault))
    return encodeJson(schema, value)
  }
  expect(body(new Fault('Unauthorized', 'Invalid Username or Password'))).toBe(
    '{"ResponseStatus":{"ErrorCode":"Unauthorized","Message":"Invalid Username or Password","Errors":[]}}',
  )
  expect(body(new Fault('MethodNotAllowed', 'GET', { errorCode: 'NotSupportedException' }))).toBe(
    '{"ResponseStatus":{"ErrorCode":"NotSupportedException","Message":"GET","Errors":[]}}',
  )
  const fields = [{ ErrorCode: 'NotEmpty', FieldName: 'Password', Message: "'Password' must not be empty." }]
  expectGolden(
    'error.validation.json',
    body(new Fault('BadRequest', 'x', { fields, errorCode: 'ValidationException' })),
  )
})

test('E1 hints, causes and headers of a fault stay on the server', () => {
  const fault = new Fault('Unavailable', undefined, {
    hints: ['secret'],
    cause: new Error('secret'),
    headers: { 'x-secret': 'secret' },
    retryAfter: 5,
  })
  expect(JSON.stringify(errorResponse(fault))).not.toContain('secret')
})

test('P82 a refusal has its remedy in Meta, and no other fault has one', () => {
  const hints = ['Assign Admin to another user first.', 'svc users list']
  const names = (Object.keys(faults) as FaultName[]).filter(
    (name) => errorResponse(new Fault(name, 'x', { hints })).ResponseStatus?.Meta?.[remedyKey] === hints.join('\n'),
  )
  const refusals = (Object.keys(faults) as FaultName[]).filter(
    (name) => (faults[name].status < 500 && name !== 'Unauthorized') || name === 'NotImplemented',
  )
  expect(names).toEqual(refusals)
  expect(errorResponse(new Fault('Conflict')).ResponseStatus).not.toHaveProperty('Meta')
  const many = errorResponse(new Fault('Conflict', 'x', { hints: Array.from({ length: 99 }, String) }))
  expect(many.ResponseStatus?.Meta?.[remedyKey]?.split('\n')).toHaveLength(10)
})

test('E1 a stack trace appears only when the caller passes it in', () => {
  const fault = new Fault('Defect')
  expect(errorResponse(fault).ResponseStatus).not.toHaveProperty('StackTrace')
  expect(errorResponse(fault, undefined, 'at x').ResponseStatus?.StackTrace).toBe('at x')
})

test('E2 an internal error reveals its correlation id and no detail', () => {
  expect(errorResponse(new Fault('Defect'), 'c-1')).toEqual({
    ResponseStatus: {
      ErrorCode: 'InternalServerError',
      Message: 'An unexpected error occurred; its details are in the log under this correlation id',
      Errors: [],
      Meta: { CorrelationId: 'c-1' },
    },
  })
})

test('A3 a refused sign-in has the same text each time, whatever the correlation id', () => {
  expect(errorResponse(new Fault('Unauthorized'), 'c-1')).toEqual(errorResponse(new Fault('Unauthorized'), 'c-2'))
})

test('R3 the Meta of a fault is sent', () => {
  const fault = new Fault('NotFound', 'nobody', { meta: { AutoBatchIndex: '1' } })
  expect(errorResponse(fault).ResponseStatus?.Meta).toEqual({ AutoBatchIndex: '1' })
})

test('O7 errors of role operations have empty lists beside the ResponseStatus', () => {
  const error = errorResponse(new Fault('NotFound', 'nobody'))
  const roles = errorAnswer(AssignRolesResponse, error)
  expectGolden('assignroles.not-found.json', encodeJson(roles.schema, roles.value))
  const other = errorAnswer(AuthenticateResponse, error)
  expect(encodeJson(other.schema, other.value)).toBe(
    '{"ResponseStatus":{"ErrorCode":"NotFound","Message":"nobody","Errors":[]}}',
  )
})
