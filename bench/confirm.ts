/**
 * The behaviour of confirmation with real servers, in about six minutes: `npm run bench:confirm [restarts]`, by default
 * 200. First 50 listeners are restarted for 3 to 15 s each time, while 50 others have an outage of the interval, the
 * confirmation and 20 s. Then a server of each kind that is installed goes, and the time until its incident is
 * confirmed is measured. Writes `bench/results/confirm.md`.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import {
  type Listener,
  monitorOf,
  outage,
  restarts,
  startListener,
  watch,
} from '../test/support/program/confirmation.ts'
import { startServeProcess } from '../test/support/program/serve-process.ts'
import { bindMissing, startBind } from '../test/support/servers/bind.ts'
import { makeCertificates } from '../test/support/servers/certs.ts'
import { eximMissing, startExim } from '../test/support/servers/exim.ts'
import { healthServer } from '../test/support/servers/grpc.ts'
import { mariadbMissing, startMariadb } from '../test/support/servers/mariadb.ts'
import { nginxMissing, startNginx } from '../test/support/servers/nginx.ts'
import { pgbouncerMissing, startPgbouncer } from '../test/support/servers/pgbouncer.ts'
import { postgresMissing, startPostgres } from '../test/support/servers/postgres.ts'
import { administrator, rabbitmqMissing, startRabbitmq } from '../test/support/servers/rabbitmq.ts'
import { redisMissing, startRedis } from '../test/support/servers/redis.ts'
import { slapdMissing, startSlapd } from '../test/support/servers/slapd.ts'
import { sshdMissing, startSshd } from '../test/support/servers/sshd.ts'
import { startVsftpd, vsftpdMissing } from '../test/support/servers/vsftpd.ts'
import { until } from '../test/support/suite/until.ts'

const second = 1_000
const waitMs = 300 * second
const confirmMs = 20 * second
const word = 'correct-horse-7'
const count = 50
const times = Math.max(1, Math.round(Number(process.argv[2] ?? 200) / count))
const seconds = (ms: number): string => (ms / second).toFixed(1)
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
const folder = mkdtempSync(join(tmpdir(), 'svc-bench-confirm-'))
const lines: string[] = ['# Confirmation with real servers', '']

async function manyListeners(): Promise<void> {
  const intervalMs = 10 * second
  const start = (prefix: string): Promise<readonly Listener[]> =>
    Promise.all(Array.from({ length: count }, (_, at) => startListener(`${prefix}${at}`)))
  const [restarted, broken] = [await start('restarted'), await start('broken')]
  const monitors = [...restarted, ...broken].map(
    ({ name, host, port }) => `      - {kind: tcp, name: ${name}, host: ${host}, port: ${port}}\n`,
  )
  await using serve = await startServeProcess(
    `serve: {every: {Basic: ${intervalMs}ms, Standard: off, Advanced: off}}\ntypes:\n  App:\n    host: false\n    flapping: off\n    monitors:\n${monitors.join('')}`,
  )
  const view = watch(serve)
  for (const one of [...restarted, ...broken])
    await until(async () => (await view.isWell(monitorOf(one))) === true, waitMs, 250)
  const outageMs = intervalMs + confirmMs + 20 * second
  const [outages] = await Promise.all([
    Promise.all(broken.map((one) => outage(one, view, { ms: outageMs, maxMs: waitMs }))),
    // A run has seen each after a moment, and it goes on for 3 to 15 s.
    Promise.all(
      restarted.map((one, at) =>
        restarts(one, view, { times, restMs: (nth) => (3 + ((at + nth * 5) % 13)) * second, maxMs: waitMs }),
      ),
    ),
  ])
  const incidents = await view.incidents()
  const falseAlarms = restarted.flatMap((one) => incidents.get(monitorOf(one)) ?? [])
  const blips = await Promise.all(restarted.map((one) => view.blips(monitorOf(one))))
  const once = outages.filter(({ faults }) => faults.length === 1)
  const begins = once.map(({ downAt, faults }) => (faults[0]?.from ?? Number.NaN) - downAt)
  const ends = once.map(({ upAt, faults }) => (faults[0]?.to ?? Number.NaN) - upAt)
  lines.push(
    `${count} listeners of TCP, each every ${seconds(intervalMs)} s, \`confirm: 20s\`, \`flapping: off\`.`,
    '',
    '| what | measured |',
    '|---|---|',
    `| restarts of 3 to 15 s after a run had seen them | ${count * times} |`,
    `| blips | ${blips.reduce((sum, one) => sum + one, 0)} |`,
    `| incidents of restarts | ${falseAlarms.length} |`,
    `| outages of ${seconds(outageMs)} s with one incident | ${once.length} of ${count} |`,
    `| beginning of the incident after that of the outage | median ${seconds(median(begins))} s, at most ${seconds(Math.max(...begins))} s |`,
    `| end of the incident after that of the outage | median ${seconds(median(ends))} s, at most ${seconds(Math.max(...ends))} s |`,
    '',
  )
  for (const one of [...restarted, ...broken]) await one.down()
  const isRight = falseAlarms.length === 0 && blips.every((one) => one === times) && once.length === count
  if (!isRight || Math.max(...begins, ...ends) > intervalMs + second) process.exitCode = 1
}

/** A monitor of one kind, and what ends the server that it watches. */
type Watched = { readonly settings: string; readonly fail: () => Promise<void> | void; readonly every?: string }
type Row = {
  readonly kind: string
  readonly server: string
  readonly missing?: string | undefined
  readonly start: () => Promise<Watched>
}

const host = '127.0.0.1'
const password = 'password: {env: WORD}'
const certificates = makeCertificates()

const rows: readonly Row[] = [
  {
    kind: 'tcp',
    server: 'node:net',
    start: async () => {
      const { host: own, port, down } = await startListener('one')
      return { settings: `host: ${own}, port: ${port}`, fail: down }
    },
  },
  {
    kind: 'tls',
    server: 'nginx',
    missing: nginxMissing,
    start: async () => {
      const { tlsPort, remove } = await startNginx(certificates.good)
      return { settings: `host: ${host}, port: ${tlsPort}, caFile: ${certificates.caFile}`, fail: remove }
    },
  },
  {
    kind: 'http',
    server: 'nginx',
    missing: nginxMissing,
    start: async () => {
      const { port, remove } = await startNginx()
      return { settings: `url: 'http://${host}:${port}/'`, fail: remove }
    },
  },
  {
    kind: 'http-steps',
    server: 'nginx',
    missing: nginxMissing,
    start: async () => {
      const { port, remove } = await startNginx()
      const steps = 'steps: [{name: page, path: /}]'
      return { settings: `url: 'http://${host}:${port}', ${steps}`, fail: remove, every: '{Advanced: 30s}' }
    },
  },
  {
    kind: 'dns',
    server: 'BIND',
    missing: bindMissing,
    start: async () => {
      const { server, remove } = await startBind()
      return { settings: `query: ns1.svc.test, server: '${server}'`, fail: remove }
    },
  },
  {
    kind: 'ftp',
    server: 'vsftpd',
    missing: vsftpdMissing,
    start: async () => {
      const { port, remove } = await startVsftpd()
      return { settings: `host: ${host}, port: ${port}, tls: off`, fail: remove }
    },
  },
  {
    kind: 'sftp',
    server: 'sshd',
    missing: sshdMissing,
    start: async () => {
      const { port, hostKey, remove } = await startSshd()
      return { settings: `host: ${host}, port: ${port}, hostKey: ['${hostKey}']`, fail: remove }
    },
  },
  {
    kind: 'smtp',
    server: 'Exim',
    missing: eximMissing,
    start: async () => {
      const { port, remove } = await startExim()
      return { settings: `host: ${host}, port: ${port}, tls: off`, fail: remove }
    },
  },
  {
    kind: 'ldap',
    server: 'OpenLDAP',
    missing: slapdMissing,
    start: async () => {
      const { port, remove } = await startSlapd()
      return { settings: `url: 'ldap://${host}:${port}'`, fail: remove }
    },
  },
  {
    kind: 'mysql',
    server: 'MariaDB',
    missing: mariadbMissing,
    start: async () => {
      const { port, remove } = await startMariadb()
      return { settings: `url: 'mysql://monitor@${host}:${port}/', ${password}`, fail: remove }
    },
  },
  {
    kind: 'postgres',
    server: 'PostgreSQL',
    missing: postgresMissing,
    start: async () => {
      const { port, remove } = await startPostgres()
      return { settings: `url: 'postgres://postgres@${host}:${port}/postgres'`, fail: remove }
    },
  },
  {
    kind: 'pgbouncer',
    server: 'PgBouncer',
    missing: pgbouncerMissing,
    start: async () => {
      const { port, remove } = await startPgbouncer({ users: { stats: word }, databases: {} })
      return { settings: `url: 'postgres://stats@${host}:${port}/', ${password}`, fail: remove }
    },
  },
  {
    kind: 'redis',
    server: 'Redis',
    missing: redisMissing,
    start: async () => {
      const { port, remove } = await startRedis()
      return { settings: `url: 'redis://${host}:${port}'`, fail: remove }
    },
  },
  {
    kind: 'rabbitmq',
    server: 'RabbitMQ',
    missing: rabbitmqMissing,
    start: async () => {
      const { port, remove } = await startRabbitmq()
      const account = `username: ${administrator.username}, password: {env: RABBIT}`
      return { settings: `url: 'http://${host}:${port}', ${account}`, fail: remove }
    },
  },
  {
    kind: 'grpc',
    server: '@grpc/grpc-js',
    start: async () => {
      const server = await healthServer({ '': 'SERVING' })
      return { settings: `host: ${host}, port: ${server.port}, tls: off`, fail: () => server[Symbol.asyncDispose]() }
    },
  },
  {
    kind: 'svc',
    server: 'svc serve',
    start: async () => {
      const other = await startServeProcess('types: {App: {host: false, monitors: [{kind: self}]}}')
      const url = `url: 'http://${host}:${other.port}'`
      return { settings: url, fail: () => other[Symbol.asyncDispose]() }
    },
  },
  {
    kind: 'process',
    server: 'sleep',
    start: async () => {
      const child = spawn('sleep', ['3600'], { stdio: 'ignore' })
      const pidFile = join(folder, 'sleep.pid')
      writeFileSync(pidFile, `${child.pid}\n`)
      return { settings: `pidFile: ${pidFile}`, fail: () => void child.kill() }
    },
  },
  {
    kind: 'file-age',
    server: 'a file that is removed',
    start: async () => {
      const path = join(folder, 'backup')
      writeFileSync(path, 'x')
      return { settings: `path: ${path}, age: {warn: 1d, limit: 2d}`, fail: () => rmSync(path) }
    },
  },
  {
    kind: 'sqlite',
    server: 'a database that is removed',
    start: async () => {
      const path = join(folder, 'shop.db')
      new DatabaseSync(path).close()
      const db = new DatabaseSync(path)
      db.exec('CREATE TABLE orders (id INTEGER)')
      db.close()
      return { settings: `path: ${path}`, fail: () => rmSync(path) }
    },
  },
]

async function oneOfEachKind(): Promise<void> {
  const started: { readonly row: Row; readonly watched: Watched; readonly name: string }[] = []
  const left: string[] = []
  for (const row of rows) {
    if (row.missing === undefined) started.push({ row, watched: await row.start(), name: row.kind })
    else left.push(`${row.kind}: ${row.missing}`)
  }
  const monitors = started.map(
    ({ row: { kind }, watched: { settings, every = '{Basic: 10s, Standard: off, Advanced: off}' } }) =>
      `      - {kind: ${kind}, name: bench, every: ${every}, ${settings}}\n`,
  )
  const env = { WORD: word, RABBIT: administrator.password }
  await using serve = await startServeProcess(
    `types:\n  App:\n    host: false\n    monitors:\n${monitors.join('')}`,
    [],
    undefined,
    { env },
  )
  const view = watch(serve)
  const measured = await Promise.all(
    started.map(async ({ row: { kind, server }, watched: { fail, every } }) => {
      const monitor = `${kind} bench`
      const isWell = await until(async () => (await view.isWell(monitor)) === true, 90 * second, 250).catch(() => false)
      const faultAt = Date.now()
      await fail()
      if (!isWell) {
        left.push(`${kind}: its monitor was not healthy before the fault`)
        return undefined
      }
      const incident = await until(async () => (await view.incidents()).get(monitor)?.at(0) ?? false, waitMs, 250)
      const confirmedAt = Date.now()
      return { kind, server, every: every === undefined ? 10 : 30, faultAt, confirmedAt, incident }
    }),
  )
  const all = measured.filter((one) => one !== undefined)
  lines.push(
    `The times from the fault to the incident of ${all.length} kinds, each every 10 s or, if it begins at Advanced, every 30 s, with`,
    '`confirm: 20s`. The fault begins when the server is ended, and a server may take time to end.',
    '',
    '| kind | server | interval (s) | check | class | fault to first bad run (s) | fault to confirmed (s) |',
    '|---|---|---|---|---|---|---|',
    ...all.map(
      ({ kind, server, every, faultAt, confirmedAt, incident: { check, fault = '', from } }) =>
        `| ${kind} | ${server} | ${every} | ${check} | ${fault} | ${seconds(from - faultAt)} | ${seconds(confirmedAt - faultAt)} |`,
    ),
    '',
    ...left.map((one) => `Not measured: ${one}.`),
  )
}

await manyListeners()
process.stdout.write(`${lines.join('\n')}\n`)
await oneOfEachKind()
const results = new URL('results/', import.meta.url)
mkdirSync(results, { recursive: true })
writeFileSync(new URL('confirm.md', results), `${lines.join('\n').trimEnd()}\n`)
process.stdout.write(`${lines.join('\n')}\n`)
certificates.remove()
rmSync(folder, { recursive: true })
process.exit()
