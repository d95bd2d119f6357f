import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Accounts, bearer, by, startAccounts } from './accounts.ts'
import { ask, failing, type Got, healthy, openSite, type SiteOptions } from './site.ts'

const send = (port: number, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Got> =>
  ask(port, path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
const health = (type = 'Sql', more: object = {}) => ({ ExecutionMode: 'Basic', ServerType: type, ...more })
const done = (got: Got) => [got.status, got.headers['x-autobatch-completed']]
const metaOf = (got: Got) => (got.json.ResponseStatus as { readonly Meta?: unknown } | undefined)?.Meta

/** Mongo is down; everything else is well. */
const mongoDown: SiteOptions = {
  health: async (request, call) => (request.ServerType === 'Mongo' ? failing(call) : healthy(call)),
}

describe('R3 role changes', () => {
  let site: Accounts
  let ann: Record<string, string>
  beforeAll(async () => {
    site = await startAccounts()
    ann = bearer((await site.signIn()).BearerToken)
  })
  afterAll(() => site.close())
  const rolesOf = async (name: string) => (await site.admin.roles.show(name)).roles

  test.each([
    '/api/AssignRoles[]',
    '/api/assignroles%5B%5D',
    '/api/AssignRoles[].json',
    '/json/reply/AssignRoles[]',
    '/json/reply/ASSIGNROLES%5b%5d/',
    '/json/oneway/AssignRoles[]',
  ])('R3 POST %s takes an array and answers with an array', async (path) => {
    await site.admin.users.add({ userName: path.slice(0, 40), password: 'violet-harbour-42' }, by)
    const change = (role: string) => ({ UserName: path.slice(0, 40), Roles: [role] })
    const got = await send(site.port, path, [change('One'), change('Two')], ann)
    expect(done(got)).toEqual([200, '2'])
    expect(got.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(got.json).toEqual([
      { AllRoles: ['One'], AllPermissions: [] },
      { AllRoles: ['One', 'Two'], AllPermissions: [] },
    ])
  })

  test('R3 the first failure ends the batch with its status, body and index, and earlier changes remain', async () => {
    const got = await send(
      site.port,
      '/api/AssignRoles[]',
      [{ UserName: 'Ned', Roles: ['Before'] }, { UserName: 'nobody' }, { UserName: 'Ned', Roles: ['After'] }],
      ann,
    )
    expect(done(got)).toEqual([404, '1'])
    expect(got.json).toEqual({
      AllRoles: [],
      AllPermissions: [],
      ResponseStatus: { ErrorCode: 'NotFound', Message: 'nobody', Errors: [], Meta: { AutoBatchIndex: '1' } },
    })
    expect(await rolesOf('Ned')).toContain('Before')
    expect(await rolesOf('Ned')).not.toContain('After')
  })

  test('R3 a request that cannot be parsed fails in its turn, not before', async () => {
    for (const bad of [7, { UserName: 5 }, { Roles: 'x' }]) {
      const got = await send(site.port, '/json/reply/AssignRoles[]', [{ UserName: 'Ned', Roles: ['Read'] }, bad], ann)
      expect(done(got)).toEqual([400, '1'])
      expect(metaOf(got)).toEqual({ AutoBatchIndex: '1' })
    }
    expect(await rolesOf('Ned')).toContain('Read')
  })

  test('R3 each request is authorized separately: a caller that revokes its own Admin is refused from there on', async () => {
    await site.admin.users.add({ userName: 'Eve', password: 'violet-harbour-42', roles: ['Admin'] }, by)
    const eve = bearer((await site.signIn({ UserName: 'Eve' })).BearerToken)
    const drop = { UserName: 'Eve', Roles: ['Admin'] }
    const got = await send(site.port, '/api/UnAssignRoles[]', [drop, { UserName: 'Ann', Roles: ['Editor'] }], eve)
    expect(done(got)).toEqual([403, '1'])
    expect(metaOf(got)).toEqual({ AutoBatchIndex: '1' })
    expect(await rolesOf('Ann')).toContain('Editor')
  })

  test('R3 a caller that is anonymous or lacks Admin changes nothing', async () => {
    const change = [{ UserName: 'Ned', Roles: ['Admin'] }]
    const ned = bearer((await site.signIn({ UserName: 'Ned' })).BearerToken)
    expect(done(await send(site.port, '/api/AssignRoles[]', change))).toEqual([401, '0'])
    expect(done(await send(site.port, '/api/AssignRoles[]', change, ned))).toEqual([403, '0'])
    expect(await rolesOf('Ned')).not.toContain('Admin')
  })

  test('R3 T6 a page of another site cannot make a browser send a batch', async () => {
    const { cookie } = await site.signIn()
    const headers = { cookie, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
    const got = await send(site.port, '/api/AssignRoles[]', [{ UserName: 'Ned', Roles: ['Admin'] }], headers)
    expect(got.status).toBe(403)
    expect(await rolesOf('Ned')).not.toContain('Admin')
  })

  test('R3 each request of a batch is audited, counted and logged separately', async () => {
    const before = (await site.admin.audit.list({ limit: 1 }))[0]?.id ?? 0
    const logged = site.log.length
    const headers = { ...ann, 'x-correlation-id': 'batch-7' }
    const changes = ['A1', 'A2', 'A3'].map((role) => ({ UserName: 'Ned', Roles: [role] }))
    expect((await send(site.port, '/api/AssignRoles[]', changes, headers)).status).toBe(200)
    const entries = (await site.admin.audit.list({ limit: 10 })).filter(({ id }) => id > before)
    expect(entries.map(({ who, target, correlationId }) => [who, target, correlationId])).toEqual(
      Array(3).fill(['Ann', 'Ned', 'batch-7']),
    )
    const lines = site.log.slice(logged).filter(({ msg }) => msg === 'answered in a batch')
    expect(lines.map(({ request, index, status }) => [request, index, status])).toEqual([
      ['AssignRoles', 0, 200],
      ['AssignRoles', 1, 200],
      ['AssignRoles', 2, 200],
    ])
    const metrics = (await ask(site.port, '/metrics')).text
    const counted = /^svc_http_batched_requests_total\{request="AssignRoles",status="200"\} (\d+)$/m.exec(metrics)
    expect(Number(counted?.[1])).toBeGreaterThanOrEqual(3)
    expect(metrics).toMatch(
      /^svc_http_requests_total\{route="\/api\/\{Request\}\[\]",method="POST",status="200"\} \d+$/m,
    )
  })
})

describe('R3 accepted bodies', () => {
  test.each(['Authenticate', 'GetAccessToken', 'ReportHeartbeat'])(
    'R3 %s is a 400 before anything is read or executed',
    async (name) => {
      const { port, calls } = await openSite({})
      for (const path of [`/api/${name}[]`, `/json/reply/${name}%5B%5D`]) {
        const got = await send(port, path, Array(64).fill({ UserName: 'a', Password: 'b' }))
        expect(got.status).toBe(400)
        expect(got.json.ResponseStatus?.Message).toMatch(/AssignRoles, UnAssignRoles, HealthCheckRequest$/)
      }
      expect(calls).toEqual([])
    },
  )

  test('R3 64 requests are accepted; 65 are a 400, and none of them is executed', async () => {
    const { port, calls } = await openSite({})
    expect(done(await send(port, '/api/HealthCheckRequest[]', Array(64).fill(health())))).toEqual([200, '64'])
    expect(calls).toHaveLength(64)
    expect((await send(port, '/api/HealthCheckRequest[]', Array(65).fill(health()))).status).toBe(400)
    expect(calls).toHaveLength(64)
  })

  test('R3 an empty array is answered with an empty array, and anything but an array is a 400', async () => {
    const { port, calls } = await openSite({})
    for (const none of ['[]', '']) {
      const got = await send(port, '/api/HealthCheckRequest[]', none)
      expect([...done(got), got.text]).toEqual([200, '0', '[]'])
    }
    for (const bad of ['{}', 'null', '[', '[{"__proto__":1}]']) {
      expect((await send(port, '/api/HealthCheckRequest[]', bad)).status).toBe(400)
    }
    expect(calls).toEqual([])
  })

  test.each([
    ['PUT', '/api/HealthCheckRequest[]', 'Could not find method named Put(HealthCheckRequest[])'],
    ['DELETE', '/csv/reply/AssignRoles[]', 'Could not find method named Delete(AssignRoles[])'],
    ['POST', '/api/Foo[]', "The operation 'Foo[]' does not exist for this service"],
    ['POST', '/api/AssignRoles[][]', "The operation 'AssignRoles[][]' does not exist for this service"],
  ])('R3 %s %s is a 405', async (method, path, message) => {
    const { port } = await openSite({})
    const got = await ask(port, path, { method })
    expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([405, 'NotImplementedException'])
    expect(got.json.ResponseStatus?.Message).toContain(message)
  })

  test('R3 a batch is answered in the format of its path whatever Accept says, and reads plain text as JSON', async () => {
    const { port } = await openSite({})
    const headers = { 'content-type': 'text/plain;charset=UTF-8', accept: 'text/csv' }
    for (const query of ['', '?format=csv', '?format=prtg', '?callback=cb']) {
      const got = await send(port, `/api/HealthCheckRequest[]${query}`, [health()], headers)
      expect(done(got)).toEqual([200, '1'])
      expect(got.headers['content-type']).toBe('application/json; charset=utf-8')
    }
    const xml = { 'content-type': 'application/xml' }
    expect((await send(port, '/api/HealthCheckRequest[]', '<a/>', xml)).status).toBe(415)
  })

  test.each([
    ['/csv/reply/HealthCheckRequest[]', 'text/csv', 'ExecutionMode,ServerType\r\nBasic,Sql\r\nBasic,Mongo\r\n'],
    ['/csv/oneway/HealthCheckRequest%5B%5D', 'application/json', [health(), health('Mongo')]],
    ['/api/HealthCheckRequest[].csv', 'application/json', [health(), health('Mongo')]],
  ])('R3 POST %s answers a header row and a row for each request', async (path, type, body) => {
    const { port, calls } = await openSite({})
    const got = await send(port, path, body, { 'content-type': type })
    expect(done(got)).toEqual([200, '2'])
    expect(got.headers['content-type']).toBe('text/csv; charset=utf-8')
    expect(got.headers['content-disposition']).toBe('attachment;filename="HealthCheckRequest.csv"')
    expect(got.text).toMatch(/^ServerState,Status,.*\r\n,Success,.*\r\n,Success,.*\r\n$/)
    expect(calls.map(({ request }) => request)).toEqual([health(), health('Mongo')])
  })

  test.each([
    ['/jsv/reply/HealthCheckRequest[]', 'application/jsv', '[{ExecutionMode:Basic,ServerType:Sql},{ServerType:App}]'],
    ['/api/HealthCheckRequest[].jsv', 'application/json', [health(), { ServerType: 'App' }]],
  ])('R3 POST %s reads a list and answers the first failure in JSV', async (path, type, body) => {
    const { port } = await openSite({})
    const got = await send(port, path, body, { 'content-type': type })
    expect(done(got)).toEqual([400, '1'])
    expect(got.text).toMatch(/^\{ResponseStatus:\{ErrorCode:NotEmpty,.*Meta:\{AutoBatchIndex:1\}\}\}$/)
    const one = await send(port, path, [health()], {})
    expect([one.status, one.headers['content-type']]).toEqual([200, 'application/jsv; charset=utf-8'])
    expect(one.text).toMatch(/^\[\{Status:Success,.*\}\]$/)
  })

  test('R3 a batch by GET is empty, whatever its query and its body contain', async () => {
    const { port, calls } = await openSite({})
    for (const [path, text] of [
      ['/api/AssignRoles[]', '[]'],
      ['/json/reply/HealthCheckRequest[]?ExecutionMode=Basic&ServerType=Sql&callback=cb', '[]'],
      ['/jsv/reply/UnAssignRoles[]?UserName=Ann', '[]'],
      ['/csv/reply/AssignRoles[]', 'AllRoles,AllPermissions,Meta,ResponseStatus\r\n'],
    ] as const) {
      const body = JSON.stringify([{ UserName: 'Ann', Roles: ['Admin'] }])
      const got = await ask(port, path, { headers: { 'content-type': 'application/json' }, body })
      expect([...done(got), got.text]).toEqual([200, '0', text])
    }
    expect((await ask(port, '/api/Authenticate[]')).status).toBe(400)
    expect(calls).toEqual([])
  })

  test('R5 OPTIONS allows GET and POST', async () => {
    const { port } = await openSite({})
    const got = await ask(port, '/api/HealthCheckRequest[]', { method: 'OPTIONS' })
    expect([got.status, got.headers.allow, got.text]).toEqual([200, 'GET, HEAD, POST, OPTIONS', ''])
  })
})

describe('R3 health', () => {
  test('R3 an unhealthy answer ends the batch with the error that it has alone, and carries its index', async () => {
    const { port, calls } = await openSite(mongoDown)
    const got = await send(port, '/api/HealthCheckRequest[]', [health(), health('Mongo'), health('App')])
    expect(done(got)).toEqual([503, '1'])
    expect(got.json).toMatchObject({
      Status: 'Failure',
      ResponseStatus: { ErrorCode: 'HealthCheckFailed', Meta: { AutoBatchIndex: '1' } },
    })
    expect(calls).toHaveLength(2)
    // Alone it has no index.
    const alone = await ask(port, '/healthcheck?ExecutionMode=Basic&ServerType=Mongo')
    expect([alone.status, metaOf(alone)]).toEqual([503, undefined])
  })

  test('R3 H2 with SuppressErrorCodes every request is executed, and the bodies show which failed', async () => {
    const { port } = await openSite(mongoDown)
    const types = ['Sql', 'Mongo', 'App']
    const requests = types.map((type) => health(type, { SuppressErrorCodes: true }))
    const got = await send(port, '/api/HealthCheckRequest[]', requests)
    expect(done(got)).toEqual([200, '3'])
    const answers = got.json as unknown as { Status: string }[]
    expect(answers.map(({ Status }) => Status)).toEqual(['Success', 'Failure', 'Success'])
  })

  test('R3 H3 a missing field is named together with the index of its request', async () => {
    const { port } = await openSite({})
    const got = await send(port, '/api/HealthCheckRequest[]', [health(), { ServerType: 'Sql' }])
    expect(done(got)).toEqual([400, '1'])
    expect(got.json.ResponseStatus?.Errors[0]?.FieldName).toBe('ExecutionMode')
    expect(metaOf(got)).toEqual({ AutoBatchIndex: '1' })
  })

  test('R3 S11 a page of another site is refused', async () => {
    const { port, calls } = await openSite({})
    const got = await send(port, '/api/HealthCheckRequest[]', [health()], { 'sec-fetch-site': 'cross-site' })
    expect(got.status).toBe(403)
    expect(calls).toEqual([])
  })

  test('R3 S3 a batch may last longer than a silent connection is kept open, as long as none of its requests does', async () => {
    const silenceMs = 1_000
    const slow: SiteOptions = { limits: { silenceMs }, health: (_request, call) => sleep(silenceMs / 2, healthy(call)) }
    const { port } = await openSite(slow)
    const got = await send(port, '/api/HealthCheckRequest[]', Array(5).fill(health()))
    expect(done(got)).toEqual([200, '5'])
  })

  test('R3 S6 an internal error shows nothing but its index and its correlation id', async () => {
    const broken: SiteOptions = { health: () => Promise.reject(new TypeError('secret detail')) }
    const { port, log } = await openSite(broken)
    const got = await send(port, '/api/HealthCheckRequest[]', [health()])
    expect(done(got)).toEqual([500, '0'])
    expect(got.text).not.toContain('secret detail')
    expect(metaOf(got)).toEqual({ AutoBatchIndex: '0', CorrelationId: got.headers['x-correlation-id'] })
    expect(log.at(-1)?.stack).toContain('TypeError')
  })
})
