import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { generalizedTime, parseRepsFrom, passwordExpiry } from '../../../src/core/checks/kinds/ldap/active-directory.ts'
import ldap from '../../../src/core/checks/kinds/ldap/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { finds } from '../../support/engine/finds.ts'
import { checked, evaluated, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import {
  accountFaults,
  administrator,
  type Domain,
  domainBase,
  reader,
  sambaMissing,
  startDomain,
} from '../../support/servers/samba.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const minute = 60_000
const hour = 60 * minute
const later = (ms: number): RunKindOptions => ({ date: () => new Date(Date.now() + ms) })

peerSuite(sambaMissing, 'ldap with Active Directory (Samba)', () => {
  let domain: Domain
  beforeAll(async () => {
    domain = await startDomain({ controllers: 2 })
  }, 150_000)
  afterAll(() => domain?.remove())

  type Settings = Parameters<typeof runKind<typeof ldap.settings>>[1]
  const look = (
    {
      url,
      user = reader.user,
      password = reader.password,
      ...settings
    }: Omit<Settings, 'password'> & { readonly url: string; readonly password?: string },
    mode: ExecutionMode = 'Standard',
    options: RunKindOptions = {},
  ) => runKind(ldap, { url, username: user, password: secret(password), ...settings }, mode, options)

  test('an account without privileges sees all that the checks need', async () => {
    const results = await look({ url: domain.second.url }, 'Advanced')
    expect(results.map(({ check, status }) => `${check} ${status}`)).toEqual([
      'connect ok',
      'bind ok',
      'rootDSE ok',
      'search ok',
      'clock ok',
      'password expiry ok',
      'synchronized ok',
      'replication DC1 ok',
    ])
  })
  test('its clock is compared with that of this machine, in either direction', async () => {
    for (const [ms, status] of [
      [2 * minute, 'warning'],
      [-2 * minute, 'warning'],
      [6 * minute, 'failed'],
    ] as const) {
      const result = checked(await look({ url: domain.first.url }, 'Standard', later(ms)), 'clock')
      expect(result).toMatchObject({ status, measurement: { unit: 'milliseconds' } })
      expect(result.message).toContain(ms > 0 ? 'is behind this machine by' : 'is ahead of this machine by')
    }
  })
  test('a password that expires soon is a warning, then a failure, however the account is written', async () => {
    const names = [reader.user, 'EXAMPLE\\reader', `CN=reader,CN=Users,${domainBase}`]
    for (const [days, status] of [
      [10, 'warning'],
      [2, 'failed'],
    ] as const) {
      domain.tool(...accountFaults.expiresIn(days))
      for (const user of names) {
        await finds(look({ url: domain.first.url, user }), [
          'password expiry',
          { status, measurement: { unit: 'milliseconds', bound: 'atLeast' } },
        ])
      }
    }
    domain.tool(...accountFaults.expiresIn(0))
    await finds(look({ url: domain.first.url }), 'password expiry ok: …does not expire…')
  })
  test('a controller that receives nothing from the others is not ok', async () => {
    const results = await look({ url: domain.first.url, ...administrator }, 'Advanced')
    expect(checked(results, 'replication')).toMatchObject({ status: 'warning', notChecked: 'permission' })
    await finds(results, 'replication: …the domain has 2 domain controllers…')
  })
  test('a controller whose partner is gone warns after an hour and fails after a day (the hours are simulated)', async () => {
    domain.stopFirst()
    for (const [ms, status] of [
      [0, 'ok'],
      [2 * hour, 'warning'],
      [25 * hour, 'failed'],
    ] as const) {
      // The reader's last state may not have arrived here before its controller ended.
      const settings = { url: domain.second.url, ...administrator }
      await finds(look(settings, 'Advanced', later(ms)), [
        'replication DC1',
        { status, measurement: { unit: 'milliseconds', bound: 'atMost' } },
      ])
    }
  })
})

peerSuite(sambaMissing, 'ldap with a single controller of Active Directory (Samba)', () => {
  test('has no partners, and is ok', async () => {
    const domain = await startDomain()
    onTestFinished(() => domain.remove())

    const settings = { url: domain.first.url, username: reader.user, password: secret(reader.password) }
    await finds(runKind(ldap, settings, 'Advanced'), 'replication ok')
  }, 100_000)
})

test('the times of Active Directory are read, and nothing else counts as a time', () => {
  expect(generalizedTime('20261122160440.0Z')).toBe(Date.UTC(2026, 10, 22, 16, 4, 40))
  for (const written of ['', '20261122160440', 'now', '20269922160440.0Z'])
    expect(generalizedTime(written)).toBeUndefined()
})

test('a value of repsFrom that is too short or of another version is skipped', () => {
  const value = Buffer.alloc(200)
  expect(parseRepsFrom(value, 'DC=a')).toBeUndefined()
  value.writeUInt32LE(2, 0)
  expect(parseRepsFrom(value.subarray(0, 175), 'DC=a')).toBeUndefined()
  expect(parseRepsFrom(value, 'DC=a')).toMatchObject({ succeededAt: undefined, failures: 0 })
})

test('an account that may not read when its password expires is a warning with the grant', () => {
  for (const written of [undefined, '', 'x'])
    expect(evaluated(passwordExpiry, { address: 'a:1', user: 'u', written, now: 0 })).toMatchObject([
      { status: 'warning', notChecked: 'permission', message: expect.stringContaining('dsacls') },
    ])
})
