import { expect, test } from 'vitest'
import { http, peer, redirectLoop, replies } from '../support/faults/faults.ts'
import { callWith, clientOf, faultOf, faultText, healthAt } from './asking.ts'
import { bodies } from './recorded.ts'

const to = (location: string, status = 302): string => http(status, '', { Location: location })

test.each([
  'http://127.0.0.1/login?redirect=http%3a%2f%2f127.0.0.1%2fhealthcheck',
  '/login',
  '/Account/LogIn.aspx',
  '/ops/sign-in?x=1',
  '/?ReturnUrl=%2Fhealthcheck',
  'https://login.example.com/common',
  'https://id.example.com/oauth2/v2.0/authorize?client_id=1&redirect_uri=x',
])('C2 a redirect to a login page means not signed in: %s', async (location) => {
  await using server = await peer(replies(to(location)))
  const fault = await faultOf(healthAt(server.port))
  expect([fault.fault, fault.exitCode, fault.details.remoteStatus]).toEqual(['Unauthorized', 4, 302])
  expect(server.connections()).toBe(1)
})

test.each([301, 302, 303, 307, 308])('a GET follows a redirect within its server: %d', async (status) => {
  const answer = http(200, bodies.healthy, { 'Content-Type': 'application/json' })
  await using server = await peer(
    replies((request) => (request.startsWith('GET /v2/healthcheck?x=1 ') ? answer : to('/v2/healthcheck?x=1', status))),
  )
  expect((await healthAt(server.port)).Status).toBe('Success')
  expect(server.connections()).toBe(2)
})

test('a GET follows three redirects and no more', async () => {
  await using loop = await peer(redirectLoop)
  const fault = await faultOf(healthAt(loop.port))
  expect([fault.fault, fault.exitCode]).toEqual(['ServerError', 8])
  expect(fault.message).toContain('more than 3 times')
  expect(loop.connections()).toBe(4)
  expect(faultText(fault)).not.toContain('abcd')
})

test('K5 no redirect leads to another server, whose health is not the answer', async () => {
  await using other = await peer(replies(http(200, bodies.healthy, { 'Content-Type': 'application/json' })))
  for (const place of [`http://127.0.0.1:${other.port}/ops/healthcheck?secret=s3cret`, `//127.0.0.1:${other.port}/x`]) {
    await using server = await peer(replies(to(place, 307)))
    const fault = await faultOf(healthAt(server.port))
    expect([fault.fault, fault.exitCode, fault.details.remoteStatus]).toEqual(['ServerError', 8, 307])
    expect(faultText(fault)).not.toContain('s3cret')
    if (place.includes('/ops/')) expect(fault.details.hints?.at(-1)).toMatch(/--server http:\/\/127\.0\.0\.1:\d+\/ops$/)
  }
  expect(other.connections()).toBe(0)
})

test.each([301, 302, 303, 307, 308])('K5 a POST never follows a redirect: %d', async (status) => {
  await using server = await peer(replies(to('/elsewhere', status)))
  const client = clientOf(`http://127.0.0.1:${server.port}`)
  const fault = await faultOf(client.authenticate({ UserName: 'bob', Password: 'hunter2' }, callWith()))
  expect([fault.fault, fault.details.remoteStatus]).toEqual(['ServerError', status])
  expect(server.connections()).toBe(1)
  expect(faultText(fault)).not.toContain('hunter2')
})

test.each(['http://[', 'ftp://127.0.0.1/x', 'file:///etc/passwd', 'javascript:alert(1)'])(
  'a redirect to an invalid address is an error: %s',
  async (location) => {
    await using server = await peer(replies(to(location)))
    expect((await faultOf(healthAt(server.port))).fault).toBe('ServerError')
  },
)
