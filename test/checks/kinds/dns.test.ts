import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { networkInterfaces } from 'node:os'
import { describe, expect, onTestFinished, test } from 'vitest'
import { aliasElsewhere, readMessage } from '../../../src/core/base/net/dns-message.ts'
import { obstacleText, signaturesIn } from '../../../src/core/base/net/dns-query.ts'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import dns, { latency, records } from '../../../src/core/checks/kinds/dns.ts'
import { expectFindings, finds, findsOnly } from '../../support/engine/finds.ts'
import { checked, evaluated, type RunKindOptions, runKind } from '../../support/engine/run-kind.ts'
import { refusedPort, settled } from '../../support/faults/faults.ts'
import { endsByDeadline } from '../../support/suite/deadline.ts'

const types = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, MX: 15, TXT: 16, AAAA: 28, SRV: 33, CAA: 257 } as const
type RecordData = { readonly type: keyof typeof types; readonly data: Buffer }
type Reply = { readonly code?: number; readonly records?: readonly RecordData[]; readonly truncated?: boolean }
/** The reply to a question, by its number; a Buffer is sent as it is, nothing is silence. */
type Script = (question: Buffer, n: number, over: 'udp' | 'tcp') => Reply | Buffer | undefined

const label = (name: string): Buffer =>
  Buffer.concat([...name.split('.').map((part) => Buffer.from([part.length, ...Buffer.from(part)])), Buffer.from([0])])
const u16 = (...numbers: readonly number[]): Buffer => Buffer.from(numbers.flatMap((n) => [n >> 8, n & 255]))

const a = (address: string): RecordData => ({ type: 'A', data: Buffer.from(address.split('.').map(Number)) })
const aaaa = (...groups: readonly number[]): RecordData => ({ type: 'AAAA', data: u16(...groups) })
const nameRecord = (type: 'CNAME' | 'NS' | 'PTR', name: string): RecordData => ({ type, data: label(name) })
const mx = (priority: number, name: string): RecordData => ({
  type: 'MX',
  data: Buffer.concat([u16(priority), label(name)]),
})
const srv = (...[priority, weight, port, name]: [number, number, number, string]): RecordData => ({
  type: 'SRV',
  data: Buffer.concat([u16(priority, weight, port), label(name)]),
})
const txt = (...parts: readonly string[]): RecordData => ({
  type: 'TXT',
  data: Buffer.concat(parts.map((part) => Buffer.from([part.length, ...Buffer.from(part)]))),
})

/** RFC 1035, 4.1: the question's id and section, and records that point back at its name. */
function packet(question: Buffer, reply: Reply): Buffer {
  const records = reply.records ?? []
  const ends = question.indexOf(0, 12) + 5
  const header = u16(
    question.readUInt16BE(0),
    0x8180 | (reply.code ?? 0) | (reply.truncated ? 0x200 : 0),
    1,
    records.length,
    0,
    0,
  )
  const body = records.map(({ type, data }) => Buffer.concat([u16(0xc00c, types[type], 1, 0, 60, data.length), data]))
  return Buffer.concat([header, question.subarray(12, ends), ...body])
}

/** Aliases by name, with loops. */
const loop: Readonly<Record<string, string>> = {
  'loop1.test': 'loop2.test',
  'loop2.test': 'loop1.test',
  'enter.test': 'loop1.test',
  'self.test': 'self.test',
  'cdn.test': 'edge.cdn.example',
}

/** An authoritative server without recursion that answers with the first alias alone, and refuses other zones. */
const firstAliasOnly =
  (aliases: Readonly<Record<string, string>>): Script =>
  (question) => {
    const name = question.toString('latin1', 13, question.indexOf(0, 12)).replaceAll(/[\0-\x1f]/g, '.')
    const alias = aliases[name]
    const reply = packet(question, alias === undefined ? { code: 5 } : { records: [nameRecord('CNAME', alias)] })
    reply.writeUInt8(0x84, 2)
    reply.writeUInt8(reply.readUInt8(3) & 15, 3)
    return reply
  }

/** A small real name server, over UDP and over TCP on one port. */
async function nameServer(script: Script) {
  let requestCount = 0
  const say = (question: Buffer, over: 'udp' | 'tcp'): Buffer | undefined => {
    requestCount += 1
    const reply = script(question, requestCount, over)
    return reply === undefined || Buffer.isBuffer(reply) ? reply : packet(question, reply)
  }
  const sockets = new Set<Socket>()
  const tcp = createServer((socket) => {
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)))
    socket.on('data', (message) => {
      const reply = say(message.subarray(2), 'tcp')
      if (reply) socket.write(Buffer.concat([u16(reply.length), reply]))
    })
  })
  tcp.listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const { port } = tcp.address() as AddressInfo
  const udp = createSocket('udp4')
  udp.on('message', (question, from) => {
    const reply = say(question, 'udp')
    if (reply) udp.send(reply, from.port, from.address)
  })
  udp.bind(port, '127.0.0.1')
  await once(udp, 'listening')
  return {
    server: `127.0.0.1:${port}`,
    requests: () => requestCount,
    refuseTcp: () => void tcp.close(),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      udp.close()
      if (!tcp.listening) return
      tcp.close()
      await once(tcp, 'close')
    },
  }
}

type Settings = Parameters<typeof runKind<typeof dns.settings>>[1]
const ask = async (script: Script, settings: Settings = {}, options: RunKindOptions = {}) => {
  await using there = await nameServer(script)
  const results = await runKind(dns, { query: 'app.test', server: there.server, ...settings }, 'Standard', options)
  return { results, server: there.server, requests: there.requests() }
}

describe('dns answers', () => {
  test('each address of a name is reported', async () => {
    const { results, server } = await ask(() => ({ records: [a('10.0.0.5'), a('10.0.0.6')] }))
    await findsOnly(results, 'answer ok', 'latency ok')
    await finds(results, [
      'answer: app.test A is 10.0.0.5, 10.0.0.6',
      { measurement: { value: 2 }, address: server, details: ['10.0.0.5', '10.0.0.6'] },
    ])
  })

  test.each([
    ['AAAA', aaaa(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), '2001:0DB8:0:0::1', '2001:db8::1'],
    ['CNAME', nameRecord('CNAME', 'Real.test'), 'real.test.', 'Real.test'],
    ['NS', nameRecord('NS', 'ns1.test'), 'NS1.test', 'ns1.test'],
    ['PTR', nameRecord('PTR', 'host.test'), 'host.test', 'host.test'],
    ['MX', mx(10, 'mail.test'), '10 mail.test', '10 mail.test'],
    ['SRV', srv(10, 5, 443, 'web.test'), '10  5 443 web.test.', '10 5 443 web.test'],
    ['TXT', txt('v=spf1 ', '-all'), 'v=spf1 -all', 'v=spf1 -all'],
  ] as const)('%s records are read and compared', (type, record, expected, output) =>
    finds(
      ask(() => ({ records: [record] }), { type, expect: [expected], exact: true }),
      'expected ok',
      `answer: app.test ${type} is ${output}`,
    ),
  )

  test('SOA and CAA are one string each', async () => {
    const soa = Buffer.concat([
      label('ns1.test'),
      label('admin.test'),
      Buffer.from([0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]),
    ])
    await finds(
      ask(() => ({ records: [{ type: 'SOA', data: soa }] }), { type: 'SOA' }),
      'answer: app.test SOA is ns1.test admin.test 7 1 2 3 4',
    )
    const caa = Buffer.concat([Buffer.from([0, 5]), Buffer.from('issueca.test')])
    await finds(
      ask(() => ({ records: [{ type: 'CAA', data: caa }] }), { type: 'CAA', expect: ['0 issue ca.test'] }),
      'expected ok',
    )
  })

  test('a missing record is named together with the existing ones', async () => {
    const { results, server } = await ask(() => ({ records: [a('10.0.0.6')] }), { expect: ['10.0.0.5', '10.0.0.6'] })
    await finds(results, `expected failed (data): app.test A at ${server} lacks 10.0.0.5; it is 10.0.0.6`)
  })

  test('another record is a failure only with exact', async () => {
    const script: Script = () => ({ records: [a('10.0.0.5'), a('10.6.6.6')] })
    await finds(ask(script, { expect: ['10.0.0.5'] }), 'expected ok')
    await finds(ask(script, { expect: ['10.0.0.5'], exact: true }), 'expected: …also has 10.6.6.6…')
  })

  test('Basic does not evaluate expectations', async () => {
    await using there = await nameServer(() => ({ records: [a('10.0.0.6')] }))
    const settings = { query: 'app.test', server: there.server, expect: ['10.0.0.5'] }
    expect((await runKind(dns, settings)).map((result) => result.check)).toEqual(['answer', 'latency'])
  })

  test('values at the boundaries of latency and records are ok', () => {
    const latencyOf = (ms: number) =>
      evaluated(latency, { server: 's:53', ms, records: ['1.1.1.1'] }, { query: 'app.test' })[0]?.status
    expect([500, 500.1, 3_000, 3_000.1].map(latencyOf)).toEqual(['ok', 'warning', 'warning', 'failed'])
    const settings = { query: 'app.test', records: { warn: 3, limit: 2 } }
    const recordsOf = (n: number) =>
      evaluated(records, { server: 's:53', ms: 1, records: Array(n).fill('x') }, settings)[0]?.status
    expect([3, 2, 1].map(recordsOf)).toEqual(['ok', 'warning', 'failed'])
  })

  test('one of several nodes queries', () => {
    expect(dns.runsOn).toBe('network')
  })

  test('a slow answer warns', () =>
    finds(
      ask(() => ({ records: [a('10.0.0.5')] }), { latency: { warn: 0.001, limit: 3_000 } }),
      'latency warning',
    ))
})

describe('dns signatures', () => {
  /** A question for `a`, and one RRSIG of it over A records from 2020 to 2030. */
  const answer = Buffer.concat([
    u16(1, 0x8180, 1, 1, 0, 0),
    label('a'),
    u16(1, 1),
    u16(0xc00c, 46, 1, 0, 60, 21),
    u16(1, 0x0d01, 0, 60, 0x70db, 0xd880, 0x5e0b, 0xe100, 42),
    label('a'),
  ])

  test('a signature is read with its dates', () => {
    expect(signaturesIn(answer, 'a:1')).toEqual([
      { covers: 1, keyTag: 42, from: new Date('2020-01-01T00:00:00Z'), to: new Date('2030-01-01T00:00:00Z') },
    ])
  })

  test('an answer that ends early or lies about its lengths is unreadable', () => {
    for (let end = 0; end < answer.length; end += 1)
      expect(() => signaturesIn(answer.subarray(0, end), 'a:1')).toThrow('a:1 sent an unreadable answer')
    const long = Buffer.from(answer)
    long.writeUInt8(200, 12)
    expect(() => signaturesIn(long, 'a:1')).toThrow('unreadable')
  })

  test('a server without TCP is not checked for signatures, and passes otherwise', async () => {
    const udp = createSocket('udp4')
    udp.on('message', (question, from) =>
      udp.send(packet(question, { records: [a('192.0.2.1')] }), from.port, from.address),
    )
    udp.bind(0, '127.0.0.1')
    await once(udp, 'listening')
    onTestFinished(() => void udp.close())

    const settings = { query: 'a.test', server: `127.0.0.1:${udp.address().port}` }
    const results = await runKind(dns, settings, 'Advanced')
    expect(checked(results, 'answer').status).toBe('ok')
    expect(checked(results, 'signatures')).toMatchObject({ status: 'warning', notChecked: 'missing' })
  })
})

describe('dns faults', () => {
  const fault = async (script: Script, settings: Settings = {}) => {
    const { results, server } = await ask(script, settings)
    await findsOnly(results, ['answer failed', { address: server }])
    const [result] = results
    return { fault: result?.fault, message: result?.message.replace(server, 'S') }
  }

  test('NXDOMAIN is reported as a name that does not exist', async () => {
    expect(await fault(() => ({ code: 3 }))).toEqual({
      fault: 'dns',
      message: 'S reports that app.test does not exist (NXDOMAIN)',
    })
  })

  test('an answer without records is reported as a name without records of this type', async () => {
    expect(await fault(() => ({}), { type: 'MX' })).toEqual({
      fault: 'dns',
      message: 'S knows app.test, but has no MX record for it',
    })
  })

  test('SERVFAIL is a fault of the server, not of the network', async () => {
    expect(await fault(() => ({ code: 2 }))).toEqual({
      fault: 'dns',
      message: 'S failed to resolve app.test (SERVFAIL): check its upstream, zone or DNSSEC, not the network',
    })
  })

  test('REFUSED is reported with its possible causes', async () => {
    const { message } = await fault(() => ({ code: 5 }))
    expect(message).toContain('refuses to answer for app.test (REFUSED)')
  })

  test.each([
    ['loop1.test', 'loop1.test -> loop2.test -> loop1.test'],
    ['enter.test', 'enter.test -> loop1.test -> loop2.test -> loop1.test'],
    ['self.test', 'self.test -> self.test'],
  ])(
    'H19 the loop of %s fails at a server that answers with its first alias alone, as NSD does',
    async (query, way) => {
      const { fault: sort, message } = await fault(firstAliasOnly(loop), { query })
      expect({ sort, message }).toEqual({
        sort: 'dns',
        message: `S reports that ${query} is an alias of itself: ${way}`,
      })
    },
  )

  test('H19 an alias of another zone passes at a server that refuses that zone', async () => {
    const { results } = await ask(firstAliasOnly(loop), { query: 'cdn.test' })
    await findsOnly(results, 'answer ok', 'latency ok')
  })

  test('H72 an answer that is too long for UDP, of a server that refuses TCP, says so', async () => {
    await using there = await nameServer(() => ({ truncated: true }))
    there.refuseTcp()
    await finds(runKind(dns, { query: 'app.test', server: there.server }), [
      'answer failed (refused)',
      /has an answer for app\.test that is too long for UDP, and refuses TCP/,
    ])
  })

  test('a truncated answer is repeated over TCP', () =>
    finds(
      ask((_, __, over) =>
        over === 'udp' ? { truncated: true } : { records: [a('10.0.0.5'), a('10.0.0.6'), a('10.0.0.7')] },
      ),
      'answer: app.test A is 10.0.0.5, 10.0.0.6, 10.0.0.7',
    ))

  test('a lost datagram is sent again', async () => {
    const { requests: request } = await expectFindings(
      ask((_, n) => (n === 1 ? undefined : { records: [a('10.0.0.5')] })),
      'answer ok',
    )
    expect(request).toBe(2)
  })

  test('a server that is silent ends at the deadline and leaves nothing open', async () => {
    expect(await settled('')).toBe('')
    await using there = await nameServer(() => undefined)
    const run = runKind(dns, { query: 'app.test', server: there.server }, 'Basic', { timeoutMs: 300 })
    await findsOnly(endsByDeadline(300, run), `answer failed (timeout): ${there.server} did not answer within 0.3 s`)
    const own = 'TCPServerWrap 1, UDPWrap 1'
    expect(await settled(own)).toBe(own)
    // Without being cancelled, the look-up would ask again after a second.
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    expect(there.requests()).toBe(1)
  })

  test('a port without a server is refused', async () => {
    const server = `127.0.0.1:${await refusedPort()}`
    await finds(runKind(dns, { query: 'app.test', server }), [
      'answer failed (refused)',
      /refused the query after .*: host up, no name server on that port$/,
    ])
  })

  test('a query that has no route names the way, and whether this machine has a network at all', () => {
    const loopback = { lo: [{ internal: true }] } as unknown as ReturnType<typeof networkInterfaces>
    const network = { ...loopback, eth0: [{ internal: false }] } as unknown as typeof loopback
    expect(obstacleText('ENETUNREACH', '192.0.2.53', loopback)).toContain('this machine has no network')
    expect(obstacleText('EHOSTUNREACH', '192.0.2.53', network)).toBe(
      'no route to 192.0.2.53: network or firewall, not the name server',
    )
    expect(obstacleText('EPERM', '192.0.2.53', network)).toContain('does not let queries to 192.0.2.53 out (EPERM)')
    expect(obstacleText('ECONNREFUSED', '192.0.2.53', loopback)).toBeUndefined()
  })

  test.runIf(process.platform === 'linux')(
    'a query that the machine itself forbids is not a refusal by the server',
    async () => {
      // Linux sends no datagram to a broadcast address from a socket that has not asked for it.
      await finds(runKind(dns, { query: 'app.test', server: '127.255.255.255' }), [
        'answer failed (refused)',
        /^this machine does not let queries to 127\.255\.255\.255 out \(EACCES\)/,
        { details: ['EACCES'] },
      ])
    },
  )

  test('an incomplete answer is a failure', async () => {
    const cut = (question: Buffer) => packet(question, { records: [a('10.0.0.5')] }).subarray(0, -3)
    const { fault: result, message } = await fault(cut)
    expect(result).toBe('protocol')
    expect(message).toContain('sent an unreadable answer for')
  })

  test('an answer that is only a header is a failure', async () => {
    const { results } = await ask((question) => question.subarray(0, 12), {}, { timeoutMs: 500 })
    expect(results).toEqual([expect.objectContaining({ status: 'failed' })])
  })

  test('escape sequences in records never reach a terminal', async () => {
    const { results } = await ask(() => ({ records: [txt('\x1b[2Jowned\x07')] }), { type: 'TXT', expect: ['x'] })
    await finds(results, 'answer: app.test TXT is owned')
    expect(JSON.stringify(results)).not.toMatch(/\\u00[01]/)
  })

  test('an invalid server and an invalid name are mistakes of their settings', () => {
    const raw = { query: `${'a'.repeat(64)}.test`, server: 'udp://ns1.test', nameServers: ['ns1.test:0'] }
    const { problems } = readSettings(dns.settings, raw, { env: {}, folder: '/' })
    expect(problems.map(({ path }) => path.join('.'))).toEqual(['query', 'server', 'nameServers.0'])
  })

  test('H73 a name server may be named, with a port or without one', async () => {
    await using there = await nameServer(() => ({ records: [a('192.0.2.7')] }))
    const server = there.server.replace('127.0.0.1', 'localhost')
    await finds(runKind(dns, { query: 'app.test', server, nameServers: [server] }), 'answer: app.test A is 192.0.2.7')
    expect(dns.target?.({ server: 'ns1.test' } as never)).toEqual({ host: 'ns1.test' })
  })
})

describe('dns messages', () => {
  const header = (answers: number) => Buffer.from([0, 1, 0x84, 0, 0, 0, 0, answers, 0, 0, 0, 0])

  test('a name that points to itself, a cut record and an endless name are refused, and no name takes long', () => {
    const circle = Buffer.concat([header(1), Buffer.from([0xc0, 12, 0, 1])])
    const cut = Buffer.concat([header(1), Buffer.from([0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 1])])
    const endless = Buffer.concat([header(1), Buffer.alloc(60_000, Buffer.from([1, 97]))])
    for (const message of [circle, cut, endless]) expect(() => readMessage(message)).toThrow(RangeError)
  })

  test('a name may end with a pointer to an earlier one', () => {
    const name = Buffer.from([1, 97, 4, 84, 69, 83, 84, 0])
    const alias = Buffer.from([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 4, 1, 98, 0xc0, 14])
    const message = readMessage(
      Buffer.concat([Buffer.from([0, 1, 0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0]), name, Buffer.from([0, 1, 0, 1]), alias]),
    )
    expect(message).toMatchObject({ code: 0, isAuthoritative: true, resolvesOthers: false })
    expect(aliasElsewhere(message)).toBe('b.test')
  })
})

describe('an answer that svc reads by itself', () => {
  const caa = { type: 'CAA', data: Buffer.from('\0\x05issueca.test', 'latin1') } as const
  const soa = {
    type: 'SOA',
    data: Buffer.concat([
      label('ns1.test'),
      label('admin.test'),
      Buffer.from([7, 60, 30, 90, 5].flatMap((n) => [0, 0, 0, n])),
    ]),
  } as const
  test.each([
    a('10.0.0.5'),
    aaaa(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    nameRecord('CNAME', 'real.test'),
    nameRecord('NS', 'ns1.test'),
    nameRecord('PTR', 'host.test'),
    mx(10, 'mail.test'),
    srv(10, 5, 443, 'web.test'),
    txt('v=spf1 ', '-all'),
    caa,
    soa,
  ])('a $type record over TCP is read as c-ares reads it over UDP', async (record) => {
    const transports: string[] = []
    const script: Script = (_, __, over) => {
      transports.push(over)
      return { records: [record] }
    }
    const records = async (settings: Settings) =>
      checked((await ask(script, { type: record.type, ...settings })).results, 'answer').details
    const overUdp = await records({})
    expect(transports).toContain('udp')
    transports.length = 0
    expect(await records({ transport: 'tcp' })).toEqual(overUdp)
    expect(overUdp).toHaveLength(1)
    // The targets of MX, SRV and NS are looked up as ever.
    expect(transports[0]).toBe('tcp')
  })

  test('a record that ends early is an unreadable answer', async () => {
    const { results } = await ask(() => ({ records: [{ type: 'AAAA', data: u16(0x2001, 0xdb8) }] }), {
      type: 'AAAA',
      transport: 'tcp',
    })
    await finds(results, ['answer failed (protocol)', 'unreadable answer'])
  })

  test('a server without TCP fails by TCP, and one without the name by the name', async () => {
    await using there = await nameServer(() => ({ records: [a('10.0.0.5')] }))
    there.refuseTcp()
    const settings = { query: 'app.test', server: there.server, transport: 'tcp' } as const
    await finds(runKind(dns, settings), 'answer failed (refused)')
    await finds(
      ask(() => ({ code: 3 }), { transport: 'tcp' }),
      ['answer failed (dns)', 'NXDOMAIN'],
    )
    await finds(
      ask(() => ({}), { transport: 'tcp' }),
      ['answer failed (dns)', 'has no A record'],
    )
  })

  test('the longest TTL of the records is compared with `ttl`', async () => {
    const look = (limit: number) => ask(() => ({ records: [a('10.0.0.5'), a('10.0.0.6')] }), { ttl: { limit } })
    await finds(look(60_000), 'ttl ok: app.test A may be cached for 1 min …', 'answer ok')
    await finds(look(59_000), 'ttl failed (threshold)')
    const { results } = await ask(() => ({ code: 3 }), { ttl: { limit: 60_000 } })
    await finds(results, 'answer failed (dns)')
    expect(results.find(({ check }) => check === 'ttl')?.status).not.toBe('ok')
    const alias = ask(firstAliasOnly({ 'app.test': 'cdn.example' }), { ttl: { limit: 60_000 } })
    await finds(alias, 'ttl not checked (missing)')
  })
})

describe('the response code of an answer', () => {
  /** A referral: name servers in the authority section of an answer without authority. */
  const referral: Script = (question) => {
    const reply = packet(question, { records: [nameRecord('NS', 'ns1.test')] })
    // The record moves from the answer to the authority section.
    reply.writeUInt16BE(0, 6)
    reply.writeUInt16BE(1, 8)
    return reply
  }
  type Expected = 'NOERROR' | 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED'
  test.each<readonly [string, Script, Expected, 'ok' | 'failed', RegExp]>([
    ['no such name', () => ({ code: 3 }), 'NXDOMAIN', 'ok', /answers NXDOMAIN for app\.test A$/],
    ['no record', () => ({}), 'NXDOMAIN', 'ok', /answers NOERROR \(0 records\) for app\.test A$/],
    [
      'a record',
      () => ({ records: [a('10.0.0.5')] }),
      'NXDOMAIN',
      'failed',
      /NOERROR \(1 record\) .* expected NXDOMAIN/,
    ],
    ['an alias', firstAliasOnly({ 'app.test': 'cdn.example' }), 'NXDOMAIN', 'failed', /NOERROR \(1 record\)/],
    ['a referral', referral, 'NXDOMAIN', 'failed', /refers to ns1\.test/],
    ['a server that fails', () => ({ code: 2 }), 'NXDOMAIN', 'failed', /answers SERVFAIL .* expected NXDOMAIN/],
    ['a server that refuses', () => ({ code: 5 }), 'NXDOMAIN', 'failed', /answers REFUSED .* expected NXDOMAIN/],
    ['a server that is to refuse', () => ({ code: 5 }), 'REFUSED', 'ok', /answers REFUSED/],
    ['a name without a record', () => ({}), 'NOERROR', 'ok', /answers NOERROR/],
    ['no such name', () => ({ code: 3 }), 'NOERROR', 'failed', /answers NXDOMAIN .* expected NOERROR/],
    // The additional record is the extension.
    [
      'a server without EDNS',
      (question) => ({ code: question.readUInt16BE(10) > 0 ? 1 : 3 }),
      'NXDOMAIN',
      'ok',
      /NXDOMAIN/,
    ],
    [
      'a long answer over TCP',
      (_, __, over) => (over === 'udp' ? { truncated: true } : { code: 3 }),
      'NXDOMAIN',
      'ok',
      /NXDOMAIN/,
    ],
  ])('H78 %s', async (_, script, rcode, status, message) => {
    const { results } = await ask(script, { rcode })
    expect(results.find(({ check }) => check === 'answer')).toMatchObject({
      status,
      message: expect.stringMatching(message),
    })
  })

  test('H78 a server that refuses or is silent is no answer', async () => {
    const server = `127.0.0.1:${await refusedPort()}`
    const refused = checked(await runKind(dns, { query: 'app.test', server, rcode: 'NXDOMAIN' }), 'answer')
    expect(refused).toMatchObject({ status: 'failed', fault: 'refused' })
    const { results } = await ask(() => undefined, { rcode: 'NXDOMAIN' }, { timeoutMs: 400 })
    expect(checked(results, 'answer')).toMatchObject({ status: 'failed', fault: 'timeout' })
  })

  test.each([{ expect: ['10.0.0.5'] }, { records: { limit: 1 } }, { signed: true }])(
    'H78 it is refused beside %j',
    (settings) => {
      expect(dns.validate?.({ query: 'app.test', rcode: 'NXDOMAIN', ...settings } as never)).toContain('rcode excludes')
    },
  )
})
