import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { startServe } from '../support/program/serve-command.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { until } from '../support/suite/until.ts'

type Finding = { readonly check: string; readonly status: string; readonly message: string; readonly next?: string }

let home: Home
beforeEach(() => {
  home = temporaryHome()
  mkdirSync(join(home.folder, 'bin'))
  symlinkSync(home.program, join(home.folder, 'bin', 'svc'))
})
async function doctor(args: readonly string[] = [], env: Record<string, string> = {}) {
  const path = { PATH: `${join(home.folder, 'bin')}:/usr/bin:/bin`, SHELL: '/bin/bash' }
  const { code, stdout, stderr } = await home.run(['doctor', '--json', ...args], { env: { ...path, ...env } })
  expect(stderr).toBe('')
  const { checks } = JSON.parse(stdout) as { readonly checks: readonly Finding[] }
  return { code, finding: (check: string) => checks.find((one) => one.check === check), checks }
}

/** A server that answers every request with a status and headers. */
async function answering(status: number, headers: Record<string, string> = {}): Promise<string> {
  const server = createServer((_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end('{"ResponseStatus":{"ErrorCode":"Unauthorized","Message":"Not Authenticated"}}')
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('svc doctor', () => {
  test('names every check, and exits with 0 when nothing failed', async () => {
    const { code, checks, finding } = await doctor()
    expect(code).toBe(0)
    expect(checks.map(({ check }) => check)).toEqual(
      'node,settings,svc.yaml,drivers,store,keychain,server,sign-in,clock,svc serve,path,completion'.split(','),
    )
    expect(checks.every(({ status }) => ['ok', 'warning', 'failed', 'skipped', 'not checked'].includes(status))).toBe(
      true,
    )
    expect(finding('svc.yaml')).toMatchObject({ status: 'warning', next: expect.stringContaining('svc init') })
    expect(finding('store')).toMatchObject({ status: 'ok', message: expect.stringContaining('does not exist yet') })
    expect(finding('keychain')).toMatchObject({ status: 'warning' })
    expect(finding('server')?.status).toBe('skipped')
    expect(finding('path')).toMatchObject({ status: 'ok', message: join(home.folder, 'bin', 'svc') })
    expect(finding('completion')).toMatchObject({ status: 'skipped', message: 'not installed for bash' })
  })

  test('P5 a proxy that nobody has declared is a warning once it has relayed a request, in the log and here', async () => {
    expect((await doctor()).finding('svc serve')).toMatchObject({ status: 'skipped' })
    await using serve = await startServe(home, 'types: {}\n')
    expect((await doctor()).finding('svc serve')).toMatchObject({ status: 'ok', message: `${serve.url} runs here` })
    for (let n = 0; n < 2; n += 1) await fetch(`${serve.url}/livez`, { headers: { 'x-forwarded-for': '192.0.2.1' } })
    expect((await doctor()).finding('svc serve')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining(`${serve.url} answers requests of a proxy that is not declared`),
      next: expect.stringContaining('--behind-proxy 127.0.0.1'),
    })
    expect(serve.log().split('is not declared')).toHaveLength(2)
  })

  test('M19 warns once of receivers whose messages have no link, until serve.url is set', async () => {
    const receivers = 'notify: [{name: a, ntfy: {topic: x}}, {name: b, ntfy: {topic: y}}]'
    const write = (yaml: string): void => writeFileSync(join(home.folder, 'svc.yaml'), yaml)
    const types = 'types: {App: {monitors: [{name: m, tcp: {host: 127.0.0.1, port: 1}}]}}'
    write(`${types}\n${receivers}\n`)
    const config = ['--config', join(home.folder, 'svc.yaml')]
    const { checks, finding } = await doctor(config)
    expect(checks.filter(({ message }) => message.includes('serve.url'))).toHaveLength(1)
    expect(finding('svc.yaml')).toMatchObject({ status: 'warning', next: expect.stringContaining('serve:') })
    write(`${types}\n${receivers}\nserve: {url: "https://svc.example.com"}\n`)
    expect((await doctor(config)).finding('svc.yaml')?.status).toBe('ok')
    write(`${types}\n`)
    expect((await doctor(config)).finding('svc.yaml')?.status).toBe('ok')
  })

  test('M19 the log of a server says so at the start, once for all receivers', async () => {
    const receiver = (name: string) => ({ name, ntfy: { topic: name, server: 'http://127.0.0.1:1' }, volatile: true })
    const notify = JSON.stringify([receiver('a'), receiver('b')])
    for (const [url, times] of [
      ['', 0],
      ['serve: {url: "https://svc.example.com"}', -1],
    ] as const) {
      await using serve = await startServe(home, `types: {}\nnotify: ${notify}\n${url}\n`)
      const lines = (): number => serve.log().split('no link to the status page').length
      if (times === 0) await until(() => lines() > 1)
      expect(lines()).toBe(2 + times)
    }
  })

  test('the script that starts svc in the Debian package is no other svc', async () => {
    const bin = join(home.folder, 'usr', 'bin')
    mkdirSync(bin, { recursive: true })
    mkdirSync(join(home.folder, 'usr', 'lib'))
    symlinkSync(dirname(dirname(home.program)), join(home.folder, 'usr', 'lib', 'svc'))
    writeFileSync(join(bin, 'svc'), '#!/bin/sh\n', { mode: 0o755 })
    const { finding } = await doctor([], { PATH: `${bin}:/usr/bin:/bin` })
    expect(finding('path')).toMatchObject({ status: 'ok', message: join(bin, 'svc') })
    writeFileSync(join(home.folder, 'usr', 'svc'), '#!/bin/sh\n', { mode: 0o755 })
    const second = await doctor([], { PATH: `${join(home.folder, 'usr')}:${bin}` })
    expect(second.finding('path')).toMatchObject({ status: 'warning' })
  })

  test('a mistake in svc.yaml is exit 12 with its place, and one without monitors is not a success', async () => {
    const file = join(home.folder, 'svc.yaml')
    writeFileSync(file, 'types:\n  Nope: []\n', { mode: 0o600 })
    const broken = await doctor()
    expect(broken.code).toBe(12)
    expect(broken.finding('svc.yaml')).toMatchObject({
      status: 'failed',
      message: expect.stringContaining(`${file}:2:`),
    })
    writeFileSync(file, 'types: {}\n', { mode: 0o600 })
    expect((await doctor()).finding('svc.yaml')?.status).not.toBe('ok')
    writeFileSync(file, 'types:\n  App:\n    - {kind: tcp, name: web, host: 127.0.0.1, port: 1}\n', { mode: 0o600 })
    expect((await doctor()).finding('svc.yaml')).toMatchObject({ status: 'ok', message: `${file}: 1 monitor` })
  })

  test.skipIf(process.platform === 'win32')(
    'a settings folder that others can write is a failure with the remedy',
    async () => {
      chmodSync(home.folder, 0o777)
      const { code, finding } = await doctor()
      expect(code).toBe(12)
      expect(finding('settings')).toMatchObject({ status: 'failed', next: `chmod 700 '${home.folder}'` })
    },
  )

  test('a damaged store and a damaged settings file are failures, and the other checks still run', async () => {
    mkdirSync(join(home.folder, 'store'), { mode: 0o700 })
    writeFileSync(join(home.folder, 'store', 'svc.db'), 'not a database', { mode: 0o600 })
    writeFileSync(join(home.folder, 'config.json'), '{', { mode: 0o600 })
    const { code, checks, finding } = await doctor()
    expect([code, checks.length]).toEqual([12, 12])
    expect(finding('store')?.status).toBe('failed')
    expect(finding('settings')?.status).toBe('failed')
    expect(finding('node')?.status).toBe('ok')
  })

  test('a server that cannot be reached is exit 6, as it is for the commands that need it', async () => {
    const { code, finding } = await doctor(['--server', 'http://127.0.0.1:1'])
    expect(code).toBe(6)
    expect(finding('server')?.status).toBe('failed')
    expect(finding('sign-in')?.status).toBe('not checked')
  })

  test('a reachable server with nobody signed in is a warning, and a refused token is exit 4', async () => {
    const url = await answering(401)
    const nobody = await doctor(['--server', url])
    expect([nobody.code, nobody.finding('server')?.status]).toEqual([0, 'ok'])
    expect(nobody.finding('sign-in')).toMatchObject({ status: 'warning', next: `svc login --server ${url}` })
    const refused = await doctor(['--server', url], { SVC_TOKEN: 'hunter2-token' })
    expect([refused.code, refused.finding('sign-in')?.status]).toEqual([4, 'failed'])
    expect(JSON.stringify(refused.checks)).not.toContain('hunter2-token')
  })

  test('a clock that is far from the one of the server is a failure', async () => {
    const near = await doctor(['--server', await answering(401)])
    expect(near.finding('clock')?.status).toBe('ok')
    const url = await answering(401, { date: new Date(Date.now() - 3_600_000).toUTCString() })
    const far = await doctor(['--server', url])
    expect([far.code, far.finding('clock')?.status]).toEqual([12, 'failed'])
  })

  test('another svc that comes first on the PATH is named', async () => {
    const folder = join(home.folder, 'other')
    mkdirSync(folder)
    writeFileSync(join(folder, 'svc'), '#!/bin/sh\n', { mode: 0o755 })
    const { finding } = await doctor([], { PATH: `${folder}:${join(home.folder, 'bin')}:/usr/bin:/bin` })
    expect(finding('path')).toMatchObject({ status: 'warning', message: expect.stringContaining(join(folder, 'svc')) })
  })

  test('prints one record a check in a pipe', async () => {
    const { stdout } = await home.run(['doctor'])
    expect(stdout).toMatch(/^svc\.yaml\twarning\tno svc\.yaml: .*\tsvc init/m)
  })
})
