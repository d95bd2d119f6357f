import { chmodSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { tryProposals } from '../../../src/cli/setup/discovery.ts'
import { candidatesOf } from '../../../src/core/checks/discover/identify.ts'
import { discover, type Proposal } from '../../../src/core/checks/discover/index.ts'
import { monitors } from '../../../src/core/checks/kinds/index.ts'
import { bindMissing, startBind } from '../../support/servers/bind.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { etcdMissing, startEtcd } from '../../support/servers/etcd.ts'
import { mariadbMissing, startMariadb } from '../../support/servers/mariadb.ts'
import { mosquittoMissing, startMosquitto } from '../../support/servers/mosquitto.ts'
import { pgbouncerMissing, startPgbouncer } from '../../support/servers/pgbouncer.ts'
import {
  debianPostgres,
  debianPostgresMissing,
  postgresMissing,
  startPostgres,
  tlsSettings,
} from '../../support/servers/postgres.ts'
import { redisMissing, startRedis } from '../../support/servers/redis.ts'
import { haproxyMissing, startHaproxy } from '../../support/servers/reverse-proxy.ts'
import { type Running, remove, serverFolder } from '../../support/servers/server.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const signal = (): AbortSignal => AbortSignal.timeout(50_000)
const here = (port: number) => ({ ports: [{ host: '127.0.0.1', port }] })

/** The only monitor proposed for a port that is the standard port of `kind`. Has not run. */
async function proposalAt(port: number, kind?: 'pgbouncer'): Promise<Proposal> {
  const candidates = await candidatesOf(
    kind === undefined ? monitors : { ...monitors, [kind]: { ...monitors[kind], ports: { Sql: { [port]: kind } } } },
  )
  const { proposals } = await discover(signal(), { ...here(port), candidates })
  expect(proposals).toHaveLength(1)
  return proposals[0] as Proposal
}
/** Why proposed monitors do not work at the moment. */
const problemsOf = async (...proposals: readonly Proposal[]): Promise<readonly (string | undefined)[]> =>
  (await tryProposals(proposals, signal())).map(({ problem }) => problem)

type Server = Pick<Running, 'freeze' | 'thaw' | 'log'> & {
  readonly port: number
  readonly remove: () => Promise<void>
}
type Row = {
  readonly server: string
  readonly missing: string | undefined
  readonly start: (certificates: Certificates, folder: string) => Promise<Server>
  readonly kind?: 'pgbouncer'
  readonly entry: object
  /** The lines that a run may add to its log. */
  readonly logs?: RegExp
}

const tcp = (expected: string, more: object = {}) => ({ kind: 'tcp', expect: expected, ...more })
const gss = { sendHex: '00000008 04d21630' }
const rows: readonly Row[] = [
  { server: 'PostgreSQL', missing: postgresMissing, start: () => startPostgres(), entry: tcp('/^[GN]/', gss) },
  {
    server: 'PostgreSQL 15 of Debian with TLS',
    missing: debianPostgresMissing,
    start: ({ good }, folder) => startPostgres(tlsSettings(good, folder), '', debianPostgres),
    entry: tcp('/^[GN]/', gss),
  },
  {
    server: 'PgBouncer',
    missing: pgbouncerMissing,
    start: () => startPgbouncer({ users: { stats: 'a word' }, databases: {} }),
    kind: 'pgbouncer',
    entry: tcp('/^[GN]/', gss),
  },
  {
    server: 'MariaDB',
    missing: mariadbMissing,
    start: () => startMariadb(),
    entry: tcp('mysql_native_password'),
    logs: /Aborted connection/,
  },
  {
    server: 'Redis with a password',
    missing: redisMissing,
    start: () => startRedis({ settings: ['--requirepass', 'a word'], password: 'a word' }),
    entry: tcp('-NOAUTH', { send: 'PING\r\n' }),
  },
  {
    server: 'Redis with a password, over TLS',
    missing: redisMissing,
    start: ({ good, caFile }) =>
      startRedis({ settings: ['--requirepass', 'a word'], password: 'a word', tls: { ...good, caFile } }),
    entry: { kind: 'tls', send: 'PING\r\n', expect: '-NOAUTH', fingerprint: expect.stringMatching(/^[0-9A-F:]{95}$/) },
  },
  {
    server: 'Mosquitto',
    missing: mosquittoMissing,
    start: () => startMosquitto(),
    entry: tcp('/^\\x20\\x02\\x00\\x00/'),
    logs: /New c|Client /,
  },
  {
    server: 'Mosquitto with accounts',
    missing: mosquittoMissing,
    start: () => startMosquitto({ guarded: true }),
    entry: tcp('/^\\x20\\x02\\x00\\x05/'),
    logs: /New c|Client /,
  },
  {
    server: 'etcd',
    missing: etcdMissing,
    start: () => startEtcd(),
    entry: { kind: 'http', url: expect.stringMatching(/\/health$/), json: { '$.health': 'true' } },
  },
]

const missing = opensslMissing() ?? rows.find((row) => row.missing !== undefined)?.missing
peerSuite(missing, 'H60 what discovery proposes for servers that reveal nothing before a sign-in', () => {
  let certificates: Certificates
  let folder: string
  const servers = new Map<string, { readonly there: Server; readonly proposal: Proposal }>()
  const of = (server: string) => servers.get(server) ?? expect.fail(`${server} did not start`)
  beforeAll(async () => {
    certificates = makeCertificates()
    // Redis reads it under the account nobody.
    chmodSync(certificates.caFile, 0o644)
    chmodSync(dirname(certificates.caFile), 0o755)
    folder = serverFolder('answers')
    for (const { server, start, kind } of rows) {
      const there = await start(certificates, folder)
      servers.set(server, { there, proposal: await proposalAt(there.port, kind) })
    }
  }, 120_000)
  afterAll(async () => {
    await Promise.all([...servers.values()].map(({ there }) => there.remove()))
    certificates.remove()
    remove(folder)
  })

  test.each(rows)('$server: what recognized it, which adds no error to its log', async ({ server, entry, logs }) => {
    const { there, proposal } = of(server)
    expect(proposal.entry).toMatchObject(entry)
    const before = there.log().length
    expect(await problemsOf(proposal)).toEqual([undefined])
    const added = there.log().slice(before).split('\n')
    expect(added.filter((line) => line.trim() !== '' && logs?.test(line) !== true)).toEqual([])
  })

  test('each of them fails while its server is frozen', async () => {
    const all = [...servers.values()]
    for (const { there } of all) there.freeze()
    try {
      const problems = await problemsOf(...all.map(({ proposal }) => proposal))
      const silent = /sent nothing for|did not (?:answer|complete|send)|timed out/
      expect(problems.map((problem, at) => `${rows[at]?.server}: ${problem}`)).toEqual(
        rows.map(({ server }) => expect.stringMatching(new RegExp(`^${server}: .*(?:${silent.source})`))),
      )
    } finally {
      for (const { there } of all) there.thaw()
    }
  })
})

peerSuite(haproxyMissing ?? redisMissing ?? mariadbMissing, 'H65 two servers behind HAProxy', () => {
  const pool = (ports: readonly number[]) =>
    startHaproxy(
      (port) => `listen pool
  mode tcp
  bind 127.0.0.1:${port}
  balance roundrobin
${ports.map((to, at) => `  server n${at} 127.0.0.1:${to}`).join('\n')}`,
    )

  test('samples are proposed, of which those at a frozen member fail, and none for one server', async () => {
    const pairs = await Promise.all([
      Promise.all([startRedis(), startRedis()]),
      Promise.all([startMariadb(), startMariadb()]),
    ])
    onTestFinished(async () => void (await Promise.all(pairs.flat().map((one) => one.remove()))))
    const proposals: Proposal[] = []
    for (const [one, other] of pairs) {
      await using single = await pool([one.port])
      expect((await proposalAt(single.port)).entry).not.toHaveProperty('samples')
      const balanced = await pool([one.port, other.port])
      onTestFinished(() => balanced[Symbol.asyncDispose]())
      proposals.push(await proposalAt(balanced.port))
    }
    const note = expect.stringContaining('several servers answer here in turn')
    expect(proposals).toMatchObject([
      { entry: { kind: 'redis', samples: 5 }, note },
      { entry: { kind: 'tcp', samples: 5 }, note },
    ])
    expect(await problemsOf(...proposals)).toEqual([undefined, undefined])

    for (const [, other] of pairs) other.freeze()
    try {
      // The first connection may be one of those at the frozen member.
      const silent = expect.stringMatching(/^samples: [23] of 5 silent: |sent nothing|did not answer/)
      expect(await problemsOf(...proposals)).toEqual([silent, silent])
    } finally {
      for (const [, other] of pairs) other.thaw()
    }
  })
})

peerSuite(bindMissing, 'BIND', () => {
  test('H61 a name server is proposed with its zone, and a resolver that knows the zone is not', async () => {
    const own = await startBind()
    const resolver = await startBind({ forwardsTo: own.port })
    onTestFinished(async () => void (await Promise.all([own.remove(), resolver.remove()])))
    const machine = { domain: 'svc.test', isHere: () => Promise.resolve(false) }
    const queryAt = async (port: number) => {
      const { proposals } = await discover(signal(), { ...here(port), machine })
      return proposals.map(({ entry }) => [entry['query'], entry['type']])
    }
    expect(await queryAt(own.port)).toEqual([['svc.test', 'SOA']])
    expect(await queryAt(resolver.port)).toEqual([['localhost', undefined]])
  })
})
