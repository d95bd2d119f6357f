import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { filesRun } from '../tools/files-run.ts'
import { farMs } from './support/suite/until.ts'

const root = new URL('..', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'svc-start-up-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Parts of Node that are dear to load: 2 to 40 ms each. Others are not worth a line. */
const dear = new Set([
  'http',
  'https',
  'tls',
  'http2',
  'dns',
  'child_process',
  'fs/promises',
  'worker_threads',
  'sqlite',
  'readline',
  'crypto',
  'inspector',
])

/**
 * The modules that a command loads: ours by their paths, packages by their names, dear parts of Node.
 * A new line in one of the files below is a start-up that somebody has to want.
 */
async function loadedBy(
  args: readonly string[],
  whileRunning?: (child: ChildProcess) => Promise<void>,
): Promise<string> {
  const report = join(folder, 'loaded.json')
  rmSync(report, { force: true })
  const preload = join(root, 'test/support/program/loaded.cjs')
  const child = spawn(process.execPath, ['--require', preload, join(root, 'bin/run.js'), ...args], {
    env: { PATH: process.env.PATH, HOME: folder, SVC_HOME: join(folder, 'home'), LOADED_MODULES: report },
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  await whileRunning?.(child)
  await exited
  const { files, builtins } = JSON.parse(readFileSync(report, 'utf8')) as { files: string[]; builtins: string[] }
  const chunks = JSON.parse(readFileSync(join(root, 'dist/modules.json'), 'utf8')) as Record<string, string[]>
  const modules = files.flatMap((file) => {
    const [, chunk] = /\/dist\/([^/]+\.cjs)$/.exec(file) ?? []
    return chunk && !file.includes('node_modules') ? (chunks[chunk] ?? []) : [file]
  })
  const lines = modules.flatMap((module) => {
    const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(module) ?? []
    if (name) return [`package ${name}`]
    return module.startsWith('src/') ? [module] : []
  })
  const parts = builtins.filter((name) => dear.has(name)).map((name) => `node:${name}`)
  return `${[...new Set([...lines, ...parts])].sort().join('\n')}\n`
}

function pinned(name: string, loaded: string): void {
  const file = join(root, 'test/golden/start-up', `${name}.txt`)
  if (process.env.UPDATE) writeFileSync(file, loaded)
  expect(existsSync(file) && readFileSync(file, 'utf8')).toBe(loaded)
}

test('P3 svc serve has two threads more than processors, configured before any file is read', async () => {
  const messages = `process.on('exit', () => {
    const { readdirSync, readFileSync } = process.getBuiltinModule('fs')
    const names = process.platform === 'linux' ? readdirSync('/proc/self/task') : []
    const pool = names.filter((id) => readFileSync('/proc/self/task/' + id + '/comm', 'utf8').startsWith('libuv-worker'))
    process.stdout.write(JSON.stringify([process.env.UV_THREADPOOL_SIZE, pool.length]))
  })`
  const preload = `data:text/javascript,${encodeURIComponent(messages)}`
  // It has opened its store when it finds that there is no Admin, and ends.
  const args = [
    'serve',
    '--host',
    '0.0.0.0',
    '--port',
    '0',
    '--insecure-listen',
    '--store',
    join(folder, 'pool', 'svc.db'),
  ]
  const child = spawn(process.execPath, ['--import', preload, join(root, 'bin/run.js'), ...args], {
    env: { PATH: process.env.PATH, HOME: folder, SVC_HOME: join(folder, 'home') },
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: farMs,
  })
  let text = ''
  child.stdout.on('data', (chunk) => {
    text += String(chunk)
  })
  await once(child, 'close')
  const threads = availableParallelism() + 2
  expect(JSON.parse(text)).toEqual([String(threads), process.platform === 'linux' ? threads : 0])
})

describe('the modules that each command loads limit its start-up', () => {
  test('svc --version loads almost nothing', async () => {
    pinned('version', await loadedBy(['--version']))
  })

  test('svc login with a password loads nothing of the sign-in at a provider', async () => {
    const args = ['login', '--server', 'http://127.0.0.1:9', '--insecure-storage']
    const loaded = await loadedBy([...args, '-u', 'ann', '--password-stdin'])
    expect(loaded).toContain('src/commands/login.ts')
    expect(loaded).not.toContain('cli/sign-in/openid/')
    expect(await loadedBy([...args, '--provider', 'corp'])).toContain('cli/sign-in/openid/')
  })

  test('svc health at a server loads no monitor, no store and no configuration', async () => {
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(
        '{"Status":"Success","StatusMessage":"fine","FailedMonitorCount":0,"MonitorSummaries":[{"MonitorName":"Sql","Status":"Success"}]}',
      )
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const args = ['health', '-t', 'App', '--server', `http://127.0.0.1:${port}`]
    const loaded = await loadedBy(args)
    const asJson = await loadedBy([...args, '--json'])
    server.close()
    expect(asJson).not.toContain('cli/health/screen')
    expect(loaded).not.toMatch(
      /core\/(checks\/kinds|store|config|server)\/|package |cli\/(credentials|keychain|settings\/p)/,
    )
    pinned('health-server', loaded)
  })

  test('svc health at a server loads the screen while the server works', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const loaded = await loadedBy(['health', '-t', 'App', '--server', `http://127.0.0.1:${port}`], async (child) => {
      await once(server, 'request')
      child.kill('SIGUSR2')
    })
    server.close()
    expect(loaded).toContain('src/cli/health/screen.ts')
  })

  test('svc health in process loads no HTTP server and only the drivers that it needs', async () => {
    const loaded = await loadedBy(['health', '-m', 'Basic', '-t', 'App'])
    expect(loaded).not.toMatch(/core\/server\/|core\/client\/|package (@oclif|fastify|pg|mysql2)/)
    pinned('health-local', loaded)
  })

  test('svc health in process loads RE2 only where svc.yaml has a pattern, and reads it without node:fs/promises', async () => {
    const config = join(folder, 'svc.yaml')
    const loadedWith = async (expected: string): Promise<string> => {
      writeFileSync(config, `types: {App: [{kind: tcp, host: 127.0.0.1, port: 1, expect: ${expected}}]}`, {
        mode: 0o600,
      })
      return await loadedBy(['health', '-m', 'Basic', '-t', 'App', '--config', config])
    }
    expect(await loadedWith('ready')).not.toMatch(/package re2js|node:fs\/promises/)
    expect(await loadedWith('/ready/')).toContain('package re2js')
  })
})

test('no chunk of the bundle combines modules of svc with those of oclif', () => {
  const chunks = JSON.parse(readFileSync(join(root, 'dist/modules.json'), 'utf8')) as Record<string, string[]>
  const own = Object.values(chunks).filter((modules) => modules.some((module) => module.startsWith('src/')))
  const oclif = Object.values(chunks).filter((modules) => modules.some((module) => module.includes('@oclif/core')))
  expect([own.length > 0, oclif.length > 0]).toEqual([true, true])
  expect(oclif.filter((modules) => own.includes(modules))).toEqual([])
})

test('svc health of one type executes at most 52 source files, and those of its screen', () => {
  const screen = ['health/overview', 'health/rows', 'health/screen', 'health/text', 'render/table', 'render/width']
  const files = filesRun(['health', '--type', 'Sql', '--mode', 'Basic'])
  const ofScreen = screen.map((name) => `src/cli/${name}.ts`)
  expect(files.filter((file) => ofScreen.includes(file))).toEqual(ofScreen)
  expect(files.length - ofScreen.length).toBeLessThanOrEqual(52)
})

test('A12 A13 svc serve loads nothing of other ways to sign in unless svc.yaml turns them on', async () => {
  const config = join(folder, 'serve.yaml')
  const loadedWith = async (yaml: string): Promise<string> => {
    const portFile = join(folder, 'port')
    rmSync(portFile, { force: true })
    writeFileSync(config, yaml, { mode: 0o600 })
    const args = ['serve', '--port', '0', '--port-file', portFile, '--config', config]
    return await loadedBy(args, async (child) => {
      while (!existsSync(portFile) && child.exitCode === null) await setTimeout(20)
      child.kill('SIGTERM')
    })
  }
  const openId = /core\/accounts\/auth\/openid\/|package jose/
  const digest = /core\/accounts\/auth\/(?:digest\/|providers\/digest)/
  const plain = await loadedWith('serve: {}')
  expect(plain).not.toMatch(openId)
  expect(plain).not.toMatch(digest)
  expect(await loadedWith('auth: {digest: true}')).toMatch(digest)
  const provider = '{name: corp, issuer: "https://login.example.com", clientId: svc}'
  expect(await loadedWith(`auth: {openid: [${provider}]}`)).toMatch(openId)
})
