import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type IReturn, JsonServiceClient } from '@servicestack/client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startAccounts } from '../server/accounts.ts'
import { password, serveBuilt } from './served.ts'

/** The generated code has the shape of the handwritten code in its style. */
type Dtos = typeof import('./dtos.ts')

describe('R6 DTOs generated from GET /types/typescript', () => {
  let server: Awaited<ReturnType<typeof serveBuilt>>
  let folder = ''
  let source = ''
  let dtos: Dtos
  beforeAll(async () => {
    server = await serveBuilt()
    // As typescript-ref asks: neither Accept nor User-Agent.
    const response = await fetch(`${server.url}/types/typescript`)
    source = await response.text()
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    folder = mkdtempSync(join(tmpdir(), 'svc-dtos-'))
    const file = join(folder, 'dtos.ts')
    writeFileSync(file, source)
    dtos = (await import(pathToFileURL(file).href)) as Dtos
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    await server.close()
  })

  test('R6 typescript-ref keeps its input: it contains Options and BaseUrl', () => {
    const [, options = ''] = /Options:\s([\s\S]*?)\*\//.exec(source) ?? []
    expect(options).toContain(`BaseUrl: ${server.url}\n`)
  })

  test('R6 they work with the unmodified client: sign-in, roles, health, field errors, sign-out', async () => {
    const client = new JsonServiceClient(server.url)
    const signedIn = await client.post(
      new dtos.Authenticate({ provider: 'credentials', UserName: 'Ann', Password: password }),
    )
    expect(signedIn).toMatchObject({ UserName: 'Ann', Roles: ['Admin', 'Editor'] })
    const answer = await client.api(new dtos.AssignRoles({ UserName: 'Ned', Roles: ['R1'] }))
    expect(answer.response).toMatchObject({ AllRoles: ['R1'], AllPermissions: [] })
    const taken = await client.api(new dtos.UnAssignRoles({ UserName: 'Ned', Roles: ['R1'] }))
    expect(taken.response).toMatchObject({ AllRoles: [], AllPermissions: [] })
    // By the verb that they name themselves, and by both.
    const request = new dtos.HealthCheckRequest({ ExecutionMode: 'Basic', ServerType: 'App' })
    expect((await client.api(request)).response).toMatchObject({ Status: 'Success' })
    expect(await client.get(request)).toMatchObject({ Status: 'Success' })
    expect(await client.post(request)).toMatchObject({ Status: 'Success' })
    const nobody = await client.api(new dtos.AssignRoles())
    expect(nobody.fieldErrorMessage('UserName')).toBe('Value cannot be null.')
    await client.post(new dtos.Authenticate({ provider: 'logout' }))
    expect((await client.api(new dtos.AssignRoles({ UserName: 'Ned' }))).errorCode).toBe('Unauthorized')
  })

  test('R6 their responses equal what the client creates where a server sends nothing', () => {
    expect(new dtos.AssignRoles().createResponse()).toBeInstanceOf(dtos.AssignRolesResponse)
    expect(new dtos.HealthCheckRequest().createResponse()).toBeInstanceOf(dtos.HealthCheckResponse)
    expect(new dtos.Authenticate().getTypeName()).toBe('Authenticate')
  })
})

/** The generated code of a server whose names are in camelCase. */
type CamelDtos = {
  readonly Authenticate: new (given: object) => IReturn<{ userName?: string; bearerToken?: string }>
  readonly AssignRoles: new (given: object) => IReturn<{ allRoles?: string[] }>
  readonly HealthCheckRequest: new (given: object) => IReturn<{ status?: string; failedMonitorCount?: number }>
}

test('N9 DTOs generated at a server with other names work with the unmodified client in those names', async () => {
  const server = await startAccounts({ names: 'camelCase' })
  const folder = mkdtempSync(join(tmpdir(), 'svc-dtos-'))
  onTestFinished(async () => {
    rmSync(folder, { recursive: true, force: true })
    await server.close()
  })

  const file = join(folder, 'dtos.ts')
  writeFileSync(file, await (await fetch(`${server.server.url}/types/typescript`)).text())
  const dtos = (await import(pathToFileURL(file).href)) as CamelDtos
  const client = new JsonServiceClient(server.server.url)
  const signedIn = await client.post(
    new dtos.Authenticate({ provider: 'credentials', userName: 'Ann', password: 'violet-harbour-42' }),
  )
  expect(signedIn.userName).toBe('Ann')
  const answer = await client.post(new dtos.AssignRoles({ userName: 'Ned', roles: ['R1'] }))
  expect(answer).toEqual({ allRoles: ['R1'], allPermissions: [] })
  const health = await client.get(new dtos.HealthCheckRequest({ executionMode: 'Basic', serverType: 'App' }))
  expect(health).toMatchObject({ status: 'Success', failedMonitorCount: 0 })
  const failed = await client.api(new dtos.AssignRoles({}))
  expect(failed.fieldErrorMessage('userName')).toBe('Value cannot be null.')
})
