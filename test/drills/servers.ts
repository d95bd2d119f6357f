import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import type { KindName } from '../../src/core/checks/kinds/index.ts'
import type { Certificates } from '../support/servers/certs.ts'
import { eximMissing, oneConnection, startExim } from '../support/servers/exim.ts'
import { mariadbMissing, startMariadb } from '../support/servers/mariadb.ts'
import { nginxMissing, startNginx } from '../support/servers/nginx.ts'
import { pgbouncerMissing, startPgbouncer } from '../support/servers/pgbouncer.ts'
import { postgresMissing, startPostgres, tlsSettings } from '../support/servers/postgres.ts'
import { administrator, rabbitmqMissing, startRabbitmq } from '../support/servers/rabbitmq.ts'
import { redisMissing, startRedis } from '../support/servers/redis.ts'
import { asServer, remove, serverFolder } from '../support/servers/server.ts'
import { probe, slapdMissing, startSlapd } from '../support/servers/slapd.ts'
import { smtpAccount, startSmtp } from '../support/servers/smtp.ts'
import { sshdMissing, startSshd } from '../support/servers/sshd.ts'
import { startVsftpd, vsftpdMissing, vsftpdPassword } from '../support/servers/vsftpd.ts'
import { until } from '../support/suite/until.ts'

export const faults = ['limit', 'wrong password', 'expired certificate', 'freeze', 'stop'] as const
export type Fault = (typeof faults)[number]

/** A planted fault. */
export type Planted = {
  /** The monitor that meets it, as svc.yaml declares it. */
  readonly monitor: Readonly<Record<string, unknown>>
  /** The true cause, where it is another one than the fault usually has. */
  readonly says?: RegExp
  /** The command of the next step, where it is another one. Runs it, and returns what it shows. */
  readonly step?: { readonly command: RegExp; readonly run: () => unknown; readonly shows: RegExp }
  /** The right value of the secret that is wrong. */
  readonly corrected?: string
  /** Takes the fault back. */
  readonly cure?: () => unknown
}
export type DrillServer = {
  readonly plant: Readonly<Record<Fault, () => Promise<Planted>>>
  readonly remove: () => Promise<unknown>
}
export type Drill = {
  /** As the page names it. */
  readonly server: string
  readonly kind: KindName
  readonly missing: string | undefined
  /** The planted fault, where its name does not make it clear. */
  readonly planted: Partial<Readonly<Record<Fault, string>>>
  readonly start: (certificates: Certificates) => Promise<DrillServer>
}

const host = '127.0.0.1'
const right = 'correct-horse-7'
/** The secret of a monitor, and the same secret with a mistake. */
export const environment: Record<string, string> = { RIGHT: right, WRONG: 'wrong-horse-7' }
const password = { env: 'RIGHT' }
const otherSecret = { env: 'WRONG' }

type Freezable = { readonly freeze: () => void; readonly thaw: () => void; readonly stop: () => Promise<unknown> }
/** The faults that are planted in the same way on every server. */
const ended = (server: Freezable, monitor: Planted['monitor']) => ({
  freeze: async (): Promise<Planted> => {
    server.freeze()
    return { monitor, cure: server.thaw }
  },
  stop: async (): Promise<Planted> => {
    await server.stop()
    return { monitor }
  },
})
const planted =
  (monitor: Planted['monitor'], corrected = right) =>
  async (): Promise<Planted> => ({ monitor, corrected })

/** The faults of a database, of which all connections can be taken. */
const databasePlants = (
  server: Freezable,
  monitor: Planted['monitor'],
  { caFile }: Certificates,
  limit: () => Promise<Planted>,
): DrillServer['plant'] => ({
  limit,
  'wrong password': planted({ ...monitor, password: otherSecret }),
  'expired certificate': planted({ ...monitor, tls: { mode: 'verify', caFile, servername: 'localhost' } }),
  ...ended(server, monitor),
})

/** Takes connections until a database accepts no more. `step` lists them. */
async function allTaken(
  monitor: Planted['monitor'],
  count: number,
  open: () => Promise<{ readonly end: () => Promise<unknown> }>,
  { says, step }: Required<Pick<Planted, 'says' | 'step'>>,
): Promise<Planted> {
  const clients: { readonly end: () => Promise<unknown> }[] = []
  for (let n = 0; n < count; n += 1) clients.push(await open())
  return { monitor, says, step, cure: () => Promise.all(clients.map((one) => one.end())) }
}

/** Holds connections that are established, each with these bytes sent. */
async function openConnections(port: number, count: number, sent = ''): Promise<() => void> {
  const sockets: Socket[] = []
  for (let n = 0; n < count; n += 1) {
    const socket = connect(port, host)
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(sent)
    sockets.push(socket)
  }
  return () => {
    for (const socket of sockets) socket.destroy()
  }
}

/** A download that lasts, from a location of nginx that serves one at a time. */
async function downloading(port: number): Promise<() => void> {
  const socket = connect(port, host)
  socket.on('error', () => {})
  socket.write(`GET /limited HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await once(socket, 'data')
  return () => void socket.destroy()
}

const run = (program: string, args: readonly string[], as: typeof asServer = {}) =>
  spawnSync(program, args, { ...as, encoding: 'utf8' })
export const output = (program: string, ...args: readonly string[]): string => run(program, args).stdout

/** In the output of ss: connections that the process has not accepted. */
export const waitingConnections = /LISTEN +[1-9]/

/** The step that lists the connections of a server that accepts no more. */
const connectionsAt = (port: number): NonNullable<Planted['step']> => ({
  command: new RegExp(`ss -tn state established 'sport = :${port}'`),
  run: () => output('ss', '-tn', 'state', 'established', `sport = :${port}`),
  shows: new RegExp(`127\\.0\\.0\\.1:${port} `),
})

/** Holds the only session of a server that greets. The connection that awaited its start may still count. */
async function onlySession(port: number, greeting: string): Promise<() => void> {
  let release = (): void => {}
  await until(async () => {
    release()
    const socket = connect(port, host)
    socket.on('error', () => {})
    release = () => void socket.destroy()
    const first = await Promise.race([once(socket, 'data'), once(socket, 'close')])
    return String(first[0]).startsWith(greeting)
  })
  return release
}

const redis: Drill = {
  server: 'Redis',
  kind: 'redis',
  missing: redisMissing,
  planted: { limit: 'all of maxclients are connected' },
  start: async (certificates) => {
    const server = await startRedis({ settings: ['--requirepass', right] })
    const small = await startRedis({ settings: ['--maxclients', '3'] })
    const folder = serverFolder('drill')
    const caFile = join(folder, 'ca.pem')
    writeFileSync(caFile, certificates.ca)
    const tls = await startRedis({ tls: { ...certificates.expired, caFile } })
    const monitor = { kind: 'redis', url: server.url, password }
    return {
      plant: {
        limit: async () => {
          const release = await openConnections(small.port, 3)
          return {
            monitor: { kind: 'redis', url: small.url },
            says: /maximum number of clients/,
            step: connectionsAt(small.port),
            cure: release,
          }
        },
        'wrong password': planted({ ...monitor, password: otherSecret }),
        'expired certificate': planted({ kind: 'redis', url: tls.url, caFile: certificates.caFile }),
        ...ended(server, monitor),
      },
      remove: async () => {
        await Promise.all([server, small, tls].map((one) => one.remove()))
        remove(folder)
      },
    }
  },
}

const postgres: Drill = {
  server: 'PostgreSQL',
  kind: 'postgres',
  missing: postgresMissing,
  planted: { limit: 'all of max_connections are in use' },
  start: async (certificates) => {
    const folder = serverFolder('drill')
    const server = await startPostgres(tlsSettings(certificates.expired, folder))
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${right}'; GRANT pg_monitor TO monitor`)
    const monitor = { kind: 'postgres', url: server.url('monitor'), password, tls: { mode: 'off' } }
    return {
      plant: databasePlants(server, monitor, certificates, () =>
        allTaken(monitor, 17, server.client, {
          says: /has no free connection/,
          step: {
            command: /SELECT \* FROM pg_stat_activity/,
            run: () => server.query('SELECT * FROM pg_stat_activity'),
            shows: /(?:"usename":"postgres".*){17}/,
          },
        }),
      ),
      remove: async () => {
        await server.remove()
        remove(folder)
      },
    }
  },
}

const mysql: Drill = {
  server: 'MariaDB',
  kind: 'mysql',
  missing: mariadbMissing,
  planted: { limit: 'all of max_connections are in use' },
  start: async (certificates) => {
    const folder = serverFolder('drill')
    const files = tlsSettings(certificates.expired, folder).slice(1)
    const [cert, key] = files.map((setting) => setting.split('=')[1])
    const server = await startMariadb([`--ssl-cert=${cert}`, `--ssl-key=${key}`])
    await server.query(
      `CREATE USER monitor@'127.0.0.1' IDENTIFIED BY '${right}'; GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@'127.0.0.1'`,
    )
    const monitor = { kind: 'mysql', url: server.url('monitor'), password, tls: { mode: 'off' } }
    return {
      plant: databasePlants(server, monitor, certificates, () =>
        allTaken(monitor, 20, server.client, {
          says: /Too many connections/,
          step: {
            command: /SHOW PROCESSLIST/,
            run: () => server.query('SHOW PROCESSLIST'),
            shows: /(?:"User":"root".*){20}/,
          },
        }),
      ),
      remove: async () => {
        await server.remove()
        remove(folder)
      },
    }
  },
}

const pgbouncer: Drill = {
  server: 'PgBouncer',
  kind: 'pgbouncer',
  missing: pgbouncerMissing,
  planted: { limit: 'all of max_client_conn are connected' },
  start: async (certificates) => {
    const folder = serverFolder('drill')
    const [cert = '', key = ''] = tlsSettings(certificates.expired, folder)
      .slice(1)
      .map((setting) => setting.split('=')[1])
    const server = await startPgbouncer({
      users: { stats: right },
      databases: {},
      settings: {
        max_client_conn: 2,
        client_tls_sslmode: 'allow',
        client_tls_cert_file: cert,
        client_tls_key_file: key,
      },
    })
    const monitor = { kind: 'pgbouncer', url: server.url('stats', 'pgbouncer'), password, tls: { mode: 'off' } }
    const client = async (): Promise<pg.Client> => {
      const made = new pg.Client({ host, port: server.port, user: 'stats', database: 'pgbouncer', password: right })
      made.on('error', () => {})
      await made.connect()
      return made
    }
    return {
      plant: databasePlants(server, monitor, certificates, async () => {
        const watching = await client()
        const planted = await allTaken(monitor, 1, client, {
          says: /^3 of 2 clients: 150 %/,
          step: {
            command: /SHOW CLIENTS/,
            run: async () => (await watching.query('SHOW CLIENTS')).rows,
            shows: /(?:"user":"stats".*){2}/,
          },
        })
        return { ...planted, cure: () => Promise.all([planted.cure?.(), watching.end()]) }
      }),
      remove: async () => {
        await server.remove()
        remove(folder)
      },
    }
  },
}

const http: Drill = {
  server: 'nginx',
  kind: 'http',
  missing: nginxMissing,
  planted: { limit: 'limit_conn is reached', 'wrong password': 'the location requires Basic' },
  start: async (certificates) => {
    const server = await startNginx(certificates.expired, { monitor: right })
    const monitor = { kind: 'http', url: `http://${host}:${server.port}/` }
    return {
      plant: {
        limit: async () => {
          const release = await downloading(server.port)
          const url = `http://${host}:${server.port}/limited`
          return {
            monitor: { ...monitor, url },
            says: /answered 503/,
            step: {
              command: /curl -i with this url/,
              run: () => output('curl', '-si', url),
              shows: /^HTTP\/1\.1 503 Service Temporarily Unavailable[\s\S]*Server: nginx/,
            },
            cure: release,
          }
        },
        'wrong password': planted({
          ...monitor,
          url: `http://${host}:${server.port}/private`,
          username: 'monitor',
          password: otherSecret,
        }),
        'expired certificate': planted({
          kind: 'http',
          url: `https://${host}:${server.tlsPort}/`,
          caFile: certificates.caFile,
        }),
        ...ended(server, monitor),
      },
      remove: server.remove,
    }
  },
}

const rabbitmq: Drill = {
  server: 'RabbitMQ',
  kind: 'rabbitmq',
  missing: rabbitmqMissing,
  planted: { limit: 'the memory alarm blocks publishers' },
  start: async (certificates) => {
    const server = await startRabbitmq({ certificate: certificates.expired })
    await server.api('PUT', 'users/monitor', { password: right, tags: 'monitoring' })
    const monitor = { kind: 'rabbitmq', url: server.url, username: 'monitor', password }
    let hasEnded = false
    const end = async (): Promise<void> => {
      if (!hasEnded) await server.remove()
      hasEnded = true
    }
    const alarmed = (on: boolean): Promise<boolean> =>
      until(
        async () =>
          ((await server.api('GET', 'nodes')) as { mem_alarm?: boolean }[]).every(({ mem_alarm }) => mem_alarm === on),
        30_000,
      )
    return {
      plant: {
        limit: async () => {
          server.ctl('set_vm_memory_high_watermark', '0.0001')
          await alarmed(true)
          return {
            monitor,
            says: /^memory alarm on /,
            step: { command: /rabbitmqctl status/, run: () => server.ctl('status'), shows: /Alarms[\s\S]*[Mm]emory/ },
            cure: async () => {
              server.ctl('set_vm_memory_high_watermark', '0.4')
              await alarmed(false)
            },
          }
        },
        'wrong password': planted({ ...monitor, password: otherSecret }),
        'expired certificate': planted({
          ...monitor,
          url: `https://${host}:${server.tlsPort}`,
          caFile: certificates.caFile,
        }),
        ...ended({ ...server, stop: end }, monitor),
      },
      remove: end,
    }
  },
}

const ldap: Drill = {
  server: 'OpenLDAP',
  kind: 'ldap',
  missing: slapdMissing,
  planted: { limit: 'no file descriptor is left for a connection' },
  start: async (certificates) => {
    const server = await startSlapd({ tls: certificates.expired })
    // It does not recover by itself.
    const small = await startSlapd()
    const monitor = { kind: 'ldap', url: server.url, user: probe.user, password: { env: 'LDAP' } }
    return {
      plant: {
        limit: async () => {
          // As the account of the server: containers forbid it to root.
          run('prlimit', ['--pid', String(small.pid), '--nofile=8:'], asServer)
          return {
            monitor: { ...monitor, url: small.url },
            says: / accepted the connection but sent nothing for /,
            step: {
              command: /ss -ltnp/,
              run: () => output('ss', '-ltn', `sport = :${small.port}`),
              shows: waitingConnections,
            },
          }
        },
        'wrong password': planted({ ...monitor, password: otherSecret }, probe.password),
        'expired certificate': planted({ ...monitor, url: server.ldaps, caFile: certificates.caFile }),
        ...ended(server, monitor),
      },
      remove: () => Promise.all([server, small].map((one) => one.remove())),
    }
  },
}

const ftp: Drill = {
  server: 'vsftpd',
  kind: 'ftp',
  missing: vsftpdMissing,
  planted: { limit: 'max_clients are connected' },
  start: async (certificates) => {
    const server = await startVsftpd()
    const small = await startVsftpd({ settings: { max_clients: 1 } })
    const tls = await startVsftpd({ certificate: certificates.expired })
    const account = { username: 'ftp', password: { env: 'FTP' } }
    const monitor = { kind: 'ftp', host, port: server.port, tls: 'off', ...account }
    return {
      plant: {
        limit: async () => {
          const release = await onlySession(small.port, '220')
          return {
            monitor: { ...monitor, port: small.port },
            says: /421 There are too many connected users/,
            step: connectionsAt(small.port),
            cure: release,
          }
        },
        'wrong password': planted({ ...monitor, password: otherSecret }, vsftpdPassword),
        'expired certificate': planted({ ...monitor, port: tls.port, tls: 'explicit', caFile: certificates.caFile }),
        ...ended(server, monitor),
      },
      remove: () => Promise.all([server, small, tls].map((one) => one.remove())),
    }
  },
}

const smtp: Drill = {
  server: 'Exim',
  kind: 'smtp',
  missing: eximMissing,
  planted: { limit: 'smtp_accept_max is reached', 'wrong password': 'smtp-server of npm' },
  start: async (certificates) => {
    const server = await startExim()
    const small = await startExim(oneConnection)
    const tls = await startExim([], certificates.expired)
    const signIn = await startSmtp({ secure: true, ...certificates.good })
    const monitor = { kind: 'smtp', host, port: server.port, tls: 'off', recipient: 'someone@svc.test' }
    return {
      plant: {
        limit: async () => ({
          monitor: { ...monitor, port: small.port },
          says: /421 Too many concurrent SMTP connections/,
          step: connectionsAt(small.port),
          cure: await onlySession(small.port, '220'),
        }),
        'wrong password': planted(
          {
            ...monitor,
            port: signIn.port,
            tls: 'implicit',
            caFile: certificates.caFile,
            recipient: 'accepted@svc.test',
            username: smtpAccount.username,
            password: otherSecret,
          },
          smtpAccount.password,
        ),
        'expired certificate': planted({ ...monitor, port: tls.port, tls: 'starttls', caFile: certificates.caFile }),
        ...ended(server, monitor),
      },
      remove: async () => {
        await Promise.all([server, small, tls].map((one) => one.remove()))
        await signIn[Symbol.asyncDispose]()
      },
    }
  },
}

const sftp: Drill = {
  server: 'OpenSSH',
  kind: 'sftp',
  missing: sshdMissing,
  planted: {
    limit: 'MaxStartups is reached',
    'wrong password': 'the key of the monitor is not in authorized_keys',
    'expired certificate': 'SSH has no certificate here: the host key has changed',
  },
  start: async () => {
    const server = await startSshd()
    const small = await startSshd(['MaxStartups 1:100:1', 'LoginGraceTime 120'])
    Object.assign(environment, { KEY: server.privateKey, WRONG_KEY: server.strangerKey, SMALL: small.privateKey })
    const monitor = {
      kind: 'sftp',
      host,
      port: server.port,
      hostKey: [server.hostKey],
      username: server.user,
      privateKey: { env: 'KEY' },
    }
    return {
      plant: {
        limit: async () => ({
          monitor: { ...monitor, port: small.port, hostKey: [small.hostKey], privateKey: { env: 'SMALL' } },
          says: /Exceeded MaxStartups/,
          step: connectionsAt(small.port),
          cure: await onlySession(small.port, 'SSH-'),
        }),
        'wrong password': planted({ ...monitor, privateKey: { env: 'WRONG_KEY' } }, server.privateKey),
        'expired certificate': async () => ({
          monitor: { ...monitor, hostKey: [small.hostKey] },
          says: /presented ssh-ed25519 SHA256:.*, which is not in hostKey/,
          step: {
            command: /ssh-keygen -lf/,
            run: () => output('ssh-keygen', '-lf', server.hostKeyFile),
            shows: new RegExp(server.hostKey.replaceAll('+', '\\+')),
          },
        }),
        ...ended(server, monitor),
      },
      remove: () => Promise.all([server, small].map((one) => one.remove())),
    }
  },
}

Object.assign(environment, { LDAP: probe.password, FTP: vsftpdPassword, ADMIN: administrator.password })

export const drills: readonly Drill[] = [redis, postgres, mysql, pgbouncer, http, rabbitmq, ldap, ftp, smtp, sftp]
