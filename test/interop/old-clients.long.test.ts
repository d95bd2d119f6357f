import { JsonServiceClient } from 'servicestack-client-1.0'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AssignRoles, Authenticate, HealthCheckRequest } from './dtos.ts'
import { password, serveBuilt } from './served.ts'

type Refused = { readonly responseStatus: { readonly errorCode: string; readonly message: string } }

/** A class as generated for a client of that time: every field is there, and without a value it is empty. */
class EmptyAuthenticate extends Authenticate {
  override provider = ''
  override UserName = ''
  override Password = ''
  override AccessToken = ''
  oauth_verifier = ''
}

describe('@servicestack/client 1.0.45, unmodified, with svc serve', () => {
  let server: Awaited<ReturnType<typeof serveBuilt>>
  beforeAll(async () => {
    server = await serveBuilt()
  })
  afterAll(() => server.close())

  const refusal = (attempt: Promise<unknown>): Promise<Refused['responseStatus']> =>
    attempt.then(
      (value) => expect.fail(`this should have been refused: ${JSON.stringify(value)}`),
      ({ responseStatus }: Refused) => responseStatus,
    )

  test('N5 N7 a GET that sends each secret without a value is answered as if it sent none', async () => {
    const client = new JsonServiceClient(server.url)
    expect(await refusal(client.get(new EmptyAuthenticate()))).toMatchObject({
      errorCode: 'Unauthorized',
      message: 'Not Authenticated',
    })
    const signedIn = await client.post(
      new Authenticate({ provider: 'credentials', UserName: 'Ann', Password: password }),
    )
    client.bearerToken = signedIn.BearerToken ?? ''
    expect(await client.get(new EmptyAuthenticate())).toMatchObject({ UserName: 'Ann', Roles: ['Admin', 'Editor'] })
    expect(await client.delete(new EmptyAuthenticate())).toEqual({})
    expect(await refusal(client.get(new EmptyAuthenticate()))).toMatchObject({ errorCode: 'Unauthorized' })
  })

  test('N7 a secret with a value is refused, and not repeated', async () => {
    const client = new JsonServiceClient(server.url)
    const request = Object.assign(new EmptyAuthenticate(), { UserName: 'Ann', Password: password })
    const fault = await refusal(client.get(request))
    expect(fault.errorCode).toBe('BadRequest')
    expect(JSON.stringify(fault)).not.toContain(password)
  })

  test('R2 it signs in, changes roles, reads health, and is told of a verb that does not exist', async () => {
    const client = new JsonServiceClient(server.url)
    const signedIn = await client.post(
      new Authenticate({ provider: 'credentials', UserName: 'Ann', Password: password }),
    )
    client.bearerToken = signedIn.BearerToken ?? ''
    const change = new AssignRoles({ UserName: 'Ned', Roles: ['Old'] })
    expect((await client.post(change)).AllRoles).toEqual(['Old'])
    expect(await refusal(client.put(change))).toMatchObject({ errorCode: 'NotImplementedException' })
    expect(await refusal(client.patch(change))).toMatchObject({ errorCode: 'NotImplementedException' })
    const health = new HealthCheckRequest({ ExecutionMode: 'Basic', ServerType: 'App' })
    expect((await client.get(health)).Status).toBe('Success')
    expect((await client.post(health)).Status).toBe('Success')
    expect((await client.sendAll([health, health])).map(({ Status }) => Status)).toEqual(['Success', 'Success'])
  })
})
