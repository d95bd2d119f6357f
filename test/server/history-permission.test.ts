import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { GetHistoryResponse } from '../../src/core/protocol/index.ts'
import { until } from '../support/suite/until.ts'
import { type Accounts, bearer, by, password, startAccounts } from './accounts.ts'
import { ask } from './site.ts'

/** As a proxy relays a caller of another machine. */
const far = { 'x-forwarded-for': '203.0.113.9' }

let site: Accounts
beforeAll(async () => {
  site = await startAccounts({})
  const users = { monitoring: { permissions: ['health'] }, database: { permissions: ['health:Sql'] } }
  for (const [userName, grants] of Object.entries(users))
    await site.admin.users.add({ userName, password, ...grants }, by)
  for (const type of ['Sql', 'App']) await ask(site.port, `/healthcheck?ExecutionMode=Standard&ServerType=${type}`)
})
afterAll(() => site.close())

let number = 0
async function history(userName: string, query = '') {
  number += 1
  const { secret } = await site.admin.keys.create({ name: `key-${number}`, userName }, by)
  const headers = { ...far, ...bearer(secret) }
  const { status, text } = await ask(site.port, `/history${query}`, { headers })
  return { status, answer: JSON.parse(text) as GetHistoryResponse }
}
const typesOf = ({ Monitors = [] }: GetHistoryResponse): readonly unknown[] => [
  ...new Set(Monitors.map(({ ServerType }) => ServerType)),
]

describe('W3 who reads the history beyond loopback', () => {
  test('W3 a caller with the permission health reads the history of every type', async () => {
    await until(async () => typesOf((await history('monitoring')).answer).length === 2)
    const { status, answer } = await history('monitoring')
    expect(status).toBe(200)
    expect(typesOf(answer).toSorted()).toEqual(['App', 'Sql'])
    expect(answer.HiddenMonitors).toBeUndefined()
  })

  test('W3 the permission health:Sql shows those of Sql only, and counts the others', async () => {
    const { status, answer } = await history('database')
    expect(status).toBe(200)
    expect(typesOf(answer)).toEqual(['Sql'])
    expect(answer.HiddenMonitors).toBeGreaterThan(0)
    expect((await history('database', '?ServerType=App')).status).toBe(403)
    const [own] = answer.Monitors ?? []
    expect((await history('database', `?MonitorName=${own?.MonitorName}`)).answer.Monitors).toHaveLength(1)
  })

  test('W3 a time that history cannot have is refused with the name of the field', async () => {
    for (const since of ['4', '576001', '7.5']) {
      const { status, answer } = await history('monitoring', `?SinceMinutes=${since}`)
      expect(status).toBe(400)
      expect(answer.ResponseStatus).toMatchObject({ Errors: [{ FieldName: 'SinceMinutes' }] })
    }
  })
})
