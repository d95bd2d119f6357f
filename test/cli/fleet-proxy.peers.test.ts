import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { type Certificates, makeCertificates } from '../support/servers/certs.ts'
import { type Proxies, proxiesMissing, proxyAccount, startProxies } from '../support/servers/proxies.ts'
import { type HttpPeer, httpPeer } from '../support/simulated/http-peer.ts'
import { peerSuite } from '../support/suite/peer.ts'

const results = [{ MonitoringName: 'connect', Status: 'Success' }]
const healthy = {
  Status: 'Success',
  FailedMonitorCount: 0,
  MonitorSummaries: [{ MonitorName: 'orders', Status: 'Success', Results: results }],
}

peerSuite(proxiesMissing, 'K5 servers with https behind tinyproxy', () => {
  const home = temporaryHome()
  let made: Certificates
  let server: HttpPeer
  let proxies: Proxies
  const tunnels: string[] = []
  const sockets = new Set<Socket>()
  // Stands for the network behind tinyproxy: no other resolver knows names in .test, so only a tunnel leads there.
  const network = createServer()
  network.on('connection', (socket) => void sockets.add(socket.on('error', () => {})))
  network.on('connect', (request, socket: Socket) => {
    tunnels.push(`${request.url} ${Object.keys(request.headers).filter((name) => /auth/.test(name))}`.trim())
    if (request.url?.startsWith('gone.')) return void socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
    const onward = connect(server.port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
    sockets.add(onward.on('error', () => socket.destroy()))
    onward.pipe(socket).pipe(onward)
  })
  beforeAll(async () => {
    made = makeCertificates()
    server = await httpPeer((_, response) => {
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify(healthy))
    }, made.good)
    await once(network.listen(0, '127.0.0.1'), 'listening')
    proxies = await startProxies((network.address() as AddressInfo).port)
  })
  beforeEach(() => void tunnels.splice(0))
  afterAll(async () => {
    await proxies.remove()
    await server[Symbol.asyncDispose]()
    for (const socket of sockets) socket.destroy()
    network.close()
    made.remove()
  })

  const check = async (entry: string, env: Readonly<Record<string, string>> = {}) => {
    const path = join(home.folder, 'fleet.yaml')
    const far = "{name: far, url: 'https://127.0.0.1:1'}"
    writeFileSync(path, `servers: [{name: east, ${entry}}, ${far}]`, { mode: 0o600 })
    const ran = await home.run(['health', '-t', 'Sql', '--fleet', path, '--json'], { env })
    const { Results = [] } = JSON.parse(ran.stdout || '{}') as {
      Results?: readonly { Target: string; ExitCode: number; Error?: { message: string; hints: readonly string[] } }[]
    }
    const { ExitCode, Error: error } = Results.find(({ Target }) => Target === 'east') ?? {}
    return { code: ExitCode, message: error?.message, hints: error?.hints ?? [], all: ran.stdout + ran.stderr }
  }
  const withCa = (): string => `caFile: '${made.caFile}'`

  test('a tunnel leads to the server, which alone gets the credential', async () => {
    const entry = `url: 'https://svc.test:8443/ops', proxy: '${proxies.http}', ${withCa()}, credential: {env: EAST}`
    expect((await check(entry, { EAST: 'e4st-t0ken', HTTPS_PROXY: 'http://127.0.0.1:1', NO_PROXY: '*' })).code).toBe(0)
    expect(tunnels).toEqual(['svc.test:8443'])
    expect(server.requestLines().at(-1)).toMatch(/^GET \/ops\/healthcheck\?/)
    expect(server.requests().at(-1)?.headers).toMatchObject({
      host: 'svc.test:8443',
      authorization: 'Bearer e4st-t0ken',
    })
    expect(Object.keys(server.requests().at(-1)?.headers ?? {}).filter((name) => /prox/.test(name))).toEqual([])
  })

  test('the certificate is that of the server, whatever the proxy says', async () => {
    const before = server.requestLines().length
    const other = await check(
      `url: 'https://other.test', proxy: '${proxies.http}', ${withCa()}, credential: {env: EAST}`,
      { EAST: 'x' },
    )
    expect([other.code, other.message]).toEqual([6, expect.stringContaining('its certificate is for another name')])
    const unknown = await check(`url: 'https://svc.test', proxy: '${proxies.http}'`)
    expect([unknown.code, unknown.message]).toEqual([
      6,
      expect.stringContaining('the issuer of its certificate is not trusted'),
    ])
    expect(unknown.hints.join(' ')).toContain('The request used the proxy of `proxy:`')
    expect(unknown.hints.join(' ')).not.toContain('NO_PROXY')
    expect(server.requestLines().length).toBe(before)
  })

  test('a proxy that refuses the tunnel, or cannot make it, is named with its answer', async () => {
    const at = (proxy: string, host = 'svc.test') => check(`url: 'https://${host}', proxy: '${proxy}', ${withCa()}`)
    const refused = await at(proxies.closed)
    expect([refused.code, refused.message]).toEqual([
      6,
      `the proxy of \`proxy:\` (${proxies.closed.slice('http://'.length)}) does not allow a connection to https://svc.test (403)`,
    ])
    const gone = await at(proxies.http, 'gone.test')
    expect([gone.code, gone.message]).toEqual([6, expect.stringMatching(/the proxy of `proxy:` .* \(50\d\)$/)])
    expect(tunnels).toEqual(['gone.test:443'])
  })

  test('a proxy that demands a sign-in is told by the way to give it one, and gets the password alone', async () => {
    const nobody = await check(`url: 'https://svc.test', proxy: '${proxies.signIn}', ${withCa()}`)
    expect([nobody.code, nobody.message]).toEqual([
      6,
      expect.stringContaining('requires a user name and password (407)'),
    ])
    expect(nobody.hints[0]).toBe('Set proxyUsername and proxyPassword beside `proxy:`.')
    const { username, password } = proxyAccount
    const account = `proxyUsername: ${username}, proxyPassword: {env: PROXY_PASSWORD}`
    const signIn = `url: 'https://svc.test', proxy: '${proxies.signIn}', ${withCa()}, ${account}`
    const ran = await check(signIn, { PROXY_PASSWORD: password })
    expect([ran.code, tunnels]).toEqual([0, ['svc.test:443']])
    expect(ran.all).not.toContain(password)
    const refused = await check(signIn, { PROXY_PASSWORD: 'wr0ng:h@rse/%41' })
    expect([refused.code, refused.message]).toEqual([
      6,
      expect.stringContaining('rejects the user name and password (401)'),
    ])
    expect(refused.all).not.toMatch(/wr0ng|h@rse|%41/)
    expect(await check(signIn)).toMatchObject({
      code: 12,
      message: expect.stringContaining('PROXY_PASSWORD is not set'),
    })
    const variable = await home.run(['health', '-t', 'Sql', '--server', 'https://svc.test'], {
      env: { HTTPS_PROXY: proxies.signIn },
    })
    expect(variable.stderr).toContain('Put them into HTTPS_PROXY, before the host: USER:PASSWORD@HOST:PORT')
  })
})
