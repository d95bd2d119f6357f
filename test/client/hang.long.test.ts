import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { blackHole, http, peer } from '../support/faults/faults.ts'
import { startServeProcess } from '../support/program/serve-process.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { type Certificates, makeCertificates } from '../support/servers/certs.ts'
import { lastsAtLeast } from '../support/suite/deadline.ts'

const healthy = http(
  200,
  JSON.stringify({
    Status: 'Success',
    StatusMessage: 'Sql is healthy',
    MonitorSummaries: [{ MonitorName: 'Sql', Status: 'Success' }],
  }),
  { 'Content-Type': 'application/json' },
)
const hangs = /accepts connections, but hangs/

/** Answers each path after its own time; null means never. */
const answering =
  (answers: Readonly<Record<'/healthcheck' | '/livez', readonly [ms: number, text: string] | null>>) =>
  (socket: Socket): void => {
    socket.once('data', (request) => {
      const path = String(request).includes('GET /livez ') ? '/livez' : '/healthcheck'
      const answer = answers[path]
      if (answer) setTimeout(() => socket.end(answer[1]), answer[0])
    })
  }

let certificates: Certificates
let home: Home
beforeAll(() => {
  certificates = makeCertificates()
  home = svcHome()
})
afterAll(() => {
  certificates.remove()
  home.remove()
})

/** `svc health` at a server. */
const health = (url: string, ...flags: readonly string[]) =>
  home.svc(['health', '-t', 'Sql', '--server', url, ...flags])

/**
 * The end of a command. It fails unless the command ends before another one that has 23 s and begins at the same time,
 * on the same machine: the time of a run is 45 s.
 */
async function inHalfOfARun<T>(command: () => Promise<T>): Promise<T> {
  await using silent = await peer(blackHole)
  const ended: string[] = []
  const half = health(plain(silent), '--timeout', '23s').then(() => ended.push('half of a run'))
  const result = await command().finally(() => ended.push('command'))
  await half
  expect(ended).toEqual(['command', 'half of a run'])
  return result
}
const plain = ({ port }: { readonly port: number }): string => `http://127.0.0.1:${port}`

describe.concurrent('C11 a server that hangs', () => {
  test('C11 a frozen svc serve is exit 7 in less than half of the time of a run, and healthy again once it continues', async () => {
    await using server = await startServeProcess('types: {Sql: [{kind: tcp, host: 127.0.0.1, port: 1}]}')
    server.signal('SIGSTOP')
    const frozen = await inHalfOfARun(() => health(plain(server)))
    server.signal('SIGCONT')
    expect([frozen.code, frozen.stderr]).toEqual([7, expect.stringMatching(hangs)])
    expect(frozen.stderr).toMatch(/no answer for \d+(\.\d)? s, and none to \/livez for 5 s/)
    // Nothing listens on the port of its monitor.
    expect((await health(plain(server))).code).toBe(3)
  }, 180_000)

  test('C11 a listener that never answers is asked for /livez on a second connection, without a credential', async () => {
    await using server = await peer(blackHole)
    const env = { SVC_TOKEN: 'secret-token' }
    const ran = await inHalfOfARun(() => home.svc(['health', '-t', 'Sql', '--server', plain(server)], { env }))
    expect([ran.code, ran.stderr]).toEqual([7, expect.stringMatching(hangs)])
    expect(server.connections()).toBe(2)
    const alive = server.input().slice(server.input().indexOf('GET /livez'))
    expect(alive).toMatch(/^GET \/livez HTTP\/1\.1\r\n/)
    expect(alive).not.toMatch(/authorization|secret-token/i)
  }, 120_000)

  test('C11 a server that finishes the TLS handshake and then says nothing hangs, too', async () => {
    await using server = await peer(blackHole, { tls: certificates.good })
    const ran = await inHalfOfARun(() => health(`https://127.0.0.1:${server.port}`, '--ca-file', certificates.caFile))
    expect([ran.code, ran.stderr]).toEqual([7, expect.stringMatching(hangs)])
  }, 120_000)

  test('C11 a TLS handshake that never ends takes 10 s', async () => {
    await using server = await peer(blackHole)
    const ran = await inHalfOfARun(() => health(`https://127.0.0.1:${server.port}`))
    expect([ran.code, ran.stderr]).toEqual([7, expect.stringContaining('No answer within 10 s')])
    expect(ran.stderr).toContain('did not finish the TLS handshake')
    expect(server.connections()).toBe(1)
  }, 120_000)
})

describe.concurrent('C11 a server that is slow, but lives', () => {
  test.each([
    ['200', http(200, 'live')],
    ['404 of a ServiceStack', http(404, '404')],
    ['503', http(503, 'draining')],
    ['something that is not HTTP', 'hello\r\n'],
    ['the beginning of an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n'],
  ])(
    'C11 the answer to a slow check is awaited when /livez answers with %s',
    async (_, alive) => {
      await using server = await peer(answering({ '/healthcheck': [11_000, healthy], '/livez': [1_000, alive] }))
      const ran = await health(plain(server))
      expect([ran.code, ran.stderr]).toEqual([0, ''])
      expect(server.connections()).toBe(2)
    },
    120_000,
  )

  test('C11 a refused second connection proves no hang', async () => {
    const server = createServer((socket) => {
      server.close()
      setTimeout(() => socket.end(healthy), 10_000)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    expect((await health(plain({ port }))).code).toBe(0)
  }, 120_000)

  test('C11 a first byte within 3 s ends the suspicion: there is no second connection', async () => {
    await using server = await peer((socket) => {
      socket.once('data', async () => {
        socket.write(healthy.slice(0, 10))
        await pause(10_000)
        socket.end(healthy.slice(10))
      })
    })
    expect((await health(plain(server))).code).toBe(0)
    expect(server.connections()).toBe(1)
  }, 120_000)
})

describe.concurrent('C11 --timeout rules', () => {
  test('C11 a short one ends the call before the server is suspected', async () => {
    await using server = await peer(blackHole)
    const ran = await health(plain(server), '--timeout', '2s')
    expect([ran.code, ran.stderr]).toEqual([7, expect.stringContaining('No answer within 2 s')])
    expect(server.connections()).toBe(1)
  }, 120_000)

  test('C11 a longer one waits for its whole time, and says at the end that the server hangs', async () => {
    await using server = await peer(blackHole)
    const ran = await lastsAtLeast(13_000, () => health(plain(server), '--timeout', '13s'))
    expect([ran.code, ran.stderr]).toEqual([7, expect.stringMatching(/No answer within 13 s: .* but hangs/)])
  }, 120_000)

  test('C11 a longer one also gives the TLS handshake more than 10 s', async () => {
    await using server = await peer(blackHole)
    const ran = await health(`https://127.0.0.1:${server.port}`, '--timeout', '12s')
    expect([ran.code, ran.stderr]).toEqual([7, expect.stringContaining('No answer within 12 s')])
  }, 120_000)
})
