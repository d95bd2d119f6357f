import { once } from 'node:events'
import { createServer as createHttp } from 'node:http'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import { type AnyKind, type Kind, settingsProblem } from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import { monitors } from '../../../src/core/checks/kinds/index.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import { runKind, secret, withDefaults } from '../../support/engine/run-kind.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'

const resolve = (): Promise<never> => Promise.reject(new Error('the name was resolved'))

async function listening(server: Server): Promise<{ path: string; [Symbol.asyncDispose]: () => Promise<void> }> {
  const path = join(await temporaryFolder(), 'server.sock')
  await once(server.listen(path), 'listening')
  return { path, [Symbol.asyncDispose]: async () => void (await once(server.close(), 'close')) }
}

test('H85 the kinds of servers that listen at Unix sockets have the setting socket', async () => {
  const all = await Promise.all(Object.values(monitors).map(async ({ load }) => (await load()).default as AnyKind))
  const kinds = all.flatMap(({ name, settings }) => ('socket' in settings ? [name] : []))
  expect(kinds).toEqual(['http', 'mysql', 'postgres', 'redis'])
})

test('H85 http asks the server at a Unix socket, by the name in its URL, and sends its password without TLS', async () => {
  const requests: unknown[] = []
  const server = createHttp(({ headers }, answer) => {
    requests.push([headers.host, headers.authorization])
    answer.end('at the socket')
  })
  await using at = await listening(server)
  const settings = { url: 'http://app.test/', socket: at.path, token: secret('t0ken'), contains: 'socket' }
  const results = await runKind(http, settings, 'Standard', { resolve })
  expect(results.map(({ check, status, address }) => [check, status, address])).toEqual(
    results.map(({ check }) => [check, 'ok', at.path]),
  )
  expect(requests).toEqual([['app.test', 'Bearer t0ken']])
})

test('H85 a redirect from a Unix socket to another port of its host is not followed to the socket', async () => {
  const server = createHttp((_, answer) => answer.writeHead(302, { Location: 'https://app.test/' }).end())
  await using at = await listening(server)
  const results = await runKind(http, { url: 'http://app.test/', socket: at.path, redirects: 2 }, 'Standard', {
    resolve,
  })
  expect(results.find(({ check }) => check === 'status')?.message).toBe(
    `${at.path} redirects to https://app.test/, which is not at this socket`,
  )
})

test('H85 redis signs in at a Unix socket without TLS', async () => {
  const received: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      received.push(String(bytes))
      socket.write('+OK\r\n')
    })
  })
  await using at = await listening(server)
  await runKind(redis, { url: 'redis://localhost', socket: at.path, password: secret('horse') }, 'Basic', { resolve })
  expect(received[0]).toContain('horse')
})

test('H85 a socket that does not exist is a fault of the server', async () => {
  const results = await runKind(http, { url: 'http://app.test/', socket: '/nowhere/app.sock' }, 'Basic', { resolve })
  expect(results.map(({ fault, message }) => [fault, message])).toEqual([
    ['refused', '/nowhere/app.sock does not exist: no server listens at this socket'],
  ])
})

test('H85 what chooses an address beside a socket is a mistake', async () => {
  const kind = http as AnyKind as Kind<SettingsSpec>
  const problem = (settings: object) =>
    settingsProblem(http as AnyKind, withDefaults(kind.settings, { url: 'http://a.test/', ...settings } as never))
  const socket = '/run/app.sock'
  expect(await problem({ socket })).toBe(undefined)
  expect(await problem({ socket, family: 'ipv4' })).toBe('has both family and socket: remove one of them')
  expect(await problem({ socket, proxy: 'http://p.test:3128' })).toBe('has both socket and proxy: remove one of them')
})
