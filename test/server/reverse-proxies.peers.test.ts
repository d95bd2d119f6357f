import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Peer, peer, speaks } from '../support/faults/faults.ts'
import { startServeProcess } from '../support/program/serve-process.ts'
import type { Serving } from '../support/program/serving.ts'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { haproxyMissing, nginxMissing, startHaproxy, startNginxProxy } from '../support/servers/reverse-proxy.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

/** Accounts without a name, a home or a password. */
const [ours, another] = [23_456, 23_457]
const accountsMissing = process.getuid?.() === 0 ? undefined : 'only root can start processes of other accounts'
const missing = nginxMissing ?? haproxyMissing ?? opensslMissing() ?? accountsMissing
/** An address of this machine that is not loopback: a request to it also comes from it. */
const elsewhere = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address

const question = '/healthcheck?ServerType=App&ExecutionMode=Advanced'
const yamlFor = (port: number): string =>
  `types:\n  App:\n    - {kind: tcp, name: orders-secret, host: 127.0.0.1, port: ${port}, expect: hello}\n`

/**
 * Reads the pages of `url` as an anonymous caller: whether each names the monitored address, on each page that could.
 */
async function reads(url: string, headers: Readonly<Record<string, string>> = {}) {
  const get = async (path: string) => await (await fetch(url + path, { headers })).text()
  const [health, metrics, page] = [await get(question), await get('/metrics'), await get('/')]
  return {
    health: health.includes('127.0.0.1'),
    metrics: metrics.includes('svc_check_value_'),
    page: page.includes('svc.yaml'),
  }
}
const passingOn =
  (lines: string) =>
  (port: number): string =>
    `server { listen 127.0.0.1:${port}; location / { ${lines} } }`
const balancing =
  (server: string, more = '') =>
  (port: number): string =>
    `listen web\n  mode http\n  bind 127.0.0.1:${port}\n  ${more}\n  server svc ${server}`
const everything = { health: true, metrics: true, page: true }
const nothing = { health: false, metrics: false, page: false }

/**
 * Asks with `no-cache` from a process of an account. Returns when the run began, or 503 if no run began within three
 * seconds.
 */
async function fresh(uid: number, url: string): Promise<string> {
  const program = `fetch('${url}${question}', { headers: { 'cache-control': 'no-cache', 'x-prometheus-scrape-timeout-seconds': '3.5' } })
    .then(async (got) => console.log((await got.json()).ExecutionMetrics?.StartDateTime ?? String(got.status)))`
  const child = spawn(process.execPath, ['-e', program], { uid, gid: uid, stdio: ['ignore', 'pipe', 'inherit'] })
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  return output.trim()
}

peerSuite(missing, 'callers through a reverse proxy on this machine that nobody has named', () => {
  let target: Peer
  let serve: Serving
  let url: string
  beforeAll(async () => {
    target = await peer(speaks('hello\n'))
    serve = await startServeProcess(yamlFor(target.port), [], ours)
    url = `http://127.0.0.1:${serve.port}`
  })
  afterAll(async () => {
    await serve[Symbol.asyncDispose]()
    await target.close()
  })

  test('S11 a caller on this machine reads everything', async () => {
    expect(await reads(url)).toEqual(everything)
  })

  test('S11 through nginx with proxy_pass alone, which speaks HTTP/1.0, everybody is a stranger', async () => {
    await using nginx = await startNginxProxy(passingOn(`proxy_pass ${url};`))
    expect(await reads(`http://127.0.0.1:${nginx.port}`)).toEqual(nothing)
  })

  test('S11 through nginx with HTTP/1.1 and its usual headers everybody is a stranger', async () => {
    await using nginx = await startNginxProxy(
      passingOn(`proxy_pass ${url}; proxy_http_version 1.1; proxy_set_header Connection "";
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;`),
    )
    expect(await reads(`http://127.0.0.1:${nginx.port}`)).toEqual(nothing)
  })

  test('S11 through nginx that speaks HTTP/1.1 without any header everybody is a stranger', async () => {
    // The default since 1.29.7, of which nothing in the request tells.
    await using nginx = await startNginxProxy(
      passingOn(`proxy_pass ${url}; proxy_http_version 1.1; proxy_set_header Connection "";`),
    )
    expect(await reads(`http://127.0.0.1:${nginx.port}`)).toEqual(nothing)
  })

  test('S11 a process of an account that serve.localAccounts does not name is a stranger', async () => {
    /** The answer to a process of an account. */
    const read = async (uid: number, port: number) => {
      const program = `fetch('http://127.0.0.1:${port}${question}').then(async (got) => console.log(got.status, await got.text()))`
      const child = spawn(process.execPath, ['-e', program], { uid, gid: uid, stdio: ['ignore', 'pipe', 'pipe'] })
      const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
      return output + errors
    }
    const full = expect.stringMatching(/^200 .*127\.0\.0\.1/)
    const brief = expect.stringMatching(/^200 (?!.*127\.0\.0\.1)/)
    expect(await Promise.all([0, ours, another].map((uid) => read(uid, serve.port)))).toEqual([full, full, brief])
    await using other = await startServeProcess(yamlFor(target.port), ['--local-account', String(another)], ours)
    expect(await read(another, other.port)).toEqual(full)
    const none = `serve: {trustLocal: false}\n${yamlFor(target.port)}`
    await using strict = await startServeProcess(none, [], ours)
    expect(await Promise.all([0, ours].map((uid) => read(uid, strict.port)))).toEqual([brief, brief])
  })

  test('S11 through HAProxy everybody is a stranger, with option forwardfor and without any header', async () => {
    const server = `127.0.0.1:${serve.port}`
    await using other = await startHaproxy(balancing(server, 'option forwardfor'))
    expect(await reads(`http://127.0.0.1:${other.port}`)).toEqual(nothing)
    await using bare = await startHaproxy(balancing(server))
    expect(await reads(`http://127.0.0.1:${bare.port}`)).toEqual(nothing)
  })

  test('S8 a process of the account of svc gets a run for each no-cache; any other account and root are strangers', async () => {
    for (const stranger of [another, 0]) {
      const [first, second] = [await fresh(ours, url), await fresh(ours, url)]
      expect(Date.parse(jsonDate(second))).toBeGreaterThan(Date.parse(jsonDate(first)))
      expect(Date.parse(jsonDate(await fresh(stranger, url)))).toBeGreaterThan(Date.parse(jsonDate(second)))
      expect(await fresh(stranger, url)).toBe('503')
    }
  })

  test('S8 through HAProxy without any header, which runs as another account, no caller is exempt', async () => {
    await using haproxy = await startHaproxy(balancing(`127.0.0.1:${serve.port}`))
    const through = `http://127.0.0.1:${haproxy.port}`
    await fresh(ours, url)
    expect(jsonDate(await fresh(ours, through))).not.toBe('Invalid Date')
    expect(await fresh(ours, through)).toBe('503')
  })
})

/** The answer to a request from 127.0.0.9. */
async function overTls(port: number, path: string, headers: Readonly<Record<string, string>>): Promise<string> {
  const options = { host: '127.0.0.1', port, path, headers, localAddress: '127.0.0.9', rejectUnauthorized: false }
  const sent = request(options).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return await text(response)
}

/** ISO 8601 of `/Date(ms-0000)/`. */
const jsonDate = (text: string): string => {
  const ms = /\((\d+)/.exec(text)?.[1]
  return ms === undefined ? 'Invalid Date' : new Date(Number(ms)).toISOString()
}

peerSuite(missing, 'svc serve --behind-proxy', () => {
  test('S11 no caller through the named proxy is local, whatever it sends, and neither is any other caller', async () => {
    await using target = await peer(speaks('hello\n'))
    await using serve = await startServeProcess(yamlFor(target.port), ['--behind-proxy', '127.0.0.1'], ours)
    const url = `http://127.0.0.1:${serve.port}`
    await using haproxy = await startHaproxy(balancing(`127.0.0.1:${serve.port}`))
    expect(await reads(`http://127.0.0.1:${haproxy.port}`)).toEqual(nothing)
    expect(await reads(`http://127.0.0.1:${haproxy.port}`, { 'x-forwarded-for': '127.0.0.1' })).toEqual(nothing)
    expect(await reads(url)).toEqual(nothing)
    await fresh(ours, url)
    expect(await fresh(ours, url)).toBe('503')
    await using beyond = await startServeProcess(yamlFor(target.port), ['--behind-proxy', '192.0.2.7'], ours)
    expect(await reads(`http://127.0.0.1:${beyond.port}`)).toEqual(nothing)
    await fresh(ours, `http://127.0.0.1:${beyond.port}`)
    expect(await fresh(ours, `http://127.0.0.1:${beyond.port}`)).toBe('503')
  })

  test.each([
    ['nginx', /listen 443/, (port: number) => `listen 127.0.0.1:${port}`, startNginxProxy],
    ['haproxy', /bind :443/, (port: number) => `bind 127.0.0.1:${port}`, startHaproxy],
  ])('S11 the lines for %s in docs/serve.md report the caller and https', async (name, place, here, start) => {
    const certificates = makeCertificates()
    onTestFinished(() => certificates.remove())

    const { cert, key } = certificates.selfSigned
    const flags = ['--behind-proxy', '127.0.0.1', '--allowed-host', 'svc.example.com']
    await using serve = await startServeProcess('types: {}\n', flags)
    const block = new RegExp(`\`\`\`${name}\\n(.*?)\`\`\``, 's').exec(readFileSync('docs/serve.md', 'utf8'))?.[1] ?? ''
    await using proxy = await start((port, folder) => {
      const files = { 'chain.pem': cert, 'key.pem': key, 'chain-and-key.pem': `${cert}\n${key}` }
      for (const [file, pem] of Object.entries(files)) writeFileSync(join(folder, file), pem)
      return block
        .replace(place, here(port))
        .replace('127.0.0.1:8790', `127.0.0.1:${serve.port}`)
        .replaceAll(/\b(chain|key|chain-and-key)\.pem/g, (file) => join(folder, file))
    })
    // An address of this machine that is not the one of the proxy.
    const got = await overTls(proxy.port, '/types/typescript', {
      host: 'svc.example.com',
      // The caller itself may send anything.
      'x-forwarded-for': '198.51.100.4',
      'x-forwarded-proto': 'http',
    })
    expect(got).toContain('BaseUrl: https://svc.example.com')
    await until(() => serve.log().includes('"address":"127.0.0.9"'))
    expect(serve.log()).not.toContain('198.51.100.4')
  })

  test('S11 the lines for nginx in docs/serve.md that name paths forward these paths only, however others are spelled', async () => {
    await using serve = await startServeProcess('types: {}\n', ['--behind-proxy', '127.0.0.1'])
    const block = /```nginx paths\n(.*?)```/s.exec(readFileSync('docs/serve.md', 'utf8'))?.[1] ?? ''
    await using proxy = await startNginxProxy(
      (port) =>
        `server { listen 127.0.0.1:${port};\n${block.replaceAll('127.0.0.1:8790', `127.0.0.1:${serve.port}`)} }`,
    )
    const status = async (port: number, path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status
    expect(await status(proxy.port, '/readyz')).toBe(200)
    // Without it, --require-config would take this svc for an older one.
    expect(await status(proxy.port, '/server-types')).toBe(200)
    expect(await status(proxy.port, '//metrics')).toBe(404)
    for (const path of ['/metrics', '/METRICS', '/%6detrics', '/metrics/']) {
      expect([path, await status(serve.port, path), await status(proxy.port, path)]).toEqual([path, 200, 404])
    }
  })

  test.skipIf(elsewhere === undefined)(
    'S1 beyond loopback it needs no TLS, answers its proxy and refuses every other machine, except for the probes',
    async () => {
      const flags = ['--host', '0.0.0.0', '--allowed-host', 'svc.example.com']
      await using serve = await startServeProcess('types: {}\n', [...flags, '--behind-proxy', '192.0.2.7'])
      const direct = `http://${elsewhere}:${serve.port}`
      const refused = await fetch(`${direct}/healthcheck?ServerType=App&ExecutionMode=Basic`)
      expect(refused.status).toBe(403)
      expect(await refused.json()).toMatchObject({
        ResponseStatus: { ErrorCode: 'Forbidden', Message: 'This server accepts requests only from its proxy' },
      })
      expect((await fetch(`${direct}/metrics`)).status).toBe(403)
      expect((await fetch(`${direct}/livez`)).status).toBe(200)
      expect((await fetch(`${direct}/readyz`)).status).toBe(200)
      expect(serve.log()).not.toContain('without TLS')
      await using other = await startServeProcess(`serve: {behindProxy: [${elsewhere}]}\n`, flags)
      const answered = await fetch(`http://${elsewhere}:${other.port}/server-types`)
      expect(answered.status).toBe(200)
    },
  )
})
