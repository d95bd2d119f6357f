import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { AnyKind } from '../../../src/core/checks/engine/index.ts'
import { monitors } from '../../../src/core/checks/kinds/index.ts'
import { ofRunner } from '../../support/engine/run-kind.ts'

/** Why no account may be refused what a check reads. */
const reasons = {
  'no account': 'it reads no account: it shows that the peer answers, or what the peer shows to everybody',
  own: 'svc itself is its subject',
  file: 'a file or program that svc.yaml names fails if this account may not read it',
  request: 'svc.yaml names the request, and a refusal is its answer, so that it fails',
  query: 'svc.yaml names the query, and one that the account may not run fails',
  everybody: 'the server shows it to every account that signs in',
  machine: 'the system shows it to every account',
  'sign-in': 'it is the sign-in, which the server accepts or refuses',
} as const
type Reason = keyof typeof reasons

/** The checks without a privilege, by kind. Every other check declares one, and follows the rule of H10. */
const open: Readonly<Record<string, Partial<Record<Reason, readonly string[]>>>> = {
  configuration: { own: ['configured'] },
  deployment: { file: ['deployment', 'version'] },
  domain: { 'no account': ['answer', 'expiry', 'status', 'name servers'] },
  dns: { 'no account': ['answer', 'latency', 'expected', 'records', 'ttl', 'targets', 'serial', 'signatures'] },
  exec: { file: ['result', 'figure', 'output'] },
  'file-age': { file: ['there', 'age', 'newest', 'size', 'backlog', 'zeros'] },
  ftp: { 'no account': ['banner', 'TLS', 'certificate', 'data connection'], 'sign-in': ['sign-in', 'PWD'] },
  grpc: { 'no account': ['connect', 'certificate'], request: ['health', 'latency'] },
  heartbeat: {
    own: [
      'newest',
      'reporting',
      'status',
      'runtime',
      'overlap',
      'version',
      'disk',
      'clock',
      'backlog',
      'silent',
      'flapping',
    ],
  },
  host: {
    machine: ['uptime', 'memory', 'swap', 'cpu', 'load', 'time sync', 'OOM kills', 'file descriptors', 'restarted'],
    'no account': ['clock'],
  },
  http: {
    'no account': ['connect', 'latency', 'body', 'certificate', 'clock', 'cache'],
    request: [
      'empty body',
      'header',
      'last modified',
      'content',
      'json',
      'xml',
      'measure',
      'links',
      'health',
      'version',
      'same version',
    ],
  },
  'http-steps': { request: ['connect', 'step', 'cleanup'] },
  ldap: { 'no account': ['connect', 'certificate', 'clock', 'synchronized'], 'sign-in': ['wrong password'] },
  listening: { machine: ['port <port>', 'ports'] },
  mongo: { 'no account': ['connect', 'hello', 'ping', 'role', 'primary', 'clock'] },
  mysql: {
    'no account': ['connect', 'query', 'certificate', 'clock'],
    everybody: [
      'connections',
      'running',
      'restarted',
      'grant tables',
      'galera',
      'flow control',
      'receive queue',
      'semi-sync',
      'errant transactions',
    ],
    query: ['queries'],
  },
  oidc: {
    'no account': ['discovery', 'issuer', 'endpoints', 'token endpoint', 'keys', 'certificate', 'key age'],
    'sign-in': ['token', 'user', 'signature', 'claims', 'clock', 'introspection', 'refresh', 'wrong secret'],
  },
  pgbouncer: { 'no account': ['connect', 'certificate'], 'sign-in': ['console'] },
  postgres: {
    'no account': ['connect', 'query', 'certificate', 'clock'],
    everybody: [
      'role',
      'restarted',
      'connections',
      'slots',
      'wraparound',
      'freeze age',
      'archiver',
      'pending restart',
      'checkpoint age',
      'connection limits',
      'password expiry',
      'collation versions',
      'exclusive backup',
      'prepared transactions',
      'checksum failures',
      'dead tuples',
      'last vacuum',
    ],
    file: ['backup age'],
    query: ['queries'],
  },
  process: { machine: ['waiting', 'memory', 'cpu', 'restarted'] },
  rabbitmq: { 'no account': ['management', 'certificate'] },
  redis: { 'no account': ['connect', 'certificate'] },
  self: { own: ['version', 'serve', 'event loop'] },
  service: { machine: ['state', 'restarts', 'restarted'] },
  sftp: { 'no account': ['banner', 'host key'], 'sign-in': ['sign-in'] },
  'sign-in': { own: ['store', 'administrator', 'look-up', 'password hash'] },
  smtp: { 'no account': ['banner', 'TLS', 'hello', 'certificate', 'authentication', 'size', 'postmaster'] },
  sqlite: {
    file: ['open', 'query', 'wal', 'schema', 'disk', 'round trip', 'quick check', 'backup'],
    query: ['queries'],
  },
  sqlserver: { 'no account': ['connect', 'query', 'certificate', 'clock'], query: ['queries'] },
  svc: { 'no account': ['connect'], request: ['health', 'latency', 'remote check'] },
  tcp: { 'no account': ['connect', 'answer', 'dialogue', 'certificate', 'xml', 'measure', 'open'] },
  tls: {
    'no account': [
      'handshake',
      'dialogue',
      'expiry',
      'trust',
      'host name',
      'staple',
      'protocol',
      'answer',
      'xml',
      'measure',
      'open',
    ],
  },
}

const kinds = async (): Promise<readonly (readonly [string, AnyKind])[]> =>
  await Promise.all(Object.entries(monitors).map(async ([name, { load }]) => [name, (await load()).default] as const))

test('H10 every check declares the privilege that it needs, or stands in the table of those that need none', async () => {
  const without = (await kinds()).flatMap(([kind, { checks }]) =>
    checks.flatMap(({ name, privilege }) =>
      privilege === undefined && !ofRunner.includes(name) ? [`${kind} ${name}`] : [],
    ),
  )
  const listed = Object.entries(open).flatMap(([kind, byReason]) =>
    Object.values(byReason).flatMap((names) => names.map((name) => `${kind} ${name}`)),
  )
  expect(without.toSorted()).toEqual(listed.toSorted())
})

test('H10 a check with a privilege is demanded by its own settings, save those that only leave out a part', async () => {
  const narrowing = new Set<string>()
  for (const [kind, { checks, settings }] of await kinds()) {
    for (const { name, privilege, when = [], demandedBy = [] } of checks) {
      if (privilege === undefined) continue
      // The failure of a shared read has no settings of its own.
      const uncovered = when.filter((setting) => !demandedBy.includes(setting))
      expect(uncovered, `${kind} ${name}`).toEqual([])
    }
    for (const [setting, { narrows }] of Object.entries(settings)) if (narrows) narrowing.add(`${kind} ${setting}`)
  }
  expect([...narrowing]).toEqual([
    'host skipDisks',
    'mysql replicationFilters',
    'mysql skipTables',
    'postgres skipSlots',
    'postgres skipTables',
    'process allowReplaced',
    'rabbitmq skipQueues',
    'sqlserver ignore',
  ])
})

test('H10 no kind decides by itself what a refused check means', () => {
  const sources = globSync('src/core/checks/{kinds,database,folders}/**/*.ts').map(
    (file) => [file, readFileSync(file, 'utf8')] as const,
  )
  expect(sources.length).toBeGreaterThan(100)
  const bypassing = sources.flatMap(([file, text]) => {
    // Every check of every kind runs in `runChecks`, which applies the rule.
    const runs = /\basync ?\*run\(|\bnotChecked: 'permission'|instanceof MissingPrivilegeError/.exec(text)
    return runs ? [`${file}: ${runs[0]}`] : []
  })
  expect(bypassing).toEqual([])
})
