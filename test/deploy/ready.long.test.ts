import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { compiledCode } from '../support/program/compiled-code.ts'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = temporaryFolder()
const portFile = join(folder, 'port')
const environment = { PATH: process.env['PATH'] ?? '', HOME: folder, SVC_HOME: folder, ...compiledCode }

const children: ChildProcess[] = []
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null) continue
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
})

function start(
  program: string,
  ...args: readonly string[]
): { readonly ended: Promise<number | null>; readonly log: string } {
  const child = spawn(process.execPath, [join(root, program), ...args], {
    env: environment,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  children.push(child)
  const state = { log: '', ended: once(child, 'close').then(([code]) => code as number | null) }
  child.stderr.on('data', (chunk) => {
    state.log += String(chunk)
  })
  return state
}
const ready = (...args: readonly string[]) => start('deploy/ready.mjs', ...args)

describe('deploy/ready.mjs, which systemd and containers ask', () => {
  test('waits for a server that is still starting, by the port file that it will write', async () => {
    const waiting = ready(portFile, '--wait', '60')
    start('bin/run.js', 'serve', '--port', '0', '--port-file', portFile)
    expect(await waiting.ended, waiting.log).toBe(0)
    expect(await ready(readFileSync(portFile, 'utf8').trim()).ended).toBe(0)
  }, 90_000)

  test('says what is missing when no server listens', async () => {
    await until(() => !existsSync(portFile))
    const none = ready(portFile)
    expect(await none.ended).toBe(1)
    expect(none.log).toBe(`not ready: svc serve does not listen yet (${portFile} does not exist)\n`)
    const refused = ready('1')
    expect(await refused.ended).toBe(1)
    expect(refused.log).toContain('ECONNREFUSED')
  })

  test('is not content with a server that is not ready (simulated)', async () => {
    const server = createServer((_, response) => response.writeHead(503).end())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const draining = ready(String((server.address() as AddressInfo).port))
    expect(await draining.ended).toBe(1)
    expect(draining.log).toContain('/readyz answers 503')
    server.close()
  })
})

test('W16 after its wait, systemd keeps a server that lives and is not ready, and none that does not live (simulated)', async () => {
  let lives = true
  const server = createServer(({ url }, response) => response.writeHead(lives && url === '/livez' ? 200 : 503).end())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const port = String((server.address() as AddressInfo).port)
  const watching = ready(port, '--wait', '1')
  expect(await watching.ended).toBe(0)
  expect(watching.log).toContain('/readyz answers 503')
  expect(await ready(port).ended).toBe(1)
  lives = false
  expect(await ready(port, '--wait', '1').ended).toBe(1)
  server.close()
})

suiteWith(opensslMissing(), 'deploy/ready.mjs at a server with TLS', () => {
  test('accepts its certificate for another name: it asks this machine', async () => {
    const certificates = makeCertificates()
    const tls = (['cert', 'key'] as const).flatMap((part) => {
      const file = join(folder, `${part}.pem`)
      writeFileSync(file, certificates.otherHost[part], { mode: 0o600 })
      return [`--tls-${part}`, file]
    })
    certificates.remove()
    start('bin/run.js', 'serve', '--port', '0', '--port-file', portFile, ...tls)
    const waiting = ready(portFile, '--wait', '60')
    expect(await waiting.ended, waiting.log).toBe(0)
  }, 90_000)
})
