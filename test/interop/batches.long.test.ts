import { JsonServiceClient } from '@servicestack/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AssignRoles, Authenticate, HealthCheckRequest, UnAssignRoles } from './dtos.ts'
import { password, serveBuilt } from './served.ts'

type Refused = { readonly responseStatus: { errorCode: string; message: string; meta?: Record<string, string> } }
const refusal = (attempt: Promise<unknown>): Promise<Refused['responseStatus']> =>
  attempt.then(
    (value) => expect.fail(`this should have been refused: ${JSON.stringify(value)}`),
    ({ responseStatus }: Refused) => responseStatus,
  )

describe('R3 sendAll of the unmodified client', () => {
  let server: Awaited<ReturnType<typeof serveBuilt>>
  beforeAll(async () => {
    server = await serveBuilt()
  })
  afterAll(() => server.close())
  const paths: readonly (readonly [string, string | undefined])[] = [
    ['/api/{Request}[]', 'api'],
    ['/json/reply/{Request}[]', undefined],
  ]

  describe.each(paths)('%s', (_, path) => {
    const open = (): JsonServiceClient => new JsonServiceClient(server.url).useBasePath(path)
    const signedIn = async (): Promise<JsonServiceClient> => {
      const client = open()
      await client.post(new Authenticate({ provider: 'credentials', UserName: 'Ann', Password: password }))
      return client
    }
    const none = { AllRoles: [], AllPermissions: [] }

    test('R3 returns one result for each, in order', async () => {
      const client = await signedIn()
      const answers = await client.sendAll([
        new AssignRoles({ UserName: 'Ned', Roles: ['R1'] }),
        new AssignRoles({ UserName: 'Ned', Roles: ['R2'] }),
      ])
      expect(answers.map(({ AllRoles }) => AllRoles)).toEqual([['R1'], ['R1', 'R2']])
      const taken = await client.sendAll([
        new UnAssignRoles({ UserName: 'Ned', Roles: ['R1', 'R2'] }),
        new UnAssignRoles({ UserName: 'Ned' }),
      ])
      expect(taken).toEqual([none, none])
      const health = await open().sendAll([
        new HealthCheckRequest({ ExecutionMode: 'Basic', ServerType: 'App' }),
        new HealthCheckRequest({ ExecutionMode: 'Basic', ServerType: 'Sql' }),
      ])
      expect(health.map(({ Status }) => Status)).toEqual(['Success', 'Success'])
    })

    test('R3 stops at the first that fails, and identifies it', async () => {
      const client = await signedIn()
      const status = await refusal(
        client.sendAll([
          new AssignRoles({ UserName: 'Ned', Roles: ['Before'] }),
          new AssignRoles({ UserName: 'nobody', Roles: ['Never'] }),
          new AssignRoles({ UserName: 'Ned', Roles: ['After'] }),
        ]),
      )
      expect(status).toMatchObject({ errorCode: 'NotFound', message: 'nobody' })
      expect(Object.values(status.meta ?? {})).toEqual(['1'])
      const roles = await client.post(new AssignRoles({ UserName: 'Ned' }))
      expect(roles.AllRoles).toEqual(['Before'])
      await client.post(new UnAssignRoles({ UserName: 'Ned', Roles: ['Before'] }))
    })

    test('R3 each request is authorized: an anonymous caller changes nothing', async () => {
      const change = new AssignRoles({ UserName: 'Ned', Roles: ['Admin'] })
      expect((await refusal(open().sendAll([change, change]))).errorCode).toBe('Unauthorized')
      expect(await (await signedIn()).post(new AssignRoles({ UserName: 'Ned' }))).toEqual(none)
    })

    test('R3 many sign-ins in one request are refused, and so are more than 64 of anything', async () => {
      const signIn = new Authenticate({ provider: 'credentials', UserName: 'Ann', Password: 'wrong' })
      expect((await refusal(open().sendAll([signIn, signIn]))).errorCode).not.toBe('Unauthorized')
      const client = await signedIn()
      const show = new AssignRoles({ UserName: 'Ned' })
      expect(await client.sendAll(Array.from({ length: 64 }, () => show))).toHaveLength(64)
      const tooMany = await refusal(client.sendAll(Array.from({ length: 65 }, () => show)))
      expect(tooMany.message).toContain('64')
    })
  })
})
