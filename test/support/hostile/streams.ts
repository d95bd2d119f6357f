import type { KindName } from '../../../src/core/checks/kinds/index.ts'
import type { Behaviour } from '../faults/faults.ts'
import { postgresMessage } from '../simulated/simulated-postgres.ts'
import { element, grpcServer, http2Frame, mysqlPackets, octets, pours, sshPacket, sshString } from './servers.ts'

type Raw = Readonly<Record<string, unknown>>

/** A server that never stops sending. */
export type Endless = {
  readonly kind: KindName
  readonly what: string
  readonly settings: (port: number) => Raw
  readonly behaviour: Behaviour
}

const repeated = (unit: string | Buffer, bytes = 16_384): Buffer =>
  Buffer.concat(Array.from({ length: Math.ceil(bytes / unit.length) }, () => Buffer.from(unit)))
const hostAt = (port: number): Raw => ({ host: '127.0.0.1', port })
const password = { env: 'HOSTILE_PASSWORD' }
const account = { username: 'monitor', password }
const urlAt = (port: number): Raw => ({ url: `http://127.0.0.1:${port}` })

const chunkedHead = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const overHttp = (kind: KindName, settings: (port: number) => Raw): readonly Endless[] => [
  { kind, settings, what: 'a body of blanks', behaviour: pours(chunkedHead, chunk(' '.repeat(16_000)), 'when asked') },
  {
    kind,
    settings,
    what: 'a body of brackets',
    behaviour: pours(chunkedHead, chunk('['.repeat(16_000)), 'when asked'),
  },
  { kind, settings, what: 'chunks of one byte', behaviour: pours(chunkedHead, repeated(chunk('"')), 'when asked') },
  { kind, settings, what: 'headers', behaviour: pours('HTTP/1.1 200 OK\r\n', repeated('a: b\r\n'), 'when asked') },
  {
    kind,
    settings,
    what: 'interim answers',
    behaviour: pours('', repeated('HTTP/1.1 100 Continue\r\n\r\n'), 'when asked'),
  },
]

const entry = element(
  0x30,
  element(2, Buffer.from([1])),
  element(0x64, octets(''), element(0x30, element(0x30, octets('vendorName'), element(0x31, octets(' '.repeat(500)))))),
)
const mongoHead = Buffer.alloc(16)
mongoHead.writeInt32LE(8_000_000, 0)
mongoHead.writeInt32LE(2013, 12)
/** A packet of TDS that is not the last of its message. */
const tdsPacket = Buffer.concat([Buffer.from([4, 0, 16, 0, 0, 0, 0, 0]), Buffer.alloc(4_088, ' ')])

export const endlessPeers: readonly Endless[] = [
  {
    kind: 'ldap',
    what: 'entries',
    settings: (port) => ({ url: `ldap://127.0.0.1:${port}` }),
    behaviour: pours('', repeated(entry), 'when asked'),
  },
  {
    kind: 'mongo',
    what: 'a message of blanks',
    settings: (port) => ({ url: `mongodb://127.0.0.1:${port}/` }),
    behaviour: pours(mongoHead, repeated(' '), 'when asked'),
  },
  {
    kind: 'redis',
    what: 'replies',
    settings: (port) => ({ url: `redis://127.0.0.1:${port}` }),
    behaviour: pours('', repeated('-\r\n'), 'when asked'),
  },
  {
    kind: 'redis',
    what: 'lists of blanks',
    settings: (port) => ({ url: `redis://127.0.0.1:${port}` }),
    behaviour: pours('*10000\r\n', repeated(`$500\r\n${' '.repeat(500)}\r\n`), 'when asked'),
  },
  {
    kind: 'ftp',
    what: 'lines of a banner',
    settings: hostAt,
    behaviour: pours('220-\r\n', repeated('   \r\n'), 'at once'),
  },
  { kind: 'ftp', what: 'empty lines', settings: hostAt, behaviour: pours('', repeated('\r\n'), 'at once') },
  {
    kind: 'smtp',
    what: 'lines of a banner',
    settings: hostAt,
    behaviour: pours('', repeated('220-   \r\n'), 'at once'),
  },
  { kind: 'smtp', what: 'replies', settings: hostAt, behaviour: pours('220 x\r\n', repeated('250 x\r\n'), 'at once') },
  {
    kind: 'sftp',
    what: 'lines before a banner',
    settings: hostAt,
    behaviour: pours('', repeated('SSH \r\n'), 'at once'),
  },
  {
    kind: 'sftp',
    what: 'packets to be ignored',
    settings: (port) => ({ ...hostAt(port), ...account }),
    behaviour: pours(
      'SSH-2.0-x\r\n',
      repeated(sshPacket(Buffer.concat([Buffer.from([2]), sshString(' ')]))),
      'at once',
    ),
  },
  ...overHttp('http', (port) => ({ ...urlAt(port), json: { '$.a': 'b' } })),
  ...overHttp('svc', urlAt),
  ...overHttp('rabbitmq', (port) => ({ ...urlAt(port), ...account })),
  ...overHttp('oidc', (port) => ({ issuer: `http://127.0.0.1:${port}` })),
  ...overHttp('http-steps', (port) => ({
    ...urlAt(port),
    steps: [{ name: 'first', path: '/', json: { '$.a': 'b' } }],
  })),
  ...overHttp('deployment', (port) => ({ url: `http://127.0.0.1:${port}/version.json`, expected: '1' })),
  {
    kind: 'postgres',
    what: 'notices',
    settings: (port) => ({ url: `postgres://m@127.0.0.1:${port}/d`, password }),
    behaviour: pours(postgresMessage('R', Buffer.alloc(4)), repeated(postgresMessage('N', 'M  \0\0')), 'when asked'),
  },
  {
    kind: 'pgbouncer',
    what: 'settings of the session',
    settings: (port) => ({ url: `postgres://m@127.0.0.1:${port}/pgbouncer`, password }),
    behaviour: pours(postgresMessage('R', Buffer.alloc(4)), repeated(postgresMessage('S', 'a\0b\0')), 'when asked'),
  },
  {
    kind: 'mysql',
    what: 'empty packets',
    settings: (port) => ({ url: `mysql://m@127.0.0.1:${port}/d`, password }),
    behaviour: pours('', repeated(mysqlPackets(0, Buffer.alloc(0))), 'at once'),
  },
  {
    kind: 'sqlserver',
    what: 'packets of one message',
    settings: (port) => ({ url: `sqlserver://m@127.0.0.1:${port}/d`, password, tls: { mode: 'off' } }),
    behaviour: pours('', repeated(tdsPacket), 'when asked'),
  },
  {
    kind: 'grpc',
    what: 'pings',
    settings: hostAt,
    behaviour: (socket) => {
      grpcServer()(socket)
      pours('', repeated(http2Frame(6, 0, 0, Buffer.alloc(8))), 'when asked')(socket)
    },
  },
  {
    kind: 'tcp',
    what: 'blanks',
    settings: (port) => ({ ...hostAt(port), expect: '/(a+ +)+\\d$/', maxAnswer: '200KB' }),
    behaviour: pours('', repeated(' '), 'at once'),
  },
  {
    kind: 'tcp',
    what: 'elements',
    settings: (port) => ({ ...hostAt(port), send: 'x', xml: { '/a/b': 'c' }, maxAnswer: '1MB' }),
    behaviour: pours('<a>', repeated('<b>'), 'when asked'),
  },
  {
    kind: 'tls',
    what: 'records of a handshake',
    settings: hostAt,
    behaviour: pours('', repeated(Buffer.from([22, 3, 3, 0, 4, 2, 0xff, 0xff, 0xff])), 'when asked'),
  },
]
