import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { openClient } from '../../src/core/client/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { ExecutionMode, type HealthCheckRequest, ServerType } from '../../src/core/protocol/index.ts'
import {
  type AnswerFacts,
  type Call,
  type Credential,
  type Service,
  serveDefaults,
} from '../../src/core/protocol/service/service.ts'
import { startServer } from '../../src/core/server/index.ts'
import { testCore } from '../support/engine/core.ts'
import { localReader } from '../support/engine/peer-process.ts'
import { adminOver, type TestAdmin } from '../support/store/admin.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

type Opened = { readonly service: Service; readonly admin: TestAdmin; readonly close: () => Promise<void> }

const folder = temporaryFolder()

const core = async (shared: boolean, store: string) =>
  testCore({
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store: join(folder, store, 'svc.db'),
    shared,
  })

const by = { who: 'local:tester', correlationId: 'contract' }
const password = 'violet-harbour-42'

/** Ann is Admin, Ned has no role. */
async function withUsers(service: Service): Promise<TestAdmin> {
  const admin = adminOver(service)
  await admin.users.add({ userName: 'Ann', displayName: 'Ann Example', password, roles: ['Admin', 'Editor'] }, by)
  await admin.users.add({ userName: 'Ned', email: 'ned@example.com', password }, by)
  return admin
}

async function inProcess(): Promise<Opened> {
  const { service, runtime } = await core(false, 'local')
  return { service, admin: await withUsers(service), close: runtime.close }
}

async function overHttp(): Promise<Opened> {
  const { service, runtime } = await core(true, 'http')
  const server = await startServer({
    service,
    runtime,
    options: serveDefaults,
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    log: () => {},
  })
  const client = openClient({ baseUrl: server.url, userAgent: 'svc-contract' })
  return {
    service: client,
    admin: await withUsers(service),
    close: async () => {
      client.close()
      await server.stop()
      await runtime.close()
    },
  }
}

const call = (more: Partial<Call> = {}): Call => ({
  caller: { kind: 'local', account: 'tester' },
  correlationId: 'contract-1',
  signal: new AbortController().signal,
  ...more,
})
/** A caller over HTTP is anonymous unless it presents a credential. */
const as = (credential?: Credential | undefined): Call =>
  call({ caller: { kind: 'http', address: '127.0.0.1', loopback: true, process: localReader }, credential })
const ask = (more: Partial<HealthCheckRequest> = {}): HealthCheckRequest => ({
  ExecutionMode: 'Basic',
  ServerType: 'App',
  ...more,
})

/** The rules of every Service, wherever it is computed. */
describe.each([
  ['in process', inProcess],
  ['over HTTP', overHttp],
])('a Service %s', (_, open) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await open()
  })
  afterAll(() => opened.close())

  test('H1 a healthy type is Success, with no failed monitor and its metrics', async () => {
    const answer = await opened.service.healthCheck(ask(), call())
    expect(answer).toMatchObject({ Status: 'Success', FailedMonitorCount: 0 })
    expect(answer.MonitorSummaries?.map((summary) => summary.MonitorName)).toContain('self svc')
    expect(answer.ExecutionMetrics?.StartDateTime).toBeInstanceOf(Date)
    expect(answer.ExecutionMetrics?.Duration).toBeGreaterThan(0)
  })

  test('H1 a failure is an answer like any other, whichever way it travels', async () => {
    const answer = await opened.service.healthCheck(ask({ ServerType: 'Mongo' }), call())
    expect(answer).toMatchObject({ Status: 'Failure', FailedMonitorCount: 1 })
    expect(answer.StatusMessage).toContain('Mongo is not configured here: add it under types: in svc.yaml')
  })

  test('H2 SuppressErrorCodes does not change the answer', async () => {
    const answer = await opened.service.healthCheck(ask({ ServerType: 'Mongo', SuppressErrorCodes: true }), call())
    expect(answer.Status).toBe('Failure')
  })

  test('H4 server state is present only on request', async () => {
    expect((await opened.service.healthCheck(ask(), call())).ServerState).toBeUndefined()
    const { ServerState: state } = await opened.service.healthCheck(
      ask({ IncludeServerStateInformation: true }),
      call(),
    )
    expect(state?.TotalRamInMb).toBeGreaterThan(0)
  })

  test('H6 the answer carries the correlation id of the call', async () => {
    expect((await opened.service.healthCheck(ask(), call({ correlationId: 'abc-123' }))).CorrelationId).toBe('abc-123')
  })

  test('the details beside the answer are recorded once', async () => {
    const noted: AnswerFacts[] = []
    await opened.service.healthCheck(ask(), call({ note: (facts) => noted.push(facts) }))
    expect(noted).toHaveLength(1)
    expect(noted[0]?.ageSeconds).toBeGreaterThanOrEqual(0)
  })

  test('a selection omits what it does not name, and reports when it matches nothing', async () => {
    const only = await opened.service.healthCheck(ask(), call({ selection: { only: ['uptime'], skip: [] } }))
    expect(only.MonitorSummaries?.map((summary) => summary.MonitorName)).toEqual(['host'])
    const nothing = opened.service.healthCheck(ask(), call({ selection: { only: ['nonsense'], skip: [] } }))
    await expect(nothing).rejects.toMatchObject({ fault: 'Usage' })
  })

  test('an aborted call rejects with the reason of its signal', async () => {
    const controller = new AbortController()
    const reason = new Fault('Interrupted')
    const pending = opened.service.healthCheck(ask({ ExecutionMode: 'Advanced' }), call({ signal: controller.signal }))
    controller.abort(reason)
    await expect(pending).rejects.toBe(reason)
  })

  test('each type answers in each mode', async () => {
    for (const type of ServerType.values) {
      for (const mode of ExecutionMode.values.slice(0, 1)) {
        const answer = await opened.service.healthCheck(ask({ ServerType: type, ExecutionMode: mode }), call())
        expect([type, answer.Status]).toEqual([type, expect.stringMatching(/^(Success|Failure)$/)])
        expect(answer.MonitorSummaries?.length).toBeGreaterThan(0)
      }
    }
  })

  const signIn = (more: object = {}, presenting: Credential | undefined = undefined) =>
    opened.service.authenticate(
      { provider: 'credentials', UserName: 'Ann', Password: password, ...more },
      as(presenting),
    )
  const session = (secret: string | undefined): Credential => ({ kind: 'session', secret: secret ?? '' })
  const bearer = (token: string | undefined): Credential => ({ kind: 'bearer', token: token ?? '' })
  const whoIs = (credential: Credential | undefined) =>
    opened.service.authenticate({}, { ...as(credential), verb: 'GET' })
  const signOut = (credential: Credential | undefined) =>
    opened.service.authenticate({ provider: 'logout' }, as(credential))
  const refusal = async (pending: Promise<unknown>) => {
    const fault = await pending.then(
      () => expect.fail('It was not refused'),
      (error: unknown) => error,
    )
    expect(fault).toBeInstanceOf(Fault)
    const { fault: name, errorCode, details } = fault as Fault
    return { name, errorCode, fields: (details.fields ?? []).map(({ FieldName }) => FieldName) }
  }
  const unauthorized = { name: 'Unauthorized', errorCode: 'Unauthorized', fields: [] }

  test('A2 a sign-in returns the details of the user and three secrets', async () => {
    const answer = await signIn({ UserName: 'aNN' })
    expect(answer).toMatchObject({
      UserId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      UserName: 'aNN',
      DisplayName: 'Ann Example',
      Roles: ['Admin', 'Editor'],
      Permissions: [],
    })
    const secrets = [answer.SessionId, answer.BearerToken, answer.RefreshToken]
    expect(new Set(secrets).size).toBe(3)
    expect(secrets).not.toContain(undefined)
  })

  test('A3 a wrong password and an unknown user get the same refusal', async () => {
    expect(await refusal(signIn({ Password: 'wrong' }))).toEqual(unauthorized)
    expect(await refusal(signIn({ UserName: 'Nobody' }))).toEqual(unauthorized)
  })

  test('A4 empty fields are named', async () => {
    const fields = ['UserName', 'Password']
    expect(await refusal(signIn({ UserName: '', Password: '' }))).toEqual({
      name: 'BadRequest',
      errorCode: 'ValidationException',
      fields,
    })
  })

  test('A5 an unknown provider is not found', async () => {
    expect(await refusal(signIn({ provider: 'nope' }))).toMatchObject({ errorCode: 'NotFound' })
  })

  test('A6 the signed-in user is reported, by session and by bearer token, without a token', async () => {
    const { SessionId, BearerToken, UserId } = await signIn()
    const facts = { UserId, UserName: 'Ann', DisplayName: 'Ann Example', Roles: ['Admin', 'Editor'], Permissions: [] }
    expect(await whoIs(session(SessionId))).toEqual({ ...facts, SessionId })
    expect(await whoIs(bearer(BearerToken))).toEqual(facts)
    expect(await refusal(whoIs(bearer('garbage')))).toEqual(unauthorized)
    expect(await refusal(whoIs(undefined))).toEqual(unauthorized)
  })

  test('A6 a remembered session works as well', async () => {
    const { SessionId } = await signIn({ RememberMe: true })
    const presenting = { kind: 'session', secret: SessionId ?? '', permanent: true } as const
    expect(await whoIs(presenting)).toMatchObject({ UserName: 'Ann', SessionId })
  })

  test('A7 a sign-out ends session, token and refresh token, and a second sign-out is not an error', async () => {
    for (const pick of ['SessionId', 'BearerToken'] as const) {
      const { SessionId, BearerToken, RefreshToken } = await signIn()
      const presenting = pick === 'SessionId' ? session(SessionId) : bearer(BearerToken)
      expect(await signOut(presenting)).toEqual({})
      expect(await refusal(whoIs(session(SessionId)))).toEqual(unauthorized)
      expect(await refusal(whoIs(bearer(BearerToken)))).toEqual(unauthorized)
      expect(await refusal(opened.service.getAccessToken({ RefreshToken }, as()))).toEqual(unauthorized)
      expect(await signOut(presenting)).toEqual({})
    }
    expect(await signOut(undefined)).toEqual({})
  })

  test('A8 a sign-in ends the session that the request presents', async () => {
    const { SessionId } = await signIn()
    const next = await signIn({}, session(SessionId))
    expect(await refusal(whoIs(session(SessionId)))).toEqual(unauthorized)
    expect(await whoIs(session(next.SessionId))).toMatchObject({ UserName: 'Ann' })
  })

  test('A11 a refresh token yields access tokens repeatedly', async () => {
    const { RefreshToken } = await signIn()
    for (let i = 0; i < 3; i += 1) {
      const { accessToken, refreshToken } = await opened.service.getAccessToken({ RefreshToken }, as())
      expect(refreshToken).toBeUndefined()
      expect(await whoIs(bearer(accessToken))).toMatchObject({ UserName: 'Ann' })
    }
  })

  test('A11 a rotating token also yields its successor, and the same one when it is repeated at once', async () => {
    const { RefreshToken } = await signIn({ Meta: { refresh: 'rotate' } })
    const pair = await opened.service.getAccessToken({ RefreshToken }, as())
    expect(pair.refreshToken).not.toBe(RefreshToken)
    expect(await opened.service.getAccessToken({ RefreshToken }, as())).toEqual(pair)
    const after = await opened.service.getAccessToken({ RefreshToken: pair.refreshToken }, as())
    expect(await whoIs(bearer(after.accessToken))).toMatchObject({ UserName: 'Ann' })
  })

  test('A11 a missing refresh token, or another kind in its place, is named', async () => {
    const { BearerToken } = await signIn()
    for (const request of [{}, { RefreshToken: 'garbage' }, { RefreshToken: BearerToken }]) {
      const { name, fields } = await refusal(opened.service.getAccessToken(request, as()))
      expect([name, fields]).toEqual(['BadRequest', ['RefreshToken']])
    }
  })

  test('T5 no kind of token substitutes for another', async () => {
    const { SessionId, BearerToken, RefreshToken } = await signIn()
    for (const invalid of [bearer(RefreshToken), bearer(SessionId), session(BearerToken), session(RefreshToken)]) {
      expect(await refusal(whoIs(invalid))).toEqual(unauthorized)
    }
  })

  test.each(['assignRoles', 'unAssignRoles'] as const)(
    'O1 %s checks the caller before the request',
    async (operation) => {
      const change = (request: object, credential?: Credential) => opened.service[operation](request, as(credential))
      const [admin, other] = [await signIn(), await signIn({ UserName: 'Ned' })]
      expect(await refusal(change({}))).toEqual(unauthorized)
      expect(await refusal(change({}, bearer('garbage')))).toEqual(unauthorized)
      expect(await refusal(change({}, bearer(other.BearerToken)))).toMatchObject({ name: 'Forbidden' })
      const asAdmin = bearer(admin.BearerToken)
      expect(await refusal(change({}, asAdmin))).toEqual({
        name: 'BadRequest',
        errorCode: 'ArgumentNullException',
        fields: ['UserName'],
      })
      expect(await refusal(change({ UserName: 'nobody' }, asAdmin))).toMatchObject({ errorCode: 'NotFound' })
      expect(await change({ UserName: 'Ann' }, asAdmin)).toMatchObject({ AllRoles: ['Admin', 'Editor'] })
    },
  )

  test('O2 a change returns the complete lists after it, and O3 changes nothing twice', async () => {
    const { BearerToken } = await signIn()
    const { assignRoles, unAssignRoles } = opened.service
    const asAdmin = as(bearer(BearerToken))
    await opened.admin.users.add({ userName: 'Lists' }, by)
    const request = { UserName: 'lists', Roles: ['B', 'A', 'B'], Permissions: ['p'] }
    const lists = { AllRoles: ['B', 'A'], AllPermissions: ['p'] }
    expect(await assignRoles(request, asAdmin)).toEqual(lists)
    expect(await assignRoles(request, asAdmin)).toEqual(lists)
    expect(await unAssignRoles({ UserName: 'Lists', Roles: ['Z'] }, asAdmin)).toEqual(lists)
    const left = { AllRoles: ['A'], AllPermissions: [] }
    expect(await unAssignRoles({ UserName: 'Lists', Roles: ['B'], Permissions: ['p'] }, asAdmin)).toEqual(left)
    expect(await assignRoles({ UserName: 'Lists' }, asAdmin)).toEqual(left)
  })

  test('O5 a grant and a revocation apply from the next call on', async () => {
    const [admin, other] = [await signIn(), await signIn({ UserName: 'ned@example.com' })]
    const { assignRoles, unAssignRoles } = opened.service
    const asAdmin = as(bearer(admin.BearerToken))
    for (const credential of [bearer(other.BearerToken), session(other.SessionId)]) {
      const look = () => assignRoles({ UserName: 'Ann' }, as(credential))
      expect(await refusal(look())).toMatchObject({ name: 'Forbidden' })
      await assignRoles({ UserName: 'Ned', Roles: ['Admin'] }, asAdmin)
      expect(await look()).toMatchObject({ AllRoles: ['Admin', 'Editor'] })
      await unAssignRoles({ UserName: 'Ned', Roles: ['Admin'] }, asAdmin)
      expect(await refusal(look())).toMatchObject({ name: 'Forbidden' })
    }
  })

  test('H14 without a configuration, the types that check svc itself are listed, without any credential', async () => {
    expect(await opened.service.serverTypes({}, as(undefined))).toEqual({
      Types: ['App', 'Sql', 'Identity'],
      Configured: false,
    })
  })

  test('O6 the last Admin remains', async () => {
    const { BearerToken } = await signIn()
    const last = opened.service.unAssignRoles({ UserName: 'Ann', Roles: ['Admin'] }, as(bearer(BearerToken)))
    expect(await refusal(last)).toMatchObject({ name: 'Conflict', errorCode: 'Conflict' })
  })

  const own = (credential: Credential | undefined) => as(credential)
  const other = 'copper-lantern-77'
  const newUser = async (userName: string): Promise<void> => {
    await opened.admin.users.add({ userName, password }, by)
  }

  test('P9 a user changes the own password, and everything issued before ends, on each way to present it', async () => {
    await newUser('Pia')
    const [elsewhere, here] = [await signIn({ UserName: 'Pia' }), await signIn({ UserName: 'Pia' })]
    const change = { CurrentPassword: password, NewPassword: other }
    const answer = await opened.service.changePassword(change, own(bearer(here.BearerToken)))
    expect(answer.RememberMe).toBe(false)
    for (const ended of [elsewhere, here]) {
      expect(await refusal(whoIs(bearer(ended.BearerToken)))).toEqual(unauthorized)
      expect(await refusal(whoIs(session(ended.SessionId)))).toEqual(unauthorized)
      const { RefreshToken } = ended
      expect(await refusal(opened.service.getAccessToken({ RefreshToken }, as()))).toEqual(unauthorized)
    }
    expect(await whoIs(bearer(answer.BearerToken))).toMatchObject({ UserName: 'Pia' })
    expect(await whoIs(session(answer.SessionId))).toMatchObject({ UserName: 'Pia' })
    const { RefreshToken } = answer
    const { accessToken } = await opened.service.getAccessToken({ RefreshToken }, as())
    expect(await whoIs(bearer(accessToken))).toMatchObject({ UserName: 'Pia' })
    expect(await refusal(signIn({ UserName: 'Pia' }))).toEqual(unauthorized)
    expect(await signIn({ UserName: 'Pia', Password: other })).toMatchObject({ UserName: 'Pia' })
    const [entry] = (await opened.admin.audit.list({ limit: 20 })).filter(({ event }) => event === 'password.changed')
    expect(entry).toMatchObject({ who: 'Pia', target: 'Pia' })
  })

  test('P9 the new session keeps RememberMe and the kind of its refresh token', async () => {
    await newUser('Rita')
    const before = await signIn({ UserName: 'Rita', RememberMe: true, Meta: { refresh: 'rotate' } })
    const change = { CurrentPassword: password, NewPassword: other }
    const presenting = { kind: 'session', secret: before.SessionId ?? '', permanent: true } as const
    const { RememberMe, RefreshToken } = await opened.service.changePassword(change, own(presenting))
    expect(RememberMe).toBe(true)
    expect((await opened.service.getAccessToken({ RefreshToken }, as())).refreshToken).toBeDefined()
  })

  test('P9 a wrong current password is refused, counted and audited like a failed sign-in, and ends nothing', async () => {
    await newUser('Quentin')
    const { BearerToken } = await signIn({ UserName: 'Quentin' })
    const change = { CurrentPassword: 'wrong', NewPassword: other }
    expect(await refusal(opened.service.changePassword(change, own(bearer(BearerToken))))).toEqual({
      name: 'BadRequest',
      errorCode: 'ValidationException',
      fields: ['CurrentPassword'],
    })
    expect(await whoIs(bearer(BearerToken))).toMatchObject({ UserName: 'Quentin' })
    expect(await signIn({ UserName: 'Quentin' })).toMatchObject({ UserName: 'Quentin' })
    const entries = await opened.admin.audit.list({ limit: 10 })
    expect(entries.map(({ event, target }) => [event, target])).toContainEqual(['signin.failed', 'Quentin'])
  })

  test('P9 the policy applies to the new password, which must differ from the current one', async () => {
    await newUser('Oskar')
    const { BearerToken } = await signIn({ UserName: 'Oskar' })
    for (const NewPassword of ['Welcome@123', 'oskar-1999', 'short', '', password]) {
      const change = { CurrentPassword: password, NewPassword }
      const refused = await refusal(opened.service.changePassword(change, own(bearer(BearerToken))))
      expect([NewPassword, refused.fields]).toEqual([NewPassword, ['NewPassword']])
    }
    const both = await refusal(opened.service.changePassword({}, own(bearer(BearerToken))))
    expect(both.fields).toEqual(['CurrentPassword', 'NewPassword'])
  })

  test('P9 T8 own password and sessions need a sign-in, and a key does not count as one', async () => {
    const { secret } = await opened.admin.keys.create({ name: 'for-ann', userName: 'Ann' }, by)
    for (const attempt of [
      (credential?: Credential) =>
        opened.service.changePassword({ CurrentPassword: password, NewPassword: other }, own(credential)),
      (credential?: Credential) => opened.service.getSessions({}, own(credential)),
      (credential?: Credential) => opened.service.endSession({ All: true }, own(credential)),
    ]) {
      expect(await refusal(attempt())).toEqual(unauthorized)
      expect(await refusal(attempt(bearer('garbage')))).toEqual(unauthorized)
      expect(await refusal(attempt(bearer(secret)))).toMatchObject({ name: 'Forbidden' })
    }
  })

  test('T8 a user lists the own sessions, the present one marked, without any secret', async () => {
    await newUser('Lena')
    const [first, second] = [await signIn({ UserName: 'Lena', RememberMe: true }), await signIn({ UserName: 'Lena' })]
    const answer = await opened.service.getSessions({}, own(bearer(second.BearerToken)))
    expect(answer.UserName).toBe('Lena')
    expect(answer.Sessions).toHaveLength(2)
    expect(answer.Sessions?.find(({ Current }) => Current)).toMatchObject({
      RememberMe: false,
      Provider: 'credentials',
    })
    const earlier = answer.Sessions?.find(({ Current }) => !Current)
    expect(earlier).toMatchObject({ Id: expect.stringMatching(/^[0-9a-f-]{36}$/), RememberMe: true })
    for (const time of [earlier?.CreatedAt, earlier?.LastUsedAt, earlier?.ExpiresAt]) expect(time).toBeInstanceOf(Date)
    const text = JSON.stringify(answer)
    for (const one of [first, second]) {
      for (const secret of [one.SessionId, one.BearerToken, one.RefreshToken]) expect(text).not.toContain(secret)
    }
    // The id is not a credential.
    for (const credential of [session(earlier?.Id), bearer(earlier?.Id)]) {
      expect(await refusal(whoIs(credential))).toEqual(unauthorized)
    }
  })

  test('T8 an ended session is refused from the next request on, and its tokens too', async () => {
    await newUser('Emil')
    const [gone, here] = [await signIn({ UserName: 'Emil' }), await signIn({ UserName: 'Emil' })]
    const sessions = (await opened.service.getSessions({}, own(bearer(here.BearerToken)))).Sessions
    const Id = sessions?.find(({ Current }) => !Current)?.Id
    expect(await opened.service.endSession({ Id }, own(bearer(here.BearerToken)))).toEqual({ Ended: 1 })
    expect(await refusal(whoIs(bearer(gone.BearerToken)))).toEqual(unauthorized)
    expect(await refusal(whoIs(session(gone.SessionId)))).toEqual(unauthorized)
    const { RefreshToken } = gone
    expect(await refusal(opened.service.getAccessToken({ RefreshToken }, as()))).toEqual(unauthorized)
    expect(await whoIs(bearer(here.BearerToken))).toMatchObject({ UserName: 'Emil' })
    expect(await refusal(opened.service.endSession({ Id }, own(bearer(here.BearerToken))))).toMatchObject({
      name: 'NotFound',
    })
    const [entry] = await opened.admin.audit.list({ limit: 1 })
    expect(entry).toMatchObject({ event: 'session.ended', who: 'Emil', target: 'Emil' })
  })

  test('T8 all other sessions end, and the present one goes on in each of its forms', async () => {
    await newUser('Hugo')
    const others = [await signIn({ UserName: 'Hugo' }), await signIn({ UserName: 'Hugo', RememberMe: true })]
    const here = await signIn({ UserName: 'Hugo', Meta: { refresh: 'rotate' } })
    expect(await opened.service.endSession({ Others: true }, own(session(here.SessionId)))).toEqual({ Ended: 2 })
    for (const ended of others) expect(await refusal(whoIs(bearer(ended.BearerToken)))).toEqual(unauthorized)
    expect(await whoIs(bearer(here.BearerToken))).toMatchObject({ UserName: 'Hugo' })
    expect(await whoIs(session(here.SessionId))).toMatchObject({ UserName: 'Hugo' })
    const { RefreshToken } = here
    const { accessToken } = await opened.service.getAccessToken({ RefreshToken }, as())
    expect(await whoIs(bearer(accessToken))).toMatchObject({ UserName: 'Hugo' })
    expect(await opened.service.endSession({ Others: true }, own(bearer(accessToken)))).toEqual({ Ended: 0 })
    expect(await opened.service.endSession({ All: true }, own(bearer(accessToken)))).toEqual({ Ended: 1 })
    expect(await refusal(whoIs(bearer(accessToken)))).toEqual(unauthorized)
  })

  test('T8 exactly one of Id, Others and All is required', async () => {
    const { BearerToken } = await signIn({ UserName: 'Ned' })
    for (const request of [{}, { Id: 'x', All: true }, { Others: true, All: true }, { Others: false }]) {
      const { fields } = await refusal(opened.service.endSession(request, own(bearer(BearerToken))))
      expect(fields).toEqual(['Id'])
    }
  })

  test('T8 only an Admin lists and ends the sessions of another user', async () => {
    await newUser('Olga')
    const [olga, ned, ann] = [await signIn({ UserName: 'Olga' }), await signIn({ UserName: 'Ned' }), await signIn()]
    const asNed = own(bearer(ned.BearerToken))
    for (const UserName of ['Olga', 'nobody-at-all']) {
      expect(await refusal(opened.service.getSessions({ UserName }, asNed))).toMatchObject({ name: 'Forbidden' })
      const end = opened.service.endSession({ UserName, All: true }, asNed)
      expect(await refusal(end)).toMatchObject({ name: 'Forbidden' })
    }
    expect((await opened.service.getSessions({ UserName: 'ned@example.com' }, asNed)).UserName).toBe('Ned')
    const asAnn = own(bearer(ann.BearerToken))
    const { Sessions = [] } = await opened.service.getSessions({ UserName: 'Olga' }, asAnn)
    expect(Sessions.map(({ Current }) => Current)).toEqual([false])
    // With an id of another user, who has no such session.
    expect(await refusal(opened.service.endSession({ Id: Sessions[0]?.Id }, asNed))).toMatchObject({ name: 'NotFound' })
    expect(await opened.service.endSession({ UserName: 'Olga', Others: true }, asAnn)).toEqual({ Ended: 1 })
    expect(await refusal(whoIs(bearer(olga.BearerToken)))).toEqual(unauthorized)
    expect(await whoIs(bearer(ann.BearerToken))).toMatchObject({ UserName: 'Ann' })
    const missing = opened.service.getSessions({ UserName: 'nobody-at-all' }, asAnn)
    expect(await refusal(missing)).toMatchObject({ name: 'NotFound' })
  })

  test('T2 a disabled user is anonymous from the next call on', async () => {
    await opened.admin.users.add({ userName: 'Gone', password }, by)
    const { BearerToken, SessionId } = await signIn({ UserName: 'Gone' })
    expect(await whoIs(bearer(BearerToken))).toMatchObject({ UserName: 'Gone' })
    await opened.admin.users.disable('Gone', by)
    expect(await refusal(whoIs(bearer(BearerToken)))).toEqual(unauthorized)
    expect(await refusal(whoIs(session(SessionId)))).toEqual(unauthorized)
    expect(await refusal(signIn({ UserName: 'Gone' }))).toEqual(unauthorized)
  })
})
