import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { sleeping, sleepNamed } from '../support/faults/process-faults.ts'
import { type Daemon, startDaemon } from '../support/servers/own-daemon.ts'
import { findProgram, freePort, remove } from '../support/servers/server.ts'
import { type Sshd, sshdMissing, startSshd } from '../support/servers/sshd.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row, warns } from './row.ts'

type Listener = { readonly port: number; readonly daemon: Daemon }
type Services = {
  readonly ssh: Sshd
  readonly redis: Listener
  /** Closes each connection at once. */
  readonly closing: Listener
  /** Accepts connections and sends nothing. */
  readonly silent: Listener
  /** Sends a document. */
  readonly document: Listener
  readonly folder: string
}

const [socat, redisServer] = [findProgram('socat'), findProgram('redis-server')]
const missing =
  socat === undefined
    ? 'socat is not installed'
    : redisServer === undefined
      ? 'Redis (redis-server) is not installed'
      : sshdMissing

async function listen(program: string, args: (port: number) => readonly string[]): Promise<Listener> {
  const port = await freePort()
  return { port, daemon: await startDaemon(program, args(port), port) }
}
const withSocat = (answer: string): Promise<Listener> =>
  listen(socat ?? '', (port) => [`TCP-LISTEN:${port},bind=127.0.0.1,reuseaddr,fork`, answer])

const tcp = (port: number, more: object = {}) => ({ kind: 'tcp', host: '127.0.0.1', port, ...more })
const redisPing = { send: 'PING\r\n', expect: '+PONG' }
const sshGreeting = { expect: '/^SSH-2\\.0-/' }
const askTcp = (port: number, greeting?: string): readonly PeerProgram[] => [
  {
    program: 'check_tcp',
    args: ['-H', '127.0.0.1', '-p', String(port), '-t', '3', ...(greeting === undefined ? [] : ['-e', greeting])],
  },
  {
    program: 'blackbox_exporter',
    module: {
      prober: 'tcp',
      ...(greeting === undefined ? {} : { tcp: { query_response: [{ expect: `^${greeting}` }] } }),
    },
    target: `127.0.0.1:${port}`,
  },
]

corpus<Services>({
  server: 'OpenSSH 9.2p1, Redis 7.0.15 and socat 1.7.4.4 as TCP services',
  missing,
  start: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-tcp-'))
    const file = join(folder, 'status.xml')
    writeFileSync(file, '<Status ready="true"><Jobs>3</Jobs></Status>')
    return {
      folder,
      ssh: await startSshd(),
      redis: await listen(redisServer ?? '', (port) => ['--port', String(port), '--bind', '127.0.0.1', '--save', '']),
      closing: await withSocat('EXEC:true'),
      silent: await withSocat('EXEC:sleep 60'),
      document: await withSocat(`EXEC:cat ${file}`),
    }
  },
  stop: async ({ folder, ssh, redis, closing, silent, document }) => {
    for (const { daemon } of [redis, closing, silent, document]) await daemon.stop()
    await ssh.remove()
    remove(folder)
  },
  rows: [
    {
      fault: 'healthy: Redis answers PING',
      monitor: ({ redis }) => tcp(redis.port, redisPing),
      expected: { state: 'healthy' },
      peers: ({ redis }) => askTcp(redis.port),
    },
    {
      fault: 'healthy: OpenSSH greets',
      monitor: ({ ssh }) => tcp(ssh.port, sshGreeting),
      expected: { state: 'healthy' },
      peers: ({ ssh }) => askTcp(ssh.port, 'SSH-2.0-'),
    },
    {
      fault: 'healthy: a document with figures',
      monitor: ({ document }) =>
        tcp(document.port, {
          xml: { '/Status/@ready': 'true' },
          measure: [{ name: 'jobs', path: '/Status/Jobs', value: '.', atMost: { warn: 10, limit: 20 } }],
        }),
      expected: { state: 'healthy' },
    },
    {
      fault: 'the document reports too many jobs',
      monitor: ({ document }) =>
        tcp(document.port, {
          measure: [{ name: 'jobs', path: '/Status/Jobs', value: '.', atMost: { warn: 1, limit: 2 } }],
        }),
      expected: fails('measure', 'threshold', /jobs.* 3/),
    },
    {
      fault: 'nothing listens on the port',
      monitor: () => tcp(1, redisPing),
      expected: fails('connect', 'refused', /127\.0\.0\.1:1 .*refused/),
      peers: () => askTcp(1),
    },
    ...(['closed', 'closedOrFiltered'] as const).flatMap((state): Row<Services>[] => [
      {
        fault: `healthy: nothing listens on a port that is to be ${state}`,
        monitor: () => tcp(1, { state }),
        expected: { state: 'healthy' },
      },
      {
        fault: `OpenSSH listens on a port that is to be ${state}`,
        monitor: ({ ssh }) => tcp(ssh.port, { state }),
        expected: fails('connect', 'data', /accepts connections, and `state: closed/),
      },
    ]),
    {
      fault: 'the server closes each connection at once',
      monitor: ({ closing }) => tcp(closing.port, redisPing),
      expected: fails('answer', 'protocol', /closed the connection|reset/),
      peers: ({ closing }) => askTcp(closing.port, '[+]PONG'),
    },
    {
      fault: 'the server accepts and sends nothing',
      monitor: ({ silent }) => tcp(silent.port, { ...redisPing, timeout: '2s' }),
      expected: fails('answer', 'timeout', /accepted the connection but sent nothing/),
      peers: ({ silent }) => askTcp(silent.port, '[+]PONG'),
    },
    {
      fault: 'another service has the port',
      monitor: ({ ssh }) => tcp(ssh.port, { ...redisPing, timeout: '2s' }),
      expected: fails('answer', 'any', /SSH-2\.0-OpenSSH/),
      peers: ({ ssh }) => askTcp(ssh.port, '[+]PONG'),
    },
  ],
})

/** In a network of its own, whose kernel can be told not to answer. */
const ping =
  (more: object = {}) =>
  () => ({ kind: 'ping', host: '127.0.0.1', count: 2, ...more })
const askPing =
  (host = '127.0.0.1') =>
  (): readonly PeerProgram[] => [
    { program: 'check_ping', args: ['-H', host, '-w', '200,10%', '-c', '1000,50%', '-p', '2', '-t', '5'] },
  ]

corpus<MountNamespace>({
  server: 'ICMP of Linux (iputils ping)',
  missing:
    mountNamespaceMissing ?? (findProgram('ping') === undefined ? 'the program ping is not installed' : undefined),
  start: async () => {
    const space = await startMountNamespace({ network: true })
    await space.shell('ip link set lo up')
    return space
  },
  mounts: (space) => space,
  rows: [
    { fault: 'healthy', monitor: ping(), expected: { state: 'healthy' }, peers: askPing() },
    {
      fault: 'the host answers no packet',
      monitor: ping(),
      plant: async ({ shell }) => {
        await shell('echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all')
        return async () => void (await shell('echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all'))
      },
      expected: fails('loss', 'timeout', /answered none of 2 packets/),
      peers: askPing(),
    },
    {
      fault: 'there is no route to the host',
      monitor: ping({ host: '192.0.2.1' }),
      expected: fails('loss', 'any', /unreachable/i),
      peers: askPing('192.0.2.1'),
    },
  ],
})

const plugins = '/usr/lib/nagios/plugins'
type Programs = { readonly folder: string; readonly program: string; readonly name: string }
const plugin =
  (name: string, ...args: readonly string[]) =>
  () => ({ kind: 'exec', command: join(plugins, name), args })
const worker = `svc-corpus-worker-${process.pid}`

const execRows: readonly Row<Programs>[] = [
  {
    fault: 'healthy: check_load',
    monitor: plugin('check_load', '-w', '1000,1000,1000', '-c', '2000,2000,2000'),
    expected: { state: 'healthy' },
  },
  {
    fault: 'healthy: check_disk',
    monitor: plugin('check_disk', '-w', '0%', '-c', '0%', '-p', '/'),
    expected: { state: 'healthy' },
  },
  {
    fault: 'healthy: check_procs finds the process',
    monitor: plugin('check_procs', '-c', '1:1', '-a', worker),
    plant: ({ program }) => sleeping(program, 1),
    expected: { state: 'healthy' },
  },
  {
    fault: 'healthy: check_load prints what is expected',
    monitor: () => ({
      ...plugin('check_load', '-w', '1000,1000,1000', '-c', '2000,2000,2000')(),
      expect: '/^(?:LOAD )?OK/',
    }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'check_load prints what it must not print',
    monitor: () => ({
      ...plugin('check_load', '-w', '1000,1000,1000', '-c', '2000,2000,2000')(),
      expect: { not: 'load average' },
    }),
    expected: fails('output', 'data', /the output contains "load average"/),
  },
  {
    fault: 'check_disk fails, and prints nothing that it must not print',
    monitor: () => ({ ...plugin('check_disk', '-w', '10%', '-c', '5%', '-p', '/missing')(), expect: { not: 'ERROR' } }),
    expected: fails('result', 'any', /\/missing/, { never: /as expected/ }),
  },
  {
    fault: 'the process of check_procs does not run',
    monitor: plugin('check_procs', '-c', '1:1', '-a', worker),
    expected: fails('result', 'threshold', /PROCS CRITICAL: 0 processes/),
    peers: () => [{ program: 'check_procs', args: ['-c', '1:1', '-a', worker] }],
  },
  {
    fault: 'check_procs warns',
    monitor: plugin('check_procs', '-w', '1', '-c', '3', '-a', worker),
    plant: ({ program }) => sleeping(program, 2),
    expected: warns('result', /PROCS WARNING: 2 processes/),
    peers: () => [{ program: 'check_procs', args: ['-w', '1', '-c', '3', '-a', worker] }],
  },
  {
    fault: 'check_disk is asked about a folder that is missing',
    monitor: plugin('check_disk', '-w', '10%', '-c', '5%', '-p', '/missing'),
    expected: fails('result', 'any', /\/missing.*(not accessible|does not exist)/),
    peers: () => [{ program: 'check_disk', args: ['-w', '10%', '-c', '5%', '-p', '/missing'] }],
  },
  {
    fault: 'the plug-in does not know an argument',
    monitor: plugin('check_procs', '--no-such-option'),
    expected: fails('result', 'data', /^unknown: .*(option|[Uu]sage)/),
  },
  {
    fault: 'the plug-in is not installed',
    monitor: plugin('check_nothing'),
    expected: fails('result', 'data', /check_nothing does not exist/),
  },
  {
    fault: 'the program is in a folder that is not allowed',
    monitor: () => ({ kind: 'exec', command: '/usr/bin/id' }),
    expected: fails('result', 'data', /\/usr\/bin\/id is in no folder/),
  },
]

corpus<Programs>({
  server: 'monitoring-plugins 2.3.3',
  missing:
    (findProgram('check_load') ?? findProgram('../lib/nagios/plugins/check_load'))
      ? undefined
      : 'monitoring-plugins are not installed',
  start: () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-plugins-'))
    return Promise.resolve({ folder, name: worker, program: sleepNamed(folder, worker) })
  },
  stop: ({ folder }) => remove(folder),
  context: () => ({ services: { exec: { allow: [plugins] } } }),
  rows: execRows,
})
