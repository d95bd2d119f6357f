import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describedBy } from '../support/wire/openapi.ts'
import { type Accounts, bearer, password, startAccounts } from './accounts.ts'
import { ask, failing, healthy, openSite, withSite } from './site.ts'

const health = '/healthcheck?ServerType=Sql&ExecutionMode=Basic'
const keys = (body: string): readonly string[] => Object.keys(JSON.parse(body) as object)

describe('N9 a server whose names are in camelCase', async () => {
  const { valid, document } = await describedBy({ jsonp: true, basic: false, names: 'camelCase' })
  let site: Accounts
  beforeAll(async () => {
    site = await startAccounts({ names: 'camelCase' })
  })
  afterAll(() => site.close())

  const answerTo = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ) => {
    const got = await ask(site.port, path, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    valid(method, path, got.status, got.headers['content-type'], got.text)
    return { status: got.status, text: got.text, json: JSON.parse(got.text) as Record<string, unknown> }
  }

  test('N9 uses them in each answer, as its openapi.json describes', async () => {
    const signedIn = await answerTo('POST', '/auth/credentials', { UserName: 'Ann', password })
    expect(signedIn.json).toMatchObject({ userName: 'Ann', roles: ['Admin', 'Editor'] })
    const ann = bearer(String(signedIn.json['bearerToken']))
    const refused = await answerTo('POST', '/assignroles', { userName: 'Ned' })
    expect([refused.status, refused.json]).toEqual([
      401,
      expect.objectContaining({ allRoles: [], responseStatus: expect.objectContaining({ errorCode: 'Unauthorized' }) }),
    ])
    const answer = await answerTo('POST', '/api/AssignRoles', { userName: 'Ned', roles: ['Deploy'] }, ann)
    expect(answer.json).toEqual({ allRoles: ['Deploy'], allPermissions: [] })
    const batch = await answerTo('POST', '/api/AssignRoles[]', [{ userName: 'Ned' }, { userName: 'Nobody' }], ann)
    expect(batch.json['responseStatus']).toMatchObject({ errorCode: 'NotFound', meta: { AutoBatchIndex: '1' } })
    const renewed = await answerTo('POST', '/access-token', { refreshToken: signedIn.json['refreshToken'] })
    expect(keys(renewed.text)).toEqual(['accessToken'])
    const beat = await answerTo('POST', '/heartbeats/agent-7', { status: 'Ok' }, ann)
    expect(keys(beat.text)).toEqual(['name', 'receivedAt'])
    const missing = await answerTo('GET', '/healthcheck')
    expect(missing.json['responseStatus']).toMatchObject({ errors: [{ fieldName: 'ExecutionMode' }, {}] })
    const unknown = await answerTo('GET', '/nothing')
    expect([unknown.status, keys(unknown.text)]).toEqual([404, ['responseStatus']])
  })

  test('N9 uses them in its health answers, healthy or not, and in the answer to a request that it cannot parse', async () => {
    const options = { names: 'camelCase' } as const
    await withSite({ options, health: async (_, call) => failing(call) }, async ({ port }) => {
      const got = await ask(port, health)
      valid('GET', health, got.status, got.headers['content-type'], got.text)
      expect(keys(got.text)).toEqual([
        ...['status', 'statusMessage', 'correlationId', 'failedMonitorCount', 'monitorSummaries', 'executionMetrics'],
        'responseStatus',
      ])
      expect(got.text).toContain('"monitoringName":"connect"')
    })
    const socket = connect(site.port, '127.0.0.1').setEncoding('utf8')
    socket.end('rubbish\r\n\r\n')
    expect(await text(socket)).toContain('{"responseStatus":{"errorCode":')
  })

  test('N9 reads requests in any letter case', async () => {
    for (const written of ['UserName', 'userName', 'USERNAME']) {
      const got = await answerTo('POST', '/auth/credentials', { [written]: 'Ann', password })
      expect(got.json).toMatchObject({ userName: 'Ann' })
    }
  })

  test('N9 uses them in its DTOs and documents', async () => {
    const dtos = await ask(site.port, '/types/typescript')
    expect(dtos.text).toContain('public userName?: string')
    expect(dtos.text).not.toMatch(/public [A-Z]\w+\?/)
    expect(Object.keys(document.components.schemas['HealthCheckResponse']?.['properties'] as object)).toContain(
      'status',
    )
    const served = await ask(site.port, '/openapi-all.json')
    expect((JSON.parse(served.text) as typeof document).components.schemas).toEqual(document.components.schemas)
    const canonical = JSON.parse((await ask(site.port, '/openapi.json')).text) as typeof document
    expect(Object.keys(canonical.components.schemas['Authenticate']?.['dependentSchemas'] as object)).toContain(
      'userName',
    )
  })
})

describe('N9 ?jsconfig=', () => {
  test('N9 selects other names for one request, and changes none for the next', async () => {
    await withSite({}, async ({ port }) => {
      const usual = await ask(port, health)
      const camel = await ask(port, `${health}&jsconfig=eccn`)
      const snake = await ask(port, `${health}&JsConfig=EmitLowercaseUnderscoreNames,edv`)
      const again = await ask(port, health)
      expect(keys(usual.text).slice(0, 2)).toEqual(['Status', 'StatusMessage'])
      expect(keys(camel.text).slice(0, 2)).toEqual(['status', 'statusMessage'])
      expect(keys(snake.text).slice(0, 2)).toEqual(['status', 'status_message'])
      expect(keys(again.text)).toEqual(keys(usual.text))
      expect((await ask(port, `${health}&jsconfig=eccn&callback=cb`)).text).toMatch(/^cb\(\{"status":/)
      expect((await ask(port, '/healthcheck?jsconfig=eccn')).text).toMatch(/^\{"responseStatus":\{"errorCode":/)
      expect((await ask(port, `${health}&jsconfig=eccn&format=csv`)).text).toMatch(/^ServerState,Status,/)
    })
  })

  test('N9 answers that share a run each use the names that their caller requested', async () => {
    const service = {
      healthCheck: async (_: unknown, call: Parameters<typeof healthy>[0]) => {
        call.note?.({ ageSeconds: 0, runId: 'one run' })
        return healthy(call)
      },
    }
    const { port } = await openSite({ service })
    for (const [style, first] of [
      ['', 'Status'],
      ['&jsconfig=eccn', 'status'],
      ['', 'Status'],
      ['&jsconfig=eccn', 'status'],
    ]) {
      expect(keys((await ask(port, `${health}${style}`)).text)[0]).toBe(first)
    }
  })

  test('N9 on a server with other names, it selects those of the interface', async () => {
    const { port } = await openSite({ options: { names: 'camelCase' } })
    expect(keys((await ask(port, health)).text)[1]).toBe('statusMessage')
    expect(keys((await ask(port, `${health}&jsconfig=TextCase:PascalCase`)).text)[1]).toBe('StatusMessage')
  })
})
