import { writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../support/servers/mariadb.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { type Proxies, proxiesMissing, proxyAccount, startProxies } from '../support/servers/proxies.ts'
import { type RedisServer, redisMissing, startRedis } from '../support/servers/redis.ts'
import { findProgram, freePort, type Running, remove, run, serverFolder } from '../support/servers/server.ts'
import { nginx } from '../support/servers/web-servers.ts'
import { corpus } from './corpus.ts'
import { fails, notChecked, type Row } from './row.ts'

const names = `127.0.0.1 localhost four.svc.test both.svc.test half.svc.test
::1 six.svc.test both.svc.test
::2 half.svc.test
`

/** nginx at 127.0.0.1, ::1 and a Unix socket, proxies before it, and a hosts file of its own. */
type Web = {
  readonly mounts: MountNamespace
  readonly folder: string
  readonly port: number
  readonly free: number
  readonly running: Running
  readonly proxies: Proxies
}
const http =
  (name: string, more: object = {}) =>
  ({ port }: Web) => ({ kind: 'http', url: `http://${name}.svc.test:${port}/`, ...more })
const behind =
  (settings: (web: Web) => object, port: (web: Web) => number = (web) => web.port) =>
  (web: Web) => ({ kind: 'http', url: `http://localhost:${port(web)}/`, ...settings(web) })
const account = ({ folder }: Web, file: 'password' | 'other') => ({
  proxyUsername: proxyAccount.username,
  proxyPassword: { file: join(folder, file) },
})
const atSocket = (file: string) => (web: Web) => ({
  kind: 'http',
  url: 'http://app.test/',
  socket: join(web.folder, file),
})

const rows: readonly Row<Web>[] = [
  {
    fault: 'both families serve',
    monitor: http('both', { family: 'both', contains: 'at nginx' }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'the IPv6 address of a name is dead, of both families',
    monitor: http('half', { family: 'both' }),
    expected: fails('connect', 'any', /\[::2\]/),
  },
  { fault: 'the same, of IPv4', monitor: http('half', { family: 'ipv4' }), expected: { state: 'healthy' } },
  {
    fault: 'a name lost its IPv4 address',
    monitor: http('six', { family: 'both' }),
    expected: fails('connect', 'dns', /six\.svc\.test .*no IPv4 address/),
  },
  {
    fault: 'nginx denies the source',
    monitor: http('four', { source: '127.0.0.7' }),
    expected: fails('status', 'auth', /403/),
  },
  {
    fault: 'this machine does not have the source',
    monitor: http('four', { source: '192.0.2.77' }),
    expected: notChecked('connect', /source/),
  },
  {
    fault: 'behind tinyproxy',
    monitor: behind(({ proxies }) => ({ proxy: proxies.http })),
    expected: { state: 'healthy' },
  },
  {
    fault: 'behind microsocks with a sign-in',
    monitor: behind((web) => ({ proxy: web.proxies.socks, ...account(web, 'password') })),
    expected: { state: 'healthy' },
  },
  {
    fault: 'the server behind tinyproxy is down',
    monitor: behind(
      ({ proxies }) => ({ proxy: proxies.http }),
      ({ free }) => free,
    ),
    expected: fails('connect', 'refused', /^localhost:\d+ does not accept connections: the proxy/),
  },
  {
    fault: 'tinyproxy does not allow the port',
    monitor: behind(({ proxies }) => ({ proxy: proxies.closed })),
    expected: notChecked('connect', /the proxy 127\.0\.0\.1:\d+ answered 403/),
  },
  {
    fault: 'tinyproxy refuses the password',
    monitor: behind((web) => ({ proxy: web.proxies.signIn, ...account(web, 'other') })),
    expected: notChecked('connect', /refused the sign-in of svc/),
  },
  {
    fault: 'the proxy is down',
    monitor: behind(({ free }) => ({ proxy: `http://127.0.0.1:${free}` })),
    expected: notChecked('connect', /the proxy 127\.0\.0\.1:\d+ refused the connection/),
  },
  { fault: 'at a Unix socket', monitor: atSocket('web.sock'), expected: { state: 'healthy' } },
  {
    fault: 'no server has made the socket',
    monitor: atSocket('none.sock'),
    expected: fails('connect', 'refused', /none\.sock does not exist/),
  },
]

corpus<Web>({
  server: 'nginx in the way of a monitor',
  missing: nginx.missing ?? proxiesMissing ?? mountNamespaceMissing,
  start: async () => {
    const folder = serverFolder('nginx')
    const [port, free] = [await freePort(), await freePort()]
    const path = (name: string): string => join(folder, name)
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${path(name)};`,
    )
    writeFileSync(
      path('nginx.conf'),
      `daemon off; pid ${path('pid')}; error_log stderr notice; events {}
       http { access_log off; ${temporary.join(' ')} server {
         listen 127.0.0.1:${port}; listen [::1]:${port}; listen unix:${path('web.sock')};
         location / { if ($remote_addr = 127.0.0.7) { return 403; } return 200 'at nginx'; } } }`,
    )
    const args = ['-p', folder, '-c', path('nginx.conf')]
    const running = await run(findProgram('nginx') ?? '', args, /start worker process/)
    const mounts = await startMountNamespace()
    writeFileSync(path('hosts'), names)
    for (const [name, text] of Object.entries({ password: proxyAccount.password, other: 'other' }))
      writeFileSync(path(name), text, { mode: 0o600 })
    await mounts.shell(`mount --bind ${path('hosts')} /etc/hosts`)
    return { mounts, folder, port, free, running, proxies: await startProxies() }
  },
  stop: async ({ mounts, folder, running, proxies }) => {
    await proxies.remove()
    await mounts.remove()
    await running.stop('SIGTERM')
    remove(folder)
  },
  mounts: ({ mounts }) => mounts,
  rows,
})

type Stores = { readonly redis: RedisServer; readonly mariadb: MariadbServer; readonly postgres: PostgresServer }
const user = userInfo().username
const postgresAt =
  (name: string) =>
  ({ postgres: { folder, port } }: Stores) => ({
    kind: 'postgres',
    url: `postgres://${name}@localhost/postgres`,
    socket: join(folder, `.s.PGSQL.${port}`),
    restarted: '0s',
  })
const mysqlAt =
  (name: string) =>
  ({ mariadb: { folder } }: Stores) => ({
    kind: 'mysql',
    url: `mysql://${name}@localhost/`,
    socket: join(folder, 'db.sock'),
    restarted: '0s',
  })

corpus<Stores>({
  server: 'PostgreSQL, MariaDB and Redis at Unix sockets',
  missing: postgresMissing ?? mariadbMissing ?? redisMissing,
  start: async () => {
    const folder = serverFolder('socket')
    const hba = `local all ${user},other peer\n`
    const [redis, mariadb, first] = await Promise.all([
      startRedis({ folder, settings: ['--unixsocket', join(folder, 'redis.sock')] }),
      startMariadb(),
      startPostgres([], hba),
    ])
    const postgres = await first.restart([`unix_socket_directories=${first.folder}`])
    await postgres.query(`CREATE ROLE "${user}" LOGIN; CREATE ROLE other LOGIN; GRANT pg_monitor TO "${user}"`)
    const more = 'REPLICATION CLIENT, PROCESS'
    await mariadb.query(`CREATE USER other@localhost IDENTIFIED VIA unix_socket;
      CREATE OR REPLACE USER ${user}@localhost IDENTIFIED VIA unix_socket; GRANT ${more} ON *.* TO ${user}@localhost`)
    return { redis, mariadb, postgres }
  },
  rows: [
    {
      fault: 'PostgreSQL takes the account of the process',
      mode: 'Basic',
      monitor: postgresAt(user),
      expected: { state: 'healthy' },
    },
    {
      fault: 'PostgreSQL knows the process by another name',
      mode: 'Basic',
      monitor: postgresAt('other'),
      expected: fails('connect', 'auth', /Peer authentication failed/),
    },
    {
      fault: 'MariaDB takes the account of the process',
      mode: 'Basic',
      monitor: mysqlAt(user),
      expected: { state: 'healthy' },
    },
    {
      fault: 'MariaDB knows the process by another name',
      mode: 'Basic',
      monitor: mysqlAt('other'),
      expected: fails('connect', 'auth', /refused the sign-in/),
    },
    {
      fault: 'Redis',
      mode: 'Basic',
      monitor: ({ redis: { folder } }) => ({
        kind: 'redis',
        url: 'redis://localhost',
        socket: join(folder, 'redis.sock'),
      }),
      expected: { state: 'healthy' },
    },
    {
      fault: 'Redis has ended',
      mode: 'Basic',
      monitor: ({ redis: { folder } }) => ({
        kind: 'redis',
        url: 'redis://localhost',
        socket: join(folder, 'redis.sock'),
      }),
      plant: async ({ redis }) => {
        await redis.stop('SIGKILL')
        return undefined
      },
      expected: fails('connect', 'refused', /redis\.sock refused the connection: no server/),
    },
  ],
})
