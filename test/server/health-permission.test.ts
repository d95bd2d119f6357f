import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RunDocument } from '../../src/core/protocol/index.ts'
import { type Accounts, bearer, by, password, startAccounts } from './accounts.ts'
import { ask } from './site.ts'

/** As a proxy relays a caller of another machine. */
const far = { 'x-forwarded-for': '203.0.113.9' }

let site: Accounts
beforeAll(async () => {
  site = await startAccounts({ basic: true })
  const users = {
    agent: { permissions: ['heartbeat'] },
    monitoring: { permissions: ['health'] },
    database: { permissions: ['health:Sql', 'heartbeat'] },
    operator: { roles: ['Ops'] },
    mistaken: { permissions: ['Health', 'healthy', 'Health:Sql'] },
  }
  for (const [userName, grants] of Object.entries(users))
    await site.admin.users.add({ userName, password, ...grants }, by)
  for (const type of ['Sql', 'App']) await ask(site.port, `/healthcheck?ExecutionMode=Standard&ServerType=${type}`)
})
afterAll(() => site.close())

let number = 0
async function key(userName: string, limits: { roles?: string[]; permissions?: string[] } = {}): Promise<string> {
  number += 1
  return (await site.admin.keys.create({ name: `key-${number}`, userName, ...limits }, by)).secret
}
async function view(type: string, headers: Readonly<Record<string, string>>): Promise<RunDocument['view']> {
  const accept = 'application/vnd.svc.run+json;version=1'
  const got = await ask(site.port, `/healthcheck?ExecutionMode=Basic&ServerType=${type}&SuppressErrorCodes=true`, {
    headers: { accept, ...far, ...headers },
  })
  expect(got.status).toBe(200)
  return (JSON.parse(got.text) as RunDocument).view
}
const views = async (headers: Readonly<Record<string, string>>) => [
  await view('Sql', headers),
  await view('App', headers),
]
/** The types whose figures /metrics shows, and whether it shows the build. */
async function metrics(headers: Readonly<Record<string, string>>) {
  const { text } = await ask(site.port, '/metrics', { headers: { ...far, ...headers } })
  const types = [...text.matchAll(/^svc_check_value\w*\{[^}]*type="(\w+)"/gm)].map(([, type]) => type)
  return { types: [...new Set(types)].toSorted(), build: text.includes('svc_build_info{') }
}

describe('S11 who reads the details of health answers beyond loopback', () => {
  test('S11 a user without a role and without the permission reads as much as a stranger', async () => {
    expect(await views({})).toEqual(['brief', 'brief'])
    for (const userName of ['Ned', 'agent', 'mistaken']) {
      const basic = { authorization: `Basic ${Buffer.from(`${userName}:${password}`).toString('base64')}` }
      const { SessionId, BearerToken } = await site.signIn({ UserName: userName })
      for (const headers of [basic, bearer(BearerToken), { 'x-ss-id': SessionId }, bearer(await key(userName))]) {
        expect([userName, await views(headers as Record<string, string>)]).toEqual([userName, ['brief', 'brief']])
      }
    }
  })

  test('S11 a key with only the permission heartbeat reads none, whatever its user holds', async () => {
    await site.admin.users.add({ userName: 'both', roles: ['Ops'], permissions: ['heartbeat'] }, by)
    const limited = bearer(await key('both', { permissions: ['heartbeat'] }))
    expect(await views(limited)).toEqual(['brief', 'brief'])
    expect(await metrics(limited)).toEqual({ types: [], build: false })
  })

  test('S11 any role and the permission health show the details of every type', async () => {
    for (const secret of [
      await key('operator'),
      await key('Ann', { roles: ['Editor'] }),
      await key('monitoring'),
      await key('monitoring', { permissions: ['health'] }),
      await key('operator', { permissions: ['health'] }),
    ]) {
      expect(await views(bearer(secret))).toEqual(['full', 'full'])
      expect(await metrics(bearer(secret))).toEqual({ types: ['App', 'Sql'], build: true })
    }
  })

  test('S11 the permission health:Sql shows those of Sql only, in /metrics too', async () => {
    for (const secret of [
      await key('database'),
      await key('database', { permissions: ['health:Sql'] }),
      await key('monitoring', { permissions: ['health:Sql'] }),
      await key('operator', { permissions: ['health:Sql'] }),
    ]) {
      expect(await views(bearer(secret))).toEqual(['full', 'brief'])
      expect(await metrics(bearer(secret))).toEqual({ types: ['Sql'], build: false })
    }
  })

  test('S11 a revoked role takes the details away from its keys', async () => {
    await site.admin.users.add({ userName: 'leaving', roles: ['Ops'] }, by)
    const secret = await key('leaving', { permissions: ['health:Sql'] })
    expect(await view('Sql', bearer(secret))).toBe('full')
    const { BearerToken } = await site.signIn()
    await site.post('/unassignroles', { UserName: 'leaving', Roles: ['Ops'] }, bearer(BearerToken))
    expect(await view('Sql', bearer(secret))).toBe('brief')
  })

  test('S11 a key cannot exceed its user, and a permission for an unknown type is refused', async () => {
    await expect(key('agent', { permissions: ['health'] })).rejects.toMatchObject({ fault: 'BadRequest' })
    await expect(key('database', { permissions: ['health'] })).rejects.toMatchObject({ fault: 'BadRequest' })
    await expect(key('database', { permissions: ['health:App'] })).rejects.toMatchObject({ fault: 'BadRequest' })
    for (const permission of ['health:sql', 'health:Nope', 'health:']) {
      await expect(key('Ann', { permissions: [permission] })).rejects.toThrow(/health:Sql/)
      const added = site.admin.users.add({ userName: `new-${number}`, permissions: [permission] }, by)
      await expect(added).rejects.toThrow(/health:Sql/)
    }
  })
})
