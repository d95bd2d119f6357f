import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fastify } from 'fastify'
import { afterAll, describe } from 'vitest'
import { mountNamespaceMissing } from '../support/faults/mount-namespace.ts'
import { sleeping, sleepNamed } from '../support/faults/process-faults.ts'
import { client, startOidc } from '../support/openid/oidc.ts'
import { startServe } from '../support/program/serve-command.ts'
import { svcHome } from '../support/program/svc.ts'
import { bindMissing, startBind } from '../support/servers/bind.ts'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { eximMissing, startExim } from '../support/servers/exim.ts'
import { ferretdbMissing, startFerretdb } from '../support/servers/ferretdb.ts'
import { startFtpServer } from '../support/servers/ftp-server.ts'
import { proftpdMissing, pureFtpdMissing, startProftpd, startPureFtpd } from '../support/servers/ftp-servers.ts'
import { healthServer } from '../support/servers/grpc.ts'
import { keycloakClient, keycloakMissing, keycloakVersion, startKeycloak } from '../support/servers/keycloak.ts'
import { eximQueueMissing, postfixQueueMissing, startMailMachine } from '../support/servers/mail-queue.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../support/servers/mariadb.ts'
import { mysqlMissing, mysqlVersion, startMysql } from '../support/servers/mysql.ts'
import { startOpenssl } from '../support/servers/openssl-server.ts'
import { type Daemon, startDaemon } from '../support/servers/own-daemon.ts'
import { pgbackrestMissing, startPgbackrest } from '../support/servers/pgbackrest.ts'
import { pgbouncerMissing, startPgbouncer } from '../support/servers/pgbouncer.ts'
import {
  debianPostgres,
  debianPostgresMissing,
  type PostgresServer,
  postgresMissing,
  startPostgres,
  tlsSettings,
} from '../support/servers/postgres.ts'
import { rabbitmqMissing, startRabbitmq } from '../support/servers/rabbitmq.ts'
import { type RedisServer, redisMissing, startRedis } from '../support/servers/redis.ts'
import { reader, sambaMissing, startDomain } from '../support/servers/samba.ts'
import { sentinelMissing, startSentinelGroup } from '../support/servers/sentinel.ts'
import { findProgram, freePort, remove, serverFolder } from '../support/servers/server.ts'
import { probe, slapdMissing, startSlapd, suffix } from '../support/servers/slapd.ts'
import { smtpAccount, startSmtp } from '../support/servers/smtp.ts'
import { sshdMissing, startSshd } from '../support/servers/sshd.ts'
import { startUnbound, unboundMissing } from '../support/servers/unbound.ts'
import { startVsftpd, vsftpdMissing, vsftpdPassword } from '../support/servers/vsftpd.ts'
import { apacheCache, haproxyCache, startWebCache } from '../support/servers/web-caches.ts'
import { apache, haproxy, nginx, startWebServer } from '../support/servers/web-servers.ts'
import { until } from '../support/suite/until.ts'
import { install } from './installs.ts'

// Every server here is as its package installs it, apart from its port, its folder and a certificate that svc trusts.
// Each has just been started, which the check `restarted` of databases reports rightly for a minute: hence `restarted`.
const made = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => made?.remove())
const certificates = () => {
  if (!made) throw new Error('no certificates')
  return made
}
const caFile = made?.caFile
if (caFile !== undefined) {
  // Servers read it under their own accounts.
  chmodSync(caFile, 0o644)
  chmodSync(dirname(caFile), 0o755)
}
const password = 'correct horse battery'
const env: Record<string, string> = { PASSWORD: password }
const started = { restarted: '0s' }

const postgresAccount = `CREATE ROLE monitor LOGIN PASSWORD '${password}'; GRANT pg_monitor TO monitor;
  GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO monitor`
const postgresGrants = 'pg_monitor, SELECT on the sequences'
const postgres = (server: PostgresServer, more: object = {}) => ({
  kind: 'postgres',
  url: server.url('monitor'),
  password: { env: 'PASSWORD' },
  ...started,
  ...more,
})
const withAccount = async (server: PostgresServer): Promise<PostgresServer> => {
  await server.query(postgresAccount)
  return server
}
async function pairOf(settings: readonly string[], from?: string) {
  const fresh = await withAccount(await startPostgres(settings, '', from))
  const pair = await fresh.standby()
  await until(async () => (await pair.primary.query('SELECT 1 FROM pg_stat_replication')).length === 1)
  return pair
}

const mariadbAccount = `CREATE DATABASE orders; CREATE USER monitor@'127.0.0.1' IDENTIFIED BY '${password}';
  GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@'127.0.0.1'; GRANT SELECT ON orders.* TO monitor@'127.0.0.1'`
const mariadbGrants = 'PROCESS, SLAVE MONITOR, SELECT on one database'
const mysql = (server: Pick<MariadbServer, 'url'>, more: object = {}) => ({
  kind: 'mysql',
  url: server.url('monitor', 'orders'),
  password: { env: 'PASSWORD' },
  ...started,
  ...more,
})
const mariadb = async (settings: readonly string[] = [], folder?: string): Promise<MariadbServer> => {
  const server = await startMariadb(settings, folder)
  // A node of Galera refuses queries until it belongs to its cluster.
  await until(() => server.query(mariadbAccount).catch(refusedByGalera))
  return server
}
const refusedByGalera = (error: Error): false => {
  if (!error.message.startsWith('WSREP has not yet prepared')) throw error
  return false
}

const redisRules = ['on', `>${password}`, '+ping', '+info', '+config|get', '+cluster|info', '+cluster|nodes']
const redisGrants = '+ping +info +config|get +cluster|info +cluster|nodes'
const redis = async (settings: readonly string[] = []): Promise<RedisServer> => {
  const server = await startRedis({ settings })
  server.cli('ACL', 'SETUSER', 'monitor', ...redisRules)
  return server
}
const asMonitor = (server: RedisServer, more: object = {}) => ({
  kind: 'redis',
  url: server.url.replace('//', '//monitor@'),
  password: { env: 'PASSWORD' },
  ...started,
  ...more,
})

describe('a default install', () => {
  install({
    server: 'PostgreSQL 18 (npm)',
    account: postgresGrants,
    missing: postgresMissing,
    env,
    start: async () => withAccount(await startPostgres()),
    monitor: (server) => postgres(server),
  })
  install({
    server: 'PostgreSQL 18 (npm), a primary with a standby',
    account: postgresGrants,
    missing: postgresMissing,
    env,
    start: () => pairOf([]),
    monitor: ({ primary }) => postgres(primary, { role: 'primary', replicas: 1 }),
  })
  install({
    server: 'PostgreSQL 18 (npm), a standby',
    account: postgresGrants,
    missing: postgresMissing,
    env,
    start: () => pairOf([]),
    monitor: ({ standby }) => postgres(standby, { role: 'standby' }),
  })
  install({
    server: 'PostgreSQL 15 (Debian)',
    account: postgresGrants,
    missing: debianPostgresMissing,
    env,
    start: async () => withAccount(await startPostgres([], '', debianPostgres)),
    monitor: (server) => postgres(server),
  })
  install({
    server: 'PostgreSQL 15 (Debian), over TLS',
    account: postgresGrants,
    missing: debianPostgresMissing ?? opensslMissing(),
    env,
    start: async () =>
      withAccount(await startPostgres(tlsSettings(certificates().good, serverFolder('postgres')), '', debianPostgres)),
    monitor: (server) => postgres(server, { tls: { mode: 'verify', caFile } }),
  })
  install({
    server: 'PostgreSQL 15 (Debian), a standby',
    account: postgresGrants,
    missing: debianPostgresMissing,
    env,
    start: () => pairOf([], debianPostgres),
    monitor: ({ standby }) => postgres(standby, { role: 'standby' }),
  })
  install({
    server: 'PostgreSQL 15 (Debian) with pgBackRest',
    account: `${postgresGrants}; pgbackrest: a file`,
    missing: pgbackrestMissing ?? debianPostgresMissing,
    env,
    start: async () => {
      const backed = await startPgbackrest()
      await withAccount(backed.server)
      backed.backUp()
      const file = backed.info()
      return { backed, file }
    },
    monitor: ({ backed, file }) => postgres(backed.server, { pgbackrest: file }),
  })
  install({
    server: 'PgBouncer 1.18',
    account: 'stats_users',
    missing: pgbouncerMissing ?? postgresMissing,
    env,
    start: async () => {
      const server = await withAccount(await startPostgres())
      const databases = { postgres: `host=127.0.0.1 port=${server.port} dbname=postgres` }
      return { server, pool: await startPgbouncer({ users: { stats: password, monitor: password }, databases }) }
    },
    monitor: ({ pool }) => ({ kind: 'pgbouncer', url: pool.url('stats', 'pgbouncer'), password: { env: 'PASSWORD' } }),
  })
  install({
    server: 'MariaDB 10.11',
    account: mariadbGrants,
    missing: mariadbMissing,
    env,
    start: () => mariadb(),
    monitor: (server) => mysql(server),
  })
  install({
    server: 'MariaDB 10.11, over TLS',
    account: mariadbGrants,
    missing: mariadbMissing ?? opensslMissing(),
    env,
    start: () => {
      const folder = serverFolder('mariadb')
      const [, cert, key] = tlsSettings(certificates().good, folder).map((text) => text.split('=')[1])
      return mariadb([`--ssl-cert=${cert}`, `--ssl-key=${key}`], folder)
    },
    monitor: (server) => mysql(server, { tls: { mode: 'verify', servername: 'svc.test', caFile } }),
  })
  install({
    server: 'MariaDB 10.11, a replica',
    account: mariadbGrants,
    missing: mariadbMissing,
    env,
    start: async () => {
      const source = await mariadb(['--log-bin=binlog', '--server-id=1'])
      await source.query(
        "CREATE USER repl@'127.0.0.1' IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO repl@'127.0.0.1'",
      )
      const [log] = await source.query('SHOW MASTER STATUS')
      const replica = await mariadb(['--server-id=2', '--read-only=1'])
      await replica.query(`CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=${source.port}, MASTER_USER='repl',
        MASTER_PASSWORD='r', MASTER_LOG_FILE='${String(log?.['File'])}', MASTER_LOG_POS=${Number(log?.['Position'])};
        START SLAVE`)
      await until(async () => (await replica.query('SHOW SLAVE STATUS'))[0]?.['Seconds_Behind_Master'] === 0, 30_000)
      return { source, replica }
    },
    monitor: ({ replica }) => mysql(replica, { role: 'replica', replica: true }),
  })
  install({
    server: 'MariaDB 10.11, a node of Galera',
    account: mariadbGrants,
    missing: mariadbMissing,
    env,
    start: async () =>
      mariadb([
        ...['--wsrep-on=ON', '--wsrep-provider=/usr/lib/galera/libgalera_smm.so', '--wsrep-cluster-address=gcomm://'],
        `--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:${await freePort()}`,
        ...['--wsrep-node-address=127.0.0.1', '--binlog-format=ROW', '--innodb-autoinc-lock-mode=2'],
      ]),
    monitor: (server) => mysql(server),
  })
  install({
    server: `MySQL ${mysqlVersion()}`.trim(),
    account: 'PROCESS, REPLICATION CLIENT, SELECT on performance_schema and on one database',
    missing: mysqlMissing,
    env,
    start: async () => {
      const server = await startMysql(1)
      await server.query(`CREATE DATABASE orders; CREATE USER monitor@'127.0.0.1' IDENTIFIED BY '${password}';
        GRANT PROCESS, REPLICATION CLIENT ON *.* TO monitor@'127.0.0.1';
        GRANT SELECT ON performance_schema.* TO monitor@'127.0.0.1'; GRANT SELECT ON orders.* TO monitor@'127.0.0.1'`)
      return server
    },
    monitor: (server) => mysql(server),
  })
  install({
    server: 'Redis 7.0',
    account: redisGrants,
    missing: redisMissing,
    env,
    start: () => redis(),
    monitor: (server) => asMonitor(server),
  })
  install({
    server: 'Redis 7.0 with an append-only file',
    account: redisGrants,
    missing: redisMissing,
    env,
    start: () => redis(['--appendonly', 'yes']),
    monitor: (server) => asMonitor(server),
  })
  install({
    server: 'Redis 7.0, a replica',
    account: redisGrants,
    missing: redisMissing,
    env,
    start: async () => {
      const primary = await redis(['--repl-diskless-sync-delay', '0'])
      const replica = await redis(['--replicaof', `127.0.0.1 ${primary.port}`])
      await until(() => replica.cli('INFO', 'replication').includes('master_link_status:up'))
      return { primary, replica }
    },
    monitor: ({ replica }) => asMonitor(replica, { role: 'replica' }),
  })
  install({
    server: 'Redis 7.0, a node of a cluster',
    account: redisGrants,
    missing: redisMissing,
    env,
    start: async () => {
      const node = await redis(['--cluster-enabled', 'yes'])
      node.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
      await until(() => node.cli('CLUSTER', 'INFO').includes('cluster_state:ok'))
      return node
    },
    monitor: (server) => asMonitor(server),
  })
  install({
    server: 'Redis 7.0, over TLS',
    account: 'none: the default user',
    missing: redisMissing ?? opensslMissing(),
    start: () => startRedis({ tls: { ...certificates().good, caFile: certificates().caFile } }),
    monitor: ({ url }) => ({ kind: 'redis', url, caFile, ...started }),
  })
  install({
    server: 'Redis Sentinel 7.0',
    account: 'none: the default user',
    missing: redisMissing ?? sentinelMissing,
    start: startSentinelGroup,
    monitor: ({ sentinels: [first] }) => ({ kind: 'redis', url: first.url, ...started }),
  })
  install({
    server: 'RabbitMQ 3.10',
    account: 'the tag monitoring, permissions "^$" "^$" "^$"',
    missing: rabbitmqMissing,
    env,
    start: async () => {
      const server = await startRabbitmq()
      server.ctl('add_user', 'monitor', password)
      server.ctl('set_user_tags', 'monitor', 'monitoring')
      server.ctl('set_permissions', '-p', '/', 'monitor', '^$', '^$', '^$')
      return server
    },
    monitor: ({ url }) => ({ kind: 'rabbitmq', url, username: 'monitor', password: { env: 'PASSWORD' } }),
  })
  install({
    server: 'FerretDB 1.24 (MongoDB)',
    account: 'the one user of its set-up',
    missing: ferretdbMissing,
    env,
    start: () => startFerretdb('monitor', password),
    monitor: ({ port }) => ({
      kind: 'mongo',
      url: `mongodb://monitor@127.0.0.1:${port}/`,
      password: { env: 'PASSWORD' },
    }),
  })
  install({
    server: 'SQLite, a file with WAL',
    account: 'the account of the file',
    missing: undefined,
    start: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-install-'))
      const database = new DatabaseSync(join(folder, 'app.db'))
      database.exec('PRAGMA journal_mode = WAL; CREATE TABLE jobs (id INTEGER PRIMARY KEY)')
      database.close()
      return Promise.resolve(folder)
    },
    stop: remove,
    monitor: (folder) => ({ kind: 'sqlite', path: join(folder, 'app.db') }),
  })

  install({
    server: 'OpenLDAP 2.5, anonymous',
    account: 'none',
    missing: slapdMissing,
    start: () => startSlapd(),
    monitor: ({ url }) => ({ kind: 'ldap', url }),
  })
  install({
    server: 'OpenLDAP 2.5, over LDAPS',
    account: 'an entry that may read its base',
    missing: slapdMissing ?? opensslMissing(),
    env: { PASSWORD: probe.password },
    start: () => startSlapd({ tls: certificates().good }),
    monitor: ({ ldaps }) => ({
      kind: 'ldap',
      url: ldaps,
      caFile,
      user: probe.user,
      password: { env: 'PASSWORD' },
      base: suffix,
    }),
  })
  install({
    server: 'Samba 4.17, a domain controller',
    account: 'an account of the domain without privileges',
    missing: sambaMissing ?? opensslMissing(),
    env: { PASSWORD: reader.password },
    start: () => startDomain({ certificates: [certificates().good] }),
    monitor: ({ first }) => ({ kind: 'ldap', url: first.url, user: reader.user, password: { env: 'PASSWORD' } }),
  })

  install({
    server: 'BIND 9.18, a zone',
    account: 'none',
    missing: bindMissing,
    start: () => startBind(),
    monitor: ({ server }) => ({ kind: 'dns', query: 'www.svc.test', server }),
  })
  install({
    server: 'BIND 9.18, a signed zone',
    account: 'none',
    missing: bindMissing,
    start: () => startBind({ signedForDays: 30 }),
    monitor: ({ server }) => ({ kind: 'dns', query: 'www.svc.test', server, signed: true }),
  })
  install({
    server: 'Unbound 1.17, a resolver',
    account: 'none',
    missing: bindMissing ?? unboundMissing,
    start: async () => {
      const upstream = await startBind()
      return { upstream, resolver: await startUnbound({ upstream }) }
    },
    monitor: ({ resolver }) => ({ kind: 'dns', query: 'www.svc.test', server: resolver.server }),
  })

  for (const [title, program] of [
    ['nginx 1.22', nginx],
    ['Apache 2.4', apache],
    ['HAProxy 2.6', haproxy],
  ] as const) {
    const missing = program.missing ?? opensslMissing()
    const web = { account: 'none', missing, start: () => startWebServer(program, certificates()) }
    install({
      server: `${title}, HTTP`,
      ...web,
      monitor: ({ port }) => ({ kind: 'http', url: `http://127.0.0.1:${port}/` }),
    })
    install({
      server: `${title}, HTTPS`,
      ...web,
      monitor: ({ tlsPort }) => ({ kind: 'http', url: `https://127.0.0.1:${tlsPort.good}/`, caFile }),
    })
    install({
      server: `${title}, TLS`,
      ...web,
      monitor: ({ tlsPort }) => ({
        kind: 'tls',
        host: '127.0.0.1',
        port: tlsPort.good,
        servername: 'svc.test',
        caFile,
      }),
    })
  }
  for (const [title, program, missing] of [
    ['HAProxy 2.6, a cache', haproxyCache(haproxy), haproxy.missing],
    ['Apache 2.4, a cache', apacheCache(apache), apache.missing],
  ] as const) {
    install({
      server: title,
      account: 'none',
      missing: missing ?? nginx.missing ?? opensslMissing(),
      start: () => startWebCache(program, certificates()),
      monitor: ({ port }) => ({ kind: 'http', url: `http://127.0.0.1:${port}/` }),
    })
  }
  install({
    server: 'OpenSSL 3.0 (s_server)',
    account: 'none',
    missing: opensslMissing(),
    start: () => startOpenssl(certificates().good),
    monitor: ({ port }) => ({ kind: 'tls', host: '127.0.0.1', port, servername: 'svc.test', caFile }),
  })
  install({
    server: 'fastify 5 (npm)',
    account: 'none',
    missing: undefined,
    start: async () => {
      const app = fastify().get('/health', () => ({ status: 'up' }))
      return { app, url: await app.listen({ port: 0, host: '127.0.0.1' }) }
    },
    stop: ({ app }) => app.close().then(() => {}),
    monitor: ({ url }) => ({ kind: 'http', url: `${url}/health`, json: { '$.status': 'up' } }),
  })
  install({
    server: 'Node 24, https',
    account: 'none',
    missing: opensslMissing(),
    start: async () => {
      const port = await freePort()
      const server = createServer(certificates().good, (_, answer) => void answer.end('It works'))
      await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
      return { server, port }
    },
    stop: ({ server }: { readonly server: Server }) => void server.close(),
    monitor: ({ port }) => ({ kind: 'http', url: `https://127.0.0.1:${port}/`, caFile, contains: 'It works' }),
  })

  const daemon = (
    server: string,
    program: string,
    args: (port: number, folder: string) => readonly string[],
    path: string,
  ) =>
    install({
      server,
      account: 'none',
      missing: findProgram(program) === undefined ? `${program} is not installed` : undefined,
      start: async () => {
        const [port, folder] = [await freePort(), mkdtempSync(join(tmpdir(), 'svc-install-'))]
        return { port, folder, daemon: await startDaemon(findProgram(program) ?? '', args(port, folder), port) }
      },
      stop: async ({ daemon: running, folder }: { daemon: Daemon; folder: string }) => {
        await running.stop()
        remove(folder)
      },
      monitor: ({ port }) => ({ kind: 'http', url: `http://127.0.0.1:${port}${path}` }),
    })
  daemon(
    'Prometheus 2.42',
    'prometheus',
    (port, folder) => {
      writeFileSync(join(folder, 'prometheus.yml'), 'scrape_configs: []\n')
      return [
        ...[`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`],
        `--web.listen-address=127.0.0.1:${port}`,
      ]
    },
    '/-/healthy',
  )
  daemon(
    'blackbox_exporter 0.23',
    'prometheus-blackbox-exporter',
    (port, folder) => {
      writeFileSync(join(folder, 'blackbox.yml'), 'modules: {}\n')
      return [`--config.file=${folder}/blackbox.yml`, `--web.listen-address=127.0.0.1:${port}`]
    },
    '/-/healthy',
  )

  install({
    server: 'Exim 4.96',
    account: 'none',
    missing: eximMissing ?? opensslMissing(),
    start: () => startExim([], certificates().good),
    monitor: ({ port }) => ({ kind: 'smtp', host: '127.0.0.1', port, caFile }),
  })
  install({
    server: 'Postfix 3.7',
    account: 'none',
    missing: postfixQueueMissing ?? mountNamespaceMissing ?? opensslMissing(),
    start: () => {
      const { good } = certificates()
      const file = join(certificates().caFile, '../postfix-install.pem')
      writeFileSync(file, `${good.key}\n${good.cert}`, { mode: 0o600 })
      return startMailMachine('postfix', [`smtpd_tls_chain_files = ${file}`, 'smtpd_tls_security_level = may'])
    },
    mounts: ({ mounts }) => mounts,
    monitor: ({ port }) => ({ kind: 'smtp', host: '127.0.0.1', port, caFile }),
  })
  for (const [server, missing] of [
    ['postfix', postfixQueueMissing],
    ['exim', eximQueueMissing],
  ] as const) {
    install({
      server: `${server === 'exim' ? 'Exim 4.96' : 'Postfix 3.7'}, the queue`,
      account: 'the group of the mail server',
      missing: missing ?? mountNamespaceMissing,
      start: () => startMailMachine(server),
      mounts: ({ mounts }) => mounts,
      monitor: () => ({ kind: 'mail-queue', server }),
    })
  }
  install({
    server: 'smtp-server 3 (npm)',
    account: 'an account that may sign in; recipient',
    missing: opensslMissing(),
    env: { PASSWORD: smtpAccount.password },
    start: () => startSmtp({ ...certificates().good }),
    monitor: ({ port }) => ({
      kind: 'smtp',
      host: '127.0.0.1',
      port,
      caFile,
      username: smtpAccount.username,
      // The only address that it accepts.
      recipient: 'accepted@svc.test',
      password: { env: 'PASSWORD' },
    }),
  })

  const ftp = (port: number, username: string, more: object = {}) => ({
    kind: 'ftp',
    host: '127.0.0.1',
    port,
    caFile,
    username,
    password: { env: 'PASSWORD' },
    ...more,
  })
  install({
    server: 'vsftpd 3.0',
    account: 'an account that may list its folder',
    missing: vsftpdMissing ?? opensslMissing(),
    env: { PASSWORD: vsftpdPassword },
    start: () => startVsftpd({ certificate: certificates().good }),
    monitor: ({ port }) => ftp(port, 'ftp'),
  })
  for (const [title, missing, start] of [
    ['ProFTPD 1.3', proftpdMissing, startProftpd],
    ['Pure-FTPd 1.0', pureFtpdMissing, startPureFtpd],
  ] as const) {
    install({
      server: title,
      account: 'an account that may list its folder',
      missing: missing ?? opensslMissing(),
      env,
      start: async () => {
        const server = await start({ certificate: certificates().good })
        env['PASSWORD'] = server.password
        return server
      },
      stop: async (server) => {
        env['PASSWORD'] = password
        await server.remove()
      },
      monitor: ({ port, username }) => ftp(port, username),
    })
  }
  install({
    server: 'ftp-srv 4 (npm), without TLS',
    account: 'an account that may list its folder',
    missing: undefined,
    env,
    start: () => startFtpServer(password),
    monitor: ({ port }) => ({ ...ftp(port, 'monitor'), tls: 'off', caFile: undefined }),
  })
  const keys: Record<string, string> = {}
  install({
    server: 'OpenSSH 9.2, SFTP',
    account: 'an account that may list its folder',
    missing: sshdMissing,
    env: keys,
    start: async () => {
      const server = await startSshd()
      keys['KEY'] = server.privateKey
      return server
    },
    monitor: ({ port, hostKey, user }) => ({
      kind: 'sftp',
      host: '127.0.0.1',
      port,
      hostKey: [hostKey],
      username: user,
      privateKey: { env: 'KEY' },
    }),
  })
  install({
    server: 'OpenSSH 9.2, its port',
    account: 'none',
    missing: sshdMissing,
    start: () => startSshd(),
    monitor: ({ port }) => ({ kind: 'tcp', host: '127.0.0.1', port }),
  })

  install({
    server: `Keycloak ${keycloakVersion()}`.trim(),
    account: 'a client with client credentials',
    missing: keycloakMissing ?? opensslMissing(),
    env: { CLIENT: keycloakClient.clientSecret },
    start: startKeycloak,
    monitor: ({ issuer }) => ({
      kind: 'oidc',
      issuer: issuer('shop'),
      // The first tokens of a Java process take their time.
      latency: '20s',
      clientId: keycloakClient.clientId,
      clientSecret: { env: 'CLIENT' },
    }),
  })
  install({
    server: 'oidc-provider 9 (npm)',
    account: 'a client with client credentials',
    missing: opensslMissing(),
    env: { CLIENT: client.clientSecret },
    start: () => startOidc({ tls: certificates().good }),
    stop: (server) => server.close(),
    monitor: ({ issuer }) => ({
      kind: 'oidc',
      issuer,
      caFile,
      clientId: client.clientId,
      clientSecret: { env: 'CLIENT' },
    }),
  })
  for (const tls of [false, true]) {
    install({
      server: `grpc-js 1 (npm)${tls ? ', over TLS' : ''}`,
      account: 'none',
      missing: opensslMissing(),
      start: () => healthServer({ '': 'SERVING' }, tls ? certificates().good : undefined),
      monitor: ({ port }) => ({ kind: 'grpc', host: '127.0.0.1', port, ...(tls ? { tls, caFile } : {}) }),
    })
  }
  install({
    server: 'svc serve',
    account: 'none',
    missing: undefined,
    start: async () => {
      const home = svcHome()
      const port = await freePort()
      const yaml = `types: {App: {host: false, monitors: [{kind: file-age, path: ${home.folder}/version}]}}`
      writeFileSync(join(home.folder, 'version'), '1.0.0')
      return { home, serve: await startServe(home, yaml, [], port) }
    },
    stop: async ({ home, serve }) => {
      await serve.stop()
      home.remove()
    },
    monitor: ({ serve }) => ({ kind: 'svc', url: serve.url }),
  })

  install({
    server: 'a process of this machine',
    account: 'the account of the process',
    missing: process.platform === 'linux' ? undefined : 'this process is started on Linux',
    start: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-install-'))
      return { folder, end: await sleeping(sleepNamed(folder, 'svc-sleeper'), 1) }
    },
    stop: async ({ folder, end }) => {
      await end()
      remove(folder)
    },
    monitor: () => ({ kind: 'process', executable: 'svc-sleeper', ...started }),
  })
  install({
    server: 'a backup in a file',
    account: 'the account of svc',
    missing: undefined,
    start: () => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-install-'))
      writeFileSync(join(folder, 'backup.dump'), 'x')
      return Promise.resolve(folder)
    },
    stop: remove,
    monitor: (folder) => ({ kind: 'file-age', path: join(folder, 'backup.dump'), size: '1B' }),
  })
})
