import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

function homeWith(yaml: string): Home {
  const home = temporaryHome()
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  return home
}

/**
 * A database behind http that answers with `status`, or that speaks no TLS where the monitor wants it, and an application
 * that depends on it.
 */
async function fixture(status: number | 'no TLS') {
  let requests = 0
  const server = createServer((_, response) => {
    response.writeHead(Number(status)).end('marker-message')
  }).on('connection', () => (requests += 1))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const home = homeWith(`types:
  Sql:
    host: false
    monitors: [{kind: http, name: orders, url: "${status === 'no TLS' ? 'https' : 'http'}://127.0.0.1:${port}/"}]
  App:
    host: false
    monitors: [{kind: file-age, name: web, path: ${process.execPath}, dependsOn: Sql/orders}, {kind: file-age, name: free, path: ${process.execPath}}]
`)
  const health = async (...args: string[]) => await home.run(['health', '-m', 'Basic', ...args])
  return { home, port, health, requests: () => requests }
}

test('H23 a type alone reports the dependents of another type as skipped, and not the cause', async () => {
  const { health, port } = await fixture('no TLS')
  const { code, stdout } = await health('--type', 'App', '--json')
  expect(code).toBe(3)
  const { Response } = JSON.parse(stdout) as { readonly Response?: object }
  const text = JSON.stringify(Response ?? JSON.parse(stdout))
  expect(text).toContain('not run: Sql/http orders failed')
  expect(text).toContain('"FailedMonitorCount":1')
  expect(text).not.toContain(String(port))
  for (const format of ['junit', 'prtg', 'nagios', 'prometheus', 'github', 'ndjson']) {
    const got = await health('--type', 'App', '--output', format)
    expect([format, got.stdout.includes('Sql/http orders')]).toEqual([format, true])
    expect([format, got.stdout.includes(`:${port}`)]).toEqual([format, false])
  }
})

test('H23 a type alone is healthy while the monitor of the other type is', async () => {
  const { health, requests } = await fixture(200)
  const { code, stdout } = await health('--type', 'App')
  expect(code).toBe(0)
  expect(requests()).toBeGreaterThan(0)
  expect(stdout).not.toContain('orders')
})

test('H23 a check of both types observes the monitor as often as a check of its own type', async () => {
  const { health, requests } = await fixture('no TLS')
  await health('--type', 'Sql')
  const alone = requests()
  expect(alone).toBeGreaterThan(0)
  const both = await health('--type', 'Sql', '--type', 'App')
  expect(requests()).toBe(2 * alone)
  expect(both.code).toBe(3)
  expect(both.stdout).toContain('not run: Sql/http orders failed')
})

test('H23 G2 a database that answers with a failure keeps nothing from running', async () => {
  const { health } = await fixture(500)
  const { code, stdout } = await health('--type', 'App')
  expect([code, stdout.includes('not run')]).toEqual([0, false])
  expect((await health('--type', 'Sql', '--type', 'App')).code).toBe(3)
})

test('H23 --skip of the monitor of the other type lets its dependents run', async () => {
  const { health, requests } = await fixture('no TLS')
  const { code } = await health('--type', 'App', '--skip', 'http orders')
  expect([code, requests()]).toEqual([0, 0])
})

test('H23 monitors list and monitors test name the monitors of other types, and validate accepts them', async () => {
  const { home } = await fixture(200)
  const listed = await home.run(['monitors', 'list', '--type', 'App', '--json'])
  const rows = JSON.parse(listed.stdout) as readonly { readonly MonitorName: string; readonly DependsOn?: unknown }[]
  expect(rows.map(({ MonitorName, DependsOn }) => [MonitorName, DependsOn])).toEqual([
    ['file-age web', ['Sql/http orders']],
    ['file-age free', undefined],
  ])
  const run = await home.run(['monitors', 'test', 'web', '--mode', 'Basic'])
  expect(run.code).toBe(0)
  expect(run.stderr).toContain('Note: not run here, although it depends on it: Sql/http orders')
  expect((await home.run(['monitors', 'validate'])).code).toBe(0)
})

test('H23 monitors validate reports a cycle across types with the lines of its members', async () => {
  const tcp = (name: string, on: string): string => `[{kind: tcp, name: ${name}, host: a, port: 1, dependsOn: ${on}}]`
  const home = homeWith(`types:\n  Sql: ${tcp('orders', 'App/web')}\n  App: ${tcp('web', 'Sql/orders')}\n`)
  const { code, stderr, stdout } = await home.run(['monitors', 'validate'])
  expect(code).not.toBe(0)
  const cycle = 'forms a cycle (App/tcp web → Sql/tcp orders → App/tcp web)'
  for (const place of ['svc.yaml:2:', 'svc.yaml:3:', cycle]) expect(stdout + stderr).toContain(place)
})
