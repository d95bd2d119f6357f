import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Conversations, wayOut, withConversations } from '../../../src/core/base/net/connect.ts'
import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import { openSession } from '../../../src/core/checks/database/session.ts'
import { type AnyKind, type Kind, type Result, settingsProblem } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { pingCommand } from '../../../src/core/checks/kinds/ping/index.ts'
import type { SilentRow } from '../../support/engine/kind-rows.ts'
import { runKind, secret, withDefaults } from '../../support/engine/run-kind.ts'
import { tcpKinds } from '../../support/engine/tcp-kinds.ts'

const kindOf = async (name: KindName): Promise<Kind<SettingsSpec>> =>
  (await monitors[name].load()).default as AnyKind as Kind<SettingsSpec>

/** Kinds with a target that is no host. */
const noHost: readonly KindName[] = ['sqlite']
const all = await Promise.all((Object.keys(monitors) as KindName[]).map(kindOf))
const withHost = all.flatMap(({ name, target, internal }) =>
  target === undefined || internal || noHost.includes(name as KindName) ? [] : [name as KindName],
)
/** These kinds have tests of their own below: two speak over no TCP, and one asks a registry. */
const others: readonly KindName[] = ['dns', 'domain', 'ping']
const overTcp = withHost.filter((name) => !others.includes(name))

/** The addresses of clients, by the address at which the server accepted them. */
const clients = new Map<string, string[]>()
const sockets = new Set<Socket>()
const servers = ['127.0.0.1', '::1'].map((host) => ({
  host,
  server: createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    clients.set(host, [...(clients.get(host) ?? []), socket.remoteAddress ?? ''])
    socket.end()
  }),
}))
let port = 0
beforeAll(async () => {
  for (const { host, server } of servers) {
    await once(server.listen(port, host), 'listening')
    port = (server.address() as AddressInfo).port
  }
})
beforeEach(() => clients.clear())
afterAll(() => {
  for (const { server } of servers) server.close()
  for (const socket of sockets) socket.destroy()
})

async function runWith(name: KindName, settings: object, ips = ['127.0.0.1', '::1']): Promise<readonly Result[]> {
  const kind = await kindOf(name)
  await kind.preload?.()
  const row = tcpKinds[name] as SilentRow
  const resolve = () => Promise.resolve(ips)
  return await runKind(kind, { ...row.settings(port, 'two.test'), ...settings } as never, row.mode ?? 'Basic', {
    resolve,
  })
}

const problemOf = async (name: KindName, settings: object): Promise<string | undefined> => {
  const kind = await kindOf(name)
  const row = (tcpKinds[name] as SilentRow | undefined)?.settings(port, 'two.test')
  return await settingsProblem(kind as AnyKind, withDefaults(kind.settings, { ...row, ...settings } as never))
}

test('H83 every kind that takes a host has the settings family and sourceAddress', async () => {
  expect(
    all.filter(({ settings }) => 'family' in settings && 'sourceAddress' in settings).map(({ name }) => name),
  ).toEqual(withHost)
  expect(overTcp.filter((name) => tcpKinds[name] === undefined)).toEqual([])
})

describe.each(overTcp)('H83 %s', (name) => {
  test.each([
    ['ipv4', '127.0.0.1'],
    ['ipv6', '::1'],
  ])('with family: %s connects to an address of that family only', async (family, host) => {
    await runWith(name, { family })
    expect([...clients.keys()]).toEqual([host])
  })

  test('connects from its source', async () => {
    await runWith(name, { sourceAddress: '127.0.0.7' })
    expect([...clients.keys()]).toEqual(['127.0.0.1'])
    expect(new Set(clients.get('127.0.0.1'))).toEqual(new Set(['127.0.0.7']))
  })

  test('is not checked where this machine does not have the source, and connects to nobody', async () => {
    const results = await runWith(name, { sourceAddress: '192.0.2.77' })
    expect(results.map(({ notChecked, message }) => [notChecked, message])).toEqual([
      ['configuration', 'not checked: sourceAddress 192.0.2.77 is not an address of this machine (EADDRNOTAVAIL)'],
    ])
    expect(clients.size).toBe(0)
  })

  test('fails where the host has no address of its family', async () => {
    const results = await runWith(name, { family: 'ipv6' }, ['127.0.0.1'])
    expect(results.map(({ fault, message }) => [fault, message])).toEqual([['dns', 'two.test has no IPv6 address']])
    expect(clients.size).toBe(0)
  })
})

describe.each(overTcp.filter((name) => name !== 'deployment'))('H83 %s with family: both', (name) => {
  test.each(['first', 'any', 'all'])('checks an address of each family, with addresses: %s', async (addresses) => {
    await runWith(name, { family: 'both', addresses })
    expect([...clients.keys()].toSorted()).toEqual(['127.0.0.1', '::1'])
  })

  test('fails where one family has no address, and still checks the other', async () => {
    const results = await runWith(name, { family: 'both' }, ['::1'])
    expect(results.map(({ fault, message }) => [fault, message])).toContainEqual([
      'dns',
      'two.test has no IPv4 address',
    ])
    expect([...clients.keys()]).toEqual(['::1'])
  })

  test('fails where no address of one family accepts', async () => {
    const results = await runWith(name, { family: 'both' }, ['127.0.0.1', '127.0.0.2', '::1'].with(0, '127.0.0.9'))
    const refused = results.filter(({ address }) => address?.startsWith('127.')).map(({ status }) => status)
    expect(refused).toContain('failed')
    expect(clients.has('::1')).toBe(true)
  })
})

test('H83 dns asks a name server of its family, from its source', async () => {
  const server = createSocket('udp4')
  const clientsOfDns: string[] = []
  server.on('message', (_, { address }) => clientsOfDns.push(address))
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  const at = `127.0.0.1:${server.address().port}`
  const kind = await kindOf('dns')
  const run = (settings: object) =>
    runKind(kind, { query: 'a.test', server: at, ...settings } as never, 'Basic', { timeoutMs: 1_500 })
  await run({ sourceAddress: '127.0.0.7' })
  expect(new Set(clientsOfDns)).toEqual(new Set(['127.0.0.7']))
  const results = await run({ family: 'ipv6' })
  expect(results.map(({ notChecked }) => notChecked)).toEqual(['configuration'])
  server.close()
})

test('H83 ping tests the addresses of its family, from its source', async () => {
  const commands = ['linux', 'darwin', 'win32'].map((platform) =>
    pingCommand(platform, { ip: '127.0.0.1', count: 1, waitMs: 1_000, source: '127.0.0.7' }),
  )
  const expected = ['-I', '-S', '-S'].map((flag) => [flag, '127.0.0.7', '127.0.0.1'])
  expect(commands.map((command) => command?.args.slice(-3))).toEqual(expected)
  const results = await runKind(await kindOf('ping'), { host: 'two.test', family: 'ipv6' } as never, 'Basic', {
    resolve: () => Promise.resolve(['127.0.0.1']),
  })
  expect(results.map(({ message }) => message)).toEqual(['two.test has no IPv6 address'])
})

const proxied: readonly KindName[] = ['domain', 'grpc', 'http', 'http-steps', 'oidc', 'rabbitmq', 'tcp', 'tls']

test('H84 the kinds that may use a proxy are those of HTTP, of gRPC and of bare connections', () => {
  expect(all.flatMap(({ name, settings }) => ('proxy' in settings ? [name] : []))).toEqual(proxied)
})

test.each([
  [
    { sourceAddress: '127.0.0.7', family: 'ipv6' },
    'has an address of ipv4 as sourceAddress, and family: ipv6: give both the same family',
  ],
  [
    { sourceAddress: '127.0.0.7', family: 'both' },
    'has an address of ipv4 as sourceAddress, and family: both: give both the same family',
  ],
  [
    { host: '127.0.0.1', family: 'ipv6' },
    'asks for ipv6, and 127.0.0.1 is an address of ipv4: give a name, or an address of that family',
  ],
  [
    { host: '[::1]', family: 'both' },
    'asks for both, and ::1 is an address of ipv6: give a name, or an address of that family',
  ],
  [
    { host: '::1', sourceAddress: '127.0.0.7' },
    'asks for ipv4, and ::1 is an address of ipv6: give a name, or an address of that family',
  ],
  [{ host: '::1', family: 'ipv6', sourceAddress: '::1' }, undefined],
  [{ proxy: 'http://p.test:3128', family: 'ipv4' }, 'has both family and proxy: remove one of them'],
  [{ proxy: 'http://p.test:3128', sourceAddress: '127.0.0.1' }, 'has both sourceAddress and proxy: remove one of them'],
  [{ proxy: 'http://p.test:3128', addresses: 'all' }, 'has both addresses and proxy: remove one of them'],
  [{ proxy: 'none', family: 'ipv4' }, undefined],
  [{ proxyUsername: 'a', proxyPassword: secret('b') }, 'has a sign-in for a proxy, and no proxy: add proxy'],
  [{ proxy: 'socks5://p.test', proxyUsername: 'a' }, 'needs proxyUsername with proxyPassword'],
])('H84 %j of tcp: %s', async (settings, problem) => {
  expect(await problemOf('tcp', settings)).toBe(problem)
})

test('H84 no credential goes through a proxy without TLS', async () => {
  const proxy = 'socks5://p.test:1080'
  const clear = 'would sign in through the proxy without TLS: use TLS, or remove the proxy'
  const token = secret('t')
  expect(await problemOf('http', { proxy, token, insecureHttp: true })).toBe(clear)
  expect(await problemOf('http', { proxy, token, url: 'https://two.test/' })).toBe(undefined)
  expect(await problemOf('rabbitmq', { proxy, insecureHttp: true })).toBe(clear)
  expect(await problemOf('grpc', { proxy, token, tls: false, insecureGrpc: true })).toBe(clear)
  expect(await problemOf('grpc', { proxy, token, tls: true })).toBe(undefined)
})

test.each([
  ['ipv4', '127.0.0.1', '127.0.0.7'],
  ['ipv6', '::1', '::1'],
])('H83 domain asks a registry at its %s address, from its source', async (family, host, source) => {
  const options = { resolve: () => Promise.resolve(['127.0.0.1', '::1']) }
  const settings = { domain: 'example.org', server: `https://two.test:${port}`, family, sourceAddress: source }
  await runKind(await kindOf('domain'), settings as never, 'Standard', options)
  expect([...clients]).toEqual([[host, [source]]])
})

test('H83 the connection that stops a statement after the deadline has the same source', async () => {
  const deadline = new AbortController()
  const stops: (string | undefined)[] = []
  const never = new Promise<never>(() => {})
  const driver = {
    signIn: () => Promise.resolve(),
    ask: () => never,
    stop: () => Promise.resolve(void stops.push(wayOut().source)),
    encryption: () => undefined,
    secured: () => undefined,
  }
  const way = { socket: { destroy: () => {} }, signal: deadline.signal, msLeft: () => 1_000 }
  await withConversations(new Conversations({ source: '127.0.0.7' }), async () => {
    const session = await openSession(way as never, driver as never)
    void session.ask('SELECT 1').catch(() => {})
  })
  deadline.abort()
  await Promise.resolve()
  expect(stops).toEqual(['127.0.0.7'])
})
