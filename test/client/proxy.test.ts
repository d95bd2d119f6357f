import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { proxyFor } from '../../src/core/base/proxy-variables.ts'
import { readAddress } from '../../src/core/client/address.ts'
import { blackHole, http, type Peer, peer, refusedPort, replies } from '../support/faults/faults.ts'
import { type Certificates, makeCertificates } from '../support/servers/certs.ts'
import { callWith, clientOf, faultOf, faultText, healthAt } from './asking.ts'
import { bodies } from './recorded.ts'

const run = promisify(execFile)
const child = new URL('ask-child.ts', import.meta.url).pathname
const answer = http(200, bodies.healthy, { 'Content-Type': 'application/json' })

type RealProxy = {
  readonly url: string
  /** The lines it was asked with, and what signed in. */
  readonly requestLines: string[]
  readonly open: () => number
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** A real HTTP proxy: CONNECT and absolute targets, all led to one port of loopback, whatever their name. */
async function proxyTo(port: number, password?: string): Promise<RealProxy> {
  const requestLines: string[] = []
  const sockets = new Set<Socket>()
  const allowed = (header: string | undefined): boolean =>
    password === undefined || header === `Basic ${Buffer.from(password).toString('base64')}`
  const server = createServer((request, response) => {
    requestLines.push(`${request.method} ${request.url}`)
    if (!allowed(request.headers['proxy-authorization'])) return void response.writeHead(407).end()
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(bodies.healthy)
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('connect', (request, socket: Socket) => {
    requestLines.push(`CONNECT ${request.url}`)
    socket.on('error', () => {})
    if (!allowed(request.headers['proxy-authorization'])) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n')
      return
    }
    const onward = connect(port, '127.0.0.1', () => socket.write('HTTP/1.1 200 Connection established\r\n\r\n'))
    onward.on('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n'))
    socket.on('close', () => onward.destroy())
    onward.on('close', () => socket.resume())
    onward.pipe(socket).pipe(onward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requestLines,
    open: () => sockets.size,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

let made: Certificates
beforeAll(() => {
  made = makeCertificates()
})
afterAll(() => made.remove())
const secure = (): Promise<Peer> => peer(replies(answer), { tls: made.good })
/** A name that only a proxy can lead anywhere. */
const far = 'https://svc.test:8443/ops'

test('K5 HTTPS_PROXY is used: a tunnel, then TLS with the server itself', async () => {
  await using server = await secure()
  await using proxy = await proxyTo(server.port)
  const env = { HTTPS_PROXY: proxy.url }
  expect((await healthAt(far, {}, { env, caFile: made.caFile })).Status).toBe('Success')
  expect(proxy.requestLines).toEqual(['CONNECT svc.test:8443'])
  expect(server.input()).toContain('GET /ops/healthcheck?')
  expect(server.input().toLowerCase()).not.toContain('proxy-')
  await expect.poll(proxy.open).toBe(0)
})

test('K5 the certificate is checked through a proxy too', async () => {
  await using server = await secure()
  await using proxy = await proxyTo(server.port)
  const unknown = await faultOf(healthAt(far, {}, { env: { https_proxy: proxy.url } }))
  expect(unknown.message).toContain('the issuer of its certificate is not trusted')
  expect(unknown.details.hints?.join(' ')).toContain('the proxy of https_proxy')
  const { caFile } = made
  const other = await faultOf(healthAt('https://other.test', {}, { env: { https_proxy: proxy.url }, caFile }))
  expect(other.message).toContain('for another name')
  expect(server.input()).toBe('')
})

test("K5 a proxy's user and password go to the proxy, and appear in no message", async () => {
  await using server = await secure()
  await using proxy = await proxyTo(server.port, 'bob:hun@er2')
  const env = { HTTPS_PROXY: proxy.url.replace('//', '//bob:hun%40er2@') }
  expect((await healthAt(far, {}, { env, caFile: made.caFile })).Status).toBe('Success')
  const invalid = { HTTPS_PROXY: proxy.url.replace('//', '//bob:wr0ng@') }
  const fault = await faultOf(healthAt(far, {}, { env: invalid, caFile: made.caFile }))
  expect([fault.fault, fault.exitCode]).toEqual(['Unreachable', 6])
  expect(fault.message).toContain('rejects the user name and password (407)')
  expect(faultText(fault)).not.toMatch(/wr0ng|hun[@%]er2/)
})

test('plain http goes to HTTP_PROXY with its complete URL', async () => {
  await using proxy = await proxyTo(0, 'bob:pw')
  const insecureHttp = true
  const env = { http_proxy: proxy.url.replace('//', '//bob:pw@'), HTTPS_PROXY: 'http://127.0.0.1:1' }
  expect((await healthAt('http://svc.test/ops', {}, { env, insecureHttp })).Status).toBe('Success')
  expect(proxy.requestLines).toEqual(['GET http://svc.test/ops/healthcheck?ExecutionMode=Basic&ServerType=Sql'])
  const fault = await faultOf(healthAt('http://svc.test', {}, { env: { HTTP_PROXY: proxy.url }, insecureHttp }))
  expect([fault.fault, fault.exitCode]).toEqual(['Unreachable', 6])
  expect(fault.message).toContain('407')
})

test('K5 this machine is never reached through a proxy', async () => {
  await using server = await peer(replies(answer))
  await using proxy = await proxyTo(server.port)
  const env = { HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url, http_proxy: proxy.url, https_proxy: proxy.url }
  await healthAt(`http://127.0.0.1:${server.port}`, {}, { env })
  await healthAt(`http://localhost:${server.port}`, {}, { env })
  expect(proxy.requestLines).toEqual([])
})

test.each([
  ['*', true],
  ['svc.test', true],
  ['SVC.TEST', true],
  ['.test', true],
  ['*.test', true],
  ['test', true],
  ['other.test, svc.test', true],
  ['a.test svc.test', true],
  ['svc.test:8443', true],
  ['svc.test:443', false],
  ['vc.test', false],
  ['x.svc.test', false],
  ['', false],
  [' , ', false],
])('K5 NO_PROXY=%j: svc.test bypasses the proxy: %s', (noProxy, past) => {
  const address = readAddress(far, false)
  expect(proxyFor(address, { HTTPS_PROXY: 'http://p:1', NO_PROXY: noProxy }) === undefined).toBe(past)
  expect(proxyFor(address, { HTTPS_PROXY: 'http://p:1', no_proxy: noProxy, NO_PROXY: 'x' }) === undefined).toBe(past)
})

test.each([
  ['https://10.1.2.3', '10.0.0.0/8', true],
  ['https://10.1.2.3', '10.1.2.3', true],
  ['https://10.1.2.3', '10.1.2.3:443', true],
  ['https://11.1.2.3', '10.0.0.0/8', false],
  ['https://10.1.2.3', '10.0.0.0/99', false],
  ['https://10.1.2.3', 'fd00::/8', false],
  ['https://[fd00::1]', 'fd00::/8', true],
  ['https://[fd00::1]', 'fd00::1', true],
  ['https://[fd00::1]:8443', '[fd00::1]:8443', true],
  ['https://[fd00::1]:8443', '[fd00::1]:443', false],
  ['https://[fd00::1]', '[fd00::1]', true],
])('K5 NO_PROXY accepts addresses and ranges: %s, %s', (url, noProxy, past) => {
  const address = readAddress(url, false)
  expect(proxyFor(address, { HTTPS_PROXY: 'http://p:1', NO_PROXY: noProxy }) === undefined).toBe(past)
})

test('the proxy is that of the scheme, lower case first, and its own scheme is optional', () => {
  const address = readAddress(far, false)
  const env = { HTTPS_PROXY: 'http://upper:1', https_proxy: 'lower:2', HTTP_PROXY: 'http://plain:3' }
  expect(proxyFor(address, env)).toMatchObject({ variable: 'https_proxy', label: 'lower:2', host: 'lower' })
  expect(proxyFor(address, { HTTPS_PROXY: 'http://upper:1', https_proxy: '' })?.label).toBe('upper:1')
  expect(proxyFor(readAddress('http://h.test', true), env)?.label).toBe('plain:3')
  expect(proxyFor(address, { HTTP_PROXY: 'http://plain:3', https_proxy: ' ' })).toBeUndefined()
})

test.each(['socks5://bob:hunter2@127.0.0.1:1080', '://hunter2', 'http://bob:hunter2%zz@h:1', 'http://'])(
  'an unusable proxy is exit 12 and never silently bypassed: %s',
  async (value) => {
    const fault = await faultOf(() => clientOf(far, { env: { HTTPS_PROXY: value } }))
    expect([fault.fault, fault.exitCode]).toEqual(['Local', 12])
    expect(fault.message).toContain('HTTPS_PROXY')
    expect(faultText(fault)).not.toContain('hunter2')
  },
)

test('a proxy that fails is reported with its variable', async () => {
  const { caFile } = made
  const through = (port: number, over: object = {}) =>
    faultOf(healthAt(far, over, { env: { HTTPS_PROXY: `http://127.0.0.1:${port}` }, caFile }))
  const port = await refusedPort()
  const refused = await through(port)
  expect([refused.fault, refused.exitCode]).toEqual(['Unreachable', 6])
  expect(refused.message).toBe(`the proxy of HTTPS_PROXY (127.0.0.1:${port}) refuses connections (ECONNREFUSED)`)
  await using gateway = await proxyTo(await refusedPort())
  expect((await through(Number(gateway.url.split(':')[2]))).message).toMatch(
    /does not allow a connection to .* \(502\)/,
  )
  await using cut = await peer(replies(''))
  expect((await through(cut.port)).message).toContain('does not allow a connection')
  await using mute = await peer(blackHole)
  const late = await through(mute.port, { timeoutMs: 5_000 })
  expect([late.fault, late.exitCode]).toEqual(['Timeout', 7])
  expect(late.message).toContain('did not connect to https://svc.test:8443/ops')
  await expect.poll(mute.open).toBe(0)
})

test('a proxy may itself require TLS, and its certificate is checked as well', async () => {
  await using proxy = await peer(replies(http(502, '')), { tls: made.good })
  const env = { HTTPS_PROXY: `https://127.0.0.1:${proxy.port}` }
  const fault = await faultOf(healthAt(far, {}, { env }))
  expect([fault.fault, fault.exitCode]).toEqual(['Unreachable', 6])
  expect(fault.message).toContain(`TLS with the proxy of HTTPS_PROXY (127.0.0.1:${proxy.port}) failed`)
  expect(proxy.input()).toBe('')
  const { stdout } = await run(process.execPath, [child, far], {
    env: { PATH: process.env.PATH ?? '', ...env, NODE_EXTRA_CA_CERTS: made.caFile },
  })
  expect(stdout).toMatch(/does not allow a connection to .* \(502\)/)
  expect(proxy.input()).toContain('CONNECT svc.test:8443 HTTP/1.1')
})

test('this machine is reached directly even where Node is configured to use proxies', async () => {
  await using server = await peer(replies(answer))
  const { stdout } = await run(process.execPath, [child, `http://127.0.0.1:${server.port}`], {
    env: { PATH: process.env.PATH ?? '', NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:1' },
  })
  expect(stdout).toBe('Success')
})

test('an abort during the setup of the tunnel leaves no connection to the proxy', async () => {
  await using mute = await peer(blackHole)
  const stop = new AbortController()
  const client = clientOf(far, { env: { HTTPS_PROXY: `http://127.0.0.1:${mute.port}` } })
  const pendingCall = client.healthCheck(
    { ExecutionMode: 'Basic', ServerType: 'Sql' },
    callWith({ signal: stop.signal }),
  )
  await expect.poll(mute.input).toContain('CONNECT svc.test:8443 HTTP/1.1')
  stop.abort(new Error('SIGINT'))
  await expect(pendingCall).rejects.toThrow('SIGINT')
  await expect.poll(mute.open).toBe(0)
})
