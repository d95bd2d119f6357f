import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { fillDisk } from '../support/faults/full-disk.ts'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import {
  type FtpServer,
  type FtpServerOptions,
  proftpdMissing,
  pureFtpdMissing,
  startProftpd,
  startPureFtpd,
} from '../support/servers/ftp-servers.ts'
import { startVsftpd, vsftpdMissing, vsftpdPassword } from '../support/servers/vsftpd.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())
const env: Record<string, string> = { WRONG: 'another password' }

type Servers = { readonly good: FtpServer; readonly expired: FtpServer; readonly otherHost: FtpServer }

const monitor =
  (more: object = {}, name: keyof Servers = 'good') =>
  (servers: Servers) => ({
    kind: 'ftp',
    host: '127.0.0.1',
    port: servers[name].port,
    caFile: certificates?.caFile,
    username: servers[name].username,
    password: { env: 'PASSWORD' },
    ...more,
  })
const ask = ({ good }: Servers): readonly PeerProgram[] => [
  { program: 'check_ftp', args: ['-H', '127.0.0.1', '-p', String(good.port), '-t', '3'] },
]

/** A file in a new folder `drop`, of the given age. */
const dropped =
  (name: string, ageMs: number) =>
  async ({ good }: Servers) => {
    const folder = join(good.home, 'drop')
    mkdirSync(folder, { mode: 0o755 })
    const file = join(folder, name)
    writeFileSync(file, 'x')
    const at = new Date(Date.now() - ageMs)
    utimesSync(file, at, at)
    return () => rmSync(folder, { recursive: true })
  }

const rows: readonly Row<Servers>[] = [
  {
    fault: 'healthy, with a round trip',
    monitor: monitor({ allowWrites: true }),
    expected: { state: 'healthy' },
    peers: ask,
  },
  {
    fault: 'the password was changed',
    monitor: monitor({ password: { env: 'WRONG' } }),
    expected: fails('sign-in', 'auth', /refused the sign-in of "\w+": "530 /),
    peers: ask,
  },
  { fault: 'an expired certificate', monitor: monitor({}, 'expired'), expected: fails('TLS', 'tls', /expired/) },
  {
    fault: 'a certificate for another name',
    monitor: monitor({}, 'otherHost'),
    expected: fails('TLS', 'tls', /elsewhere\.test/),
  },
  {
    fault: 'the drop folder is missing',
    monitor: monitor({ folder: 'missing' }),
    expected: fails('oldest file', 'any', /CWD "[^"]*missing" with/),
    peers: ask,
  },
  {
    fault: 'a file waits for two hours',
    monitor: monitor({ folder: 'drop' }),
    plant: dropped('order.xml', 2 * 3_600_000),
    expected: fails('oldest file', 'threshold', /order\.xml.* 2 h/),
    peers: ask,
  },
  {
    fault: 'only a hidden file is in the drop folder',
    monitor: monitor({ folder: 'drop' }),
    plant: dropped('.bashrc', 582 * 86_400_000),
    expected: { state: 'healthy' },
    before: 'oldest file: .bashrc waits for 582 d',
  },
  {
    fault: 'the folder for uploads cannot be written',
    monitor: monitor({ allowWrites: true, probeFolder: 'locked' }),
    plant: async ({ good }) => {
      const folder = join(good.home, 'locked')
      mkdirSync(folder, { mode: 0o555 })
      return () => rmSync(folder, { recursive: true })
    },
    expected: fails('round trip', 'any', /55[0-9]|denied/i),
    peers: ask,
  },
  {
    fault: 'nothing listens on the port',
    monitor: monitor({ port: 1 }),
    expected: fails('banner', 'refused', /refused/),
    peers: () => [{ program: 'check_ftp', args: ['-H', '127.0.0.1', '-p', '1'] }],
  },
]

/** The anonymous account of vsftpd, whose folder for uploads is `incoming`. */
async function vsftpd({ certificate }: FtpServerOptions): Promise<FtpServer> {
  const server = await startVsftpd({ certificate })
  return { port: server.port, username: 'ftp', password: vsftpdPassword, home: server.incoming, remove: server.remove }
}

const withoutPlainFtp: Row<Servers> = {
  fault: 'a sign-in without TLS is refused',
  monitor: monitor({ tls: 'off', caFile: undefined }),
  expected: fails('sign-in', 'any', /TLS|SSL|530|550|522/),
}

const groups: readonly (readonly [string, string | undefined, (options: FtpServerOptions) => Promise<FtpServer>])[] = [
  ['vsftpd 3.0.3', vsftpdMissing, vsftpd],
  ['ProFTPD 1.3.8', proftpdMissing, startProftpd],
  ['Pure-FTPd 1.0.50', pureFtpdMissing, startPureFtpd],
]
for (const [server, missing, start] of groups) {
  const inHome = server.startsWith('vsftpd') ? (path: string) => `incoming/${path}` : (path: string) => path
  const inPlace = (row: Row<Servers>): Row<Servers> => ({
    ...row,
    monitor: (servers) => {
      const { folder, probeFolder, allowWrites, ...rest } = row.monitor(servers)
      return {
        ...rest,
        ...(typeof folder === 'string' ? { folder: inHome(folder) } : {}),
        ...(allowWrites === true
          ? { allowWrites, probeFolder: inHome(typeof probeFolder === 'string' ? probeFolder : '') || '.' }
          : {}),
      }
    },
  })
  corpus<Servers>({
    server,
    env,
    missing: missing ?? opensslMissing(),
    start: async () => {
      if (!certificates) throw new Error('no certificates')
      const good = await start({ certificate: certificates.good })
      env.PASSWORD = good.password
      return {
        good,
        expired: await start({ certificate: certificates.expired }),
        otherHost: await start({ certificate: certificates.otherHost }),
      }
    },
    rows: [...rows, ...(server.startsWith('Pure') ? [] : [withoutPlainFtp])].map(inPlace),
  })
}

corpus<Servers>({
  server: 'vsftpd on a disk that can be filled',
  env,
  missing: vsftpdMissing ?? opensslMissing() ?? (process.getuid?.() === 0 ? undefined : 'mounting needs root'),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    const good = await vsftpd({ certificate: certificates.good })
    env.PASSWORD = good.password
    return { good, expired: good, otherHost: good }
  },
  rows: [
    {
      fault: 'healthy',
      monitor: monitor({ allowWrites: true, probeFolder: 'incoming' }),
      expected: { state: 'healthy' },
    },
    {
      fault: 'the disk is full',
      monitor: monitor({ allowWrites: true, probeFolder: 'incoming' }),
      plant: async ({ good }) => fillDisk(good.home).free,
      expected: fails('round trip', 'data', /disk|quota/),
      peers: ask,
    },
  ],
})
