import { expect, test } from 'vitest'
import {
  AssignRoles,
  Authenticate,
  HealthCheckRequest,
  neverInQuery,
  operations,
} from '../../../src/core/protocol/index.ts'
import {
  bind,
  encodeQuery,
  merge,
  parsePairs,
  refuseInQuery,
  requireFields,
} from '../../../src/core/protocol/wire/index.ts'
import { faultOf } from './samples.ts'

const query = (text: string) => parsePairs(text)

test('N1 names and choices match in any letter case, choices by number too, and unknown names are ignored', () => {
  expect(bind(HealthCheckRequest, query('executionmode=advanced&SERVERTYPE=2&x=y&__proto__=z'))).toEqual({
    ExecutionMode: 'Advanced',
    ServerType: 'Sql',
  })
  expect(bind(HealthCheckRequest, query('ExecutionMode=1&executionmode=1&ServerType=13'))).toEqual({
    ExecutionMode: 'Basic',
    ServerType: 'Agents',
  })
})

test('N1 two spellings of one parameter with different values are a 400 that names both', () => {
  const fault = faultOf(() => bind(AssignRoles, query('UserName=ann&username=bob&Roles=a&roles=b')))
  expect([fault.status, fault.message]).toEqual([
    400,
    "'UserName' and 'username' are one field, with different values: send it once",
  ])
  expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual(['UserName', 'Roles'])
})

test.each(['true', 'TRUE', 't', 'T', 'y', 'Y', '1', 'on', 'On'])('N5 %s is true', (text) => {
  expect(bind(HealthCheckRequest, [['SuppressErrorCodes', text]])).toEqual({ SuppressErrorCodes: true })
})

test.each(['false', 'False', 'f', 'n', 'N', '0', 'off', 'OFF'])('N5 %s is false', (text) => {
  expect(bind(HealthCheckRequest, [['SuppressErrorCodes', text]])).toEqual({ SuppressErrorCodes: false })
})

test.each(['yes', 'no', '2', 'abc', ' true', 'constructor', '__proto__', 'toString'])('N5 %s is a 400', (text) => {
  expect(faultOf(() => bind(HealthCheckRequest, [['suppressErrorCodes', text]])).details.fields).toEqual([
    {
      ErrorCode: 'SerializationException',
      FieldName: 'suppressErrorCodes',
      Message: `'${text}' is an Invalid value for 'suppressErrorCodes'`,
    },
  ])
})

test('N5 an empty value counts as unset', () => {
  expect(bind(HealthCheckRequest, query('SuppressErrorCodes=&ExecutionMode&ServerType=App'))).toEqual({
    ServerType: 'App',
  })
  expect(bind(Authenticate, query('UserName='))).toEqual({})
})

test.each([
  ['Roles=a,b', ['a', 'b']],
  ['Roles=a%2Cb', ['a', 'b']],
  ['Roles=[a,b]', ['a', 'b']],
  ['Roles=a&Roles=b', ['a', 'b']],
  ['Roles=[a]&Roles=b,c', ['a', 'b', 'c']],
  ['Roles=["a,b"]', ['a,b']],
  ['Roles="a,b"', ['a,b']],
  ['Roles=["a,b",c]', ['a,b', 'c']],
  ['Roles=["a", "b"]', ['a', 'b']],
  ['Roles=a+b,+c', ['a b', ' c']],
  ['Roles=[]', []],
  ['Roles=O"Brien,{x}', ['O"Brien', '{x}']],
])('N6 %s', (text, roles) => {
  expect(bind(AssignRoles, query(text))).toEqual({ Roles: roles })
})

test.each([
  'Roles=[a',
  'Roles=a,',
  'Roles=,',
  'Roles=["a"',
  'Roles=[a]]',
  'Meta=a',
  'Meta={a}',
  'Meta={constructor:x}',
])('N6 %s is a 400 that names it', (text) => {
  const [name = '', value = ''] = text.split('=')
  expect(faultOf(() => bind(AssignRoles, query(text))).details.fields).toEqual([
    { ErrorCode: 'SerializationException', FieldName: name, Message: `'${value}' is an Invalid value for '${name}'` },
  ])
})

test('N6 maps are JSV, and repeated maps merge into one', () => {
  expect(bind(AssignRoles, query('Meta={k:v,"a,b":"c:d"}&Meta={e:}'))).toEqual({
    Meta: { k: 'v', 'a,b': 'c:d', e: '' },
  })
})

test('H3 an invalid choice names each field as the client wrote it, in one answer', () => {
  const fault = faultOf(() => bind(HealthCheckRequest, query('executionMode=Foo&ServerType=Bar')))
  expect(fault).toMatchObject({ status: 400, errorCode: 'SerializationException' })
  expect(fault.message).toBe("Unable to bind to request 'HealthCheckRequest'")
  expect(fault.details.fields).toEqual([
    {
      ErrorCode: 'SerializationException',
      FieldName: 'executionMode',
      Message: "'Foo' is an Invalid value for 'executionMode'",
    },
    {
      ErrorCode: 'SerializationException',
      FieldName: 'ServerType',
      Message: "'Bar' is an Invalid value for 'ServerType'",
    },
  ])
})

test.each(['ExecutionMode=Basic,Advanced', 'ExecutionMode=0', 'ExecutionMode=4', 'ExecutionMode=01'])(
  'H3 %s is refused',
  (text) => {
    expect(faultOf(() => bind(HealthCheckRequest, query(text))).details.fields).toHaveLength(1)
  },
)

test('H3 a long invalid value is truncated in the message', () => {
  const fault = faultOf(() => bind(HealthCheckRequest, [['ServerType', '😀'.repeat(1000)]]))
  expect(fault.details.fields?.[0]?.Message).toBe(`'${'😀'.repeat(50)}…' is an Invalid value for 'ServerType'`)
})

test('H3 one answer names all missing required fields', () => {
  const fault = faultOf(() => requireFields(HealthCheckRequest, { SuppressErrorCodes: true }))
  expect(fault).toMatchObject({ status: 400, errorCode: 'NotEmpty', message: "'ExecutionMode' must not be empty." })
  expect(fault.details.fields).toEqual([
    {
      ErrorCode: 'NotEmpty',
      FieldName: 'ExecutionMode',
      Message: "'ExecutionMode' must not be empty.",
      Meta: { PropertyName: 'ExecutionMode' },
    },
    {
      ErrorCode: 'NotEmpty',
      FieldName: 'ServerType',
      Message: "'ServerType' must not be empty.",
      Meta: { PropertyName: 'ServerType' },
    },
  ])
  expect(() => requireFields(HealthCheckRequest, { ExecutionMode: 'Basic', ServerType: 'App' })).not.toThrow()
  expect(() => requireFields(AssignRoles, {})).not.toThrow()
})

test('N7 secrets in a query are refused by name, and their values are not repeated', () => {
  const secrets = neverInQuery(operations.authenticate)
  const fault = faultOf(() => refuseInQuery(secrets, query('UserName=a&password=hunter2&Response=hunter2')))
  expect(fault).toMatchObject({ status: 400, errorCode: 'BadRequest' })
  expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual(['password', 'Response'])
  expect(JSON.stringify(fault.details.fields) + fault.message).not.toContain('hunter2')
  for (const name of secrets) {
    expect(() => refuseInQuery(secrets, [[name.toUpperCase(), ' ']])).toThrow(name.toUpperCase())
  }
  expect(() => refuseInQuery(secrets, query('UserName=a&provider=credentials'))).not.toThrow()
  expect(() => refuseInQuery(neverInQuery(operations.healthCheck), query('Password=x'))).not.toThrow()
})

test('N5 N7 an empty secret in a query counts as unset, unless the same name also has a value', () => {
  const secrets = neverInQuery(operations.authenticate)
  for (const name of secrets) {
    expect(() => refuseInQuery(secrets, [[name, '']])).not.toThrow()
    expect(() => refuseInQuery(secrets, query(`${name}=&${name}=x`))).toThrow(name)
    expect(() => refuseInQuery(secrets, query(`${name}=x&${name}=`))).toThrow(name)
  }
  expect(() => refuseInQuery(secrets, query('provider=&State=&UserName=&Password&oauth_verifier='))).not.toThrow()
})

test('N6 an enumeration that occurs several times takes its last value', () => {
  expect(bind(HealthCheckRequest, query('ServerType=App&ServerType=Sql&ServerType='))).toEqual({ ServerType: 'Sql' })
  expect(bind(HealthCheckRequest, query('ServerType=Foo&ServerType=3'))).toEqual({ ServerType: 'FtpApi' })
  const fault = faultOf(() => bind(HealthCheckRequest, query('ServerType=Sql&ServerType=Foo')))
  expect(fault.details.fields?.[0]?.Message).toBe("'Foo' is an Invalid value for 'ServerType'")
})

test('S2 a map whose key occurs twice is refused, in a query as in a body', () => {
  const fault = faultOf(() => bind(AssignRoles, query('Meta={a:1,b:2,a:3}')))
  expect(fault.details.fields?.[0]?.FieldName).toBe('Meta')
  expect(bind(AssignRoles, query('Meta={a:1,A:2}'))).toEqual({ Meta: { a: '1', A: '2' } })
})

test('N7 a later source overrides an earlier one: body, path, query, form', () => {
  const source = (from: string) => ({ UserName: from, [from]: from })
  const all = { form: source('form'), body: source('body'), query: source('query'), path: source('path') }
  expect(merge(all)).toEqual({ UserName: 'form', body: 'body', path: 'path', query: 'query', form: 'form' })
  expect(merge({ ...all, form: undefined })['UserName']).toBe('query')
  expect(merge({ body: source('body'), path: source('path') })['UserName']).toBe('path')
  expect(merge({})).toEqual({})
})

test.each(['a=%', 'a=%zz', 'a=%ff', '%c3=b', 'a=%C0%AF'])(
  '%s is a 400 because its percent-encoding is not UTF-8',
  (text) => {
    expect(faultOf(() => parsePairs(text))).toMatchObject({ status: 400, errorCode: 'BadRequest' })
  },
)

test('parameters are split like those of a form', () => {
  expect(parsePairs('a=b+c&d=%2B%3D&&e&=f&g=h=i&%41=%F0%9F%98%80')).toEqual([
    ['a', 'b c'],
    ['d', '+='],
    ['e', ''],
    ['', 'f'],
    ['g', 'h=i'],
    ['A', '😀'],
  ])
})

test('the query of a client names the fields that it sets', () => {
  const value = {
    ExecutionMode: 'Basic',
    ServerType: 'FtpApi',
    SuppressErrorCodes: true,
    IncludeServerStateInformation: false,
  }
  expect(encodeQuery(HealthCheckRequest, value)).toBe(
    'ExecutionMode=Basic&ServerType=FtpApi&IncludeServerStateInformation=false&SuppressErrorCodes=true',
  )
})
