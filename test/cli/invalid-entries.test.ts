import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startServeProcess } from '../support/program/serve-process.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const home = temporaryHome()
let listener: Server
/** One entry of App lacks its host; all else is sound. */
let yaml: string
const mistake = /svc\.yaml:6:\d+: types\.App\.monitors\[1\]\.hst is not a setting here: did you mean `host`\?/
beforeAll(async () => {
  listener = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const tcp = (name: string, host = 'host'): string => `{kind: tcp, name: ${name}, ${host}: 127.0.0.1, port: ${port}}`
  yaml = `types:
  App:
    host: false
    monitors:
      - ${tcp('shop')}
      - ${tcp('worker', 'hst')}
  Batch: {host: false, monitors: [${tcp('import')}]}
`
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
})
afterAll(() => listener.close())

describe('an entry of svc.yaml with a mistake', () => {
  test('leaves the others in the list of what would run, with the mistake on standard error', async () => {
    const { code, stdout, stderr } = await home.run(['monitors', 'list', '-t', 'App', '--json'])
    expect(code).toBe(0)
    const names = (JSON.parse(stdout) as readonly { readonly MonitorName: string }[]).map((one) => one.MonitorName)
    expect(names).toEqual(['tcp shop', 'tcp worker'])
    expect(stderr).toMatch(mistake)
  })

  test('leaves the others to be tested', async () => {
    const { code, stdout, stderr } = await home.run(['monitors', 'test', 'shop'])
    expect(code).toBe(0)
    expect(stdout).toContain('connect')
    expect(stderr).toMatch(mistake)
  })

  test.each(['worker', 'tcp worker'])('cannot be tested itself, as %s: exit code 12 and the mistake', async (name) => {
    const { code, stdout, stderr } = await home.run(['monitors', 'test', name])
    expect([code, stdout]).toEqual([12, ''])
    expect(stderr).toMatch(/^Error: .*svc\.yaml:6/)
    expect(stderr).toMatch(mistake)
    const json = await home.run(['monitors', 'test', name, '--json'])
    expect(JSON.parse(json.stdout)).toMatchObject({ error: { exitCode: 12, line: 6 } })
  })

  test('does not keep svc serve from starting: its type is unhealthy, and the log says why', async () => {
    await using serve = await startServeProcess(yaml)
    const health = async (type: string): Promise<{ readonly status: number; readonly text: string }> => {
      const response = await fetch(`http://127.0.0.1:${serve.port}/healthcheck?ExecutionMode=Basic&ServerType=${type}`)
      return { status: response.status, text: await response.text() }
    }
    expect((await health('Batch')).status).toBe(200)
    const app = await health('App')
    expect(app.status).toBe(503)
    expect(app.text).toMatch(/tcp worker.*not checked: /s)
    expect((await fetch(`http://127.0.0.1:${serve.port}/readyz`)).status).toBe(200)
    expect(serve.log()).toMatch(
      /"level":"?(?:error|50)"?.*App is unhealthy: tcp worker is not checked: .*hst is not a setting here/,
    )
  })
})

test.each([
  ['a section', `${'serve: {jsonp: 1}'}\n`, /serve\.jsonp must be true or false/],
  ['a type', 'types: {Sqll: []}\n', /Sqll is not a server type/],
  ['the syntax', 'types: {App: [\n', /bracket/],
])('svc serve does not start with a mistake in %s of svc.yaml', async (_, text, message) => {
  const config = join(home.folder, 'other.yaml')
  writeFileSync(config, text, { mode: 0o600 })
  const { code, stderr } = await home.run(['serve', '--only', 'health', '--port', '0', '--config', config])
  expect(code).toBe(12)
  expect(stderr).toMatch(message)
})

test('H55 svc monitors validate names the monitors that test only a port or only TLS, once', async () => {
  const config = join(home.folder, 'ports.yaml')
  const at = 'host: 127.0.0.1, port: 9'
  const entries = [
    `{kind: tcp, name: one, ${at}}`,
    `{kind: tcp, name: two, ${at}}`,
    `{kind: tcp, name: greeted, ${at}, expect: SSH-}`,
    `{kind: tls, name: wrapped, ${at}}`,
    `{kind: tls, name: answering, ${at}, expect: SSH-}`,
    '{kind: redis, name: known, url: redis://127.0.0.1:9}',
  ]
  writeFileSync(config, `types:\n  App: [${entries.join(', ')}]\n`, { mode: 0o600 })
  const { code, stderr } = await home.run(['monitors', 'validate', '--config', config])
  expect(code).toBe(0)
  expect(stderr).toBe(
    'Note: tcp one, tcp two: only the port is tested, which a frozen server keeps open: use its kind, or send and expect\n' +
      'Note: tls wrapped: only TLS is tested, which a proxy completes before a frozen server: use its kind, or send and expect\n',
  )
})

describe('a slip in the structure of svc.yaml', () => {
  const settings = Array.from({ length: 20 }, (_, n) => `      setting${n}: 1\n`).join('')
  // The dash before `kind` is missing.
  const slip = `types:\n  App:\n    monitors:\n      - {kind: tcp}\n  Sql:\n      kind: tcp\n${settings}`
  let config: string
  beforeAll(() => {
    config = join(home.folder, 'slip.yaml')
    writeFileSync(config, slip, { mode: 0o600 })
  })

  test('is the first problem, followed by a handful and the number of the others', async () => {
    const { code, stderr } = await home.run(['monitors', 'validate', '--config', config])
    expect(code).toBe(12)
    const problems = stderr.split('\n').filter((line) => line.includes('slip.yaml:'))
    expect(problems[0]).toMatch(/slip\.yaml:6:7: types\.Sql\.kind belongs to a monitor: begin it with "- "/)
    expect(problems).toHaveLength(5)
    expect(stderr).toContain('  and 18 more problems, which may follow from the first\n')
  })

  test('is in the JSON with all of them', async () => {
    const { stdout } = await home.run(['monitors', 'validate', '--config', config, '--json'])
    const { error } = JSON.parse(stdout) as { readonly error: { readonly mistakes: readonly unknown[] } }
    expect(error.mistakes).toHaveLength(23)
  })

  test('is one line of svc health, with the number of the others', async () => {
    const { code, stdout } = await home.run(['health', '-t', 'Sql', '-o', 'nagios', '--config', config])
    expect(code).toBe(3)
    expect(stdout).toMatch(
      /types\.Sql\.kind belongs to a monitor.*; and 16 more problems, which may follow from the first/,
    )
  })
})

test('K11 --config with a file of passwords is refused in every command, and shows nothing of it', async () => {
  const config = join(home.folder, 'shadow')
  const text = Array.from({ length: 30 }, (_, n) => `user${n}:$y$j9T$s3cret${n}:20228:0:99999:7::\n`).join('')
  writeFileSync(config, text, { mode: 0o600 })
  for (const args of [
    ['health'],
    ['health', '--json'],
    ['health', '-t', 'App'],
    ['monitors', 'validate'],
    ['monitors', 'list'],
    ['serve', '--port', '0'],
  ]) {
    const { code, stdout, stderr } = await home.run([...args, '--config', config])
    expect([args, code]).toEqual([args, 12])
    expect(stdout + stderr).toContain(
      'is not a svc.yaml: it has none of the sections types, profiles, serve, auth and notify',
    )
    expect(stdout + stderr).not.toMatch(/s3cret|user\d/)
  }
})
