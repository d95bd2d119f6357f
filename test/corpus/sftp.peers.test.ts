import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { fillDisk } from '../support/faults/full-disk.ts'
import { type Sshd, sshdMissing, startSshd } from '../support/servers/sshd.ts'
import { corpus } from './corpus.ts'
import { fails, type Row } from './row.ts'

type Servers = {
  readonly open: Sshd
  /** Accepts one connection that has not signed in, and no more. */
  readonly full: Sshd
  readonly env: Record<string, string>
}

const env: Record<string, string> = {}

const monitor =
  (more: object = {}, name: 'open' | 'full' = 'open') =>
  (servers: Servers) => ({
    kind: 'sftp',
    host: '127.0.0.1',
    port: servers[name].port,
    hostKey: [servers[name].hostKey],
    username: servers[name].user,
    privateKey: { env: 'KEY' },
    ...more,
  })

const rows: readonly Row<Servers>[] = [
  {
    fault: 'healthy',
    monitor: (servers) => monitor({ allowWrites: true, probeFolder: servers.open.files })(servers),
    expected: { state: 'healthy' },
    peers: ({ open }) => [{ program: 'check_ssh', args: ['-p', String(open.port), '127.0.0.1'] }],
  },
  {
    fault: 'the account accepts another key only',
    monitor: monitor({ privateKey: { env: 'STRANGER' } }),
    expected: fails('sign-in', 'auth', /refused .* by publickey$/),
    peers: ({ open }) => [{ program: 'check_ssh', args: ['-p', String(open.port), '127.0.0.1'] }],
  },
  {
    fault: 'the host key has changed',
    monitor: monitor({ hostKey: ['SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'] }),
    expected: fails('host key', 'tls', /SHA256:.*not in hostKey/),
  },
  {
    fault: 'the drop folder is missing',
    monitor: (servers) => monitor({ folder: join(servers.open.files, 'missing') })(servers),
    expected: fails('oldest file', 'data', /refused opening .*: "No such file/),
  },
  {
    fault: 'a file waits for two hours',
    monitor: (servers) => monitor({ folder: join(servers.open.files, 'drop') })(servers),
    plant: async ({ open }) => {
      const folder = join(open.files, 'drop')
      mkdirSync(folder)
      const file = join(folder, 'order.xml')
      writeFileSync(file, '<order/>')
      const before = new Date(Date.now() - 2 * 3_600_000)
      utimesSync(file, before, before)
      return () => rmSync(folder, { recursive: true })
    },
    expected: fails('oldest file', 'threshold', /order\.xml.*2 h|2 h.*order\.xml/),
  },
  {
    fault: 'only a hidden file is in the drop folder',
    monitor: (servers) => monitor({ folder: join(servers.open.files, 'hidden') })(servers),
    plant: async ({ open }) => {
      const folder = join(open.files, 'hidden')
      mkdirSync(folder)
      const file = join(folder, '.bashrc')
      writeFileSync(file, '')
      const before = new Date(Date.now() - 582 * 86_400_000)
      utimesSync(file, before, before)
      return () => rmSync(folder, { recursive: true })
    },
    expected: { state: 'healthy' },
    before: 'oldest file: .bashrc waits for 582 d',
  },
  {
    fault: 'the probe folder cannot be written',
    monitor: (servers) => monitor({ allowWrites: true, probeFolder: '/proc' })(servers),
    expected: fails('round trip', 'any', /denied|Failure|No such/i),
  },
  {
    fault: 'the server accepts no more connections (MaxStartups)',
    monitor: monitor({}, 'full'),
    plant: async ({ full }) => {
      const socket: Socket = connect(full.port, '127.0.0.1')
      await new Promise((resolve) => socket.once('data', resolve))
      return () => void socket.destroy()
    },
    expected: fails('banner', 'refused', /it sent "Exceeded MaxStartups"/, { never: /not SSH|not an SSH/ }),
    before: 'not an SSH server',
    peers: ({ full }) => [{ program: 'check_ssh', args: ['-t', '3', '-p', String(full.port), '127.0.0.1'] }],
  },
  {
    fault: 'nothing listens on the port',
    monitor: monitor({ port: 1 }),
    expected: fails('banner', 'refused', /refused/),
    peers: () => [{ program: 'check_ssh', args: ['-p', '1', '127.0.0.1'] }],
  },
]

const version = (): string =>
  /OpenSSH_(\S+?),? /.exec(execFileSync('sh', ['-c', 'ssh -V 2>&1'], { encoding: 'utf8' }))?.[1] ?? ''

corpus<Servers>({
  server: sshdMissing === undefined ? `OpenSSH ${version()}` : 'OpenSSH',
  env,
  missing: sshdMissing,
  start: async () => {
    const open = await startSshd()
    const full = await startSshd(['MaxStartups 1:100:1', 'LoginGraceTime 120'])
    Object.assign(env, { KEY: open.privateKey, STRANGER: open.strangerKey })
    chmodSync(open.files, 0o700)
    return { open, full, env }
  },
  rows,
})

const onDisk = ({ open }: Servers) => ({ allowWrites: true, probeFolder: open.files })
corpus<Servers>({
  server: `OpenSSH on a disk that can be filled`,
  env,
  missing: sshdMissing ?? (process.getuid?.() === 0 ? undefined : 'mounting needs root'),
  start: async () => {
    const open = await startSshd()
    Object.assign(env, { KEY: open.privateKey })
    return { open, full: open, env }
  },
  rows: [
    { fault: 'healthy', monitor: (servers) => monitor(onDisk(servers))(servers), expected: { state: 'healthy' } },
    {
      fault: 'the disk is full',
      monitor: (servers) => monitor(onDisk(servers))(servers),
      plant: async ({ open }) => fillDisk(open.files).free,
      expected: fails('round trip', 'data', /disk|quota/),
      before: 'Failure',
      peers: ({ open }) => [{ program: 'check_ssh', args: ['-p', String(open.port), '127.0.0.1'] }],
    },
  ],
})
