import { expect, test } from 'vitest'
import {
  AuthenticateResponse,
  ErrorResponse,
  GetAccessTokenResponse,
  inStyle,
  styleFrom,
} from '../../../src/core/protocol/index.ts'
import { encodeJson } from '../../../src/core/protocol/wire/index.ts'

test.each([
  ['UserName', 'userName', 'user_name'],
  ['TotalRamInMb', 'totalRamInMb', 'total_ram_in_mb'],
  ['accessToken', 'accessToken', 'access_token'],
  ['Meta', 'meta', 'meta'],
])('N9 %s is %s and %s', (name, camel, snake) => {
  expect([inStyle(name, 'PascalCase'), inStyle(name, 'camelCase'), inStyle(name, 'snake_case')]).toEqual([
    name,
    camel,
    snake,
  ])
})

test('N9 members are renamed at each depth; values and the keys of maps stay', () => {
  const error = {
    ResponseStatus: {
      ErrorCode: 'NotEmpty',
      Message: 'UserName',
      Errors: [{ ErrorCode: 'NotEmpty', FieldName: 'UserName', Message: 'x' }],
      Meta: { AutoBatchIndex: '0' },
    },
  }
  expect(encodeJson(ErrorResponse, error, undefined, 'camelCase')).toBe(
    '{"responseStatus":{"errorCode":"NotEmpty","message":"UserName","errors":[{"errorCode":"NotEmpty","fieldName":"UserName","message":"x"}],"meta":{"AutoBatchIndex":"0"}}}',
  )
  expect(
    encodeJson(AuthenticateResponse, { UserName: 'a' }, { schema: ErrorResponse, value: error }, 'snake_case'),
  ).toMatch(/^\{"user_name":"a","response_status":\{"error_code":/)
  expect(encodeJson(GetAccessTokenResponse, { accessToken: 't' }, undefined, 'PascalCase')).toBe('{"accessToken":"t"}')
})

test.each([
  ['EmitCamelCaseNames', 'camelCase'],
  ['EmitCamelCaseNames:true', 'camelCase'],
  ['eccn', 'camelCase'],
  ['edv,ECCN:True , inv', 'camelCase'],
  ['EmitLowercaseUnderscoreNames,ExcludeDefaultValues', 'snake_case'],
  ['elun', 'snake_case'],
  ['TextCase:CamelCase', 'camelCase'],
  ['TextCase:SnakeCase', 'snake_case'],
  ['TextCase:PascalCase', 'PascalCase'],
  ['eccn:false', 'PascalCase'],
  ['eccn:false,elun', 'PascalCase'],
  ['', undefined],
  ['edv', undefined],
  ['eccn:maybe', undefined],
  ['constructor', undefined],
  ['TextCase:Constructor', undefined],
  [`${' '.repeat(50_000)}x`, undefined],
])('N9 jsconfig=%s selects %s', (jsconfig, style) => {
  expect(styleFrom(jsconfig)).toBe(style)
})
