import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeEnds, type EndedRow, kindsInPeers } from '../../support/engine/ended-connection.ts'
import { secret } from '../../support/engine/run-kind.ts'
import { type Certificates, makeCertificates } from '../../support/servers/certs.ts'
import { eximMissing, startExim } from '../../support/servers/exim.ts'
import { mariadbMissing, startMariadb } from '../../support/servers/mariadb.ts'
import { pgbouncerMissing, startPgbouncer } from '../../support/servers/pgbouncer.ts'
import { administrator, rabbitmqMissing, startRabbitmq } from '../../support/servers/rabbitmq.ts'
import { redisMissing, startRedis } from '../../support/servers/redis.ts'
import { probe, slapdMissing, startSlapd, suffix } from '../../support/servers/slapd.ts'
import { sshdMissing, startSshd } from '../../support/servers/sshd.ts'
import { startVsftpd, vsftpdMissing, vsftpdPassword } from '../../support/servers/vsftpd.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const host = '127.0.0.1'
const word = 'correct-horse-7'
const password = secret(word)

const rows: readonly (EndedRow & { readonly missing: string | undefined })[] = [
  {
    name: 'ftp at vsftpd',
    missing: vsftpdMissing,
    kind: 'ftp',
    opening: ['banner', 'sign-in'],
    start: () => startVsftpd(),
    settings: (port) => ({
      host,
      port,
      tls: 'off',
      username: 'ftp',
      password: secret(vsftpdPassword),
      folder: '/incoming',
      files: { limit: 1_000 },
      allowWrites: true,
      probeFolder: '/incoming',
    }),
  },
  {
    name: 'sftp at OpenSSH',
    missing: sshdMissing,
    kind: 'sftp',
    opening: ['banner', 'host key', 'sign-in', 'listing'],
    start: async () => {
      const server = await startSshd()
      const { user: username, privateKey, hostKey, files } = server
      const more = { username, privateKey: secret(privateKey), hostKey: [hostKey], folder: files, probeFolder: files }
      return { port: server.port, remove: server.remove, more }
    },
    settings: (port) => ({ host, port, allowWrites: true }),
  },
  {
    name: 'ldap at OpenLDAP',
    missing: slapdMissing,
    kind: 'ldap',
    opening: ['connect', 'bind', 'rootDSE'],
    start: () => startSlapd(),
    settings: (port) => ({
      url: `ldap://${host}:${port}`,
      username: probe.user,
      password: secret(probe.password),
      base: suffix,
      entry: { filter: '(uid=probe)', atLeast: 1 },
      lastChange: { limit: 86_400_000 },
    }),
  },
  {
    name: 'redis at Redis',
    missing: redisMissing,
    kind: 'redis',
    opening: ['connect', 'ping'],
    start: async () => {
      const server = await startRedis()
      server.cli('LPUSH', 'jobs', `{"at": ${Date.now()}}`)
      return server
    },
    settings: (port) => ({
      url: `redis://${host}:${port}`,
      allowWrites: true,
      queues: [{ key: 'jobs', age: { limit: 86_400_000 }, time: '$.at' }],
    }),
  },
  {
    name: 'mysql at MariaDB',
    missing: mariadbMissing,
    kind: 'mysql',
    opening: ['connect', 'query'],
    start: async () => {
      const server = await startMariadb()
      await server.query(`CREATE USER monitor@'127.0.0.1' IDENTIFIED BY '${word}'`)
      await server.query("GRANT ALL ON *.* TO monitor@'127.0.0.1'")
      return server
    },
    settings: (port) => ({ url: `mysql://monitor@${host}:${port}/`, password }),
  },
  {
    name: 'pgbouncer at PgBouncer',
    missing: pgbouncerMissing,
    kind: 'pgbouncer',
    opening: ['connect'],
    start: () => startPgbouncer({ users: { stats: word }, databases: {} }),
    settings: (port) => ({ url: `postgres://stats@${host}:${port}/pgbouncer`, password }),
  },
  {
    name: 'rabbitmq at RabbitMQ',
    missing: rabbitmqMissing,
    kind: 'rabbitmq',
    opening: ['management', 'sign-in'],
    reconnects: true,
    start: () => startRabbitmq(),
    settings: (port) => ({
      url: `http://${host}:${port}`,
      username: administrator.username,
      password: secret(administrator.password),
      nodes: 1,
    }),
  },
]

for (const row of rows) peerSuite(row.missing, row.name, () => describeEnds([row]))

peerSuite(eximMissing, 'smtp at Exim', () => {
  let certificates: Certificates
  beforeAll(() => {
    certificates = makeCertificates()
  })
  afterAll(() => certificates.remove())
  describeEnds([
    {
      name: 'smtp at Exim with TLS',
      kind: 'smtp',
      opening: ['banner', 'TLS'],
      start: async () => {
        const server = await startExim([], certificates.good)
        return { port: server.port, remove: server.remove, more: { caFile: certificates.caFile } }
      },
      settings: (port) => ({ host: 'localhost', port, recipient: 'somebody@svc.test' }),
    },
  ])
})

test('H22 the kinds of this table are those that the table of all kinds expects here', () => {
  expect(kindsInPeers.filter((kind) => rows.every((row) => row.kind !== kind))).toEqual([])
})
