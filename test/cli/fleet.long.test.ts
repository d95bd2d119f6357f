import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startServe } from '../support/program/serve-command.ts'
import type { Serving } from '../support/program/serving.ts'
import { entry } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { makeCertificates } from '../support/servers/certs.ts'
import { type HealthServer, healthServer } from '../support/simulated/health-answers.ts'
import { type HttpPeer, httpPeer } from '../support/simulated/http-peer.ts'

const home = temporaryHome()
const homes = [temporaryHome(), temporaryHome(), temporaryHome()] as const
const serves: Serving[] = []
const certificates = makeCertificates()
let hung: Server
let target: HttpPeer
let tls: HttpPeer
let simulated: HealthServer
let serviceStack: HttpPeer
let fleet = ''

/** Answers like ServiceStack (simulated), which does not know the operation that lists server types. */
const foreign: RequestListener = (request, response) => {
  const answer = { Status: 'Success', MonitorSummaries: [{ MonitorName: 'm', Status: 'Success' }] }
  const isKnown = request.url?.includes('/healthcheck') === true
  response.writeHead(isKnown ? 200 : 404, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer))
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port

beforeAll(async () => {
  hung = createServer().listen(0, '127.0.0.1')
  await once(hung, 'listening')
  target = await httpPeer((_, response) => response.end('ready'))
  tls = await httpPeer(foreign, certificates.good)
  serviceStack = await httpPeer(foreign)
  simulated = await healthServer()
  const app = (url: string): string =>
    `types: {App: {host: false, monitors: [{kind: http, name: shop, url: ${url}}]}}\n`
  const yamls = [app(target.origin), app('http://127.0.0.1:1'), '{}\n']
  // One after the other: each opens a store.
  for (const [at, yaml] of yamls.entries()) serves.push(await startServe(homes[at] ?? home, yaml))
  const [well, sick, bare] = serves.map(({ url }) => url)
  fleet = join(home.folder, 'fleet.yaml')
  const entries = [
    `{name: well, url: '${well}'}`,
    `{name: sick, url: '${sick}'}`,
    `{name: bare, url: '${bare}'}`,
    `{name: refusing, url: 'http://127.0.0.1:1'}`,
    `{name: hung, url: 'http://127.0.0.1:${portOf(hung)}'}`,
    `{name: own-ca, url: '${tls.origin}', types: [App], caFile: ${certificates.caFile}}`,
    `{name: unknown-ca, url: '${tls.origin}', types: [App]}`,
    `{name: foreign, url: '${serviceStack.origin}', types: [Sql], mode: Basic}`,
    `{name: typeless, url: '${serviceStack.origin}'}`,
    `{name: closed, url: '${simulated.url('sign-in')}', types: [App]}`,
  ]
  writeFileSync(fleet, `servers:\n${entries.map((one) => `  - ${one}\n`).join('')}`, { mode: 0o600 })
}, 120_000)

afterAll(async () => {
  await Promise.all(serves.map((serve) => serve.stop()))
  hung?.close()
  simulated?.close()
  await target?.[Symbol.asyncDispose]()
  await tls?.[Symbol.asyncDispose]()
  await serviceStack?.[Symbol.asyncDispose]()
  certificates.remove()
})

describe('O53 many real servers, beside simulated ones', () => {
  test('each has the code that it has alone, and those that answer do not wait for the one that hangs', async () => {
    const child = spawn(process.execPath, [entry, 'health', '--require-config', '-o', 'ndjson', '--fleet', fleet], {
      env: home.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [text, errors] = ['', '']
    const order: string[] = []
    child.stdout.on('data', (chunk) => {
      text += String(chunk)
    })
    child.stderr.on('data', (chunk) => {
      errors += String(chunk)
    })
    const [code] = (await once(child, 'close')) as [number]
    for (const line of text.trim().split('\n')) order.push((JSON.parse(line) as { Target: string }).Target)
    expect(code).toBe(3)
    expect(order.at(-1)).toBe('hung')
    expect(new Set(order).size).toBe(10)
    expect(errors).toContain('✗ UNHEALTHY')

    const { stdout } = await home.svc(['health', '--require-config', '--json', '--fleet', fleet])
    const { Results } = JSON.parse(stdout) as { Results: { Target: string; ExitCode: number }[] }
    const codes = Object.fromEntries(Results.map(({ Target, ExitCode }) => [Target, ExitCode]))
    const expected = { well: 0, sick: 3, bare: 12, refusing: 6, hung: 7, 'own-ca': 0, 'unknown-ca': 6, foreign: 0 }
    expect(codes).toEqual({ ...expected, typeless: 2, closed: 4 })
    for (const { url } of serves.slice(0, 2)) {
      const alone = await home.svc(['health', '--require-config', '--server', url])
      expect(alone.code).toBe(url === serves[0]?.url ? 0 : 3)
    }
  }, 120_000)

  test('K14 a terminal shows which server is out, and then the table, in which each row has its code', async () => {
    const { code, stdout } = await home.terminal(['health', '--fleet', fleet], () => undefined)
    expect(code).toBe(3)
    expect(stdout).toMatch(/waiting for hung \(9 of 10 servers done, \d failed\)/)
    expect(stdout).toMatch(/✗ exit 3 +sick +App http shop connect/)
    expect(stdout).toMatch(/✗ exit 7 +hung .*hangs/)
    expect(stdout).toMatch(/\? exit 4 +closed/)
    expect(stdout).toMatch(/✗ UNHEALTHY {2}\S+ · 10 servers · 1 unhealthy · 3 not reached · 3 not checked/)
  }, 120_000)

  test('400 servers of three types with 256 descriptors have no error of descriptors', async () => {
    const path = join(home.folder, 'large.yaml')
    const server = (at: number): string =>
      `  - {name: s${at}, url: '${tls.origin}/s${at}', caFile: ${certificates.caFile}}\n`
    writeFileSync(path, `servers:\n${Array.from({ length: 400 }, (_, at) => server(at)).join('')}`, { mode: 0o600 })
    const args = [entry, 'health', '-t', 'App,Sql,Ftp', '--fleet', path]
    const child = spawn('sh', ['-c', 'ulimit -n 256; exec "$0" "$@"', process.execPath, ...args], {
      env: home.env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let text = ''
    child.stdout.on('data', (chunk) => {
      text += String(chunk)
    })
    expect(await once(child, 'close')).toEqual([0, null])
    expect(text).toMatch(/✓ HEALTHY {2}\S+ · 400 servers/)
  }, 120_000)
})
