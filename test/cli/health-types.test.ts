import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { combinedExit } from '../../src/cli/health/health.ts'
import { runMediaType } from '../../src/core/protocol/index.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

type Result = { readonly MonitorName: string; readonly Status: string; readonly StatusMessage: string }
type ResultRecord = Result & {
  readonly ServerType: string
  readonly MonitoringName: string
  readonly DurationMs?: number
}

function homeWith(yaml?: string): Home {
  const home = temporaryHome()
  if (yaml !== undefined) writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  return home
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** The port of something that answers every check of the kind http. */
const wellPort = (): Promise<number> => listening(createServer((_, response) => response.end('fine')))

const records = (stdout: string): readonly ResultRecord[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as ResultRecord)

test('K10 12 counts although others are 0, and 3 counts before 12', () => {
  expect(combinedExit([0, 12])).toBe(12)
  expect(combinedExit([12, 12])).toBe(12)
  expect(combinedExit([12, 3, 0])).toBe(3)
  expect(combinedExit([12, 6])).toBe(10)
  expect(combinedExit([0, 6])).toBe(10)
  expect(combinedExit([0, 0])).toBe(0)
})

test('M15 a machine without memory changes no exit code, with --fail-on warn either, and stands with the host', async () => {
  const port = await wellPort()
  const app = `App: {monitors: [{kind: http, url: "http://127.0.0.1:${port}/"}]}`
  const home = homeWith(`host: {memory: {warn: 100%, limit: 99.9%}, disk: off, inodes: off}\ntypes:\n  ${app}\n`)
  const { code, stdout } = await home.run(['health', '-m', 'Standard', '--fail-on', 'warn', '-o', 'ndjson'])
  expect(records(stdout).find(({ MonitoringName }) => MonitoringName === 'memory')).toMatchObject({
    Status: 'Success',
    StatusMessage: expect.stringMatching(/^warning: .* available of .*fail below 99.9 %/),
  })
  expect(code).toBe(0)
  const only = homeWith('types:\n  App: {host: {memory: {warn: 100%, limit: 99.9%}}}\n')
  expect((await only.run(['health', '-m', 'Standard'])).code).toBe(3)
})

test('K10 --type all checks the configured types, and -v names the others on one line without a failure', async () => {
  const port = await wellPort()
  const home = homeWith(`types:\n  App: [{kind: http, url: "http://127.0.0.1:${port}/"}]\n`)
  for (const args of [['health'], ['health', '--type', 'all']]) {
    const { code, stdout, stderr } = await home.run([...args, '-m', 'Basic', '-v'])
    expect(code).toBe(0)
    expect(stdout).toContain('http')
    expect((await home.run([...args, '-m', 'Basic'])).stderr).toBe('')
    expect(stderr).toContain(
      '12 types not configured (Sql, FtpApi, Ftp, Batch, Identity, Qc, XcodeV, XcodeC, MsgVast, AsgVast, Mongo, Agents)',
    )
  }
})

test('K10 a type with host settings only passes --require-config where they switch on a check, and is exit 12 elsewhere', async () => {
  const quiet = 'disk: off, inodes: off, cpu: off, load: off, swap: off'
  const home = homeWith(`types:\n  Batch: {host: {memory: {warn: 0%}, ${quiet}}}\n  Ftp: {host: {${quiet}}}\n`)
  const all = await home.run(['health', '--require-config', '-v'])
  expect([all.code, all.stderr]).toEqual([0, expect.stringContaining('12 types not configured (App, Sql, ')])
  expect(all.stdout).toMatch(/memory +✓ ok +.*% available of/)
  expect((await home.run(['health', '-t', 'Ftp', '-m', 'Basic'])).code).toBe(12)
  const { code, stdout } = await home.run(['monitors', 'validate'])
  expect([code, stdout]).toEqual([0, expect.stringMatching(/is valid: Batch 1$/m)])
})

test('K10 a named type that svc.yaml does not configure is exit 12, also where svc could check itself', async () => {
  const port = await wellPort()
  const home = homeWith(`types:\n  App: [{kind: http, url: "http://127.0.0.1:${port}/"}]\n`)
  const { code, stderr } = await home.run(['health', '-t', 'Sql', '-m', 'Basic'])
  expect(code).toBe(12)
  expect(stderr).toMatch(/svc\.yaml does not configure Sql/)
  const both = await home.run(['health', '-t', 'App,Sql', '-m', 'Basic', '--json'])
  expect(both.code).toBe(12)
  expect(JSON.parse(both.stdout)).toMatchObject({
    Results: [
      { ServerType: 'App', ExitCode: 0 },
      { ServerType: 'Sql', ExitCode: 12, Error: { exitCode: 12 } },
    ],
  })
})

test('K11 one bad entry is not checked, everything else runs, and the type never passes', async () => {
  const port = await wellPort()
  const home = homeWith(`types:
  App:
    - {kind: http, name: shop, url: "http://127.0.0.1:${port}/"}
    - {kind: http, name: worker, ulr: "http://127.0.0.1:${port}/"}
  Sql: [{kind: tcp, name: db, host: 127.0.0.1, port: ${port}}]
`)
  const all = await home.run(['health', '-m', 'Basic', '-o', 'ndjson'])
  expect(all.code).toBe(12)
  const results = records(all.stdout)
  expect(results.find(({ MonitorName }) => MonitorName === 'http shop')?.Status).toBe('Success')
  expect(results.find(({ MonitorName }) => MonitorName === 'tcp db')?.Status).toBe('Success')
  const worker = results.find(({ MonitorName }) => MonitorName === 'http worker')
  expect(worker?.Status).toBe('Failure')
  expect(worker?.StatusMessage).toMatch(/^not checked: .*svc\.yaml:4:\d+: types\.App\[1\]/)
  expect((await home.run(['health', '-t', 'Sql', '-m', 'Basic'])).code).toBe(0)
  expect((await home.run(['health', '-t', 'App', '-m', 'Basic', '-o', 'nagios'])).stdout).toMatch(/^SVC UNKNOWN/)
  const wide = { env: { COLUMNS: '200' } }
  const { stdout } = await home.run(['health', '-t', 'App', '-m', 'Basic', '-o', 'table'], wide)
  expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/^. NOT CHECKED .* 1 of 3 monitors not checked /)
})

test('K11 an unhealthy monitor takes precedence over one that is not checked', async () => {
  const home = homeWith(`types:
  App: [{kind: tcp, name: down, host: 127.0.0.1, port: 1}, {kind: tcp, name: wrong}]
`)
  expect((await home.run(['health', '-m', 'Basic'])).code).toBe(3)
})

test('K11 G1 a monitor that depends on one that is not checked runs', async () => {
  const home = homeWith(`types:
  App: [{kind: tcp, name: wrong}, {kind: tcp, name: after, host: 127.0.0.1, port: ${await wellPort()}, dependsOn: wrong}]
`)
  const { code, stdout } = await home.run(['health', '-m', 'Basic', '-o', 'ndjson'])
  expect(code).toBe(12)
  expect(records(stdout).find(({ MonitorName }) => MonitorName === 'tcp after')?.Status).toBe('Success')
})

test('K11 a mistake outside of the server types is exit 12 where everything is checked, and a warning where a type is named', async () => {
  const port = await wellPort()
  const home = homeWith(`types:
  App: [{kind: tcp, name: a, host: 127.0.0.1, port: ${port}}]
  Sqll: [{kind: tcp, name: a, host: 127.0.0.1, port: 1}]
`)
  const all = await home.run(['health', '-m', 'Basic', '-q'])
  expect(all.code).toBe(12)
  expect(all.stderr).toMatch(/^Error: .*svc\.yaml:3:3: types\.Sqll is not a server type/)
  const oneType = await home.run(['health', '-t', 'App', '-m', 'Basic'])
  expect(oneType.code).toBe(0)
  expect(oneType.stderr).toMatch(/^Warning: .*svc\.yaml:3:3: types\.Sqll is not a server type/)
})

test('K11 no format passes where a mistake outside of the server types may hide a type', async () => {
  const port = await wellPort()
  const home = homeWith(`types:
  App: {host: false, monitors: [{kind: tcp, name: a, host: 127.0.0.1, port: ${port}}]}
  Sqll: [{kind: tcp, name: a, host: 127.0.0.1, port: 1}]
`)
  const outputAs = async (format: string) => {
    const { code, stdout } = await home.run(['health', '-m', 'Basic', '-o', format], { env: { COLUMNS: '200' } })
    expect([format, code]).toEqual([format, format === 'nagios' ? 3 : 12])
    expect(stdout).toMatch(format === 'prometheus' ? /^svc_type_answered\{type="App",[^}]*\} 1$/m : /App/)
    return stdout
  }
  expect(await outputAs('nagios')).toMatch(/^SVC UNKNOWN - .*types\.Sqll is not a server type/)
  expect(await outputAs('table')).toMatch(/^. NOT CHECKED /m)
  expect(JSON.parse(await outputAs('prtg'))).toMatchObject({ prtg: { text: expect.stringContaining('types.Sqll') } })
  expect(JSON.parse(await outputAs('json'))).toMatchObject({
    Results: [
      { ServerType: 'App', ExitCode: 0 },
      { ServerType: 'all', ExitCode: 12, Error: { exitCode: 12, line: 3 } },
    ],
  })
  expect(await outputAs('junit')).toMatch(/<error /)
  expect(await outputAs('github')).toMatch(/^::error /m)
  for (const format of ['csv', 'tsv', 'ndjson']) expect(await outputAs(format)).toContain('types.Sqll')
  expect(await outputAs('prometheus')).toMatch(/^svc_type_success\{type="all",[^}]*\} 0$/m)
})

test('K10 --only leaves out the types without a match, and is an error only where nothing matches', async () => {
  const port = await wellPort()
  const home = homeWith(`types:
  App: [{kind: tcp, name: worker, host: 127.0.0.1, port: ${port}}]
  Sql: [{kind: tcp, name: db, host: 127.0.0.1, port: 1}]
`)
  const worker = await home.run(['health', '-m', 'Basic', '--only', 'worker', '-o', 'ndjson'])
  expect(worker.code).toBe(0)
  expect(records(worker.stdout).map(({ ServerType, MonitorName }) => [ServerType, MonitorName])).toEqual([
    ['App', 'tcp worker'],
  ])
  const nothing = await home.run(['health', '-m', 'Basic', '--only', 'nonsense'])
  expect(nothing.code).toBe(2)
  expect(nothing.stderr).toContain('--only "nonsense" matches no monitor')
  expect(nothing.stderr).toContain('tcp worker: ')
  expect(nothing.stderr).toContain('tcp db: ')
})

test('K10 the machine is observed once, whatever the number of types', async () => {
  const { code, stdout } = await homeWith().run(['health', '-m', 'Basic', '-t', 'App,Sql,Identity', '-o', 'ndjson'])
  expect(code).toBe(0)
  const results = records(stdout).filter(({ MonitorName }) => MonitorName === 'host')
  expect(new Set(results.map(({ ServerType }) => ServerType)).size).toBe(3)
  // No two observations take the same time to the microsecond.
  expect(new Set(results.map(({ DurationMs }) => DurationMs)).size).toBe(1)
})

/** A simulated server with one healthy type. */
async function simulated(
  answer: (path: string) => { readonly status: number; readonly body: string; readonly type?: string },
) {
  const requests: string[] = []
  const port = await listening(
    createServer((request, response) => {
      requests.push(request.url ?? '')
      const { status, body, type = 'application/json' } = answer(request.url ?? '')
      response.writeHead(status, { 'content-type': type }).end(body)
    }),
  )
  return { url: `http://127.0.0.1:${port}`, requests }
}
const fine = {
  status: 200,
  body: JSON.stringify({
    Status: 'Success',
    StatusMessage: 'fine',
    MonitorSummaries: [{ MonitorName: 'Sql', Status: 'Success' }],
  }),
}
const types = (Types: readonly string[], Configured: boolean) => ({
  status: 200,
  body: JSON.stringify({ Types, Configured }),
})

test('K10 H14 a simulated server is asked for its configured types when no type is named', async () => {
  const server = await simulated((path) => (path.startsWith('/server-types') ? types(['Sql', 'Agents'], true) : fine))
  const { code, stderr } = await homeWith().run(['health', '--server', server.url, '-v'])
  expect(code).toBe(0)
  expect(server.requests[0]).toBe('/server-types')
  expect(server.requests.slice(1).map((path) => /ServerType=(\w+)/.exec(path)?.[1])).toEqual(['Sql', 'Agents'])
  expect(stderr).toContain('11 types not configured (App, ')
})

test('K10 a simulated server gets no other request when a type is named', async () => {
  const server = await simulated(() => fine)
  expect((await homeWith().run(['health', '--server', server.url, '-t', 'Sql'])).code).toBe(0)
  expect(server.requests).toHaveLength(1)
  expect(server.requests[0]).toMatch(/^\/healthcheck\?/)
})

test.each([404, 405])(
  'K10 a simulated server that answers %s to GetServerTypes is exit 2, without a health check',
  async (status) => {
    const server = await simulated(() => ({ status, body: '{"ResponseStatus":{"ErrorCode":"NotFound"}}' }))
    const { code, stderr } = await homeWith().run(['health', '--server', server.url])
    expect(code).toBe(2)
    expect(stderr).toMatch(/^Error: --type is required with this server/)
    expect(server.requests).toHaveLength(1)
  },
)

test('K10 a simulated server without any configured type is exit 12, with --require-config also one that checks itself', async () => {
  const empty = await simulated(() => types([], true))
  expect((await homeWith().run(['health', '--server', empty.url])).code).toBe(12)
  const own = await simulated((path) => (path.startsWith('/server-types') ? types(['App'], false) : fine))
  expect((await homeWith().run(['health', '--server', own.url])).code).toBe(0)
  expect((await homeWith().run(['health', '--server', own.url, '--require-config'])).code).toBe(12)
})

const requiring = ['--require-config', '-t', 'App'] as const

test('K10 --require-config with named types is exit 12 at a simulated server without a configuration, at once and in every format', async () => {
  const server = await simulated((path) => (path.startsWith('/server-types') ? types(['App'], false) : fine))
  const { code, stderr } = await homeWith().run(['health', '--server', server.url, ...requiring, '--wait', '10m'])
  expect(code).toBe(12)
  expect(stderr).toContain(`nothing is configured at ${server.url}`)
  expect(stderr).toContain('in the svc.yaml of that server')
  expect(stderr).not.toContain('--type App')
  expect(server.requests).toEqual(['/server-types'])
  const env = { SVC_REQUIRE_CONFIG: '1' }
  expect((await homeWith().run(['health', '--server', server.url, '-t', 'App'], { env })).code).toBe(12)
})

test('K10 --require-config with named types leaves the verdict to a simulated server that has a configuration', async () => {
  const server = await simulated((path) => (path.startsWith('/server-types') ? types(['Sql'], true) : fine))
  expect((await homeWith().run(['health', '--server', server.url, ...requiring])).code).toBe(0)
  expect(server.requests.map((path) => path.split('?')[0])).toEqual(['/server-types', '/healthcheck'])
})

/** A run as an svc answers it. */
const runOf = (status: 'ok' | 'failed') => ({
  status: status === 'ok' ? 200 : 503,
  type: runMediaType,
  body: JSON.stringify({
    ...{ version: 1, type: 'App', mode: 'Standard', view: 'full', status, message: status, durationMs: 1 },
    ...{ startedAt: new Date().toISOString(), endedAt: new Date().toISOString() },
    monitors: [{ name: 'svc', kind: 'self', status, results: [{ check: 'version', status, message: status }] }],
  }),
})

test.each([404, 405])(
  'K10 --require-config at a simulated server that answers %s to GetServerTypes: an svc that passes is 12, other servers keep their verdict',
  async (status) => {
    const unknown = { status, body: '{"ResponseStatus":{"ErrorCode":"NotFound"}}' }
    const at = async (answer: Parameters<typeof simulated>[0]) => {
      const server = await simulated((path) => (path.startsWith('/server-types') ? unknown : answer(path)))
      return await homeWith().run(['health', '--server', server.url, ...requiring])
    }
    expect((await at(() => fine)).code).toBe(0)
    const older = await at(() => runOf('ok'))
    expect(older.code).toBe(12)
    expect(older.stderr).toContain('does not report whether it has a configuration')
    expect((await at(() => runOf('failed'))).code).toBe(3)
  },
)

test('K10 --require-config at a simulated svc 0.1, which sends no run: a document that names no configured server is 12', async () => {
  const unknown = { status: 404, body: '{"ResponseStatus":{"ErrorCode":"NotFound"}}' }
  const document = (...monitors: readonly object[]) => ({
    status: 200,
    body: JSON.stringify({ Status: 'Success', StatusMessage: 'App is healthy', MonitorSummaries: monitors }),
  })
  const monitor = (name: string, check: string, message: string) => ({
    MonitorName: name,
    Status: 'Success',
    Results: [{ MonitoringName: check, Status: 'Success', StatusMessage: message }],
  })
  const own = monitor('self svc', 'version', 'svc 0.1.0 on Node 24.21.0')
  const at = async (answer: ReturnType<typeof document>, args: readonly string[]) => {
    const server = await simulated((path) => (path.startsWith('/server-types') ? unknown : answer))
    return await homeWith().run(['health', '--server', server.url, '-t', 'App', ...args])
  }
  const here = monitor('Configuration', 'configured', 'warning: App: no server configured; this program was checked')
  const fromElsewhere = monitor('configuration', 'configured', 'warning: see the server')
  for (const alone of [document(own, here), document(own, fromElsewhere)]) {
    const ran = await at(alone, ['--require-config'])
    expect(ran.code).toBe(12)
    expect(ran.stderr).toMatch(/^Error: App is not configured at http:\S+: the server checked only itself/)
    expect((await at(alone, [])).code).toBe(0)
  }
  // A service of its own may name a monitor so.
  const sameName = document(monitor('Configuration', 'configured', 'all files are there'))
  expect((await at(sameName, ['--require-config'])).code).toBe(0)
  const configured = document(own, monitor('tcp a', 'connect', 'accepted in 3 ms'))
  expect((await at(configured, ['--require-config'])).code).toBe(0)
})

test('K10 SVC_REQUIRE_CONFIG with another value than 0 or 1 is exit 2, beside --require-config too', async () => {
  for (const value of ['yes', '', ' ', '2']) {
    for (const args of [[], ['--require-config']]) {
      const { code, stderr } = await homeWith('types: {}').run(['health', ...args], {
        env: { SVC_REQUIRE_CONFIG: value },
      })
      expect([value, args, code]).toEqual([value, args, 2])
      expect(stderr).toContain('SVC_REQUIRE_CONFIG')
    }
  }
})

test.each([401, 403, 429, 500, 502, 503])(
  'K10 --require-config at a simulated server that answers %s to GetServerTypes never passes',
  async (status) => {
    const server = await simulated((path) => (path.startsWith('/server-types') ? { status, body: '{}' } : fine))
    const { code } = await homeWith().run(['health', '--server', server.url, ...requiring])
    expect(code).not.toBe(0)
    expect(server.requests.every((path) => path.startsWith('/server-types'))).toBe(true)
  },
)

test('K10 --wait also waits for a simulated server that does not list its types yet', async () => {
  let answers = 0
  const server = await simulated((path) => {
    answers += 1
    if (answers === 1) return { status: 503, body: '{}' }
    return path.startsWith('/server-types') ? types(['Sql'], true) : fine
  })
  expect((await homeWith().run(['health', '--server', server.url, '--wait', '30s'])).code).toBe(0)
})

test('K10 --wait ends at once where nothing is configured', async () => {
  const home = homeWith('types: {}\n')
  const { code, stderr } = await home.run(['health', '--wait', '10m'])
  expect(code).toBe(12)
  expect(stderr).toContain('configures no monitors')
})
