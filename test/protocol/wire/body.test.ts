import { describe, expect, test } from 'vitest'
import { AssignRoles, Authenticate } from '../../../src/core/protocol/index.ts'
import { readBatch, readBody } from '../../../src/core/protocol/wire/index.ts'
import { asyncFaultOf, faultOf } from './samples.ts'

const bytes = (text: string) => Buffer.from(text)
const json = 'application/json'
const ann = { UserName: 'ann', Roles: ['a', 'b'] }
const multipart = 'multipart/form-data; boundary=----x1'
const part = (name: string, value: string) =>
  `------x1\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`

test.each([
  ['application/json'],
  ['application/json; charset=utf-8'],
  ['Application/JSON;charset="UTF-8"'],
  ['application/json;'],
  ['text/json'],
])('N7 a body of %s is JSON, with or without a byte-order mark', async (type) => {
  expect(await readBody(AssignRoles, type, bytes(JSON.stringify(ann)))).toEqual({ body: ann })
  expect(await readBody(AssignRoles, type, bytes(`\ufeff${JSON.stringify(ann)}`))).toEqual({ body: ann })
})

test('N7 a CSV body is read', async () => {
  expect(await readBody(AssignRoles, 'text/csv', bytes('username,roles\r\nann,"[a,b]"\r\n'))).toEqual({ body: ann })
})

test('N7 a urlencoded body is a form and overrides the query', async () => {
  const form = bytes('username=ann&Roles=a&Roles=b&x=%26')
  expect(await readBody(AssignRoles, 'application/x-www-form-urlencoded', form)).toEqual({ form: ann })
})

test('N7 a multipart body is a form', async () => {
  const body = bytes(`${part('UserName', 'ann')}${part('Roles', 'a')}${part('Roles', 'b')}------x1--\r\n`)
  expect(await readBody(AssignRoles, multipart, body)).toEqual({ form: ann })
})

test('N7 a multipart body from the platform’s FormData is read', async () => {
  const form = new FormData()
  form.append('UserName', 'änn "q"\r\n--')
  form.append('Roles', 'a,b')
  const response = new Response(form)
  const type = response.headers.get('content-type') ?? ''
  const body = new Uint8Array(await response.arrayBuffer())
  expect(await readBody(AssignRoles, type, body)).toEqual({ form: { UserName: 'änn "q"\r\n--', Roles: ['a', 'b'] } })
})

test('N7 a multipart body in .NET’s notation is read: names without quotes, empty parts', async () => {
  const body = bytes(
    '--b 1\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=UserName\r\n\r\nann\r\n' +
      '--b 1\r\ncontent-disposition:form-data;name=Roles\r\n\r\n\r\n' +
      '--b 1\r\nContent-Disposition: form-data; name=Meta\r\n\r\n--b 1--\r\nepilogue',
  )
  expect(await readBody(AssignRoles, 'multipart/form-data; boundary="b 1"', body)).toEqual({
    form: { UserName: 'ann' },
  })
})

test.each([
  ['no boundary', 'multipart/form-data', `${part('UserName', 'a')}------x1--`],
  ['an endless part', multipart, part('UserName', 'a')],
  ['a preamble', multipart, `hello\r\n${part('UserName', 'a')}------x1--`],
  ['no name', multipart, '------x1\r\nContent-Disposition: form-data\r\n\r\na\r\n------x1--'],
  ['no header', multipart, '------x1\r\n\r\na\r\n------x1--'],
  [
    'another disposition',
    multipart,
    '------x1\r\nContent-Disposition: attachment; name="UserName"\r\n\r\na\r\n------x1--',
  ],
  [
    'base64',
    multipart,
    '------x1\r\nContent-Disposition: form-data; name="UserName"\r\nContent-Transfer-Encoding: base64\r\n\r\na\r\n------x1--',
  ],
  ['a long header', multipart, `------x1\r\nX: ${'x'.repeat(2000)}\r\n\r\na\r\n------x1--`],
  ['bare line feeds', multipart, part('UserName', 'a').replaceAll('\r', '')],
])('N7 a multipart body with %s is a 400', async (_what, type, body) => {
  const fault = await asyncFaultOf(() => readBody(AssignRoles, type, bytes(body)))
  expect(fault).toMatchObject({ status: 400, errorCode: 'SerializationException' })
})

test('N7 the files of a multipart form are ignored, whatever their names and contents', async () => {
  const file = (more: string, content: string) =>
    `------x1\r\nContent-Disposition: form-data; name="UserName"; ${more}\r\n\r\n${content}\r\n`
  const body = Buffer.from(
    `${file('filename="x"', 'eve')}${part('UserName', 'ann')}${file("filename*=utf-8''x", '\xff\xfe\0')}${file('filename=""', '')}${file('filename="x"\r\nContent-Type: image/png\r\nContent-Transfer-Encoding: base64', 'AA==')}${part('Roles', 'a')}------x1--`,
    'latin1',
  )
  expect(await readBody(AssignRoles, multipart, body)).toEqual({ form: { UserName: 'ann', Roles: ['a'] } })
  const many = bytes(`${file('filename="x"', '').repeat(1025)}------x1--`)
  expect((await asyncFaultOf(() => readBody(AssignRoles, multipart, many))).status).toBe(400)
})

test('N7 a field that occurs twice in a multipart form is bound as in a query', async () => {
  const body = bytes(`${part('RememberMe', 'maybe')}------x1--`)
  const fault = await asyncFaultOf(() => readBody(Authenticate, multipart, body))
  expect(fault.details.fields?.[0]?.Message).toBe("'maybe' is an Invalid value for 'RememberMe'")
})

test.each([json, 'text/csv', 'application/x-www-form-urlencoded', multipart, 'text/plain', 'image/png', undefined])(
  'N8 a body of %s without bytes is an empty request',
  async (type) => {
    expect(await readBody(Authenticate, type, new Uint8Array())).toEqual({})
  },
)

test.each(['text/plain', 'text/plain;charset=UTF-8', undefined])(
  'N8 a body of %s is ignored on the routes, and read as JSON where the route allows that',
  async (type) => {
    const body = bytes(JSON.stringify(ann))
    expect(await readBody(AssignRoles, type, body)).toEqual({})
    expect(await readBody(AssignRoles, type, body, { plainText: 'json' })).toEqual({ body: ann })
  },
)

test.each(['image/png', 'application/xml', 'application/json; charset=utf-16', 'json', '', 'application/json; ="'])(
  'E2 a body of %j is a 415',
  async (type) => {
    const fault = await asyncFaultOf(() => readBody(AssignRoles, type, bytes('{}')))
    expect(fault).toMatchObject({ status: 415, errorCode: 'UnsupportedMediaType' })
  },
)

describe('S4', () => {
  const refused = async (body: string, type = json) => {
    const { status, details } = await asyncFaultOf(() => readBody(Authenticate, type, bytes(body)))
    expect(status).toBe(400)
    return details.fields?.map(({ FieldName }) => FieldName)
  }
  const roles = (items: readonly string[]) => readBody(AssignRoles, json, bytes(JSON.stringify({ Roles: items })))

  test.each([
    ['a list', '['.repeat(33)],
    ['a list behind a text', `["hunter2",${'['.repeat(33)}`],
    ['an object that is none', `{"Password":"hunter2",${'['.repeat(33)}`],
  ])(
    'S4 P7 excessive depth under no field, %s, is reported for the body, and no value is repeated',
    async (_, body) => {
      const { message, details } = await asyncFaultOf(() => readBody(Authenticate, json, bytes(body)))
      expect([message, details.fields]).toEqual(['The body is nested too deeply', undefined])
    },
  )

  test('S4 JSON nested deeper than 32 is a 400 that names the field', async () => {
    const nested = (depth: number) => `{"UserName":"]}","deep":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
    expect(await readBody(Authenticate, json, bytes(nested(32)))).toEqual({ body: { UserName: ']}' } })
    expect(await refused(nested(33))).toEqual(['deep'])
    const brackets = '['.repeat(40)
    const text = JSON.stringify({ UserName: `"${brackets}`, Password: `\\"${brackets}\\` })
    expect(await readBody(Authenticate, json, bytes(text))).toEqual({ body: JSON.parse(text) })
  })

  test.each(['__proto__', 'constructor', 'prototype', '\\u005f_proto__'])(
    'S4 the key %s is refused at any depth',
    async (key) => {
      const name = JSON.parse(`"${key}"`)
      expect(await refused(`{"${key}":{"UserName":"x"}}`)).toEqual([name])
      expect(await refused(`{"Meta":{"${key}":"x"}}`)).toEqual([name])
      expect(await refused(`{"x":[{"y":[{"${key}":1}]}]}`)).toEqual([name])
    },
  )

  const twice: readonly (readonly [string, string])[] = [
    ['{"UserName":"a","UserName":"b"}', 'UserName'],
    ['{"UserName":"a", "User\\u004eame" : "b"}', 'UserName'],
    ['{"UserName":"a","Password":"x","UserName":null}', 'UserName'],
    ['{"Meta":{"a":"1","b":"2","a":"1"}}', 'a'],
    ['{"unknown":[{},{"x":{"y":1,"\\"":2,"\\u0022":3}}]}', '"'],
    ['{"":1,"":2}', ''],
  ]
  test.each(twice)('S2 a member that occurs twice in %s is a 400 that names it', async (body, name) => {
    expect(await refused(body)).toEqual([name])
    const inBatch = await asyncFaultOf(() => readBatch(AssignRoles, json, bytes(`[{},${body}]`)))
    expect(inBatch.details.fields?.[0]?.FieldName).toBe(name)
  })

  test('N1 a name in two letter cases with one value is accepted, and keys of a map are compared exactly', async () => {
    const text = '{"username":"b","UserName":"b","USERNAME":"b","Meta":{"k":"v","K":"\\"k\\":1"}}'
    expect(await readBody(Authenticate, json, bytes(text))).toEqual({
      body: { UserName: 'b', Meta: { k: 'v', K: '"k":1' } },
    })
    const names = bytes('[{"UserName":"a"},{"UserName":"a"}]')
    expect(await readBatch(AssignRoles, json, names)).toHaveLength(2)
    expect(await readBody(Authenticate, json, bytes('{"x":["x","x",{"x":"x"}],"UserName":"x"}'))).toEqual({
      body: { UserName: 'x' },
    })
  })

  test.each([
    [json, '{"userName":"a","UserName":"b"}'],
    [json, '{"UserName":"b","USERNAME":"a","userName":"b"}'],
    [json, '{"UserName":null,"username":"a"}'],
    ['application/jsv', '{username:a,UserName:b}'],
    ['text/csv', 'username,UserName\na,b'],
    ['application/x-www-form-urlencoded', 'username=a&UserName=b'],
    [multipart, `${part('username', 'a')}${part('UserName', 'b')}------x1--\r\n`],
  ])('N1 two spellings of one field with different values are a 400 that names both: %s %s', async (type, text) => {
    const fault = await asyncFaultOf(() => readBody(Authenticate, type, bytes(text)))
    expect([fault.status, fault.details.fields?.map(({ FieldName }) => FieldName.toLowerCase())]).toEqual([
      400,
      ['username'],
    ])
    expect(fault.message).toMatch(
      /^'UserName' and 'user[nN]ame' are one field|^'UserName' and 'USERNAME' are one field/,
    )
    expect(fault.message).toContain('with different values')
  })

  test('S2 a column that occurs twice in a CSV body is a 400 that names it', async () => {
    expect(await refused('UserName,Password,UserName\na,b,c', 'text/csv')).toEqual(['UserName'])
    expect(await readBody(Authenticate, 'text/csv', bytes('username,UserName\nb,b'))).toEqual({
      body: { UserName: 'b' },
    })
  })

  test('S4 bytes that are not UTF-8 are refused', async () => {
    const bad = Buffer.concat([bytes('{"UserName":"'), Buffer.from([0xc3, 0x28]), bytes('"}')])
    for (const type of [json, 'text/csv', 'application/x-www-form-urlencoded']) {
      const fault = await asyncFaultOf(() => readBody(Authenticate, type, bad))
      expect(fault.message).toBe(
        `Could not deserialize '${type}' request using 'Authenticate': the body is not valid UTF-8`,
      )
    }
    const form = Buffer.concat([bytes(part('UserName', '').slice(0, -2)), Buffer.from([0xff]), bytes('\r\n------x1--')])
    expect((await asyncFaultOf(() => readBody(Authenticate, multipart, form))).status).toBe(400)
  })

  test('S4 lists have at most 256 entries, names at most 128 characters', async () => {
    const many = Array.from({ length: 256 }, (_, index) => `r${index}`)
    expect(await roles(many)).toEqual({ body: { Roles: many } })
    expect((await asyncFaultOf(() => roles([...many, 'x']))).details.fields).toEqual([
      { ErrorCode: 'BadRequest', FieldName: 'Roles', Message: "'Roles' may have at most 256 entries" },
    ])
    const maxName = 'n'.repeat(128)
    expect(await roles([maxName])).toEqual({ body: { Roles: [maxName] } })
    expect((await asyncFaultOf(() => roles([`${maxName}n`]))).details.fields?.[0]?.FieldName).toBe('Roles')
    expect(await refused(JSON.stringify({ UserName: `${maxName}n`, provider: `${maxName}n` }))).toEqual([
      'provider',
      'UserName',
    ])
    expect(await readBody(Authenticate, json, bytes(JSON.stringify({ AccessToken: 'n'.repeat(4000) })))).toHaveProperty(
      'body.AccessToken',
    )
  })

  test('S4 Meta has at most 64 entries of 1,024 characters', async () => {
    const meta = (count: number, value: string) =>
      JSON.stringify({ Meta: Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value])) })
    expect(await readBody(Authenticate, json, bytes(meta(64, '😀'.repeat(1024))))).toHaveProperty('body.Meta.k63')
    expect(await refused(meta(65, ''))).toEqual(['Meta'])
    expect(await refused(meta(1, '😀'.repeat(1025)))).toEqual(['Meta'])
    expect(await refused(JSON.stringify({ Meta: { ['k'.repeat(129)]: '' } }))).toEqual(['Meta'])
    expect(await refused(`Meta={a:${'x'.repeat(1025)}}`, 'application/x-www-form-urlencoded')).toEqual(['Meta'])
    expect(await refused(`Meta\n{a:${'x'.repeat(1025)}}`, 'text/csv')).toEqual(['Meta'])
  })

  test('S4 a form has at most 1,024 parameters', async () => {
    const fields = Array.from({ length: 1024 }, (_, index) => `x${index}=`).join('&')
    const form = 'application/x-www-form-urlencoded'
    expect(await readBody(Authenticate, form, bytes(fields))).toEqual({ form: {} })
    expect(await refused(`${fields}&y=`, form)).toBeUndefined()
    expect(await refused(`${part('a', '').repeat(1025)}------x1--`, multipart)).toBeUndefined()
  })
})

describe('R3', () => {
  test('R3 a batch is an array whose requests are read separately', async () => {
    const batch = await readBatch(
      AssignRoles,
      'application/json',
      bytes('[{"username":"a"},{"UserName":5},7,{"Roles":["b"]}]'),
    )
    expect(batch).toHaveLength(4)
    expect(batch[0]?.()).toEqual({ UserName: 'a' })
    expect(faultOf(() => batch[1]?.()).details.fields?.[0]?.FieldName).toBe('UserName')
    expect(faultOf(() => batch[2]?.()).message).toMatch(/^Could not deserialize 'application\/json'/)
    expect(batch[3]?.()).toEqual({ Roles: ['b'] })
  })

  test('R3 a batch of more than 64 requests, or none at all, is a 400', async () => {
    const batch = (count: number) =>
      readBatch(AssignRoles, 'application/json', bytes(JSON.stringify(Array(count).fill({}))))
    expect(await batch(64)).toHaveLength(64)
    expect((await asyncFaultOf(() => batch(65))).status).toBe(400)
    for (const body of ['{}', '[{"__proto__":1}]']) {
      expect((await asyncFaultOf(() => readBatch(AssignRoles, 'application/json', bytes(body)))).status).toBe(400)
    }
  })

  test('R3 a batch is JSON even where a client labels it plain text or not at all, and an empty body has no requests', async () => {
    const one = bytes('[{}]')
    for (const type of ['application/json; charset=utf-8', 'text/json', 'text/plain;charset=UTF-8', undefined]) {
      expect(await readBatch(AssignRoles, type, one)).toHaveLength(1)
      expect(await readBatch(AssignRoles, type, bytes(''))).toEqual([])
    }
    for (const type of [
      'application/xml',
      'application/x-www-form-urlencoded',
      'application/json; charset=utf-16',
      ';',
    ]) {
      expect((await asyncFaultOf(() => readBatch(AssignRoles, type, one))).status).toBe(415)
    }
  })
})
