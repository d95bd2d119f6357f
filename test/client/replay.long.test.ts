import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { CredentialSource } from '../../src/core/client/index.ts'
import { raw } from '../server/site.ts'
import type { Home, Ran } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import {
  admin,
  generations,
  password,
  plain,
  type Replay,
  type ReplayOptions,
  replay,
} from '../support/simulated/replay.ts'
import { basicSql, callWith, clientOf, faultOf } from './asking.ts'

async function replayed(options: ReplayOptions): Promise<Replay> {
  const server = await replay(options)
  onTestFinished(server.close)
  return server
}
async function fixture(options: ReplayOptions): Promise<{ readonly server: Replay; readonly home: Home }> {
  const home = temporaryHome()
  return { server: await replayed(options), home }
}
const login = ({ url }: Replay, home: Home, user = admin, more: readonly string[] = []): Promise<Ran> =>
  home.svc(['login', '--server', url, '-u', user, '--password-stdin', '--insecure-storage', ...more], {
    stdin: password,
  })
const change = { UserName: plain, Roles: ['R2'] }
const hasCredentialsFile = (home: Home): boolean => home.files().some((file) => /^credentials.+json$/.test(file))

const healthDto = (offset: string) => ({
  Status: 'Success',
  StatusMessage: 'm,"q"',
  CorrelationId: 'c1',
  FailedMonitorCount: 0,
  MonitorSummaries: [
    {
      MonitorName: 'Sql',
      Status: 'Success',
      Results: [{ MonitoringName: 'ping', Status: 'Success', StatusMessage: 'ok' }],
      ErrorMessages: [],
    },
  ],
  ExecutionMetrics: {
    StartDateTime: `/Date(1614834367089${offset})/`,
    EndDateTime: `/Date(1614834368323${offset})/`,
    Duration: 'PT1.234S',
  },
})

describe.each(generations)('the commands against a replayed %s', (generation) => {
  test('C4 sign-in, whoami, roles, renewal and sign-out work', { timeout: 60_000 }, async () => {
    const { server, home } = await fixture({ generation })
    const signedIn = await login(server, home)
    expect(signedIn).toMatchObject({ code: 0, stdout: expect.stringContaining(`as ${admin} (roles: Admin)`) })
    const who = await home.svc(['whoami', '--verify', '--json'])
    expect(JSON.parse(who.stdout)).toMatchObject({ signIns: [{ user: admin, roles: ['Admin'], verified: true }] })
    const assigned = await home.svc(['roles', 'assign', plain, '--role', 'R2', '--json'])
    expect([assigned.code, assigned.stderr]).toEqual([0, ''])
    expect(JSON.parse(assigned.stdout)).toMatchObject({ AllRoles: ['R1', 'R2'] })
    const taken = await home.svc(['roles', 'unassign', plain, '--role', 'R1', '--json'])
    expect(JSON.parse(taken.stdout)).toMatchObject({ AllRoles: ['R2'] })

    // C5: one renewal, kept for the next command.
    server.expire()
    const roles = await home.svc(['roles', 'show', plain, '--json'])
    expect(JSON.parse(roles.stdout)).toMatchObject({ AllRoles: ['R2'] })
    expect((await home.svc(['whoami', '--verify'])).code).toBe(0)
    expect(server.renewals()).toBe(1)

    const out = await home.svc(['logout', '--json'])
    // A JWT outlives the sign-out there, which we do not deny.
    expect([out.code, JSON.parse(out.stdout)]).toMatchObject([
      10,
      { signIns: [{ atServer: 'still valid', here: 'forgotten' }] },
    ])
    expect(hasCredentialsFile(home)).toBe(false)
    expect(server.requests.slice(-2).map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /auth/logout',
      'GET /auth',
    ])

    // C1, for everything that was sent.
    for (const { method, headers, body } of server.requests) {
      expect(headers.accept).toBe('application/json')
      if (method === 'POST') expect(headers['content-length']).toBe(String(Buffer.byteLength(body)))
      expect(headers['content-type']).toBe(method === 'POST' ? 'application/json' : undefined)
      expect(headers).not.toHaveProperty('cookie')
      expect(headers).not.toHaveProperty('transfer-encoding')
    }
    expect(new Set(server.requests.map(({ method }) => method))).toEqual(new Set(['GET', 'POST']))
  })

  test('C3 health --json is the document of the interface, whatever the dialect; svc api prints the bytes', async () => {
    const { server, home } = await fixture({ generation })
    const health = ['health', '-m', 'Basic', '-t', 'Sql', '--server', server.url]
    const ran = await home.svc([...health, '--json'])
    // Newer servers write ISO 8601, whose offset is part of the instant.
    const offset = server.replies.at(-1)?.includes('-0500') ? '-0500' : '-0000'
    expect([ran.code, JSON.parse(ran.stdout)]).toEqual([0, healthDto(offset)])
    expect(ran.stdout).toContain(`"StartDateTime":"\\/Date(1614834367089${offset})\\/"`)
    const state = await home.svc([...health, '--json', '--server-state'])
    expect(JSON.parse(state.stdout)).toMatchObject({ ServerState: { ServerName: 'vm', UsedCpuPercent: 12.25 } })
    const csv = await home.svc([...health, '--output', 'csv'])
    expect(csv.stdout).toContain('ping')
    expect(
      server.requests.every(
        ({ headers }) => headers.accept === 'application/vnd.svc.run+json;version=1, application/json',
      ),
    ).toBe(true)
    const raw = await home.svc([
      'api',
      'GET',
      '/healthcheck?ExecutionMode=Basic&ServerType=Sql',
      '--server',
      server.url,
    ])
    expect([raw.code, raw.stdout]).toEqual([0, server.replies.at(-1)])
  })

  test('C2 unhealthy is exit 3 with 503 and with 200', async () => {
    const { server, home } = await fixture({ generation, health: 'failing' })
    const health = ['health', '-m', 'Basic', '-t', 'Mongo', '--server', server.url, '--json']
    for (const more of [[], ['--suppress-error-codes']]) {
      const ran = await home.svc([...health, ...more])
      expect([ran.code, JSON.parse(ran.stdout)]).toMatchObject([3, { Status: 'Failure', FailedMonitorCount: 1 }])
    }
  })

  test('C7 a missing health operation is exit 9 with that reason; all else works', async () => {
    const { server, home } = await fixture({ generation, health: 'absent' })
    const ran = await home.svc(['health', '-m', 'Basic', '-t', 'Sql', '--server', server.url])
    expect(ran.code).toBe(9)
    expect(ran.stderr).toContain('has no health operation (404')
    expect(ran.stderr).toContain('ServiceStack itself has none')
    expect((await login(server, home)).code).toBe(0)
  })

  test('C2 the status decides: 401 is exit 4, 403 exit 5, an unknown user exit 9', async () => {
    const { server, home } = await fixture({ generation })
    const assign = ['roles', 'assign', 'nobody', '--role', 'R2', '--server', server.url]
    const stranger = await home.svc(assign)
    expect([stranger.code, stranger.stdout]).toEqual([4, ''])
    expect(stranger.stderr).toContain(`svc login --server ${server.url}`)
    expect((await login(server, home, plain)).code).toBe(0)
    const powerless = await home.svc(assign)
    expect(powerless.code).toBe(5)
    expect(powerless.stderr).toContain('Admin')
    // A 403 is not a reason to renew anything.
    expect(server.renewals()).toBe(0)
    expect((await login(server, home)).code).toBe(0)
    const unknown = await home.svc(assign)
    expect([unknown.code, unknown.stderr]).toMatchObject([9, expect.stringContaining('nobody')])
  })

  test.each(['in a filter', 'with a login page'] as const)(
    'C2 a refusal %s, without JSON, is understood as well',
    async (refuses) => {
      const server = await replayed({ generation, refuses })
      const fault = await faultOf(clientOf(server.url).assignRoles(change, callWith()))
      expect([fault.fault, fault.exitCode]).toEqual(['Unauthorized', 4])
      if (refuses === 'with a login page') return
      const client = clientOf(server.url)
      const { BearerToken = '' } = await client.authenticate(
        { provider: 'credentials', UserName: plain, Password: password },
        callWith(),
      )
      const refused = client.assignRoles(change, callWith({ credential: { kind: 'bearer', token: BearerToken } }))
      expect(await faultOf(refused)).toMatchObject({ fault: 'Forbidden', details: { remoteStatus: 403 } })
    },
  )

  test('C2 a wrong password is exit 4, an empty one is rejected with its field, 400 or 500', async () => {
    const { server, home } = await fixture({ generation })
    const invalid = await home.svc(
      ['login', '--server', server.url, '-u', admin, '--password-stdin', '--insecure-storage', '--json'],
      { stdin: 'wrong one' },
    )
    expect([invalid.code, JSON.parse(invalid.stdout)]).toMatchObject([4, { error: { code: 'Unauthorized' } }])
    const empty = clientOf(server.url).authenticate(
      { provider: 'credentials', UserName: admin, Password: '' },
      callWith(),
    )
    const fault = await faultOf(empty)
    expect([fault.fault, fault.exitCode, fault.errorCode]).toEqual(['BadRequest', 9, 'ValidationException'])
    expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual(['Password'])
    const nope = clientOf(server.url).authenticate({ provider: 'zzz', UserName: admin, Password: 'x' }, callWith())
    expect(await faultOf(nope)).toMatchObject({ fault: 'NotFound', exitCode: 9 })
  })

  test('C5 a renewal that does not help is not repeated: three requests, then exit 4', async () => {
    const { server, home } = await fixture({ generation, neverContent: true })
    expect((await login(server, home)).code).toBe(0)
    server.expire()
    const before = server.requests.length
    const ran = await home.svc(['roles', 'assign', plain, '--role', 'R2'])
    expect(ran.code).toBe(4)
    const requests = server.requests.slice(before).map(({ path }) => path)
    expect(requests).toEqual(expect.arrayContaining(['/access-token']))
    expect(requests.filter((path) => path === '/access-token')).toHaveLength(1)
    expect(requests.length).toBeLessThanOrEqual(3)
  })

  test.each([
    [false, 'x-ss-id', 'temp'],
    [true, 'x-ss-pid', 'perm'],
  ])('C6 a session instead of tokens works (RememberMe: %s)', async (remember, header, option) => {
    const { server, home } = await fixture({ generation, sessionsOnly: true })
    expect((await login(server, home, admin, remember ? ['--remember-me'] : [])).code).toBe(0)
    const ran = await home.svc(['roles', 'assign', plain, '--role', 'R2', '--json'])
    expect([ran.code, JSON.parse(ran.stdout)]).toMatchObject([0, { AllRoles: ['R1', 'R2'] }])
    expect(server.requests.at(-1)?.headers).toMatchObject({ [header]: server.alive()[0], 'x-ss-opt': option })
    expect((await home.svc(['logout'])).code).toBe(0)
    expect(server.alive()).toEqual([])
  })
})

const postWithoutLength =
  'POST /auth/logout HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nConnection: close\r\n\r\n'

describe('a replayed 5.8', () => {
  test('C1 answers HTML with 200 to requests without Accept, and 411 to those without a length, so the client sends both', async () => {
    const server = await replayed({ generation: '5.8' })
    const page = await fetch(`${server.url}/healthcheck?ExecutionMode=Basic&ServerType=Sql`)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html'])
    const posted = await raw(Number(new URL(server.url).port), postWithoutLength)
    expect(posted.text).toMatch(/^HTTP\/1\.1 411 /)
    await page.body?.cancel()
    const client = clientOf(server.url)
    expect(await client.authenticate({ provider: 'logout' }, callWith())).toEqual({ ResponseStatus: {} })
    expect((await client.healthCheck(basicSql, callWith())).Status).toBe('Success')
    const ask = await client.ask({ method: 'POST', path: '/auth/logout', headers: [], body: undefined }, callWith())
    expect(ask.status).toBe(200)
  })
})

describe('features that a JWT server lacks', () => {
  test.each(generations)('svc logout and a lent token warn that %s does not revoke its tokens', async (generation) => {
    const { server, home } = await fixture({ generation })
    await login(server, home)
    const out = await home.svc(['logout'])
    expect(out.code).toBe(10)
    expect(out.stdout).toMatch(/^Partly signed out of .*\n {2}at the server: .*stays valid until it expires/)
    const lent = await home.svc(
      ['login', '--server', server.url, '-u', admin, '--password-stdin', '--', process.execPath, '-e', '0'],
      { stdin: password },
    )
    expect(lent.code).toBe(0)
    expect(lent.stderr).toContain('stays valid until it expires')
  })

  test.each(generations)(
    'svc whoami --verify does not recommend --verify where %s reports no user name',
    async (generation) => {
      const { server, home } = await fixture({ generation })
      const sign = { provider: 'credentials', UserName: admin, Password: password }
      const { BearerToken = '' } = await clientOf(server.url).authenticate(sign, callWith())
      const ran = await home.svc(['whoami', '--verify', '--server', server.url], { env: { SVC_TOKEN: BearerToken } })
      expect(ran.code).toBe(0)
      expect(ran.stdout).toMatch(/^user +not reported by the server\n/)
      expect(ran.stdout).not.toContain('without --verify')
    },
  )
})

describe('concurrent calls', () => {
  test('C5 a file of changes with an expired token renews once', async () => {
    const { server, home } = await fixture({ generation: '6.9' })
    await login(server, home)
    server.expire()
    const file = join(home.folder, 'changes.csv')
    writeFileSync(file, `UserName,Roles\n${Array.from({ length: 8 }, (_, at) => `${plain},N${at}`).join('\n')}\n`)
    const ran = await home.svc(['roles', 'assign', '--from-file', file])
    expect([ran.code, server.renewals()]).toEqual([0, 1])
  })

  test('C5 concurrent calls of one client share the renewed token, and each is repeated once', async () => {
    const server = await replayed({ generation: '5.8' })
    const client = clientOf(server.url)
    const sign = { provider: 'credentials', UserName: admin, Password: password }
    const { BearerToken = '', RefreshToken = '' } = await client.authenticate(sign, callWith())
    server.expire()
    let token = BearerToken
    let under: Promise<void> | undefined
    const credential: CredentialSource = {
      always: false,
      current: async () => ({ kind: 'bearer', token }),
      renew: async () => {
        under ??= client.getAccessToken({ RefreshToken }, callWith()).then(({ accessToken = '' }) => {
          token = accessToken
        })
        await under
        return { kind: 'bearer', token }
      },
    }
    const before = server.requests.length
    const signedIn = clientOf(server.url, { credential })
    await Promise.all(Array.from({ length: 5 }, () => signedIn.assignRoles(change, callWith())))
    expect(server.renewals()).toBe(1)
    expect(server.requests.length - before).toBe(5 + 1 + 5)
  })
})

test('C8 a server that reports no roles is not said to have granted none', { timeout: 60_000 }, async () => {
  const { server, home } = await fixture({ generation: '5.8', reportsRoles: false })
  const signedIn = await login(server, home)
  expect(signedIn).toMatchObject({ code: 0, stdout: expect.stringContaining('(this server does not report roles)') })
  const who = await home.svc(['whoami', '--verify'])
  expect(who.stdout).toMatch(/^roles +not reported by this server$/m)
  expect(who.stdout).toMatch(/^permissions +not reported by this server$/m)
  const { signIns } = JSON.parse((await home.svc(['whoami', '--verify', '--json'])).stdout)
  expect(signIns).toMatchObject([{ verified: true }])
  expect(signIns[0]).not.toHaveProperty('roles')
  const doctor = await home.svc(['doctor'])
  expect(doctor.stdout).toMatch(/^sign-in\tok\tsigned in as .* \(this server does not report roles\)/m)
})
