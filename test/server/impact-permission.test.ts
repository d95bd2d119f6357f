import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import type { GetImpactResponse } from '../../src/core/protocol/index.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { type Accounts, bearer, by, password, startAccounts } from './accounts.ts'
import { ask } from './site.ts'

/** As a proxy relays a caller of another machine. */
const far = { 'x-forwarded-for': '203.0.113.9' }

const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: 1${more}}`

let site: Accounts
const folder = temporaryFolder()
beforeAll(async () => {
  const yaml = `types:
  Sql: [${tcp('orders')}, ${tcp('pool', ', dependsOn: orders')}]
  App: [${tcp('shop', ', dependsOn: Sql/pool')}, ${tcp('cart', ', dependsOn: shop')}]
  Batch: [${tcp('nightly', ', dependsOn: Sql/orders')}]
`
  writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  const { types } = await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
  site = await startAccounts({}, undefined, undefined, types)
  const users = {
    monitoring: { permissions: ['health'] },
    database: { permissions: ['health:Sql'] },
    shop: { permissions: ['health:App'] },
  }
  for (const [userName, grants] of Object.entries(users))
    await site.admin.users.add({ userName, password, ...grants }, by)
})
afterAll(() => site.close())

let number = 0
async function impact(userName: string | undefined, monitor?: string) {
  number += 1
  const key = userName && (await site.admin.keys.create({ name: `key-${number}`, userName }, by)).secret
  const headers = { ...far, ...(key ? bearer(key) : {}) }
  const query = monitor === undefined ? '' : `?Monitor=${encodeURIComponent(monitor)}`
  const { status, text } = await ask(site.port, `/impact${query}`, { headers })
  const answer = JSON.parse(text) as GetImpactResponse
  const names = (answer.Monitors ?? []).map(
    ({ ServerType, MonitorName, Through }) => `${ServerType}/${MonitorName}: ${Through}`,
  )
  return { status, text, answer, names }
}

test('G4 a caller with the permission health reads the names of every type', async () => {
  const { status, names, answer } = await impact('monitoring', 'Sql/orders')
  expect(status).toBe(200)
  expect(names).toEqual([
    'App/tcp shop: Sql/tcp pool',
    'App/tcp cart: tcp shop',
    'Sql/tcp pool: tcp orders',
    'Batch/tcp nightly: Sql/tcp orders',
  ])
  expect(answer.HiddenMonitors).toBeUndefined()
})

test('G4 who may not see a type reads the number of its monitors and no names', async () => {
  const { status, names, answer, text } = await impact('database', 'orders')
  expect([status, names, answer.HiddenMonitors]).toEqual([200, ['Sql/tcp pool: tcp orders'], 3])
  expect(text).not.toMatch(/shop|cart|nightly/)
})

test('G4 a monitor of a type that the caller may not read is unknown to the caller', async () => {
  const { status, text } = await impact('shop', 'Sql/orders')
  expect(status).toBe(404)
  expect(text).not.toContain('did you mean')
  expect(await impact('shop', 'Sql/nothing')).toMatchObject({ status: 404 })
})

test('G4 strangers read nothing, neither does a user without a role, and a request names a monitor', async () => {
  expect((await impact(undefined, 'orders')).status).toBe(401)
  expect((await impact('Ned', 'orders')).status).toBe(403)
  const { status, answer } = await impact('monitoring')
  expect(status).toBe(400)
  expect(answer.ResponseStatus).toMatchObject({ Errors: [{ FieldName: 'Monitor' }] })
})
