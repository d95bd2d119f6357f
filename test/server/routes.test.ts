import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OperationSpec, operations, replyRoutes } from '../../src/core/protocol/index.ts'
import { type OwnPage, ownPages, router } from '../../src/core/server/routes.ts'
import { ask, failing, openSite, question, type Site, startSite, withSite } from './site.ts'

let site: Site
beforeAll(async () => {
  const link = async () => ({ receiver: 'chat', beganAt: 0, confirmedAt: undefined })
  site = await startSite({
    runtime: { drillLinks: { read: link, confirm: link } },
    options: { badges: ['credentials', 'credentials/credentials'] },
  })
})
afterAll(() => site.server.stop())

const query = question.slice('/healthcheck'.length)

describe('R1 the routes', () => {
  test.each([
    '/healthcheck',
    '/HealthCheck',
    '/healthcheck/',
    '/healthcheck///',
    '/healthcheck.json',
    '/HEALTHCHECK.JSON/',
    '/%68ealthcheck',
  ])('R1 %s is the health check', async (path) => {
    const got = await ask(site.port, `${path}${query}`)
    expect(got.status).toBe(200)
    expect(got.json.Status).toBe('Success')
  })

  test('R1 doubled slashes within a path do not matter', async () => {
    const got = await ask(site.port, '/auth//credentials//', { method: 'POST' })
    expect(got.status).toBe(501)
    expect(site.calls.at(-1)?.request).toEqual({ provider: 'credentials' })
  })

  test('R1 each operation of the table answers at its path and with a suffix', async () => {
    for (const path of ['/auth', '/auth/credentials', '/assignroles', '/unassignroles']) {
      for (const [suffix, type] of [
        ['', 'application/json'],
        ['.json', 'application/json'],
        ['.csv', 'text/csv'],
        ['.jsv', 'application/jsv'],
      ] as const) {
        const got = await ask(site.port, `${path}${suffix}`, { method: 'POST' })
        expect([path + suffix, got.status]).toEqual([path + suffix, 501])
        expect(got.headers['content-type']).toContain(type)
        expect(got.text).toContain('NotImplementedException')
      }
    }
  })

  test.each(['/healthcheck.xml', '/auth/credentials.xml', '/healthcheckjson', '/nothing', '/livez.json', '/auth%2Fx'])(
    'R1 %s is a 404 with a ResponseStatus',
    async (path) => {
      const got = await ask(site.port, path)
      expect(got.status).toBe(404)
      expect(got.json.ResponseStatus?.ErrorCode).toBe('NotFound')
    },
  )

  test.each([
    '/xml/reply/HealthCheckRequest',
    '/xml/oneway/AssignRoles',
    '/XML/reply/Foo',
    '/healthcheck.xml',
    '/auth/credentials.xml',
    '/api/AssignRoles.xml',
  ])('F1 %s is a 404 that names the formats', async (path) => {
    const got = await ask(site.port, path, { method: 'POST', body: '<a/>' })
    expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([404, 'NotFound'])
    expect(got.json.ResponseStatus?.Message).toMatch(/XML is not offered.*JSON.*JSV.*CSV/)
  })

  test('R1 an encoded slash is part of a name and never divides it', async () => {
    const got = await ask(site.port, '/auth/a%2fb', { method: 'POST' })
    expect(got.status).toBe(501)
    expect(site.calls.at(-1)?.request).toEqual({ provider: 'a/b' })
  })

  test('R1 a path that is not percent-encoded UTF-8 is a 400', async () => {
    expect((await ask(site.port, '/auth/%ff')).status).toBe(400)
    expect((await ask(site.port, '/healthcheck?ExecutionMode=%zz')).status).toBe(400)
  })
})

describe('R1 every row of the table', () => {
  const ofOperations = Object.values<OperationSpec>(operations).flatMap(({ name, routes, replyVerbs }) => [
    ...routes.flatMap(({ verbs, path }) =>
      ['', '.json'].flatMap((suffix) => verbs.map((verb) => [verb, path + suffix])),
    ),
    ...replyRoutes.flatMap(({ prefix }) => replyVerbs.map((verb) => [verb, `${prefix}/${name}`])),
  ])
  const ofPages = Object.values<OwnPage>(ownPages).flatMap(({ paths }) => paths.map((path) => ['GET', path]))

  test.each([...ofOperations, ...ofPages] as [string, string][])('R1 %s %s is served', async (method, path) => {
    const { status } = await ask(site.port, path.replaceAll(/\{\w+\}/g, 'credentials'), { method })
    expect([404, 405]).not.toContain(status)
  })

  test('R1 a path may have parameters in any of its segments', () => {
    const { endSession } = operations
    const routes = [
      { verbs: ['POST'], path: '/users/{UserName}/sessions/{Id}' },
      { verbs: ['GET'], path: '/users/{UserName}/sessions', dots: true },
    ] as const
    const match = router({ endSession: { ...endSession, routes } })
    const pairs = (path: string) => {
      const row = match(path)
      return row.kind === 'operation' ? [row.label, row.pathValues, row.format] : undefined
    }
    expect(pairs('/Users/Ann%2Fx/sessions/3f.csv')).toEqual([
      routes[0].path,
      [
        ['UserName', 'Ann/x'],
        ['Id', '3f'],
      ],
      'csv',
    ])
    expect(pairs('/users/ann.b/sessions')).toEqual([routes[1].path, [['UserName', 'ann.b']], undefined])
    expect(pairs('/users/ann/SESSIONS.json')).toEqual([routes[1].path, [['UserName', 'ann']], 'json'])
    expect(() => match('/users/ann')).toThrow('There is nothing at /users/ann')
    expect(() => match('/users/ann/keys')).toThrow('There is nothing at /users/ann/keys')
  })
})

describe('R2 the pre-defined routes', () => {
  test.each(['/json/reply/HealthCheckRequest', '/json/oneway/healthcheckrequest', '/api/HEALTHCHECKREQUEST'])(
    'R2 %s answers JSON, by GET and by POST, whatever Accept says',
    async (path) => {
      const headers = { accept: 'text/csv' }
      const got = await ask(site.port, `${path}${query}`, { headers })
      expect(got.json.Status).toBe('Success')
      const body = JSON.stringify({ executionMode: 'Basic', servertype: 'Sql' })
      const posted = await ask(site.port, path, { method: 'POST', headers, body })
      expect(posted.json.Status).toBe('Success')
    },
  )

  test.each(['/csv/reply/HealthCheckRequest', '/csv/oneway/HealthCheckRequest', '/api/HealthCheckRequest.csv'])(
    'R2 %s answers CSV',
    async (path) => {
      const got = await ask(site.port, `${path}${query}`, { headers: { accept: 'application/json' } })
      expect(got.headers['content-type']).toBe('text/csv; charset=utf-8')
      expect(got.headers['content-disposition']).toBe('attachment;filename="HealthCheckRequest.csv"')
    },
  )

  test('R2 a CSV body is read', async () => {
    const got = await ask(site.port, '/csv/reply/HealthCheckRequest', {
      method: 'POST',
      headers: { 'content-type': 'text/csv' },
      body: 'ExecutionMode,ServerType\r\nAdvanced,Ftp\r\n',
    })
    expect(got.status).toBe(200)
    expect(site.calls.at(-1)?.request).toEqual({ ExecutionMode: 'Advanced', ServerType: 'Ftp' })
  })

  test('R2 a link cannot change roles', async () => {
    const got = await ask(site.port, '/json/reply/AssignRoles?UserName=eve&Roles=Admin')
    expect(got.status).toBe(405)
    expect(got.headers.allow).toBe('POST, OPTIONS')
    expect(got.json.ResponseStatus?.ErrorCode).toBe('NotImplementedException')
    expect(got.json.ResponseStatus?.Message).toMatch(/^Could not find method named Get\(AssignRoles\)/)
  })

  test.each(['/json/reply/Foo', '/api/Foo', '/csv/reply/Foo', '/json/reply/HealthCheckRequest.json'])(
    'R2 %s is an unknown operation',
    async (path) => {
      const got = await ask(site.port, path, { method: 'POST' })
      expect(got.status).toBe(405)
      expect(got.json.ResponseStatus?.ErrorCode).toBe('NotImplementedException')
      const name = path.slice(path.lastIndexOf('/') + 1)
      expect(got.json.ResponseStatus?.Message).toBe(`The operation '${name}' does not exist for this service`)
    },
  )
})

describe('F6 JSV', () => {
  const jsv = 'application/jsv; charset=utf-8'
  const jsvBody = '{ExecutionMode:Basic,ServerType:Sql}'

  test.each([
    ['/healthcheck.jsv', undefined],
    ['/HEALTHCHECK.JSV/', 'application/json'],
    ['/healthcheck?format=jsv', 'text/csv'],
    ['/healthcheck', 'application/jsv'],
    ['/healthcheck', 'text/jsv'],
    ['/jsv/reply/HealthCheckRequest', 'application/json'],
    ['/JSV/OneWay/healthcheckrequest', undefined],
    ['/api/HealthCheckRequest.jsv', 'application/json'],
    ['/api/HealthCheckRequest?format=jsv', undefined],
  ])('F6 %s with Accept %s answers in JSV', async (path, accept) => {
    const target = path.includes('?') ? `${path}&${query.slice(1)}` : `${path}${query}`
    const got = await ask(site.port, target, { headers: accept === undefined ? {} : { accept } })
    expect([got.status, got.headers['content-type']]).toEqual([200, jsv])
    expect(got.headers['content-disposition']).toBeUndefined()
    expect(got.text).toMatch(/^\{Status:Success,StatusMessage:"Sql is healthy: 1 monitor passed",CorrelationId:/)
    expect(got.text).toContain('ExecutionMetrics:{StartDateTime:2026-01-02T03:04:05.678Z,')
    expect(got.text).toMatch(/Duration:PT0\.0151S\}\}$/)
  })

  test.each(['/jsv/reply/HealthCheckRequest', '/api/HealthCheckRequest.jsv', '/jsv/oneway/HealthCheckRequest'])(
    'F6 a JSV body is read at %s, as JsvServiceClient sends it',
    async (path) => {
      const headers = { 'content-type': 'application/jsv', accept: 'application/jsv' }
      const got = await ask(site.port, path, { method: 'POST', headers, body: jsvBody })
      expect([got.status, got.headers['content-type']]).toEqual([200, jsv])
      expect(site.calls.at(-1)?.request).toEqual({ ExecutionMode: 'Basic', ServerType: 'Sql' })
    },
  )

  test('F6 a JSV body is read on the routes, and beats neither the path nor the query', async () => {
    const headers = { 'content-type': 'text/jsv' }
    await ask(site.port, '/auth/credentials?RememberMe=false', {
      method: 'POST',
      headers,
      body: '{provider:body,UserName:ann,RememberMe:true,Password:"a,b"}',
    })
    const values = { provider: 'credentials', UserName: 'ann', RememberMe: false, Password: 'a,b' }
    expect(site.calls.at(-1)?.request).toEqual(values)
  })

  test('F6 H1 a failed check is a 503 in JSV with its ResponseStatus last', async () => {
    await withSite({ health: async (_request, call) => failing(call) }, async ({ port }) => {
      const got = await ask(port, `/jsv/reply/HealthCheckRequest${query}`)
      expect([got.status, got.headers['content-type']]).toEqual([503, jsv])
      expect(got.text).toMatch(/^\{Status:Failure,.*,ResponseStatus:\{ErrorCode:HealthCheckFailed,.*\}\}$/)
      const suppressed = await ask(port, `/jsv/reply/HealthCheckRequest${query}&SuppressErrorCodes=true`)
      expect(suppressed.status).toBe(200)
      expect(suppressed.text).not.toContain('ResponseStatus')
    })
  })

  test('F6 errors are JSV, and a callback does not change a JSV path', async () => {
    const got = await ask(site.port, '/healthcheck.jsv?callback=cb&ServerType=Foo')
    expect([got.status, got.headers['content-type']]).toEqual([400, jsv])
    expect(got.text).toMatch(/^\{ResponseStatus:\{ErrorCode:SerializationException,.*FieldName:ServerType,/)
  })
})

describe('F1 XML', () => {
  test('F1 a request that accepts only XML is a 406 that names the formats, and nothing is executed', async () => {
    const before = site.calls.length
    for (const accept of ['application/xml', 'text/xml, application/xml;q=0.9']) {
      for (const [method, path] of [
        ['GET', question],
        ['POST', '/auth/credentials'],
        ['POST', '/assignroles'],
      ] as const) {
        const got = await ask(site.port, path, { method, headers: { accept } })
        expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([406, 'NotAcceptable'])
        expect(got.headers['content-type']).toBe('application/json; charset=utf-8')
        expect(got.json.ResponseStatus?.Message).toMatch(/application\/json.*application\/jsv.*text\/csv/)
      }
    }
    expect(site.calls).toHaveLength(before)
  })

  test('F1 a request that also accepts something else is answered, in JSON if there is nothing better', async () => {
    const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
    for (const accept of [browser, 'application/xml, text/plain', 'application/xml, application/json;q=0.1']) {
      expect((await ask(site.port, question, { headers: { accept } })).json.Status).toBe('Success')
    }
    const reply = `/json/reply/HealthCheckRequest${query}`
    expect((await ask(site.port, reply, { headers: { accept: 'application/xml' } })).json.Status).toBe('Success')
  })
})

describe('R4 verbs', () => {
  test.each([
    ['POST', '/healthcheck', 'GET, HEAD, OPTIONS'],
    ['PUT', '/healthcheck', 'GET, HEAD, OPTIONS'],
    ['GET', '/assignroles', 'POST, OPTIONS'],
    ['HEAD', '/assignroles', 'POST, OPTIONS'],
    ['PATCH', '/auth/credentials', 'GET, HEAD, OPTIONS, POST, DELETE'],
    ['DELETE', '/livez', 'GET, HEAD, OPTIONS'],
  ])('R4 %s %s is a 405 that lists the allowed verbs', async (method, path, allow) => {
    const got = await ask(site.port, path, { method })
    expect(got.status).toBe(405)
    expect(got.headers.allow).toBe(allow)
    if (method !== 'HEAD') expect(got.json.ResponseStatus?.ErrorCode).toBe('MethodNotAllowed')
  })

  test('R4 HEAD has the status and headers of GET and no body', async () => {
    const got = await ask(site.port, question)
    const head = await ask(site.port, question, { method: 'HEAD' })
    expect(head.status).toBe(200)
    expect(head.text).toBe('')
    expect(head.headers['content-type']).toBe(got.headers['content-type'])
    expect(head.headers['content-length']).toBe(got.headers['content-length'])
  })

  test('R4 X-Http-Method-Override applies to POST alone', async () => {
    const override = (value: string) => ({ 'x-http-method-override': value })
    const got = await ask(site.port, '/healthcheck', {
      method: 'POST',
      headers: { ...override('get'), 'content-type': 'application/x-www-form-urlencoded' },
      body: 'ExecutionMode=Basic&ServerType=Sql',
    })
    expect(got.json.Status).toBe('Success')
    expect((await ask(site.port, '/assignroles', { headers: override('POST') })).status).toBe(405)
    expect((await ask(site.port, '/healthcheck', { method: 'POST', headers: override('TRACE') })).status).toBe(405)
    for (const odd of ['no verb', 'GET, POST', '']) {
      const got = await ask(site.port, '/assignroles', { method: 'POST', headers: override(odd), body: '{}' })
      expect(got.status, odd).toBe(400)
      expect(got.json.ResponseStatus?.Message).toContain('X-Http-Method-Override')
    }
  })
})

describe('R5 OPTIONS', () => {
  test('R5 a known route answers 200 with Allow and an empty body', async () => {
    const got = await ask(site.port, '/auth/credentials', { method: 'OPTIONS' })
    expect(got.status).toBe(200)
    expect(got.text).toBe('')
    expect(got.headers.allow).toBe('GET, HEAD, OPTIONS, POST, DELETE')
    expect(Object.keys(got.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    expect((await ask(site.port, '/nothing', { method: 'OPTIONS' })).status).toBe(404)
  })
})

describe('N7 the sources of a request', () => {
  test('N7 secrets are refused in a query, and the log does not repeat them', async () => {
    const { port, log, calls } = await openSite({})
    const got = await ask(port, '/auth?UserName=mallory&pAssWord=hunter2', { method: 'POST' })
    expect(got.status).toBe(400)
    expect(got.json.ResponseStatus?.Errors[0]?.FieldName).toBe('pAssWord')
    expect(got.text + JSON.stringify(log)).not.toContain('hunter2')
    expect(JSON.stringify(log)).not.toContain('mallory')
    expect(calls).toEqual([])
  })

  test('N7 the path overrides the body and the query overrides the path', async () => {
    const options = { method: 'POST', headers: { 'content-type': 'application/json' } }
    await ask(site.port, '/auth/credentials', { ...options, body: '{"provider":"body","UserName":"x"}' })
    expect(site.calls.at(-1)?.request).toEqual({ provider: 'credentials', UserName: 'x' })
    await ask(site.port, '/auth/credentials?provider=query', { ...options, body: '{"UserName":"x"}' })
    expect(site.calls.at(-1)?.request).toEqual({ provider: 'query', UserName: 'x' })
  })

  /** Where each operation that names a user, an agent or an object can name it twice. */
  test.each([
    ['POST', '/assignroles?UserName=eve', { UserName: 'bob', Roles: ['Admin'] }, 'UserName'],
    ['POST', '/unassignroles?username=eve', { userName: 'bob', Roles: ['Admin'] }, 'UserName'],
    ['POST', '/auth?UserName=eve', { UserName: 'bob' }, 'UserName'],
    ['POST', '/heartbeats/nightly?Name=other', {}, 'Name'],
    ['POST', '/heartbeats/nightly', { Name: 'other' }, 'Name'],
    ['GET', '/drills/1?Id=2', undefined, 'Id'],
  ] as const)(
    'N7 %s %s with another name in the body or the path is a 400 that names %s',
    async (method, path, body, field) => {
      const before = site.calls.length
      const headers = { 'content-type': 'application/json' }
      const got = await ask(site.port, path, { method, ...(body ? { headers, body: JSON.stringify(body) } : {}) })
      expect([got.status, got.json.ResponseStatus?.Errors[0]?.FieldName]).toEqual([400, field])
      expect(got.json.ResponseStatus?.Message).toMatch(/differs between the (?:body|path|query) and the (?:path|query)/)
      expect(site.calls.length).toBe(before)
    },
  )

  test('N7 the same name twice, and an empty one beside it, is one name', async () => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ UserName: 'bob', Roles: ['Editor'] })
    for (const path of ['/assignroles?UserName=bob', '/assignroles?UserName=']) {
      await ask(site.port, path, { method: 'POST', headers, body })
      expect(site.calls.at(-1)?.request).toMatchObject({ UserName: 'bob' })
    }
  })

  test('N8 no body with a JSON content type is an empty request', async () => {
    for (const method of ['POST', 'DELETE']) {
      const headers = { 'content-type': 'application/json', 'content-length': '0' }
      expect((await ask(site.port, '/auth', { method, headers })).status).toBe(501)
      expect(site.calls.at(-1)?.request).toEqual({})
    }
  })
})
