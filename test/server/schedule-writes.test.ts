import { watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { resolveHost } from '../../src/core/base/net/connect.ts'
import { type Result, runMonitors } from '../../src/core/checks/engine/index.ts'
import { configurableKinds } from '../../src/core/checks/plan/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { type ScheduledMonitor, scheduledMonitors } from '../../src/core/service/watch/scheduled-monitors.ts'
import { engineFixture } from '../support/engine/engine-fixture.ts'
import { startFtpServer } from '../support/servers/ftp-server.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

/** Settings that let each kind write, and whether anything remains of the monitor when it may not. */
const writers: Readonly<Record<string, { readonly settings: string; readonly remains: boolean }>> = {
  ftp: { settings: 'host: 127.0.0.1, username: u, password: {env: P}, folder: /in, probeFolder: /in', remains: true },
  sftp: {
    settings: `host: 127.0.0.1, username: u, password: {env: P}, hostKey: ['SHA256:${'a'.repeat(43)}'], probeFolder: /in`,
    remains: true,
  },
  'http-steps': {
    settings: "url: 'http://127.0.0.1:9', steps: [{name: submit, method: POST, path: /jobs}]",
    remains: false,
  },
  mongo: { settings: "url: 'mongodb://127.0.0.1:9/', probeDatabase: probes", remains: true },
  mysql: { settings: "url: 'mysql://u@127.0.0.1:9/shop', probeTable: probes", remains: true },
  postgres: { settings: "url: 'postgres://u@127.0.0.1:9/shop'", remains: true },
  redis: { settings: "url: 'redis://127.0.0.1:9'", remains: true },
  sqlserver: { settings: "url: 'sqlserver://u@127.0.0.1:9/shop', probeTable: probes", remains: true },
}

/** The scheduled monitor of a svc.yaml with this monitor. */
async function scheduledOf(monitor: string): Promise<ScheduledMonitor | undefined> {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'svc.yaml'), `types: {App: {host: false, monitors: [{${monitor}}]}}\n`, { mode: 0o600 })
  const env = { SVC_HOME: folder, P: 'secret-of-the-test' }
  const config = await loadConfig({ env, platform: process.platform, home: folder })
  expect(config.types.App?.monitors.map(({ kind }) => kind.name)).toEqual([/^kind: (\S+),/.exec(monitor)?.[1]])
  const [only, ...others] = await scheduledMonitors(config)
  expect(others).toEqual([])
  return only
}

const mayWrite = (one: ScheduledMonitor | undefined): unknown =>
  one && (one.monitor.settings as Readonly<Record<string, unknown>>)['allowWrites']

test('W1 the table lists each kind that has `allowWrites`', async () => {
  const kinds = await configurableKinds()
  expect(Object.keys(writers).sort()).toEqual(
    kinds.flatMap(({ name, settings }) => (settings['allowWrites'] ? [name] : [])).sort(),
  )
})

test.each(Object.entries(writers))(
  'W1 %s writes in the schedule with `scheduleWrites` beside `allowWrites` only',
  async (kind, { settings, remains }) => {
    const scheduled = (more: string) => scheduledOf(`kind: ${kind}, ${settings}${more}`)
    expect(mayWrite(await scheduled(', allowWrites: true, scheduleWrites: true'))).toBe(true)
    const quiet = await scheduled(', allowWrites: true')
    expect(mayWrite(quiet)).toBe(remains ? false : undefined)
    expect(quiet?.monitor.configured?.has('allowWrites') ?? false).toBe(false)
    if (remains) expect(mayWrite(await scheduled(', scheduleWrites: true'))).toBe(false)
  },
)

test('W1 a scheduled run leaves no trace at a real FTP server, and writes there with `scheduleWrites`', async () => {
  const server = await startFtpServer('secret-of-the-test')
  const names = new Set<string>()
  const watcher = watch(server.root, (_, name) => void names.add(name ?? ''))
  onTestFinished(async () => {
    watcher.close()
    await server.remove()
  })
  const run = async (more: string): Promise<readonly Result[]> => {
    const one = await scheduledOf(
      `kind: ftp, host: 127.0.0.1, port: ${server.port}, tls: 'off', username: monitor, password: {env: P}, folder: /, allowWrites: true${more}`,
    )
    if (!one) throw new Error('the schedule does not run it')
    const { signal } = new AbortController()
    const context = engineFixture({ resolve: resolveHost })
    const { monitors } = await runMonitors([one.monitor], context, { mode: 'Advanced', signal, cause: 'schedule' })
    return monitors[0]?.results ?? []
  }
  const checksOf = (results: readonly Result[]) => results.map(({ check }) => check)
  const quiet = await run('')
  expect(quiet.filter(({ status }) => status === 'failed')).toEqual([])
  expect(checksOf(quiet)).toContain('sign-in')
  expect(checksOf(quiet)).not.toContain('rename')
  // The kernel reports changes in their order: what the run had written would come before this file.
  writeFileSync(join(server.root, 'mark'), '')
  await until(() => names.has('mark'))
  expect([...names]).toEqual(['mark'])
  expect(checksOf(await run(', scheduleWrites: true'))).toContain('rename')
  await until(() => names.size > 1)
})
