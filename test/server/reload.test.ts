import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { type Config, loadConfig } from '../../src/core/config/index.ts'
import { runMediaType } from '../../src/core/protocol/index.ts'
import { decodeRun } from '../../src/core/protocol/wire/index.ts'
import type { Core } from '../../src/core/service/open.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import { refusedPort } from '../support/faults/faults.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { farMs } from '../support/suite/until.ts'

let folder: string
let core: Core
let url: string
let peer: Server
let peerPort: number
let connections = 0
let close: () => Promise<void>

const configured = async (yaml: string): Promise<Config> => {
  writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  return await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
}
const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${peerPort}${more}}`
const reload = (yaml: string) => core.reload?.(async () => await configured(yaml))

beforeEach(async () => {
  folder = temporaryFolder()
  connections = 0
  peer = createServer((socket) => {
    connections += 1
    socket.end()
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => peer.once('listening', resolve))
  peerPort = (peer.address() as { readonly port: number }).port
  core = await testCore({
    version: '1',
    config: await configured(`types: {App: [${tcp('one')}, ${tcp('two')}], Ftp: [${tcp('drop')}]}`),
    details: 'anyone',
  })
  const server = await testServer({ service: core.service, runtime: core.runtime })
  ;({ url } = server)
  close = async () => {
    await server.stop()
    await core.runtime.close()
  }
})
afterEach(async () => {
  await close()
  peer.close()
})

const text = async (path: string): Promise<string> => await (await fetch(`${url}${path}`)).text()
const monitorsOf = async (type: string): Promise<readonly string[]> => {
  const answer = JSON.parse(await text(`/healthcheck?ExecutionMode=Basic&ServerType=${type}`)) as {
    readonly MonitorSummaries: readonly { readonly MonitorName: string }[]
  }
  return answer.MonitorSummaries.map(({ MonitorName }) => MonitorName).filter((name) => name.startsWith('tcp'))
}

test('W9 after a reload, callers get the monitors of the new configuration, and what did not change keeps its result', async () => {
  expect(await monitorsOf('App')).toEqual(['tcp one', 'tcp two'])
  expect(await monitorsOf('Ftp')).toEqual(['tcp drop'])
  const before = connections
  const changes = await reload(`types: {App: [${tcp('three', ', timeout: 3s')}, ${tcp('one')}], Ftp: [${tcp('drop')}]}`)
  expect(changes).toMatchObject({ added: ['App/tcp three'], removed: ['App/tcp two'], changed: [], types: ['App'] })
  expect(await monitorsOf('Ftp')).toEqual(['tcp drop'])
  expect(connections).toBe(before)
  expect((await monitorsOf('App')).toSorted()).toEqual(['tcp one', 'tcp three'])
})

test('W9 a monitor that a reload removes leaves /metrics at once, and the others stay until the next run', async () => {
  await monitorsOf('App')
  await reload(`types: {App: [${tcp('one')}], Sql: [${tcp('new')}]}`)
  const metrics = await text('/metrics')
  expect(metrics).toContain('monitor="tcp one"')
  expect(metrics).not.toContain('monitor="tcp two"')
  expect(metrics).toMatch(/^svc_configured_types 2$/m)
  expect(JSON.parse(await text('/server-types'))).toMatchObject({ Types: ['App', 'Sql'] })
})

test('W9 a run in progress answers its caller with the monitors that it began with, and later callers get the new ones', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  await new Promise((resolve) => silent.once('listening', resolve))
  const { port } = silent.address() as { readonly port: number }
  const slow = `{kind: tcp, name: slow, host: 127.0.0.1, port: ${port}, expect: hello, timeout: 2s}`
  await reload(`types: {App: [${slow}, ${tcp('two')}]}`)
  const began = new Promise((resolve) => silent.once('connection', resolve))
  const first = monitorsOf('App')
  await began
  await reload(`types: {App: [${tcp('three')}]}`)
  expect(await monitorsOf('App')).toEqual(['tcp three'])
  expect(await first).toEqual(['tcp slow', 'tcp two'])
  expect(await text('/metrics')).not.toContain('monitor="tcp slow"')
  silent.close()
})

test('W9 a configuration that is refused leaves everything as it is, and /metrics says so', async () => {
  expect(await text('/metrics')).toMatch(/^svc_config_last_reload_successful 1$/m)
  const since = /^svc_config_last_reload_success_timestamp_seconds (\S+)$/m
  const [, loadedAt] = since.exec(await text('/metrics')) ?? []
  expect(Number(loadedAt)).toBeGreaterThan(1_700_000_000)
  await expect(reload('types: {App: [{kind: tcp, nmae: x}]}')).rejects.toThrow(Fault)
  expect(await text('/metrics')).toMatch(/^svc_config_last_reload_successful 0$/m)
  expect(since.exec(await text('/metrics'))?.[1]).toBe(loadedAt)
  expect(await monitorsOf('App')).toEqual(['tcp one', 'tcp two'])
  await reload(`types: {App: [${tcp('one')}]}`)
  expect(await text('/metrics')).toMatch(/^svc_config_last_reload_successful 1$/m)
})

test('W9 a configuration that has waited for too long is an incident of svc itself until it is in force', async () => {
  const incidents = async () => {
    const { open = [], ended = [] } = (await core.runtime.incidents?.(() => 'full')) ?? {}
    const faults = open.filter(({ monitor }) => monitor === 'svc').flatMap((one) => one.faults)
    return { open: faults.map(({ check, message }) => `${check}: ${message}`), ended: ended.map(({ check }) => check) }
  }
  core.runtime.answersAt?.(url, undefined)
  core.configurationWaits?.(undefined)
  expect(await incidents()).toEqual({ open: [], ended: [] })
  core.configurationWaits?.('svc.yaml:3:1: a mistake')
  const open = ['configuration: the configuration has changed and is not applied: svc.yaml:3:1: a mistake']
  expect(await incidents()).toEqual({ open, ended: [] })
  // A reload of other monitors leaves it.
  await reload(`types: {App: [${tcp('one')}]}`)
  expect(await incidents()).toEqual({ open, ended: [] })
  // svc says so at each look.
  const inForce = async () => {
    core.configurationWaits?.(undefined)
    return await incidents()
  }
  await expect.poll(inForce, { timeout: farMs }).toEqual({ open: [], ended: ['configuration'] })
})

test.each(['before', 'after'])(
  'W3 W9 a monitor that a reload renames with formerly goes on with its history, which was first read %s the reload',
  async (when) => {
    const historyOf = async (): Promise<readonly string[]> => {
      const { Monitors } = JSON.parse(await text('/history?ServerType=Ftp')) as {
        readonly Monitors: readonly { readonly MonitorName: string }[]
      }
      return Monitors.map(({ MonitorName }) => MonitorName).filter((name) => name.startsWith('tcp'))
    }
    await monitorsOf('Ftp')
    if (when === 'before') expect(await historyOf()).toEqual(['tcp drop'])
    await reload(`types: {Ftp: [${tcp('inbox', ', formerly: Ftp/tcp/drop')}]}`)
    expect(await historyOf()).toEqual(['tcp inbox'])
  },
)

test('W9 W21 tags that a reload adds show in the run document, and decide what a monitor depends on', async () => {
  const run = async () => {
    const answer = await fetch(`${url}/healthcheck?ExecutionMode=Basic&ServerType=App`, {
      headers: { accept: runMediaType },
    })
    const { monitors } = decodeRun(await answer.text())
    return monitors.flatMap(({ name = '', tags, results = [] }) =>
      name.startsWith('tcp') ? [{ name, tags, messages: results.map(({ message }) => message).join() }] : [],
    )
  }
  const one = tcp('one', ", dependsOn: ['tag:network']")
  await reload(`types: {App: [${one}, ${tcp('other', ', tags: [network]')}]}`)
  expect(await run()).toEqual([
    { name: 'tcp one', tags: undefined, messages: expect.stringContaining(' accepted in ') },
    { name: 'tcp other', tags: ['network'], messages: expect.stringContaining(' accepted in ') },
  ])
  const dead = `{kind: tcp, name: dead, host: 127.0.0.1, port: ${await refusedPort()}, tags: [network]}`
  await reload(`types: {App: [${one}, ${tcp('other')}, ${dead}]}`)
  const after = await run()
  expect(after.find(({ name }) => name === 'tcp other')?.tags).toBeUndefined()
  expect(after.find(({ name }) => name === 'tcp dead')?.tags).toEqual(['network'])
  expect(after.find(({ name }) => name === 'tcp one')?.messages).toContain('tcp dead')
})
