import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { ServerType } from '../../src/core/protocol/index.ts'
import { serveYaml } from './serve-yaml.ts'

/** A server of this process with a store, and with this svc.yaml if there is one. */
async function serving({ yaml, requireConfig = false }: { yaml?: string; requireConfig?: boolean }) {
  const { url, close } = await serveYaml(yaml, { withStore: true, requireConfig })
  onTestFinished(close)
  const get = async (path: string) => {
    const answer = await fetch(`${url}${path}`)
    return { status: answer.status, text: await answer.text() }
  }
  return { get, health: (type: ServerType) => get(`/healthcheck?ExecutionMode=Basic&ServerType=${type}`) }
}

/** A svc.yaml whose only monitor, of the type Batch, passes. */
async function onlyBatch(): Promise<string> {
  const peer = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  await new Promise((resolve) => peer.once('listening', resolve))
  onTestFinished(() => void peer.close())
  const { port } = peer.address() as { readonly port: number }
  return `types:\n  Batch: [{kind: tcp, host: 127.0.0.1, port: ${port}}]\n`
}

test('K10 H14 a server with a configuration answers 503 for each type that it lacks, also those that check svc itself without one', async () => {
  const { health } = await serving({ yaml: await onlyBatch() })
  const answers = await Promise.all(ServerType.values.map(async (type) => [type, await health(type)] as const))
  for (const [type, { status, text }] of answers) {
    expect([type, status]).toEqual([type, type === 'Batch' ? 200 : 503])
    if (type !== 'Batch') expect(text).toContain(`${type} is not configured here`)
  }
})

test('K10 a server without a configuration checks itself, unless one is required: then every type is 503', async () => {
  const usual = await serving({})
  expect((await usual.health('App')).status).toBe(200)
  expect(JSON.parse((await usual.get('/server-types')).text)).toEqual({
    Types: ['App', 'Sql', 'Identity'],
    Configured: false,
  })
  const { get, health } = await serving({ requireConfig: true })
  for (const type of ServerType.values) expect([type, (await health(type)).status]).toEqual([type, 503])
  expect(JSON.parse((await get('/server-types')).text)).toEqual({ Types: [], Configured: false })
  expect((await get('/')).text).toContain('No server type is configured, and every type answers 503')
  expect((await get('/metrics')).text).toMatch(/^svc_configured_types 0$/m)
})

test('K10 a type with host settings only is configured where they switch on a check, in every answer of a server', async () => {
  const yaml =
    'types:\n  Batch: {host: {memory: {warn: 0%}, disk: off, inodes: off}}\n  Ftp: {host: {skipDisks: [/srv]}}\n  Qc: {host: false}\n'
  const { get, health } = await serving({ yaml, requireConfig: true })
  expect(JSON.parse((await get('/server-types')).text)).toEqual({ Types: ['Batch'], Configured: true })
  const standard = await get('/healthcheck?ExecutionMode=Standard&ServerType=Batch')
  expect(standard.status).toBe(200)
  expect(standard.text).toContain('% available of')
  const basic = await health('Batch')
  expect(basic.status).toBe(503)
  expect(basic.text).toContain('Batch: no monitor runs in Basic: the shallowest is Standard, use --mode Standard')
  for (const type of ['Ftp', 'Qc'] as const) {
    const { status, text } = await health(type)
    expect([type, status]).toEqual([type, 503])
    expect(text).toContain(`${type} is not configured here`)
  }
  const page = (await get('/')).text
  expect(page).toContain('12 types not configured')
  expect(page).toMatch(/Batch.*1 monitor, \d+ checks/s)
  expect((await get('/metrics')).text).toMatch(/^svc_configured_types 1$/m)
})

test('K10 a server that requires a configuration still answers /livez, /readyz and sign-in', async () => {
  const { get } = await serving({ requireConfig: true })
  expect((await get('/livez')).status).toBe(200)
  expect((await get('/readyz')).status).toBe(200)
  expect((await get('/auth')).status).toBe(401)
})
