import { describe, expect, onTestFinished, test } from 'vitest'
import { candidatesOf } from '../../../src/core/checks/discover/identify.ts'
import { discover } from '../../../src/core/checks/discover/index.ts'
import { searchedIn } from '../../../src/core/checks/discover/machine.ts'
import { parseListening } from '../../../src/core/checks/discover/ports.ts'
import { monitors } from '../../../src/core/checks/kinds/index.ts'
import tcp from '../../../src/core/checks/kinds/tcp.ts'
import { begins, portEntry, type Recognition } from '../../../src/core/checks/recognition/index.ts'
import { proposedFile } from '../../../src/core/config/proposed.ts'
import { type Behaviour, blackHole, echo, http, peer, replies, speaks } from '../../support/faults/faults.ts'
import { makeCertificates } from '../../support/servers/certs.ts'
import { healthServer } from '../../support/servers/grpc.ts'
import { farMs } from '../../support/suite/until.ts'

const signal = (): AbortSignal => AbortSignal.timeout(farMs)
const here = (...ports: readonly number[]) => ({ ports: ports.map((port) => ({ host: '127.0.0.1', port })) })

describe('peers of no known kind', () => {
  test('one that sends nothing, one that echoes and one that hangs up are reported as not recognized', async () => {
    await using silent = await peer(blackHole)
    await using parrot = await peer(echo)
    await using rude = await peer((socket) => socket.destroy())
    await using hostile = await peer(speaks('\x1b]0;owned\x07 hello\n'))
    const { proposals, others } = await discover(signal(), here(silent.port, parrot.port, rude.port, hostile.port))
    expect(proposals).toEqual([])
    expect(new Set(others.map(({ port }) => port))).toEqual(
      new Set([silent.port, parrot.port, rude.port, hostile.port]),
    )
    expect(JSON.stringify(others)).not.toContain('owned')
    await expect.poll(() => [silent, parrot, rude, hostile].map((one) => one.open())).toEqual([0, 0, 0, 0])
  })

  test('ports of svc itself are omitted', async () => {
    await using own = await peer(speaks('SSH-2.0-own\r\n'))
    expect(await discover(signal(), { ...here(own.port), skip: [own.port] })).toEqual({ proposals: [], others: [] })
  })

  test('no findings give a valid file', async () => {
    expect(await proposedFile([], ['empty'])).toBe('# empty\ntypes: {}\n')
  })
})

test('the table of the kernel is read: listening sockets alone, wildcards as loopback, IPv4 in IPv6', () => {
  const line = (address: string, state: string): string =>
    `   0: ${address} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000`
  const table = [
    '  sl  local_address rem_address   st',
    line('0100007F:1538', '0A'),
    line('00000000:0050', '0A'),
    line('0100007F:C001', '01'),
    line('00000000000000000000000000000000:0016', '0A'),
    line('00000000000000000000000001000000:0CEA', '0A'),
    line('0000000000000000FFFF00000100007F:18EB', '0A'),
  ].join('\n')
  expect(parseListening(table)).toEqual([
    { host: '127.0.0.1', port: 5432 },
    { host: '127.0.0.1', port: 80 },
    { host: '::1', port: 22 },
    { host: '::1', port: 3306 },
    { host: '127.0.0.1', port: 6379 },
  ])
})

describe('kinds declare how discovery recognizes their servers', () => {
  /** Answers a connection that begins with a text, and ends every other one. */
  const answersTo =
    (question: string, answer: string): Behaviour =>
    (socket) => {
      socket.once('data', (data) => {
        if (data.toString('latin1').includes(question)) socket.write(answer)
        else socket.destroy()
      })
    }
  /** A kind with these recognitions and standard ports, as its module exports it. */
  const kindWith = (recognition: readonly Recognition[], ports: Readonly<Record<number, string>> = {}) => ({
    load: () => Promise.resolve({ default: { ...tcp, recognition } }),
    ports: { Qc: ports },
  })
  const gopher: Recognition = {
    name: 'gopher',
    greeting: Buffer.from('/\r\n'),
    is: begins('i'),
    propose: (server, name) => ({ entry: portEntry(server, name), note: 'a menu' }),
  }

  test('a kind added to the registry is recognized, and proposed for its server type', async () => {
    await using menu = await peer(answersTo('/\r\n', 'iWelcome\r\n'))
    const unaware = await discover(signal(), here(menu.port))
    expect(unaware.proposals).toEqual([])
    const candidates = await candidatesOf({ ...monitors, gopher: kindWith([gopher]) })
    await expect
      .poll(() => discover(signal(), { ...here(menu.port), candidates }))
      .toEqual({
        proposals: [
          {
            type: 'Qc',
            entry: { kind: 'tcp', name: `gopher-${menu.port}`, host: '127.0.0.1', port: menu.port },
            note: 'a menu',
          },
        ],
        others: [],
      })
  })

  test('H60 proposals for servers without a kind keep what recognized them, so that a frozen one fails', async () => {
    const asks = (question: string, answer: string) => peer(answersTo(question, answer))
    await using nats = await peer(speaks('INFO {"server_id":"a"} \r\n'))
    await using memcached = await asks('version\r\n', 'VERSION 1.6.18\r\n')
    await using beanstalkd = await asks('stats\r\n', 'OK 12\r\n---\n')
    const greeting = Buffer.concat([
      Buffer.from('J\0\0\0\x0a8.0.36\0', 'latin1'),
      Buffer.from('salt\0caching_sha2_password\0'),
    ])
    await using mysql = await peer(speaks(greeting))
    const entries = async () => {
      const { proposals } = await discover(signal(), here(nats.port, memcached.port, beanstalkd.port, mysql.port))
      return proposals.map(({ type, entry: { kind, name, send, expect: expected } }) => ({
        type,
        kind,
        name,
        send,
        expected,
      }))
    }
    const own = (type: string, name: string, expected: string, send?: string) => ({
      type,
      kind: 'tcp',
      name,
      send,
      expected,
    })
    await expect
      .poll(async () => (await entries()).toSorted((a, b) => a.name.localeCompare(b.name)))
      .toEqual([
        own('App', `beanstalkd-${beanstalkd.port}`, 'OK ', 'stats\r\n'),
        own('App', `memcached-${memcached.port}`, 'VERSION ', 'version\r\n'),
        own('Sql', `mysql-${mysql.port}`, 'caching_sha2_password'),
        own('App', `nats-${nats.port}`, 'INFO {'),
      ])
  })

  test('H61 a server of HTTP/2 alone is proposed as gRPC, whether it waits for the client or not', async () => {
    await using server = await healthServer({ '': 'SERVING' })
    const settings = Buffer.from('000000040000000000', 'hex')
    await using waits = await peer(answersTo('PRI * HTTP/2.0', settings.toString('latin1')))
    const ports = [server.port, waits.port].toSorted((a, b) => a - b)
    const entries = async () => (await discover(signal(), here(...ports))).proposals.map(({ entry }) => entry)
    const entry = (port: number) => ({ kind: 'grpc', name: `grpc-${port}`, host: '127.0.0.1', port })
    await expect.poll(entries).toEqual(ports.map(entry))
  })

  test("H61 a name server is proposed with the beginning of the machine's own zone, where it has that", async () => {
    /** Answers questions for NS records of the root and SOA records of shop.test. */
    await using server = await peer((socket) =>
      socket.once('data', (question) => {
        const reply = Buffer.from(question)
        reply[4] = 0x84
        const isKnown = question.includes(Buffer.from('\x04shop\x04test\0\0\x06', 'latin1'))
        if (isKnown) reply.writeUInt16BE(1, 8)
        else if (question.length > 19) reply[5] = 3
        socket.write(reply)
      }),
    )
    const entryIn = async (domain: string | undefined) => {
      const machine = { domain, isHere: () => Promise.resolve(false) }
      const { proposals } = await discover(signal(), { ...here(server.port), machine })
      const [{ entry, note } = {}] = proposals
      return { query: entry?.['query'], type: entry?.['type'], note: note !== undefined }
    }
    const unknown = { query: 'localhost', type: undefined, note: true }
    await expect.poll(() => entryIn('shop.test')).toEqual({ query: 'shop.test', type: 'SOA', note: false })
    await expect.poll(() => entryIn('other.test')).toEqual(unknown)
    await expect.poll(() => entryIn(undefined)).toEqual(unknown)
  })

  test('H61 the domain of a machine without one in its name is the first that the system searches', () => {
    expect(searchedIn('# search a.test\nnameserver 192.0.2.1\nsearch Shop.test. other.test\n')).toBe('shop.test')
    expect(searchedIn('nameserver 192.0.2.1\nsearch .\n')).toBeUndefined()
  })

  test('H61 https is proposed by the name of the certificate where that is a name of this machine', async () => {
    const certificates = makeCertificates()
    onTestFinished(certificates.remove)
    /** Two sites of one server: the one that is not named refuses. */
    const answer = (request: string): string => http(request.includes('Host: localhost') ? 200 : 421)
    await using server = await peer(replies(answer), { tls: certificates.good })
    const urlWhere = async (isHere: boolean) => {
      const machine = { domain: undefined, isHere: (name: string) => Promise.resolve(isHere && name === 'localhost') }
      const { proposals } = await discover(signal(), { ...here(server.port), machine })
      return proposals[0]?.entry['url']
    }
    await expect.poll(() => urlWhere(true)).toBe(`https://localhost:${server.port}/`)
    await expect.poll(() => urlWhere(false)).toBe(`https://127.0.0.1:${server.port}/`)
  })

  test('a protocol whose reply says too little is recognized at its standard ports alone', async () => {
    await using menu = await peer(answersTo('/\r\n', 'iWelcome\r\n'))
    const only = { ...gopher, onlyAtStandardPorts: true } as const
    const elsewhere = await candidatesOf({ gopher: kindWith([only], { 70: 'gopher' }) })
    expect((await discover(signal(), { ...here(menu.port), candidates: elsewhere })).proposals).toEqual([])
    const there = await candidatesOf({ gopher: kindWith([only], { [menu.port]: 'gopher' }) })
    const names = async () =>
      (await discover(signal(), { ...here(menu.port), candidates: there })).proposals.map(({ entry }) => entry.name)
    await expect.poll(names).toEqual([`gopher-${menu.port}`])
  })

  test('the kind with the standard port is tried first, also where two recognize the same reply', async () => {
    await using menu = await peer(answersTo('/\r\n', 'iWelcome\r\n'))
    const candidates = await candidatesOf({
      gopher: kindWith([gopher]),
      veronica: kindWith([{ ...gopher, name: 'veronica' }], { [menu.port]: 'veronica' }),
    })
    const names = async () =>
      (await discover(signal(), { ...here(menu.port), candidates })).proposals.map(({ entry }) => entry.name)
    await expect.poll(names).toEqual([`veronica-${menu.port}`])
  })

  test('PgBouncer and the management API of RabbitMQ (simulated) are recognized where their standard ports are', async () => {
    await using bouncer = await peer(answersTo('\x04\xd2\x16\x2f', 'N'))
    await using management = await peer(answersTo('HEAD', http(200, '', { Server: 'Cowboy' })))
    const at = (port: number, kind: 'pgbouncer' | 'rabbitmq') => ({
      ...monitors[kind],
      ports: { Batch: { [port]: kind } },
    })
    const candidates = await candidatesOf({
      ...monitors,
      pgbouncer: at(bouncer.port, 'pgbouncer'),
      rabbitmq: at(management.port, 'rabbitmq'),
    })
    const proposed = async (options: Parameters<typeof discover>[1] = {}) => {
      const { proposals } = await discover(signal(), { ...here(bouncer.port, management.port), ...options })
      return proposals.map(({ entry, deeper }) => `${entry.kind} ${entry.name}, ${deeper?.kind}`).sort()
    }
    await expect
      .poll(() => proposed({ candidates }))
      .toEqual([`http cowboy-${management.port}, rabbitmq`, `tcp pgbouncer-${bouncer.port}, pgbouncer`])
    await expect
      .poll(() => proposed())
      .toEqual([`http cowboy-${management.port}, undefined`, `tcp postgres-${bouncer.port}, postgres`])
  })

  test('every protocol proposes kinds that svc has', async () => {
    const kindNames = new Set(Object.keys(monitors))
    const server = {
      host: '127.0.0.1',
      port: 1,
      reply: Buffer.from('-NOAUTH\r\n'),
      machine: { domain: undefined, isHere: async () => false },
      ask: async () => undefined,
      askAfterBanner: async () => undefined,
    }
    const proposed = await Promise.all(
      (await candidatesOf()).map(({ recognition }) => recognition.propose(server, 'a')),
    )
    const kinds = proposed.flatMap(({ entry, deeper }) => [entry.kind, ...(deeper ? [deeper.kind] : [])])
    expect(kinds.filter((kind) => !kindNames.has(kind))).toEqual([])
    expect(new Set(kinds).size).toBeGreaterThan(10)
  })
})
