import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { CredentialSource } from '../../src/core/client/index.ts'
import type { Credential } from '../../src/core/protocol/service/service.ts'
import { type Dialect, password, type SignInServer, signInServer, user } from '../support/simulated/sign-in-server.ts'
import { basicSql, callWith, clientOf, faultOf, faultText } from './asking.ts'

async function serve(dialect: Dialect, echoes = false): Promise<SignInServer> {
  const server = await signInServer({ dialect, echoes })
  onTestFinished(server.close)
  return server
}
const withUser = { provider: 'credentials', UserName: user, Password: password, Meta: { refresh: 'rotate' } }

/** Returns `first`, then what each renewal adds; counts the calls. */
function source(first: Credential | undefined, renewals: readonly (Credential | undefined)[] = [], always = false) {
  const request = { current: 0, renew: 0 }
  const made: CredentialSource & { readonly requests: typeof request } = {
    always,
    requests: request,
    current: async () => {
      request.current += 1
      return first
    },
    renew: async () => {
      request.renew += 1
      return renewals[request.renew - 1]
    },
  }
  return made
}
const bearer = (token: string): Credential => ({ kind: 'bearer', token })
const change = { UserName: 'bob', Roles: ['Ops'] }

describe('the credentials of the client', () => {
  test('A1 a sign-in is POST /auth/credentials with the password in the body alone, and requests rotation', async () => {
    const server = await serve('old')
    const answer = await clientOf(server.url).authenticate(withUser, callWith())
    expect(answer.BearerToken).toMatch(/^AT2-/)
    const [request] = server.requests
    expect(request).toMatchObject({ method: 'POST', path: '/auth/credentials' })
    expect(JSON.parse(request?.body ?? '')).toMatchObject({
      UserName: user,
      Password: password,
      Meta: { refresh: 'rotate' },
    })
    expect(request?.headers.authorization).toBeUndefined()
  })

  test('C4 the cookies of a newer server supply the tokens, at sign-in and at renewal', async () => {
    const server = await serve('newer')
    const client = clientOf(server.url)
    const answer = await client.authenticate(withUser, callWith())
    expect(answer.BearerToken).toMatch(/^AT2-/)
    expect(answer.RefreshToken).toMatch(/^RT3-/)
    const renewed = await client.getAccessToken({ RefreshToken: answer.RefreshToken }, callWith())
    expect(renewed.accessToken).toMatch(/^AT4-/)
    expect(renewed.refreshToken).toBeUndefined()
  })

  test('C3 a renewal is read in the notation of an old server', async () => {
    const server = await serve('old')
    const client = clientOf(server.url)
    const { RefreshToken } = await client.authenticate(withUser, callWith())
    expect((await client.getAccessToken({ RefreshToken }, callWith())).accessToken).toMatch(/^AT/)
  })

  test('C4 a sign-out is POST /auth/logout with the credential of its call', async () => {
    const server = await serve('old')
    const client = clientOf(server.url)
    const { BearerToken = '' } = await client.authenticate(withUser, callWith())
    expect(server.alive()).toEqual([BearerToken])
    await client.authenticate({ provider: 'logout' }, callWith({ credential: bearer(BearerToken) }))
    expect(server.requests.at(-1)).toMatchObject({ method: 'POST', path: '/auth/logout' })
    expect(server.alive()).toEqual([])
  })

  test.each([
    [undefined, { 'x-ss-id': 'S1', 'x-ss-opt': 'temp' }],
    [true, { 'x-ss-pid': 'S1', 'x-ss-opt': 'perm' }],
  ])('C6 a session is sent in its header (RememberMe: %s)', async (permanent, headers) => {
    const server = await serve('session')
    await faultOf(
      clientOf(server.url).assignRoles(change, callWith({ credential: { kind: 'session', secret: 'S1', permanent } })),
    )
    expect(server.requests[0]?.headers).toMatchObject(headers)
    expect(server.requests[0]?.headers.authorization).toBeUndefined()
  })

  test('A6 GET /auth asks who is signed in', async () => {
    const server = await serve('old')
    const client = clientOf(server.url)
    const { BearerToken = '' } = await client.authenticate(withUser, callWith())
    const answer = await client.authenticate({}, callWith({ verb: 'GET', credential: bearer(BearerToken) }))
    expect(answer.UserName).toBe(user)
    expect(server.requests.at(-1)).toMatchObject({ method: 'GET', path: '/auth', body: '' })
  })

  test('K5 a health check is sent without a credential, and with one after the server answers 401', async () => {
    const server = await serve('old')
    const { BearerToken = '' } = await clientOf(server.url).authenticate(withUser, callWith())
    const credential = source(bearer(BearerToken))
    await clientOf(server.url, { credential }).healthCheck(basicSql, callWith())
    expect(server.requests.slice(1).map(({ headers }) => headers.authorization)).toEqual([
      undefined,
      `Bearer ${BearerToken}`,
    ])
    expect(credential.requests).toEqual({ current: 1, renew: 0 })
  })

  test('K5 a health check sends the credential at once when the profile says so', async () => {
    const server = await serve('old')
    const { BearerToken = '' } = await clientOf(server.url).authenticate(withUser, callWith())
    const credential = source(bearer(BearerToken), [], true)
    await clientOf(server.url, { credential }).healthCheck(basicSql, callWith())
    expect(server.requests.slice(1).map(({ headers }) => headers.authorization)).toEqual([`Bearer ${BearerToken}`])
  })
})

describe('a 401', () => {
  test('C5 leads to one renewal and one retry', async () => {
    const server = await serve('old')
    const { BearerToken = '' } = await clientOf(server.url).authenticate(withUser, callWith())
    const credential = source(bearer('stale-token'), [bearer(BearerToken)])
    const answer = await clientOf(server.url, { credential }).assignRoles(change, callWith())
    expect(answer.AllRoles).toEqual(['Admin'])
    expect(credential.requests).toEqual({ current: 1, renew: 1 })
    expect(server.requests.filter(({ path }) => path === '/assignroles')).toHaveLength(2)
  })

  test('C5 never causes a loop: a refused renewal is final', async () => {
    const server = await serve('old')
    const credential = source(bearer('stale-1'), [bearer('stale-2'), bearer('stale-3'), bearer('stale-4')])
    const fault = await faultOf(clientOf(server.url, { credential }).assignRoles(change, callWith()))
    expect(fault.exitCode).toBe(4)
    expect(server.requests).toHaveLength(2)
    const health = source(bearer('stale-1'), [bearer('stale-2'), bearer('stale-3')])
    await faultOf(clientOf(server.url, { credential: health }).healthCheck(basicSql, callWith()))
    expect(server.requests).toHaveLength(5)
  })

  test('C5 causes no renewal at sign-in, sign-out or renewal', async () => {
    const server = await serve('old')
    const credential = source(bearer('stale'), [bearer('other')])
    const client = clientOf(server.url, { credential })
    await faultOf(client.authenticate({ ...withUser, Password: 'wrong' }, callWith()))
    await faultOf(client.getAccessToken({ RefreshToken: 'nonsense' }, callWith()))
    await client.authenticate({ provider: 'logout' }, callWith())
    expect(credential.requests).toEqual({ current: 0, renew: 0 })
    expect(server.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true)
  })
})

describe('secrets are sent only to their server', () => {
  test('P7 the client does not quote a server that repeats the password or token', async () => {
    const server = await serve('old', true)
    const invalid = 'a wrong secret 77'
    const signIn = await faultOf(clientOf(server.url).authenticate({ ...withUser, Password: invalid }, callWith()))
    expect(signIn.message).toContain('Invalid Username or Password')
    expect(faultText(signIn)).not.toContain(invalid)
    const token = 'svct_0123456789abcdefghijklmnopqrstuvwxyz'
    const refused = await faultOf(clientOf(server.url).assignRoles(change, callWith({ credential: bearer(token) })))
    expect(refused.message).toContain('Not Authenticated')
    expect(faultText(refused)).not.toContain(token.slice(0, 24))
  })

  test.each([301, 302, 307, 308])('K5 a %s takes neither password nor token to another origin', async (status) => {
    let input = ''
    const other = createServer((request, response) => {
      input += JSON.stringify(request.headers)
      request.on('data', (chunk) => {
        input += String(chunk)
      })
      request.on('end', () => response.end('{}'))
    }).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const there = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    const lure = createServer((request, response) => {
      response.writeHead(status, { location: `${there}${request.url}` }).end()
    }).listen(0, '127.0.0.1')
    await once(lure, 'listening')
    const url = `http://127.0.0.1:${(lure.address() as AddressInfo).port}`
    onTestFinished(async () => void other.close())
    onTestFinished(async () => void lure.close())
    const credential = source(bearer('a-token'), [bearer('another')], true)
    const client = clientOf(url, { credential })
    for (const attempt of [
      () => client.authenticate(withUser, callWith()),
      () => client.getAccessToken({ RefreshToken: 'refresh' }, callWith()),
      () => client.assignRoles(change, callWith()),
      () => client.healthCheck(basicSql, callWith()),
    ]) {
      await faultOf(attempt())
    }
    expect(input).toBe('')
  })

  test('K5 a redirect within the server carries no token', async () => {
    const input: (string | undefined)[] = []
    const server = createServer((request, response) => {
      input.push(request.headers.authorization)
      if (request.url?.startsWith('/moved')) {
        response.setHeader('content-type', 'application/json')
        response.end(
          '{"Status":"Success","StatusMessage":"fine","FailedMonitorCount":0,"MonitorSummaries":[{"MonitorName":"Sql","Status":"Success"}]}',
        )
      } else response.writeHead(302, { location: '/moved' }).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(async () => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await clientOf(url, { credential: source(bearer('a-token'), [], true) }).healthCheck(basicSql, callWith())
    expect(input).toEqual(['Bearer a-token', undefined])
  })
})
