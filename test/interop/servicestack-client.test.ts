import {
  fromXsdDuration,
  type IReturn,
  JsonApiClient,
  JsonServiceClient,
  type ResponseStatus,
  toDate,
} from '@servicestack/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  AssignRoles,
  Authenticate,
  type AuthenticateResponse,
  HealthCheckRequest,
  type HealthCheckResponse,
  UnAssignRoles,
} from './dtos.ts'
import { password, serveBuilt, serveShortLived } from './served.ts'

const ann = (more: Partial<Authenticate> = {}): Authenticate =>
  new Authenticate({ provider: 'credentials', UserName: 'Ann', Password: password, ...more })
const health = (more: Partial<HealthCheckRequest> = {}): HealthCheckRequest =>
  new HealthCheckRequest({ ExecutionMode: 'Basic', ServerType: 'App', ...more })

/** The error with which the client rejects. */
async function refusal(attempt: Promise<unknown>): Promise<ResponseStatus> {
  const outcome = await attempt.then(
    (value) => expect.fail(`this should have been refused: ${JSON.stringify(value)}`),
    (error: { responseStatus: ResponseStatus }) => error,
  )
  return outcome.responseStatus
}

describe('@servicestack/client, unmodified, with svc serve', () => {
  let server: Awaited<ReturnType<typeof serveBuilt>>
  beforeAll(async () => {
    server = await serveBuilt()
  })
  afterAll(() => server.close())

  /** How its versions and options address a server. */
  const kinds: readonly (readonly [string, () => JsonServiceClient])[] = [
    ['JsonServiceClient, /api', () => new JsonServiceClient(server.url)],
    ['JsonServiceClient, /json/reply as in version 1', () => new JsonServiceClient(server.url).useBasePath()],
    ['JsonApiClient', () => JsonApiClient.create(server.url)],
  ]

  describe.each(kinds)('%s', (_, open) => {
    test('A9 signs in and stays signed in by cookies', async () => {
      const client = open()
      const answer = await client.post(ann())
      expect(answer).toMatchObject({ UserName: 'Ann', Roles: ['Admin', 'Editor'], Permissions: [] })
      expect(client.bearerToken).toBeFalsy()
      expect(Object.keys(client.cookies)).toEqual(expect.arrayContaining(['ss-id', 'ss-opt']))
      const roles = await client.post(new AssignRoles({ UserName: 'Ned' }))
      expect(roles).toEqual({ AllRoles: [], AllPermissions: [] })
    })

    test('A9 assigns and unassigns by bearer token', async () => {
      const { BearerToken = '' } = await open().post(ann())
      const client = open()
      client.bearerToken = BearerToken
      const answer = await client.post(new AssignRoles({ UserName: 'Ned', Roles: ['R1', 'a,b'], Permissions: ['P1'] }))
      expect(answer).toEqual({ AllRoles: ['R1', 'a,b'], AllPermissions: ['P1'] })
      const taken = await client.api(new UnAssignRoles({ UserName: 'Ned', Roles: ['R1', 'a,b'], Permissions: ['P1'] }))
      expect([taken.succeeded, taken.response]).toEqual([true, { AllRoles: [], AllPermissions: [] }])
    })

    test.each(['get', 'post'] as const)('R2 gets health by %s', async (verb) => {
      const answer = await open()[verb](health({ IncludeServerStateInformation: true }))
      expect(answer).toMatchObject({ Status: 'Success', FailedMonitorCount: 0 })
      expect(answer.ServerState?.TotalRamInMb).toBeGreaterThan(0)
      expect(answer.MonitorSummaries?.length).toBeGreaterThan(0)
    })
  })

  test('N3 its parsers read dates and durations', async () => {
    const { ExecutionMetrics: metrics } = await new JsonServiceClient(server.url).get(health())
    const start = toDate(metrics?.StartDateTime ?? '')
    const end = toDate(metrics?.EndDateTime ?? '')
    expect(Math.abs(Date.now() - end.getTime())).toBeLessThan(60_000)
    const seconds = fromXsdDuration(metrics?.Duration ?? '')
    expect(Math.abs((end.getTime() - start.getTime()) / 1_000 - seconds)).toBeLessThan(0.1)
  })

  test('A6 asks who is signed in, on the routes as they are written', async () => {
    const client = new JsonServiceClient(server.url)
    expect(await refusal(client.get('/auth'))).toMatchObject({
      errorCode: 'Unauthorized',
      message: 'Not Authenticated',
    })
    const answer = await client.postToUrl('/auth/credentials', ann({ RememberMe: true }))
    expect(client.cookies['ss-opt']?.value).toBe('perm')
    const who = await client.get<AuthenticateResponse>('/auth')
    expect(who).toMatchObject({ UserName: 'Ann', SessionId: answer.SessionId })
    const healthByName = await client.get<HealthCheckResponse>('/healthcheck', {
      ExecutionMode: 'basic',
      ServerType: 'app',
    })
    expect(healthByName.Status).toBe('Success')
  })

  test('A3 a wrong password is reported, and A5 an unknown provider', async () => {
    const client = new JsonServiceClient(server.url)
    expect(await refusal(client.post(ann({ Password: 'wrong' })))).toMatchObject({
      errorCode: 'Unauthorized',
      message: 'Invalid Username or Password',
    })
    expect(await refusal(client.post(ann({ provider: 'nope' })))).toMatchObject({
      errorCode: 'NotFound',
      message: "No configuration was added for OAuth provider 'nope'",
    })
  })

  test('E1 errors name their fields, as its own helpers read them', async () => {
    const client = new JsonServiceClient(server.url)
    const empty = await client.api(new Authenticate({ provider: 'credentials' }))
    expect(empty.failed).toBe(true)
    expect(empty.errorCode).toBe('ValidationException')
    expect(empty.fieldErrorMessage('userName')).toBe("'User Name' must not be empty.")
    expect(empty.fieldErrorMessage('Password')).toBe("'Password' must not be empty.")
    const odd = await client.api(health({ ExecutionMode: 'Wild' as never, ServerType: 'Bar' as never }))
    expect(odd.errors.map(({ fieldName, message }) => [fieldName, message])).toEqual([
      ['ExecutionMode', "'Wild' is an Invalid value for 'ExecutionMode'"],
      ['ServerType', "'Bar' is an Invalid value for 'ServerType'"],
    ])
    await client.post(ann())
    const nobody = await client.api(new AssignRoles())
    expect(nobody.errorCode).toBe('ArgumentNullException')
    expect(nobody.fieldErrorMessage('userName')).toBe('Value cannot be null.')
    expect(await client.api(new AssignRoles({ UserName: 'nobody' }))).toMatchObject({
      error: { errorCode: 'NotFound', message: 'nobody' },
    })
  })

  test('O1 anonymous callers and those without Admin are refused', async () => {
    const client = new JsonServiceClient(server.url)
    const change = new AssignRoles({ UserName: 'Ned', Roles: ['Admin'] })
    const stranger = await client.api(change)
    expect([stranger.failed, stranger.errorCode, stranger.errorMessage]).toEqual([
      true,
      'Unauthorized',
      'Not Authenticated',
    ])
    await client.post(ann({ UserName: 'Ned' }))
    expect(await refusal(client.post(change))).toMatchObject({ errorCode: 'Forbidden', message: 'Invalid Role' })
    // On a GET nothing changes.
    expect((await refusal(client.get(change))).errorCode).toBe('NotImplementedException')
  })

  test('H1 unhealthy is an error with its reason, and H2 an answer where codes are suppressed', async () => {
    const client = new JsonServiceClient(server.url)
    const failed = await client.api(health({ ServerType: 'Mongo' }))
    expect(failed.errorCode).toBe('HealthCheckFailed')
    expect(failed.errorMessage).toMatch(/^Mongo is unhealthy/)
    expect(failed.errors.length).toBeGreaterThan(0)
    const suppressed = await client.get(health({ ServerType: 'Mongo', SuppressErrorCodes: true }))
    expect([suppressed.Status, suppressed.FailedMonitorCount]).toEqual(['Failure', 1])
  })

  const signOuts: readonly (readonly [string, (client: JsonServiceClient) => Promise<unknown>])[] = [
    ['provider logout', (client) => client.post(new Authenticate({ provider: 'logout' }))],
    ['POST /auth/logout', (client) => client.postToUrl('/auth/logout', new Authenticate())],
    ['GET /auth/logout', (client) => client.get('/auth/logout')],
    ['DELETE /auth', (client) => client.delete('/auth')],
  ]
  test.each(signOuts)('A7 signs out by %s: cookies, bearer and refresh token are invalid', async (_, signOut) => {
    const client = new JsonServiceClient(server.url)
    const { BearerToken = '', RefreshToken = '' } = await client.post(ann())
    await signOut(client)
    expect((await client.api(new AssignRoles({ UserName: 'Ned' }))).errorCode).toBe('Unauthorized')
    const other = new JsonServiceClient(server.url)
    other.bearerToken = BearerToken
    other.refreshToken = RefreshToken
    expect((await other.api(new AssignRoles({ UserName: 'Ned' }))).errorCode).toBe('Unauthorized')
  })

  test('A9 HTTP Basic is off, and reported as not signed in', async () => {
    const client = new JsonServiceClient(server.url)
    client.setCredentials('Ann', password)
    expect((await client.api(new AssignRoles({ UserName: 'Ned' }))).errorCode).toBe('Unauthorized')
  })
})

// Each has a server of its own, and mostly waits for tokens to expire.
describe.concurrent('automatic refresh', () => {
  const paths: readonly (readonly [string, string | undefined])[] = [
    ['/api', 'api'],
    ['/json/reply', undefined],
  ]
  test.each(paths)('A11 an unmodified client survives three expiries (%s)', async (_, path) => {
    const server = await serveShortLived(1_500)
    try {
      const client = new JsonServiceClient(server.url).useBasePath(path)
      const signedIn = await client.post(ann())
      // As its documentation shows it: tokens alone, on a client that holds no cookies.
      const worker = new JsonServiceClient(server.url).useBasePath(path)
      worker.bearerToken = signedIn.BearerToken ?? ''
      worker.refreshToken = signedIn.RefreshToken ?? ''
      const used = new Set([worker.bearerToken])
      for (let expiry = 1; expiry <= 3; expiry += 1) {
        await server.expiry(worker.bearerToken)
        const answer = await worker.post(new AssignRoles({ UserName: 'Ann', Roles: [`R${expiry}`] }))
        expect(answer.AllRoles).toContain(`R${expiry}`)
        expect(server.renewals()).toBe(expiry)
        used.add(worker.bearerToken)
      }
      expect(used.size).toBe(4)
      expect(worker.refreshToken).toBe(signedIn.RefreshToken)
    } finally {
      await server.close()
    }
  })

  test('A11 after a sign-out nothing is refreshed', async () => {
    const server = await serveShortLived(60_000)
    try {
      const client = new JsonServiceClient(server.url)
      const { BearerToken = '', RefreshToken = '' } = await client.post(ann())
      client.bearerToken = BearerToken
      client.refreshToken = RefreshToken
      await client.post(new Authenticate({ provider: 'logout' }))
      const fault = await client.api(new AssignRoles({ UserName: 'Ann' }) as IReturn<unknown>)
      expect([fault.failed, fault.errorCode]).toEqual([true, 'Unauthorized'])
      expect(server.renewals()).toBe(1)
    } finally {
      await server.close()
    }
  })
})
