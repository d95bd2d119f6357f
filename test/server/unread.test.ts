import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { serverLimits } from '../../src/core/server/limits.ts'
import { ask, openSite, raw, type Site } from './site.ts'

const largest = '/openapi-all.json'
const get = (path: string, port: number): string => `GET ${path} HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`
const requests = (count: number): string => Array.from({ length: count }, (_, at) => get(largest, at + 1)).join('')

async function connected({ port }: Pick<Site, 'port'>): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** The answers that the server has written, also to nobody. */
const written = ({ log }: Site): number => log.filter(({ msg, path }) => msg === 'answered' && path === largest).length

/** Waits until the server writes no further answer. */
async function settled(site: Site): Promise<number> {
  let before = -1
  while (written(site) !== before) {
    before = written(site)
    await pause(50)
  }
  return before
}

/** Reads so many bytes. False: the connection was closed before. */
const readAll = (socket: Socket, bytes: number): Promise<boolean> =>
  new Promise((resolve) => {
    let read = 0
    socket.on('data', (chunk: Buffer) => {
      read += chunk.length
      if (read >= bytes) resolve(true)
    })
    socket.on('close', () => resolve(false)).resume()
  })

const refusedOf = async ({ port }: Site): Promise<number> =>
  Number(/^svc_http_connections_refused_total (\d+)$/m.exec((await ask(port, '/metrics')).text)?.[1])

test('S3 a connection that reads nothing gets its next answer only when the last ones have been read, and then all', async () => {
  const site = await openSite({})
  const { length } = (await ask(site.port, largest)).text
  const socket = await connected(site)
  socket.pause()
  socket.write(requests(60))
  const answers = await settled(site)
  // What the buffers of the system take, and one more.
  expect(answers).toBeGreaterThan(1)
  expect(answers * length).toBeLessThan(16 * 1024 * 1024)
  expect((await ask(site.port, '/livez')).text).toBe('alive\n')
  expect(await readAll(socket, 60 * length)).toBe(true)
  expect(written(site)).toBe(61)
  socket.destroy()
})

test('S3 beyond the bytes of all answers that wait, the connection that has waited for longest is closed', async () => {
  const all = 4 * 1024 * 1024
  const site = await openSite({ limits: { waitingBytesOfAll: all } })
  const { length } = (await ask(site.port, largest)).text
  const sockets: Socket[] = []
  // Each has one answer that waits, of 1.6 MB.
  for (let at = 0; at < 6; at += 1) {
    const socket = await connected(site)
    socket.pause()
    sockets.push(socket)
    socket.write(requests(20))
    await settled(site)
  }
  const refused = await refusedOf(site)
  expect(refused).toBeGreaterThanOrEqual(3)
  const complete = await Promise.all(sockets.map((socket) => readAll(socket, 20 * length)))
  expect(complete).toEqual(sockets.map((_, at) => at >= refused))
  for (const socket of sockets) socket.destroy()
})

test('S3 the newest probe beyond the limits is answered, whoever holds the 16 connections for probes', async () => {
  const site = await openSite({ limits: { connections: 2, probeMs: 60_000 } })
  const open = await Promise.all([connected(site), connected(site)])
  // One fewer, so that the system accepts the next one.
  const idle = []
  for (let at = 1; at < serverLimits.probeConnections; at += 1) idle.push(await connected(site))
  for (const path of ['/livez', '/readyz']) {
    const { text } = await raw(site.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    expect(text).toMatch(/^HTTP\/1\.1 200 .*Connection: close/s)
  }
  expect((await raw(site.port, get(largest, 1))).text).toBe('')
  for (const socket of [...open, ...idle]) socket.destroy()
})

test('S3 a connection for probes ends after its time', async () => {
  const site = await openSite({ limits: { connections: 1, probeMs: 100 } })
  const first = await connected(site)
  const second = await connected(site)
  await once(second.resume(), 'close')
  expect(first.destroyed).toBe(false)
  first.destroy()
})

test('S3 the limits are those that the rule names', () => {
  const { waitingBytes, waitingBytesOfAll, probeConnections, probeMs } = serverLimits
  expect({ waitingBytes, waitingBytesOfAll, probeConnections, probeMs }).toEqual({
    waitingBytes: 256 * 1024,
    waitingBytesOfAll: 32 * 1024 * 1024,
    probeConnections: 16,
    probeMs: 2_000,
  })
})
