import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { bannerOf, listeningPorts } from '../../../src/core/base/net/connect.ts'
import listeningKind from '../../../src/core/checks/kinds/listening.ts'
import { runKind } from '../../support/engine/run-kind.ts'
import { endsByDeadline } from '../../support/suite/deadline.ts'
import { until } from '../../support/suite/until.ts'

const never = new AbortController().signal
const servers: Server[] = []
let received: Buffer[] = []
let connections = 0
let accepted: Socket[] = []
let mostOpen = 0

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => new Promise((done) => server.close(done))))
  received = []
  connections = 0
  accepted = []
  mostOpen = 0
})

/** A real server on a free port of the loopback, that says `greeting` when someone connects. */
async function server(greeting?: string | Buffer): Promise<number> {
  const made = createServer((socket) => {
    connections += 1
    accepted.push(socket)
    mostOpen = Math.max(mostOpen, accepted.filter((one) => !one.destroyed).length)
    socket.on('error', () => {}).on('data', (part) => received.push(part))
    if (greeting !== undefined) socket.write(greeting)
  })
  servers.push(made)
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve))
  return (made.address() as AddressInfo).port
}
/** A port on which nothing listens. */
async function closedPort(): Promise<number> {
  const port = await server()
  await new Promise((done) => servers.pop()?.close(done))
  return port
}

describe('ports that listen on this machine', () => {
  test('are reported with the next step and never as a failure', async () => {
    const port = await server()
    expect(await runKind(listeningKind, { ports: [{ port, what: 'postgres' }] })).toEqual([
      {
        check: `port ${port}`,
        status: 'ok',
        message: `postgres on 127.0.0.1:${port}, not configured: svc monitors discover`,
        address: `127.0.0.1:${port}`,
      },
    ])
  })

  test('are reported with their banner when they send one first, and never receive anything', async () => {
    const port = await server('220 files.example FTP ready\r\n')
    const [result] = await runKind(listeningKind, { ports: [{ port, what: 'ftp' }] })
    expect(result?.message).toBe(
      `ftp on 127.0.0.1:${port} (banner 220 files.example FTP ready), not configured: svc monitors discover`,
    )
    await pause(20)
    expect(Buffer.concat(received)).toHaveLength(0)
    expect(connections).toBe(1)
  })

  test('are omitted when closed, and their absence is not a failure', async () => {
    const [open, closed] = [await server(), await closedPort()]
    const ports = [
      { port: closed, what: 'ssh' },
      { port: open, what: 'ftp' },
    ]
    expect(await listeningPorts(ports, never, 0)).toEqual([{ port: open, what: 'ftp' }])
    expect(await runKind(listeningKind, { ports: [{ port: closed, what: 'ssh' }] })).toMatchObject([{ status: 'ok' }])
  })

  test('are not probed again when the plan has already recognized them', async () => {
    const port = await server()
    const results = [{ port, what: 'ssh', banner: 'SSH-2.0-Test' }]
    expect(await runKind(listeningKind, { found: results })).toMatchObject([
      { status: 'ok', message: expect.stringContaining(`ssh on 127.0.0.1:${port} (banner SSH-2.0-Test)`) },
    ])
    expect(connections).toBe(0)
  })
})

describe('the probe of ports', () => {
  test('waits for a banner no longer than 300 ms, for all ports at once', async () => {
    const banners = [undefined, undefined, undefined, 'SSH-2.0-Test']
    const ports = await Promise.all(
      banners.map(async (banner) => ({ port: await server(banner && `${banner}\n`), what: 'x' })),
    )
    const results = await endsByDeadline(300, listeningPorts(ports, never), 30)
    expect(results.map((one) => one.banner)).toEqual(banners)
    // One after the other, no more than the last and the next would be open.
    expect(mostOpen).toBeGreaterThanOrEqual(3)
  })

  test('a peer that never stops talking is cut off', async () => {
    const port = await server('x'.repeat(1_000_000))
    const [result] = await listeningPorts([{ port, what: 'x' }], never)
    expect(result?.banner).toHaveLength(80)
  })

  test.each([
    ['SSH-2.0-OpenSSH_9.2\r\nmore', 'SSH-2.0-OpenSSH_9.2'],
    ['', undefined],
    ['\u001b[31mred\n', undefined],
    ['J\0\0\0\n8.0.36\0salt', undefined],
    ['a'.repeat(200), `${'a'.repeat(79)}…`],
  ])('the banner of %j', (text, banner) => {
    expect(bannerOf(Buffer.from(text, 'latin1'))).toBe(banner)
  })

  test('probes a port that is listed twice once', async () => {
    const port = await server()
    const result = await listeningPorts(
      [
        { port, what: 'http' },
        { port, what: 'http' },
      ],
      never,
      0,
    )
    expect(result).toHaveLength(1)
    await pause(20)
    expect(connections).toBe(1)
  })

  test('ends with its signal, and leaves no socket and no timer', async () => {
    const port = await server()
    const openResources = (): number =>
      process.getActiveResourcesInfo().filter((kind) => /TCP|Timeout/.test(kind)).length
    // A timer of the test runner itself may still be running out.
    await pause(150)
    const before = openResources()
    await listeningPorts([{ port, what: 'x' }], never)
    await expect(listeningPorts([{ port, what: 'x' }], AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop')
    const cancel = new AbortController()
    const looking = listeningPorts([{ port, what: 'x' }], cancel.signal)
    setTimeout(() => cancel.abort(new Error('enough')), 50)
    await expect(looking).rejects.toThrow('enough')
    await until(() => accepted.every((socket) => socket.destroyed) && openResources() <= before)
  })
})
