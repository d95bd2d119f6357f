import type { Behaviour } from '../faults/faults.ts'
import { linkLocal4, linkLocal6, privateAddress } from '../faults/network.ts'
import { hello, reply } from '../simulated/mongo.ts'
import { packets } from '../simulated/tds.ts'

const user = 'svc-monitor-71'
const password = 'correct-horse-9'
const token = 'token-of-the-monitor-4711'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** `Bearer ` and the token, as HTTP/2 packs the value of a header (RFC 7541, 5.2). */
const packedBearer = Buffer.from('ba51d85b1449fa96a58f2ac99cab527a8c93d8b34e843f', 'hex')

/** A credential, and a test for any part of it, the user name included, in bytes that a listener received. */
export const credential = {
  user,
  env: { SVC_TEST_PASSWORD: password, SVC_TEST_TOKEN: token },
  isIn: (bytes: Buffer): boolean =>
    [user, password, token, base64(`${user}:${password}`), base64(`\0${user}\0${password}`)].some(
      (text) => bytes.includes(text) || bytes.includes(Buffer.from(text, 'utf16le')),
    ) || bytes.includes(packedBearer),
} as const

/** Where a monitor is led. */
export type Place = {
  readonly name: string
  /** As svc.yaml names it, without brackets. */
  readonly host: string
  /** Addresses at which something listens. */
  readonly listens: readonly string[]
  readonly loopback: boolean
}
const other = (host: string, ...listens: readonly string[]): Place => ({ name: host, host, listens, loopback: false })
const own = (host: string, ...listens: readonly string[]): Place => ({ name: host, host, listens, loopback: true })

export const places: readonly Place[] = [
  other(linkLocal4, linkLocal4),
  other('link4.test', linkLocal4),
  other('link6.test', linkLocal6),
  other(`::ffff:${linkLocal4}`, linkLocal4),
  other(privateAddress, privateAddress),
  other('private.test', privateAddress),
  other('elsewhere.localhost', privateAddress),
  // Where Linux leads who dials "every address".
  other('0.0.0.0', '127.0.0.1'),
  other('::', '::1'),
  own('127.0.0.2', '127.0.0.2'),
  own('::1', '::1'),
  own('0:0:0:0:0:0:0:1', '::1'),
  own('::ffff:7f00:2', '127.0.0.2'),
  own('localhost', '127.0.0.1'),
  own('here.localhost', '127.0.0.2'),
  own('loopback.test', '127.0.0.2'),
]
/** A name that is loopback and another machine: each of its addresses is checked separately. */
export const mixedPlace: Place = other('mixed.test', privateAddress, '127.0.0.2')

export type ClearTextRow = {
  readonly name: string
  /**
   * Settings of svc.yaml; `host` has brackets where it is an IPv6 address, unless `bare`. `web` is a web server on
   * loopback, for what comes before.
   */
  readonly monitor: (host: string, port: number, web: string) => Readonly<Record<string, unknown>>
  readonly bare?: true
  /** Asks the client for a credential, as a hostile peer does. */
  readonly entice: (...of: [...Parameters<Behaviour>, port: number]) => void
  /** Why no credential goes in clear to loopback either. */
  readonly never?: string
  /** The message of the failure. */
  readonly says: RegExp
}

/** The outcome of one row at one place. */
export type ClearTextCase = {
  readonly row: string
  readonly place: string
  /** Addresses that received a part of the credential. */
  readonly receivers: readonly string[]
  readonly failures: readonly string[]
}

const secret = { env: 'SVC_TEST_PASSWORD' } as const
const account = { username: user, password: secret } as const

/** Answers every request of a connection alike, and hangs up. */
const answers =
  (status: string, body: string): ClearTextRow['entice'] =>
  (socket) => {
    socket.once('data', () =>
      socket.end(`HTTP/1.1 ${status}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`),
    )
  }
/** Shows an empty root entry, and refuses the sign-in (invalidCredentials). */
const ldap: ClearTextRow['entice'] = (socket) => {
  socket.on('data', (chunk: Buffer) => {
    const id = chunk
      .subarray(chunk.indexOf('0201', 0, 'hex'))
      .subarray(0, 3)
      .toString('hex')
    const result = chunk.includes('supportedControl') ? '65070a010004000400' : '61070a013104000400'
    socket.write(Buffer.from(`300c${id}${result}`, 'hex'))
  })
}

/** Says `greeting`, and then to each line what `reply` has for it. */
const lines =
  (greeting: string, reply: (line: string) => string): ClearTextRow['entice'] =>
  (socket) => {
    socket.write(greeting)
    socket.on('data', (chunk) => {
      for (const line of chunk.toString('latin1').split('\r\n').filter(Boolean)) socket.write(reply(line))
    })
  }
const onceAsked =
  (answer: Buffer | string): ClearTextRow['entice'] =>
  (socket) => {
    socket.once('data', () => socket.end(answer))
  }

const ftp = lines('220 welcome\r\n', (line) =>
  line.startsWith('USER') ? '331 password\r\n' : line.startsWith('PASS') ? '530 no\r\n' : '500 no\r\n',
)

/** To an SSLRequest "no"; to a startup message AuthenticationCleartextPassword, and then nothing more. */
const postgres: ClearTextRow['entice'] = (socket) => {
  let messages = 0
  socket.on('data', (chunk) => {
    messages += 1
    if (chunk.length === 8) socket.write('N')
    else if (messages === 1) socket.write(Buffer.from('520000000800000003', 'hex'))
    else socket.end()
  })
}

const plainHttp = /credentials are not sent to \S+ over plain http: use https, or insecureHttp/
const noTls = /TLS|SSL|certificate|secure/i

/** CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION and CLIENT_PLUGIN_AUTH, without CLIENT_SSL. */
const mysqlGreeting = ((): Buffer => {
  const body = Buffer.concat([
    Buffer.from([10]),
    Buffer.from('8.0.36\0'),
    Buffer.from([7, 0, 0, 0]),
    Buffer.from('12345678\0'),
    Buffer.from([0x0c, 0x82, 45, 2, 0, 0x08, 0, 21]),
    Buffer.alloc(10),
    Buffer.from('123456789012\0mysql_native_password\0'),
  ])
  return Buffer.concat([Buffer.from([body.length & 0xff, body.length >> 8, 0, 0]), body])
})()

const database = (kind: string, scheme: string, entice: ClearTextRow['entice']): ClearTextRow => ({
  name: kind,
  monitor: (host, port) => ({ kind, url: `${scheme}://${user}@${host}:${port}/app`, password: secret }),
  entice,
  says: noTls,
})

/** Every kind, and every profile, that may send a credential. Its name begins a row's. */
export const clearTextRows: readonly ClearTextRow[] = [
  {
    name: 'http',
    monitor: (host, port) => ({ kind: 'http', url: `http://${host}:${port}/`, ...account }),
    entice: answers('200 OK', '{}'),
    says: plainHttp,
  },
  {
    name: 'http token',
    monitor: (host, port) => ({ kind: 'http', url: `http://${host}:${port}/`, token: { env: 'SVC_TEST_TOKEN' } }),
    entice: answers('200 OK', '{}'),
    says: plainHttp,
  },
  {
    name: 'http-steps',
    monitor: (host, port) => ({
      kind: 'http-steps',
      url: `http://${host}:${port}/`,
      ...account,
      signed: true,
      steps: [{ name: 'read', path: '/' }],
    }),
    entice: answers('200 OK', '{}'),
    says: plainHttp,
  },
  {
    name: 'http-steps ftp',
    monitor: (host, port, web) => ({
      kind: 'http-steps',
      url: web,
      ...account,
      steps: [{ name: 'list', ftp: { host, port, tls: 'off', username: `\${username}`, password: `\${password}` } }],
    }),
    bare: true,
    entice: ftp,
    says: /the password is not sent to \S+ over plain ftp/,
  },
  {
    name: 'svc',
    monitor: (host, port) => ({ kind: 'svc', url: `http://${host}:${port}/`, token: { env: 'SVC_TEST_TOKEN' } }),
    entice: answers('200 OK', '{}'),
    says: plainHttp,
  },
  {
    name: 'grpc',
    monitor: (host, port) => ({ kind: 'grpc', host, port, token: { env: 'SVC_TEST_TOKEN' } }),
    bare: true,
    // The settings of HTTP/2; what is longer than those of the client is its request.
    entice: (socket) => {
      let length = 0
      socket.write(Buffer.from('000000040000000000', 'hex'))
      socket.on('data', (chunk) => {
        length += chunk.length
        if (length > 120) socket.end()
      })
    },
    says: /the token is not sent to \S+ without TLS: use tls: true, or insecureGrpc/,
  },
  {
    name: 'rabbitmq',
    monitor: (host, port) => ({ kind: 'rabbitmq', url: `http://${host}:${port}`, ...account }),
    entice: answers('401 Unauthorized', ''),
    says: plainHttp,
  },
  {
    name: 'oidc',
    monitor: (host, port) => ({
      kind: 'oidc',
      issuer: new URL(`http://${host}:${port}`).origin,
      clientId: user,
      clientSecret: secret,
    }),
    entice: (socket) => {
      socket.once('data', (chunk) => {
        const [, issuer] = /^host: (\S+)/im.exec(chunk.toString('latin1')) ?? []
        const document = {
          issuer: `http://${issuer}`,
          jwks_uri: `http://${issuer}/keys`,
          authorization_endpoint: `http://${issuer}/authorize`,
          token_endpoint: `http://${issuer}/token`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
        }
        const body = JSON.stringify(document)
        socket.end(
          `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
        )
      })
    },
    says: plainHttp,
  },
  {
    name: 'redis',
    monitor: (host, port) => ({ kind: 'redis', url: `redis://${user}@${host}:${port}/`, password: secret }),
    entice: onceAsked('-WRONGPASS no\r\n'),
    says: /the password is not sent to \S+ without TLS: use rediss/,
  },
  {
    name: 'ftp',
    monitor: (host, port) => ({ kind: 'ftp', host, port, tls: 'off', ...account }),
    bare: true,
    entice: ftp,
    says: /the password is not sent to \S+ over plain ftp/,
  },
  {
    name: 'ldap',
    monitor: (host, port) => ({
      kind: 'ldap',
      url: `ldap://${host}:${port}`,
      username: `uid=${user},dc=test`,
      password: secret,
    }),
    entice: ldap,
    says: /the password is not sent to \S+ over plain ldap/,
  },
  {
    name: 'tcp',
    monitor: (host, port) => ({
      kind: 'tcp',
      host,
      port,
      values: { password: secret },
      dialogue: [{ expect: 'welcome' }, { send: `LOGIN \${password}\r\n`, expect: 'OK' }],
    }),
    bare: true,
    entice: lines('welcome\r\n', () => 'NO\r\n'),
    says: /secrets are not sent to \S+ without TLS: use tls: true/,
  },
  {
    name: 'tls',
    monitor: (host, port) => ({
      kind: 'tls',
      host,
      port,
      starttls: 'imap',
      values: { password: secret },
      dialogue: [{ send: `b LOGIN \${password}\r\n`, expect: 'OK' }],
    }),
    bare: true,
    entice: lines('* OK welcome\r\n', () => 'a1 NO\r\n'),
    never: 'a dialogue begins within TLS',
    says: /./,
  },
  {
    name: 'smtp',
    monitor: (host, port) => ({ kind: 'smtp', host, port, ...account }),
    bare: true,
    entice: lines('220 welcome\r\n', (line) =>
      line.startsWith('EHLO') ? '250-here\r\n250 AUTH PLAIN LOGIN\r\n' : '535 no\r\n',
    ),
    never: 'a password is sent under TLS alone',
    says: /the password is not sent to \S+: it offers no TLS/,
  },
  {
    name: 'sftp',
    monitor: (host, port) => ({ kind: 'sftp', host, port, ...account }),
    bare: true,
    entice: (socket) => {
      socket.end('SSH-2.0-enticing\r\n')
    },
    never: 'SSH is encrypted',
    says: /./,
  },
  {
    ...database('mongo', 'mongodb', (socket) => {
      socket.on('data', (chunk) => {
        // What begins like a TLS record is none of its messages.
        if (chunk[0] === 0x16) socket.end()
        else socket.write(reply(chunk, { ...hello, saslSupportedMechs: ['SCRAM-SHA-256'], ok: 1 }))
      })
    }),
    says: /closed the connection|does not answer as MongoDB/,
  },
  database('mysql', 'mysql', (socket) => {
    socket.write(mysqlGreeting)
    socket.once('data', () => socket.end())
  }),
  database('postgres', 'postgres', postgres),
  database('pgbouncer', 'postgres', postgres),
  database('sqlserver', 'sqlserver', (socket) => {
    // To PRELOGIN: no encryption is to be had.
    const answer = Buffer.from([0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xff, 16, 0, 0x03, 0xe8, 0, 0, 2])
    socket.once('data', () => {
      socket.write(packets(4, answer))
      socket.once('data', () => socket.end())
    })
  }),
  {
    name: 'profile vantage',
    monitor: (host, port) => ({ profile: 'vantage', host, port, user, password: secret }),
    entice: answers('200 OK', '{}'),
    says: plainHttp,
  },
  {
    name: 'profile file-qc',
    monitor: (host, port) => ({
      profile: 'file-qc',
      host: host.replace(/^\[(.*)\]$/, '$1'),
      port,
      url: `http://${host}:${port}/`,
      user,
      password: secret,
    }),
    entice: answers('200 OK', '{}'),
    says: plainHttp,
  },
]

/** Where the program itself is led, as a URL names it, and the address that listens. */
export const programPlaces = [
  { host: 'elsewhere.localhost', listens: privateAddress, loopback: false },
  { host: '127.private.test', listens: privateAddress, loopback: false },
  { host: linkLocal4, listens: linkLocal4, loopback: false },
  { host: 'here.localhost', listens: '127.0.0.2', loopback: true },
  { host: '[::ffff:127.0.0.2]', listens: '127.0.0.2', loopback: true },
] as const

export type ProgramRow = {
  readonly name: string
  readonly args: (host: string, port: number) => readonly string[]
  readonly stdin?: string
  readonly env?: Readonly<Record<string, string>>
  readonly entice: ClearTextRow['entice']
  /** The message where nothing is sent. */
  readonly says: RegExp
}
export type ProgramAnswer = {
  readonly clients: readonly {
    readonly row: string
    readonly place: string
    readonly received: boolean
    readonly stderr: string
  }[]
  /** How a server treats callers, by their addresses. */
  readonly callers: Readonly<
    Record<string, { readonly view: 'full' | 'brief'; readonly signIn: number; readonly connections: number }>
  >
  readonly serves: Readonly<Record<'elsewhere' | 'here', { readonly code: number | null; readonly stderr: string }>>
}

/** The addresses from which requests come, as the server sees them. */
export const callerAddresses = ['127.0.0.1', linkLocal4, linkLocal6] as const

const refuses = /plain http to \S+ is refused|resolves to another machine/
const withToken = { SVC_TOKEN: token }

/** Every way in which the program itself sends a credential. */
export const programRows: readonly ProgramRow[] = [
  {
    name: 'login',
    args: (host, port) => [
      ...['login', '--server', `http://${host}:${port}`, '-u', user],
      ...['--password-stdin', '--insecure-storage'],
    ],
    stdin: password,
    entice: answers('401 Unauthorized', '{}'),
    says: refuses,
  },
  {
    name: 'whoami',
    args: (host, port) => ['whoami', '--verify', '--server', `http://${host}:${port}`],
    env: withToken,
    entice: answers('401 Unauthorized', '{}'),
    says: refuses,
  },
  {
    name: 'health',
    args: (host, port) => ['health', '-t', 'App', '--server', `http://${host}:${port}`],
    env: withToken,
    // The first request carries no token.
    entice: answers('401 Unauthorized', '{}'),
    says: refuses,
  },
  {
    name: 'store',
    args: (host, port) => ['users', 'list', '--store', `postgres://${user}:${password}@${host}:${port}/app`],
    entice: postgres,
    says: /SSL|resolves to another machine/,
  },
]
