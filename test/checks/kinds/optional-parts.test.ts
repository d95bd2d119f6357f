import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readSettings, type SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { AnyKind, Kind, OptionalPart } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { runKind } from '../../support/engine/run-kind.ts'
import { http as answer, type Behaviour, peer, replies } from '../../support/faults/faults.ts'
import { element, ldapBind, ldapResult, octets } from '../../support/hostile/servers.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { scriptedFtp } from '../../support/servers/ftp-server.ts'
import { suiteWith } from '../../support/suite/peer.ts'

const host = '127.0.0.1'
const account = { username: 'monitor', password: { env: 'WORD' } }
const ofKind = async (name: KindName) => (await monitors[name].load()).default as AnyKind as Kind<SettingsSpec>

/** Runs a monitor in Advanced, as svc.yaml declares it. */
async function run(name: KindName, raw: object): Promise<void> {
  const kind = await ofKind(name)
  const entry = JSON.parse(JSON.stringify(raw)) as object
  const { values, problems } = readSettings(kind.settings, entry, { env: { WORD: 'correct horse' }, folder: '/' })
  expect(problems).toEqual([])
  await runKind(kind, values, 'Advanced', { timeoutMs: 3_000 })
}

/** The first words of the lines that a client has sent. */
const commandsIn = (input: string): readonly string[] =>
  [...new Set(input.match(/^[A-Z]{3,}(?= |\r|$)/gm) ?? [])].sort()

/** Everything that svc asks for of an FTP server with one listing. */
const ftpAt = async (features: string) => {
  await using server = await scriptedFtp({
    listing: 'drwxr-xr-x 2 o g 4096 Nov 21 04:27 old\r\n-rw-r--r-- 1 o g 5 Nov 21 04:27 a.txt\r\n',
    answers: { FEAT: features, MDTM: '213 20261121042700' },
  })
  const folders = { folder: '/in', age: '99d', allowWrites: true }
  await run('ftp', { host, port: server.port, tls: 'off', ...account, ...folders })
  return server.input()
}

const smtpServer =
  (...extensions: readonly string[]): Behaviour =>
  (socket) => {
    socket.write('220 mail.svc.test ready\r\n')
    socket.on('data', (line) => {
      const lines = ['mail.svc.test', ...extensions]
      const hello = lines.map((one, at) => `250${at === lines.length - 1 ? ' ' : '-'}${one}\r\n`).join('')
      socket.write(String(line).startsWith('EHLO') ? hello : '454 Not now\r\n')
    })
  }

/** A directory that shows these values of `supportedControl` to everybody. */
const directory =
  (...controls: readonly string[]): Behaviour =>
  (socket) =>
    void socket.on('data', (request) => {
      const length = request.readUInt8(1)
      const at = length < 128 ? 2 : 2 + (length & 127)
      const values = element(0x31, ...controls.map(octets))
      const entry = element(0x64, octets(''), element(0x30, element(0x30, octets('supportedControl'), values)))
      const isBind = request.readUInt8(at + 3) === ldapBind
      const answers = isBind ? [ldapResult(0x61, 0, '')] : [entry, ldapResult(0x65, 0, '')]
      const id = element(2, Buffer.from([request.readUInt8(at + 2)]))
      socket.write(Buffer.concat(answers.map((one) => element(0x30, id, one))))
    })

const policy = '1.3.6.1.4.1.42.2.27.8.5.1'

suiteWith(opensslMissing(), 'optional parts', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made.remove())

  const ldapAt = async (...controls: readonly string[]) => {
    await using server = await peer(directory(...controls))
    await run('ldap', { url: `ldap://${host}:${server.port}`, ...account })
    return server.input()
  }
  const smtpAt = async (implicit: boolean, ...extensions: readonly string[]) => {
    await using server = await peer(smtpServer(...extensions), implicit ? { tls: made.good } : {})
    const trust = implicit ? { servername: 'svc.test', caFile: made.caFile, ...account } : {}
    const tls = implicit ? 'implicit' : 'auto'
    await run('smtp', { host, port: server.port, tls, ...trust, recipient: 'a@svc.test', size: '1MB' })
    return server.input()
  }

  type Row = { readonly sent: RegExp; readonly offered: () => Promise<string>; readonly not: () => Promise<string> }
  /** Peers that offer a part and that do not, and how the part looks in what they receive. */
  const rows: Readonly<Record<string, Row>> = {
    'ftp OPTS UTF8 ON': {
      sent: /^OPTS UTF8 ON\r$/gm,
      offered: () => ftpAt('211-Features:\r\n UTF8\r\n211 End'),
      not: () => ftpAt('211-Features:\r\n SIZE\r\n211 End'),
    },
    'ftp MLSD': {
      sent: /^MLSD/gm,
      offered: () => ftpAt('211-Features:\r\n MLST type*;modify*;\r\n211 End'),
      not: () => ftpAt('502 No'),
    },
    [`ldap control of the password policy (${policy})`]: {
      sent: new RegExp(policy.replaceAll('.', '\\.'), 'g'),
      offered: () => ldapAt(policy),
      not: () => ldapAt('1.2.840.113556.1.4.319'),
    },
    'smtp STARTTLS': {
      sent: /^STARTTLS\r$/gm,
      offered: () => smtpAt(false, 'STARTTLS'),
      not: () => smtpAt(false, 'PIPELINING'),
    },
    'smtp AUTH': {
      sent: /^AUTH /gm,
      offered: () => smtpAt(true, 'AUTH PLAIN'),
      not: () => smtpAt(true, 'AUTH GSSAPI', 'SIZE 1000'),
    },
  }

  test('H56 every part that svc sends after an offer has a peer that counts it', async () => {
    const kinds = await Promise.all((Object.keys(monitors) as KindName[]).map(ofKind))
    const declared = kinds.flatMap(({ name, optionalParts = [] }) =>
      optionalParts.flatMap((one) => ('after' in one ? [`${name} ${one.part}`] : [])),
    )
    expect(declared.toSorted()).toEqual(Object.keys(rows).toSorted())
  })

  test.each(Object.entries(rows))('H56 %s reaches only a peer that offers it', async (_, { sent, offered, not }) => {
    expect((await offered()).match(sent)?.length ?? 0).toBeGreaterThan(0)
    expect((await not()).match(sent) ?? []).toEqual([])
  })

  /** The names of the parts that a kind sends without an offer. */
  const unaskedBy = async (name: KindName): Promise<readonly string[]> =>
    ((await ofKind(name)).optionalParts ?? ([] as readonly OptionalPart[])).flatMap((one) =>
      'unasked' in one ? one.part.toLowerCase().split(', ') : [],
    )

  test('H56 an FTP server that offers nothing receives commands of RFC 959, and those of the table', async () => {
    const basic = ['USER', 'PASS', 'CWD', 'TYPE', 'PASV', 'LIST', 'STOR', 'RETR', 'RNFR', 'RNTO', 'DELE', 'PWD', 'QUIT']
    const unasked = await unaskedBy('ftp')
    const stray = commandsIn(await ftpAt('502 No')).filter((one) => !basic.includes(one))
    expect(stray).toEqual(['EPSV', 'FEAT', 'MDTM'])
    expect(unasked).toEqual(expect.arrayContaining(stray.map((one) => one.toLowerCase())))
  })

  test('H56 a mail server that offers nothing receives commands of RFC 5321, without parameters', async () => {
    const basic = ['EHLO', 'MAIL', 'RCPT', 'RSET', 'QUIT']
    const input = await smtpAt(false)
    expect(commandsIn(input).filter((one) => !basic.includes(one))).toEqual([])
    expect(input).not.toMatch(/^(?:MAIL|RCPT) .*>./m)
  })

  test('H56 a Redis that knows no commands of later versions receives none', async () => {
    await using server = await peer((socket) => {
      const info = 'redis_version:2.8.0\r\nrole:master\r\nloading:0\r\n'
      socket.on('data', (data) => {
        const [, command = ''] = String(data).match(/\$\d+\r\n([A-Za-z]+)\r\n/) ?? []
        const answers: Readonly<Record<string, string>> = { PING: '+PONG\r\n', INFO: `$${info.length}\r\n${info}\r\n` }
        socket.write(answers[command.toUpperCase()] ?? "-ERR unknown command '?'\r\n")
      })
    })
    await run('redis', { url: `redis://${host}:${server.port}/0` })
    const sent = new Set([...server.input().matchAll(/\*\d+\r\n\$\d+\r\n([A-Za-z]+)\r\n/g)].map(([, name]) => name))
    // Redis 2.8 has them all. HELLO would begin RESP3.
    expect([...sent].filter((one) => !['PING', 'INFO', 'CONFIG', 'SELECT'].includes(one ?? ''))).toEqual([])
  })

  const own = ['host', 'connection', 'authorization', 'content-length', 'content-type']
  test.each([
    ['http', (port: number) => ({ url: `http://${host}:${port}/` })],
    ['http-steps', (port: number) => ({ url: `http://${host}:${port}/`, steps: [{ name: 'one', path: '/' }] })],
    ['oidc', (port: number) => ({ issuer: `http://${host}:${port}`, insecureHttp: true })],
    ['rabbitmq', (port: number) => ({ url: `http://${host}:${port}`, ...account })],
    ['svc', (port: number) => ({ url: `http://${host}:${port}`, type: 'App' })],
  ] as const)('H56 %s sends the headers of the table, and those that HTTP demands', async (name, monitor) => {
    await using server = await peer(replies(answer(200, '{}')))
    await run(name, monitor(server.port))
    const heads = server.input().split('\r\n\r\n')
    const sent = new Set(
      heads.flatMap((head) => [...head.matchAll(/^([\w-]+):/gm)].map(([, one = '']) => one.toLowerCase())),
    )
    expect([...sent].filter((one) => !own.includes(one)).toSorted()).toEqual((await unaskedBy(name)).toSorted())
  })

  test('H56 grpc calls the health service and no reflection, with the headers of the table', async () => {
    const calls: IncomingHttpHeaders[] = []
    const server = createServer().on('stream', (stream, headers) => {
      calls.push(headers)
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12' }, { endStream: true })
    })
    server.listen(0, host)
    await once(server, 'listening')
    try {
      await run('grpc', { host, port: (server.address() as AddressInfo).port, tls: false })
    } finally {
      server.close()
      await once(server, 'close')
    }
    expect([...new Set(calls.map((headers) => headers[':path']))]).toEqual(['/grpc.health.v1.Health/Check'])
    // HTTP/2 has its own names for some headers; gRPC demands `te` and a content type.
    const sent = Object.keys(calls[0] ?? {}).filter(
      (one) => !one.startsWith(':') && !['te', 'content-type'].includes(one),
    )
    expect(sent.toSorted()).toEqual((await unaskedBy('grpc')).toSorted())
  })
})
