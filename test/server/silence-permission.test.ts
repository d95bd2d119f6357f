import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import {
  type GetSilencesResponse,
  permissionMistake,
  type SilenceMonitorsResponse,
} from '../../src/core/protocol/index.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { type Accounts, bearer, by, password, startAccounts } from './accounts.ts'
import { ask } from './site.ts'

/** As a proxy relays a caller of another machine. */
const far = { 'x-forwarded-for': '203.0.113.9' }
const tcp = (name: string): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: 1}`

let site: Accounts
const folder = temporaryFolder()
const keys = new Map<string, string>()
beforeAll(async () => {
  const yaml = `types:\n  Sql: [${tcp('orders')}]\n  App: [${tcp('shop')}]\n`
  writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  const { types } = await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
  site = await startAccounts({}, undefined, undefined, types)
  const users = {
    silencer: { permissions: ['silence'] },
    monitoring: { permissions: ['health'] },
    database: { permissions: ['health:Sql'] },
    agent: { permissions: ['heartbeat'] },
  }
  for (const [userName, grants] of Object.entries(users)) {
    await site.admin.users.add({ userName, password, ...grants }, by)
    keys.set(userName, (await site.admin.keys.create({ name: userName, userName }, by)).secret)
  }
  keys.set('Ann', (await site.signIn()).BearerToken)
})
afterAll(() => site.close())

const request = async (who: string | undefined, method: 'GET' | 'POST', path: string, body?: object) => {
  const key = who === undefined ? undefined : keys.get(who)
  const { status, text } = await ask(site.port, path, {
    method,
    headers: {
      ...far,
      ...(key ? bearer(key) : {}),
      ...(body ? { 'content-type': 'application/json' } : {}),
      accept: 'application/json',
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return { status, text, json: JSON.parse(text) as unknown }
}
const silence = async (who: string | undefined, monitors: readonly string[], more: object = { For: 'PT1H' }) =>
  await request(who, 'POST', '/silences/monitors', { Monitors: monitors, Reason: 'patch night', ...more })
const idOf = ({ json }: { readonly json: unknown }): string => (json as SilenceMonitorsResponse).Silence?.Id ?? ''
const listFor = async (who: string | undefined) => {
  const { status, json } = await request(who, 'GET', '/silences')
  return { status, ...(json as GetSilencesResponse) }
}

test('M8 who reads one type reads what concerns it, without people and reasons, and the number of the others', async () => {
  const ids = [
    idOf(await silence('Ann', ['Sql/*', 'App/tcp shop'])),
    idOf(await silence('silencer', ['App/*'])),
    idOf(await silence('silencer', ['*'])),
    idOf(await silence('silencer', ['tcp s*', '*/tcp orders', 'TCP O*'])),
  ]
  const database = await listFor('database')
  expect(database).toMatchObject({ status: 200, HiddenSilences: 1 })
  expect(database.Silences).toEqual([
    { Id: ids[0], Source: 'Hand', Monitors: ['Sql/*'], From: expect.any(String), Until: expect.any(String) },
    // What matches monitors of several types concerns this one, too, but not the names that it has for others.
    { Id: ids[2], Source: 'Hand', Monitors: ['Sql/*'], From: expect.any(String), Until: expect.any(String) },
    {
      Id: ids[3],
      Source: 'Hand',
      Monitors: ['Sql/tcp orders', 'Sql/TCP O*'],
      From: expect.any(String),
      Until: expect.any(String),
    },
  ])
  const monitoring = await listFor('monitoring')
  expect(monitoring.Silences?.map(({ By, Reason, Monitors }) => [By, Reason, Monitors])).toEqual([
    ['Ann', 'patch night', ['Sql/*', 'App/tcp shop']],
    ['silencer', 'patch night', ['App/*']],
    ['silencer', 'patch night', ['*']],
    ['silencer', 'patch night', ['tcp s*', '*/tcp orders', 'TCP O*']],
  ])
  expect([(await listFor(undefined)).status, (await listFor('agent')).status]).toEqual([401, 403])
  for (const Id of ids) expect((await request('Ann', 'POST', '/silences/end', { Id })).status).toBe(200)
})

test.for([
  [{ Monitors: [], For: 'PT1H' }, 'Monitors'],
  [{ Monitors: ['tcp nobody'], For: 'PT1H' }, 'Monitors'],
  [{ Monitors: ['Sql/*'] }, 'For'],
  [{ Monitors: ['Sql/*'], For: 'PT1H', Until: new Date(Date.now() + 60_000).toISOString() }, 'Until'],
  [{ Monitors: ['Sql/*'], For: 'P31D' }, 'For'],
  [{ Monitors: ['Sql/*'], Until: '2020-01-01T00:00:00Z' }, 'Until'],
  [{ Monitors: ['Sql/*'], Until: '2999-01-01T00:00:00Z' }, 'Until'],
  [{ Monitors: ['Sql/*'], For: 'PT1H', Reason: ' ' }, 'Reason'],
  [{ Monitors: ['Sql/*'], For: 'PT1H', Reason: 'a\nb' }, 'Reason'],
] as const)('M8 %j is a 400 that names %s', async ([body, field]) => {
  const { Monitors, ...more } = body
  const { status, text } = await silence('Ann', Monitors, more)
  expect([status, text]).toEqual([400, expect.stringContaining(`"FieldName":"${field}"`)])
  expect((await listFor('Ann')).Silences).toEqual([])
})

test('M8 the permission silence has no parts: one for a type allows nothing', async () => {
  const body = { UserName: 'agent', Permissions: ['silence:Sql'] }
  expect((await request('Ann', 'POST', '/assignroles', body)).status).toBe(200)
  expect((await silence('agent', ['Sql/*'])).status).toBe(403)
  expect(permissionMistake('silence:Sql')).toContain('use silence, which is for all monitors')
  expect(permissionMistake('silence')).toBeUndefined()
})

test('M8 the former name of the permission is refused with the new one, also where it would be removed', async () => {
  for (const path of ['/assignroles', '/unassignroles']) {
    const { status, text } = await request('Ann', 'POST', path, { UserName: 'silencer', Permissions: ['quiet'] })
    expect([path, status, text]).toEqual([path, 400, expect.stringContaining('contains quiet, which is named silence')])
  }
  expect(permissionMistake('quiet')).toBe('The permission "quiet" does not exist: use silence')
  expect(permissionMistake('quiet:Sql')).toContain('use silence, which is for all monitors')
})
