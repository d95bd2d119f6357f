import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import * as dtos from '../../src/core/protocol/dtos.ts'
import * as enums from '../../src/core/protocol/enums.ts'
import { type Dto, type Schema, schemaOf } from '../../src/core/protocol/index.ts'
import { csv } from '../../src/core/protocol/wire/csv.ts'
import { type Accounts, bearer, password, startAccounts } from '../server/accounts.ts'
import { ask, failing, startSite, withSite } from '../server/site.ts'
import { testCore } from '../support/engine/core.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { farMs } from '../support/suite/until.ts'

const page = readFileSync(new URL('../../docs/interface.md', import.meta.url), 'utf8')

let at: Accounts
let admin: { readonly authorization: string }
beforeAll(async () => {
  at = await startAccounts()
  admin = bearer((await at.signIn()).BearerToken)
})
afterAll(() => at.close())

const health = '/healthcheck?ExecutionMode=Basic&ServerType=Sql&SuppressErrorCodes=true'

describe('operations', () => {
  test('I1 a sign-in returns session, tokens, roles and permissions', async () => {
    const got = await at.post('/auth/credentials', { UserName: 'Ann', Password: password })
    expect(got.status).toBe(200)
    for (const name of ['SessionId', 'BearerToken', 'RefreshToken']) expect(got.json[name]).toMatch(/^\S{20,}$/)
    expect(got.json).toMatchObject({ UserName: 'Ann', Roles: ['Admin', 'Editor'], Permissions: [] })
  })

  test('I2 roles and permissions are added and removed, and each answer has the complete lists', async () => {
    const change = { UserName: 'Ned', Roles: ['One', 'Two'], Permissions: ['p'] }
    const added = await at.post('/assignroles', change, admin)
    expect(added).toMatchObject({ status: 200, json: { AllRoles: ['One', 'Two'], AllPermissions: ['p'] } })
    const removed = await at.post('/unassignroles', { UserName: 'Ned', Roles: ['One'], Permissions: ['p'] }, admin)
    expect(removed).toMatchObject({ status: 200, json: { AllRoles: ['Two'], AllPermissions: [] } })
  })

  test.each(['/assignroles', '/unassignroles'])('I3 %s requires a caller with Admin', async (path) => {
    const change = { UserName: 'Ned', Roles: ['X'] }
    expect((await at.post(path, change)).status).toBe(401)
    const { BearerToken } = await at.signIn({ UserName: 'Ned' })
    expect((await at.post(path, change, bearer(BearerToken))).status).toBe(403)
    expect((await at.post(path, change, admin)).status).toBe(200)
  })

  test('I4 the mode decides how deep the checks go, and the type which of them run', async () => {
    const checks = async (mode: string, type: string): Promise<readonly string[]> => {
      const got = await ask(at.port, `/healthcheck?ExecutionMode=${mode}&ServerType=${type}&SuppressErrorCodes=true`)
      const summaries = got.json['MonitorSummaries'] as { MonitorName: string; Results: { MonitoringName: string }[] }[]
      return summaries.flatMap((one) => one.Results.map((result) => `${one.MonitorName}/${result.MonitoringName}`))
    }
    const [basic, advanced, other] = [
      await checks('Basic', 'Sql'),
      await checks('Advanced', 'Sql'),
      await checks('Basic', 'App'),
    ]
    expect(basic.filter((name) => !advanced.includes(name))).toEqual([])
    expect(advanced.length).toBeGreaterThan(basic.length)
    expect(advanced).toContain('sqlite own store/round trip')
    expect(other).not.toContain('sqlite own store/open')
  })

  test('I4 a type runs the monitors that svc.yaml lists under it, and no others', async () => {
    const folder = temporaryFolder()
    const listed = (name: string): string =>
      `host: false\n    monitors:\n      - {kind: tcp, name: ${name}, host: 127.0.0.1, port: ${at.port}}\n`
    writeFileSync(join(folder, 'svc.yaml'), `types:\n  App:\n    ${listed('shop')}  Batch:\n    ${listed('queue')}`, {
      mode: 0o600,
    })
    const config = await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
    const { service, runtime } = await testCore({ version: '1.2.3', config, shared: false, details: 'anyone' })
    const ran = async (ServerType: 'App' | 'Batch'): Promise<readonly (string | undefined)[]> => {
      const answer = await service.healthCheck(
        { ExecutionMode: 'Basic', ServerType },
        { caller: { kind: 'local', account: 'tester' }, correlationId: 'i4', signal: AbortSignal.timeout(farMs) },
      )
      return (answer.MonitorSummaries ?? []).map(({ MonitorName }) => MonitorName)
    }
    onTestFinished(() => runtime.close())

    expect([await ran('App'), await ran('Batch')]).toEqual([['tcp shop'], ['tcp queue']])
  })
})

describe('formats', () => {
  test.each([
    ['by default', health, {}],
    ['by Accept', health, { accept: 'application/json' }],
    ['by suffix', health.replace('/healthcheck', '/healthcheck.json'), {}],
    ['by ?format=json', `${health}&format=json`, {}],
  ])('I5 JSON is selected %s', async (_, path, headers) => {
    const got = await ask(at.port, path, { headers })
    expect(got.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(got.json).toHaveProperty('Status')
  })

  test.each([
    ['Accept', health, { accept: 'text/csv' }],
    ['suffix', health.replace('/healthcheck', '/healthcheck.csv'), {}],
    ['?format=csv', `${health}&format=csv`, {}],
  ])('I6 CSV is selected by %s', async (_, path, headers) => {
    const got = await ask(at.port, path, { headers })
    expect(got.headers['content-type']).toBe('text/csv; charset=utf-8')
    expect(got.text.split('\r\n')[0]).toBe(Object.keys(dtos.HealthCheckResponse.fields).join(','))
  })

  test('I7 a callback wraps the JSON', async () => {
    const got = await ask(at.port, `${health}&callback=cb`)
    expect(got.text).toMatch(/^cb\(\{.*\}\)$/s)
  })

  test('I8 a CSV request is read like the JSON one, and its CSV answer has the same fields', async () => {
    const request = { UserName: 'Ned', Roles: ['C,1', 'C2'] }
    const asCsv = await ask(at.port, '/assignroles', {
      method: 'POST',
      headers: { ...admin, 'content-type': 'text/csv', accept: 'text/csv' },
      body: csv.encode(dtos.AssignRoles, request),
    })
    expect(asCsv.status).toBe(200)
    const asJson = await at.post('/assignroles', request, admin)
    expect(csv.decode(dtos.AssignRolesResponse, asCsv.text)).toEqual(asJson.json)
  })
})

/** The tables of fields in interface.md: heading → field → type. */
function tables(): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const result = new Map<string, Map<string, string>>()
  let fields = new Map<string, string>()
  for (const line of page.split('\n')) {
    const [, heading] = /^### 2\.\d+ (.+)$/.exec(line) ?? []
    if (heading !== undefined) {
      fields = new Map()
      for (const name of heading.replace(/\(.*\)/, '').split(/ and |, /)) result.set(name.trim(), fields)
    }
    const [, field, type] = /^\| (\w+) \| ([^|]+?) \|/.exec(line) ?? []
    if (field && type && field !== 'Field' && field !== 'Enumeration') fields.set(field, type)
  }
  // Those that the interface describes in a sentence.
  for (const [, name = '', list = ''] of page.matchAll(/^(\w+): (\w+ \([^)]+\)(?:, \w+ \([^)]+\))*)\.?/gm)) {
    const entries = [...list.matchAll(/(\w+) \(([^)]+)\)/g)].map(([, field = '', type = '']) => [field, type] as const)
    result.set(name, new Map(entries))
  }
  return result
}

function typeName(schema: Schema): string {
  switch (schema.kind) {
    case 'text':
      return 'string'
    case 'flag':
      return 'boolean'
    case 'number':
      return schema.integer ? 'integer' : 'number'
    case 'date':
      return 'date-time'
    case 'duration':
      return 'ISO 8601 duration text'
    case 'map':
      return 'map of string to string'
    case 'list':
      return `array of ${typeName(schema.item)}`
    case 'choice':
    case 'dto':
      return schema.name
  }
}

describe('resources', () => {
  const written = tables()
  const ours = new Map<string, Dto>(Object.values(dtos).map((schema: Dto) => [schema.name, schema]))
  const listed = [
    'Authenticate',
    'AuthenticateResponse',
    'AssignRoles',
    'UnAssignRoles',
    'AssignRolesResponse',
    'UnAssignRolesResponse',
    'ResponseStatus',
    'ResponseError',
    'HealthCheckResponse',
    'ServerState',
    'MonitorSummary',
    'MonitoringResult',
    'MonitorExecutionMetrics',
  ]

  test.each(listed)('I9 %s has the fields and types of the interface, in its order', (name) => {
    const expected = [...(written.get(name) ?? expect.fail(`${name} is not in interface.md`))]
    const schema = ours.get(name) ?? expect.fail(`${name} is not in the protocol`)
    const types = Object.entries(schema.fields).map(([field, one]) => [field, typeName(schemaOf(one))])
    // `number, megabytes`: the unit is not a type.
    expect(types).toEqual(expected.map(([field, type]) => [field, type.replace(/, .*/, '')]))
  })

  test('I9 names are case-sensitive: a response has them exactly as listed', async () => {
    const { json } = await ask(at.port, `${health}&IncludeServerStateInformation=true`)
    const names = Object.keys(dtos.HealthCheckResponse.fields)
    expect(Object.keys(json).filter((name) => name !== 'ResponseStatus')).toEqual(names)
  })

  test('I10 a field may be null or absent', async () => {
    const got = await at.post('/assignroles', { UserName: 'Ned', Roles: null, Meta: null }, admin)
    expect(got.status).toBe(200)
    const signIn = { UserName: 'Ann', Password: password, State: null, RememberMe: null, nonce: null }
    expect((await at.post('/auth/credentials', signIn)).status).toBe(200)
  })

  test('I11 the path or the body names the provider', async () => {
    const who = { UserName: 'Ann', Password: password }
    expect((await at.post('/auth/credentials', who)).status).toBe(200)
    expect((await at.post('/auth', { ...who, provider: 'credentials' })).status).toBe(200)
    expect((await at.post('/auth', { ...who, provider: 'nope' })).status).toBe(404)
    expect((await at.post('/auth/nope', who)).status).toBe(404)
  })

  test('I12 the server state is present on request, in numbers', async () => {
    expect((await ask(at.port, health)).json).not.toHaveProperty('ServerState')
    const { json } = await ask(at.port, `${health}&IncludeServerStateInformation=true`)
    const state = json['ServerState'] as Record<string, unknown>
    expect(state['ServerName']).toMatch(/./)
    expect(state['TotalRamInMb']).toBeGreaterThan(100)
    expect(state['AvailableRamInMb']).toBeLessThanOrEqual(state['TotalRamInMb'] as number)
    expect(state['UsedCpuPercent']).toBeGreaterThanOrEqual(0)
    expect(state['UsedCpuPercent']).toBeLessThanOrEqual(100)
  })

  test('I13 dates and durations have the format of the interface', async () => {
    const { text } = await ask(at.port, health)
    const metrics = /"ExecutionMetrics":\{[^}]*\}/.exec(text)?.[0] ?? ''
    expect(metrics).toMatch(/"StartDateTime":"\\\/Date\(\d{13}[+-]\d{4}\)\\\/"/)
    expect(metrics).toMatch(/"EndDateTime":"\\\/Date\(\d{13}[+-]\d{4}\)\\\/"/)
    expect(metrics).toMatch(/"Duration":"PT(?:\d+M)?[\d.]+S"/)
  })

  test.each(Object.entries(enums).filter(([name]) => page.includes(`| ${name} |`)))(
    'I14 %s has the values of the interface',
    (name, choice) => {
      const [, values] = new RegExp(`^\\| ${name} \\| ([^|]+) \\|$`, 'm').exec(page) ?? []
      expect((choice as { values: readonly string[] }).values).toEqual(values?.split(', '))
    },
  )

  test('I15 success and failure are reported for the whole, for each monitor and for each result', async () => {
    await withSite({ health: async (_, call) => failing(call) }, async ({ port }) => {
      const { json } = await ask(port, health)
      expect(json).toMatchObject({
        Status: 'Failure',
        MonitorSummaries: [{ Status: 'Failure', Results: [{ Status: 'Failure' }] }],
      })
    })
  })
})

describe('endpoints', () => {
  test.each([
    ['OPTIONS', '/auth', 200],
    ['OPTIONS', '/auth/credentials', 200],
    ['GET', '/auth', 401],
    ['GET', '/auth/logout', 200],
    ['DELETE', '/auth', 200],
    ['DELETE', '/auth/credentials', 200],
    ['POST', '/auth/logout', 200],
    ['POST', '/auth', 401],
  ])('I16 %s %s is answered without a sign-in', async (method, path, status) => {
    expect((await ask(at.port, path, { method })).status).toBe(status)
  })

  test('I17 both parameters are required, and the flags are optional', async () => {
    const missing = await ask(at.port, '/healthcheck')
    expect(missing.status).toBe(400)
    expect(missing.json.ResponseStatus?.Errors.map(({ FieldName }) => FieldName)).toEqual([
      'ExecutionMode',
      'ServerType',
    ])
    expect([200, 503]).toContain((await ask(at.port, '/healthcheck?ExecutionMode=Basic&ServerType=Sql')).status)
  })

  test('I18 with SuppressErrorCodes a failure is a 200 with the failure in its body', async () => {
    const site = await startSite({ health: async (_, call) => failing(call) })
    const path = '/healthcheck?ExecutionMode=Basic&ServerType=Sql'
    expect((await ask(site.port, path)).status).toBe(503)
    const got = await ask(site.port, `${path}&SuppressErrorCodes=true`)
    expect(got).toMatchObject({ status: 200, json: { Status: 'Failure' } })
    await site.server.stop()
  })

  test('I19 failures that belong to a deployment are suppressed on request, and no others', async () => {
    const folder = temporaryFolder()
    const file = (name: string, text: string): void => writeFileSync(join(folder, name), text, { mode: 0o600 })
    file('version', '41\n')
    file(
      'svc.yaml',
      `types:\n  App:\n    host: false\n    monitors:\n      - kind: deployment\n        name: shop\n        expected: '42'\n        versionFile: ${folder}/version\n`,
    )
    const config = await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
    const { service, runtime } = await testCore({ version: '1.2.3', config, shared: false, details: 'anyone' })
    const statusFor = async (SuppressDeploymentErrors: boolean): Promise<string | undefined> => {
      const request = { ExecutionMode: 'Advanced', ServerType: 'App', SuppressDeploymentErrors } as const
      const signal = AbortSignal.timeout(farMs)
      const answer = await service.healthCheck(request, {
        caller: { kind: 'local', account: 'tester' },
        correlationId: 'i19',
        signal,
      })
      return answer.Status
    }
    expect(await statusFor(false)).toBe('Failure')
    expect(await statusFor(true)).toBe('Success')
    await runtime.close()
  })

  test('I20 an anonymous caller gets health', async () => {
    expect((await ask(at.port, health)).status).toBe(200)
  })
})

test('I21 a ResponseStatus describes an error, by field', async () => {
  const got = await at.post('/auth/credentials', { UserName: '', Password: '' })
  expect(got.status).toBe(400)
  expect(got.json['ResponseStatus']).toMatchObject({
    ErrorCode: 'ValidationException',
    Message: expect.stringMatching(/./),
    Errors: [
      { ErrorCode: 'NotEmpty', FieldName: 'UserName', Message: "'User Name' must not be empty." },
      { ErrorCode: 'NotEmpty', FieldName: 'Password', Message: "'Password' must not be empty." },
    ],
  })
})
