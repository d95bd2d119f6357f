import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HealthCheckResponse } from '../../src/core/protocol/index.ts'
import { type ServeProcess, startServeProcess } from '../support/program/serve-program.ts'

let target: Server
let serve: ServeProcess
beforeAll(async () => {
  target = createServer((socket) => {
    socket.on('error', () => {})
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
  }).listen(0, '127.0.0.1')
  await once(target, 'listening')
  const address = target.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  serve = await startServeProcess({
    descriptors: 256,
    yaml: () =>
      `types:\n  App:\n    - {kind: tcp, name: greeting, host: 127.0.0.1, port: ${port}}\n    - {kind: http, name: page, url: 'http://127.0.0.1:${port}/'}\n`,
  })
})
afterAll(async () => {
  await serve?.stop()
  target?.close()
})

test('W10 out of file descriptors, /metrics answers, and health reports its monitors as not checked instead of blaming their servers', async () => {
  // One connection, from before the shortage.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const get = (path: string): Promise<{ readonly status: number; readonly text: string }> =>
    new Promise((resolve, reject) => {
      const sent = request({ agent, host: '127.0.0.1', port: serve.port, path }, (incoming) => {
        let text = ''
        incoming.setEncoding('utf8')
        incoming.on('data', (part) => {
          text += String(part)
        })
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }))
      })
      sent.on('error', reject)
      sent.end()
    })
  expect((await get('/livez')).status).toBe(200)
  await serve.order({ type: 'hold', free: 0 })
  const health = await get('/healthcheck?ServerType=App&ExecutionMode=Basic')
  const metrics = await get('/metrics')
  await serve.order({ type: 'release' })
  await serve.order({ type: 'pass', ms: 120_000 })
  const after = await get('/healthcheck?ServerType=App&ExecutionMode=Basic')
  agent.destroy()
  expect(metrics.status).toBe(200)
  expect(metrics.text).toMatch(/^process_open_fds|^nodejs_heap_size_used_bytes \d/m)
  const { MonitorSummaries = [] } = JSON.parse(health.text) as HealthCheckResponse
  const states = MonitorSummaries.flatMap(({ MonitorName = '', Results = [] }) =>
    Results.map(({ MonitoringName, StatusMessage = '' }) => `${MonitorName} ${MonitoringName}: ${StatusMessage}`),
  )
  expect(states).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^tcp( greeting)? connect: not checked: (starved|svc has too many files open)/),
      expect.stringMatching(/^http( page)? connect: not checked: (starved|svc has too many files open)/),
    ]),
  )
  expect(health.text).not.toContain('failed: internal')
  // With descriptors again, the same server is what it was.
  expect(after.status).toBe(200)
})
