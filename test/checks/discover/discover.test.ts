import { createSocket } from 'node:dgram'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type CandidateProtocol, candidatesOf } from '../../../src/core/checks/discover/identify.ts'
import { discover } from '../../../src/core/checks/discover/index.ts'
import { searchedIn } from '../../../src/core/checks/discover/machine.ts'
import { parseListening } from '../../../src/core/checks/discover/ports.ts'
import { monitors } from '../../../src/core/checks/kinds/index.ts'
import tcp from '../../../src/core/checks/kinds/tcp.ts'
import {
  answerEntry,
  begins,
  bytes,
  type Recognition,
  type RecognizedServer,
} from '../../../src/core/checks/recognition/index.ts'
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
    (question: string, answer: string | Buffer): Behaviour =>
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
    pool: 'alike',
    propose: (server, name) => ({
      entry: answerEntry(server, name, { greeting: Buffer.from('/\r\n'), expect: 'i' }),
      note: 'a menu',
    }),
  }

  /** A server of which only this is known, and which answers nothing more. */
  const server = (facts: Partial<RecognizedServer> = {}): RecognizedServer => ({
    host: '127.0.0.1',
    port: 1,
    reply: Buffer.alloc(0),
    machine: { domain: undefined, isHere: async () => false },
    signal: signal(),
    ask: async () => undefined,
    askAfterBanner: async () => undefined,
    ...facts,
  })

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
            entry: {
              kind: 'tcp',
              name: `gopher-${menu.port}`,
              host: '127.0.0.1',
              port: menu.port,
              send: '/\r\n',
              expect: 'i',
            },
            note: 'a menu',
          },
        ],
        others: [],
      })
  })

  test('H60 proposals for servers without a kind keep what recognized them, so that a frozen one fails', async () => {
    const asks = (question: string | Buffer, answer: string | Buffer) =>
      peer(answersTo(question.toString('latin1'), answer))
    await using nats = await peer(speaks('INFO {"server_id":"a"} \r\n'))
    await using memcached = await asks('version\r\n', 'VERSION 1.6.18\r\n')
    await using beanstalkd = await asks('stats\r\n', 'OK 12\r\n---\n')
    await using mqtt = await asks('MQTT', bytes('20020000'))
    await using guarded = await asks('MQTT', bytes('20020005'))
    await using old = await asks(bytes('04d2162f'), 'S')
    await using postgres = await asks('\0\0\0\b\x04', 'N')
    await using redis = await asks('PING', '-NOAUTH Authentication required.\r\n')
    const greeting = Buffer.concat([
      Buffer.from('J\0\0\0\x0a8.0.36\0', 'latin1'),
      Buffer.from('salt\0caching_sha2_password\0'),
    ])
    await using mysql = await peer(speaks(greeting))
    const servers = [nats, memcached, beanstalkd, mqtt, guarded, old, postgres, redis, mysql]
    const entries = async () => {
      const { proposals } = await discover(signal(), here(...servers.map(({ port }) => port)))
      return proposals.map(({ type, entry: { kind, name, send, sendHex, expect: expected } }) => [
        type,
        kind,
        name,
        expected,
        ...(send === undefined ? [] : [send]),
        ...(sendHex === undefined ? [] : [sendHex]),
      ])
    }
    const own = (type: string, name: string, expected: string, ...sent: readonly string[]) => [
      type,
      'tcp',
      name,
      expected,
      ...sent,
    ]
    const connect = '100c0004 4d515454 0402003c 0000'
    const byName = ([, , one]: readonly unknown[], [, , other]: readonly unknown[]) =>
      String(one).localeCompare(String(other))
    await expect
      .poll(async () => (await entries()).toSorted(byName))
      .toEqual(
        [
          own('App', `beanstalkd-${beanstalkd.port}`, 'OK ', 'stats\r\n'),
          own('App', `memcached-${memcached.port}`, 'VERSION ', 'version\r\n'),
          own('App', `mqtt-${mqtt.port}`, '/^\\x20\\x02\\x00\\x00/', connect),
          own('App', `mqtt-${guarded.port}`, '/^\\x20\\x02\\x00\\x05/', connect),
          own('Sql', `mysql-${mysql.port}`, 'caching_sha2_password'),
          own('App', `nats-${nats.port}`, 'INFO {'),
          own('Sql', `postgres-${old.port}`, '/^[SN]/', '00000008 04d2162f'),
          own('Sql', `postgres-${postgres.port}`, '/^[GN]/', '00000008 04d21630'),
          own('Batch', `redis-${redis.port}`, '-NOAUTH', 'PING\r\n'),
        ].toSorted(byName),
      )
  })

  test.each([undefined, { trusted: true, chainTrusted: true, expired: false, name: undefined, fingerprint: '' }])(
    'H60 no recognition proposes a port alone (TLS: %o)',
    async (tls) => {
      const entries = await Promise.all(
        (await candidatesOf()).flatMap(({ recognition }) =>
          ['', '-NOAUTH\r\n'].map(async (reply) => {
            const at = server({ reply: Buffer.from(reply), ...(tls && { tls }) })
            return (await recognition.propose(at, recognition.name)).entry
          }),
        ),
      )
      const overTcp = entries.filter(({ kind }) => kind === 'tcp' || kind === 'tls')
      expect(overTcp.filter((entry) => entry['expect'] === undefined)).toEqual([])
      expect(overTcp.length).toBeGreaterThan(10)
      expect(new Set(overTcp.map(({ kind }) => kind))).toEqual(new Set([tls ? 'tls' : 'tcp']))
    },
  )

  test.each([
    ['etcd', '/health', '{"health":"true","reason":""}', { json: { '$.health': 'true' } }],
    ['traefik', '/ping', 'OK', { contains: 'OK' }],
  ])(
    'H64 %s (simulated) is proposed with its page %s, where its root is none',
    async (product, path, body, expects) => {
      const site = (root: number) =>
        peer(replies((request) => (request.includes(` ${path} `) ? http(200, body) : http(root, 'a page'))))
      await using bare = await site(404)
      await using sends = await peer(
        replies((request) => {
          if (request.includes(` ${path} `)) return http(200, body)
          return request.includes(' / ') ? http(302, '', { Location: '/dashboard/' }) : http(404)
        }),
      )
      await using whole = await site(200)
      await using other = await peer(replies(http(404, body)))
      const entry = (port: number, name: string, page: string, more: object = {}) => ({
        kind: 'http',
        name: `${name}-${port}`,
        url: `http://127.0.0.1:${port}${page}`,
        ...more,
      })
      const servers = [bare, sends, whole, other].map(({ port }) => port)
      const proposed = async () => {
        const { proposals } = await discover(signal(), here(...servers))
        return proposals.map((one) => one.entry)
      }
      const expected = [
        entry(bare.port, product, path, expects),
        entry(sends.port, product, path, expects),
        entry(whole.port, 'http', '/'),
        entry(other.port, 'http', '/'),
      ]
      const byUrl = (one: object, two: object) => JSON.stringify(one).localeCompare(JSON.stringify(two))
      await expect.poll(async () => (await proposed()).toSorted(byUrl)).toEqual(expected.toSorted(byUrl))
    },
  )

  /** Each connection gets the next of these greetings, and the first one again after the last. */
  const inTurn = (...greetings: readonly (string | Buffer)[]): Behaviour => {
    let at = 0
    return (socket) => {
      socket.write(greetings[at % greetings.length] ?? '')
      at += 1
    }
  }
  const mysqlOf = (version: string, connection: number): Buffer => {
    const count = Buffer.alloc(4)
    count.writeUInt32LE(connection)
    const rest = Buffer.concat([Buffer.from(`\x0a${version}\0`, 'latin1'), count, Buffer.from('salt\0a_password\0')])
    return Buffer.concat([Buffer.from([rest.length, 0, 0, 0]), rest])
  }
  test.each([
    ['servers with names of their own', inTurn('INFO {"server_id":"a"}\r\n', 'INFO {"server_id":"b"}\r\n'), 5],
    [
      'one server with another number for each client',
      inTurn('INFO {"server_id":"a","client_id":1}\r\n', 'INFO {"server_id":"a","client_id":2}\r\n'),
      undefined,
    ],
    ['servers of other versions', inTurn('SSH-2.0-OpenSSH_9.2\r\n', 'SSH-2.0-OpenSSH_8.4\r\n'), 5],
    [
      'one mail server that tells the time',
      inTurn('220 mail.test ESMTP 10:00\r\n', '220 mail.test ESMTP 10:01\r\n'),
      undefined,
    ],
    ['mail servers', inTurn('220 a.test ESMTP\r\n', '220 b.test ESMTP\r\n'), 5],
    ['MySQL servers that count their connections', inTurn(mysqlOf('8.0.36', 900), mysqlOf('8.0.36', 12)), 5],
    ['a MySQL server', inTurn(...[1, 2, 3, 4, 5, 6].map((one) => mysqlOf('8.0.36', one))), undefined],
  ])('H65 samples are proposed where different servers answer in turn: %s (simulated)', async (_, behave, samples) => {
    await using there = await peer(behave)
    const { proposals } = await discover(signal(), here(there.port))
    expect(proposals.map(({ entry, note }) => [entry['samples'], note?.includes('several servers') === true])).toEqual([
      [samples, samples !== undefined],
    ])
  })

  test('H60 at an address of the network, MySQL is proposed with an account: it blocks clients without one', async () => {
    const [{ recognition }] = (await candidatesOf({ mysql: monitors.mysql })) as [CandidateProtocol]
    const at = async (host: string) => (await recognition.propose(server({ host }), 'mysql-1')).entry.kind
    expect([await at('127.0.0.1'), await at('::1'), await at('192.0.2.1')]).toEqual(['tcp', 'tcp', 'mysql'])
  })

  test('H65 every kind in whose recognition servers of a pool differ has samples', async () => {
    const without = await Promise.all(
      (await candidatesOf()).map(async ({ recognition }) => {
        if (recognition.pool === 'alike') return []
        const { entry } = await recognition.propose(server(), recognition.name)
        const kind = (await monitors[entry.kind as keyof typeof monitors].load()).default
        return 'samples' in kind.settings ? [] : [recognition.name]
      }),
    )
    expect(without.flat()).toEqual([])
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

  test('H61 a name server is proposed with the zone of the machine where it has that, and a resolver never', async () => {
    /** An answer to a question for the SOA record of shop.test, from its own zone or from what others say. */
    const answerTo = (question: Buffer, authoritative: boolean): Buffer => {
      const isKnown = question.includes(Buffer.from('\x04shop\x04test\0\0\x06', 'latin1'))
      const end = question.indexOf(0, 12) + 5
      const soa = bytes('c00c 0006 0001 00000e10 0016 00 00 00000007 00000e10 00000e10 00000e10 00000e10')
      const answer = Buffer.concat([question.subarray(0, end), isKnown ? soa : Buffer.alloc(0)])
      answer.writeUInt16BE(0x8000 | (authoritative ? 0x0400 : 0x0080) | (isKnown ? 0 : 3), 2)
      for (const [at, value] of [
        [6, isKnown ? 1 : 0],
        [8, 0],
        [10, 0],
      ] as const)
        answer.writeUInt16BE(value, at)
      return answer
    }
    const nameServer = async (authoritative: boolean) => {
      const server = await peer((socket) =>
        socket.once('data', (question) => {
          if (question.readUInt16BE(0) !== question.length - 2) return void socket.destroy()
          const answer = answerTo(question.subarray(2), authoritative)
          socket.write(Buffer.concat([Buffer.from([answer.length >> 8, answer.length & 255]), answer]))
        }),
      )
      const datagrams = createSocket('udp4')
      datagrams.on('message', (question, { port }) =>
        datagrams.send(answerTo(question, authoritative), port, '127.0.0.1'),
      )
      await new Promise<void>((resolve) => datagrams.bind(server.port, '127.0.0.1', resolve))
      onTestFinished(async () => {
        datagrams.close()
        await server.close()
      })
      return server.port
    }
    const [own, resolver] = [await nameServer(true), await nameServer(false)]
    const entryIn = async (port: number, domain: string | undefined) => {
      const machine = { domain, isHere: () => Promise.resolve(false) }
      const { proposals } = await discover(signal(), { ...here(port), machine })
      const [{ entry, note } = {}] = proposals
      return { query: entry?.['query'], type: entry?.['type'], note: note !== undefined }
    }
    const unknown = { query: 'localhost', type: undefined, note: true }
    await expect.poll(() => entryIn(own, 'shop.test')).toEqual({ query: 'shop.test', type: 'SOA', note: false })
    await expect.poll(() => entryIn(resolver, 'shop.test')).toEqual(unknown)
    await expect.poll(() => entryIn(own, 'other.test')).toEqual(unknown)
    await expect.poll(() => entryIn(own, undefined)).toEqual(unknown)
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
    const guarded = server({ reply: Buffer.from('-NOAUTH\r\n') })
    const proposed = await Promise.all(
      (await candidatesOf()).map(({ recognition }) => recognition.propose(guarded, 'a')),
    )
    const kinds = proposed.flatMap(({ entry, deeper }) => [entry.kind, ...(deeper ? [deeper.kind] : [])])
    expect(kinds.filter((kind) => !kindNames.has(kind))).toEqual([])
    expect(new Set(kinds).size).toBeGreaterThan(10)
  })
})
