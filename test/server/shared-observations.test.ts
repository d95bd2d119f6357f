import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test, vi } from 'vitest'
import host from '../../src/core/checks/kinds/host.ts'
import { blackHole, peer } from '../support/faults/faults.ts'
import { serveTypes } from './serve-types.ts'

/** A real HTTP server that counts its requests. */
async function webServer() {
  let requests = 0
  const server = createServer((_, response) => {
    requests += 1
    response.end('fine')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    requests: () => requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const sixTypes = ['App', 'Sql', 'FtpApi', 'Ftp', 'Batch', 'Mongo'] as const
const http = (type: string, port: number, more = ''): string =>
  `  ${type}:\n    - {kind: http, name: shop, url: 'http://127.0.0.1:${port}/', depth: Basic${more}}\n`

test('H8 six parallel requests of six types measure the host once, and send one request to the server that all of them monitor', async () => {
  await using web = await webServer()
  await using site = await serveTypes(sixTypes.map((type) => http(type, web.port)).join(''))
  const measured = vi.spyOn(host, 'run')
  try {
    const answers = await Promise.all(sixTypes.map((type) => site.health(type)))
    for (const { body } of answers) expect(body).toMatchObject({ Status: 'Success' })
    expect(measured).toHaveBeenCalledTimes(1)
    expect(web.requests()).toBe(1)
  } finally {
    measured.mockRestore()
  }
})

test('H8 with no-cache, a server is asked again for each type', async () => {
  await using web = await webServer()
  await using site = await serveTypes(http('App', web.port) + http('Sql', web.port))
  await site.health('App')
  await site.health('Sql', { 'Cache-Control': 'no-cache' })
  expect(web.requests()).toBe(2)
})

test('H8 a monitor with another threshold asks for itself', async () => {
  await using web = await webServer()
  await using site = await serveTypes(http('App', web.port) + http('Sql', web.port, ', latency: 7s'))
  await Promise.all([site.health('App'), site.health('Sql')])
  expect(web.requests()).toBe(2)
})

test('H8 a type whose server does not answer delays no other type', async () => {
  await using web = await webServer()
  await using silent = await peer(blackHole)
  await using site = await serveTypes(http('App', silent.port) + http('Sql', web.port))
  let slowEnded = false
  const slow = site.health('App').finally(() => {
    slowEnded = true
  })
  expect((await site.health('Sql')).body).toMatchObject({ Status: 'Success' })
  expect(slowEnded).toBe(false)
  slow.catch(() => {})
})
