import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerCertificate } from './certs.ts'
import { startDaemon } from './own-daemon.ts'
import { freePort, remove, serverFolder } from './server.ts'
import { unpackedProgram } from './unpacked.ts'

/** A real FTP server on a free port of 127.0.0.1, with one account. */
export type FtpServer = {
  readonly port: number
  readonly username: string
  readonly password: string
  /** The folder that is `/` of a session, or the home folder of the account. */
  readonly home: string
  readonly remove: () => Promise<void>
}
export type FtpServerOptions = {
  readonly certificate: ServerCertificate
  /** Lines of the configuration (ProFTPD), or arguments (Pure-FTPd). */
  readonly settings?: readonly string[]
}

const account = { username: 'probe', password: 'a long password of the tests' }
/** Debian's account daemon. Both servers change to it after the sign-in, and need root for that. */
const daemonId = 1
const needsRoot = (name: string): string | undefined =>
  process.getuid?.() === 0 ? undefined : `${name} needs root to sign accounts in`

const proftpd = unpackedProgram('proftpd', 'usr/sbin/proftpd')
export const proftpdMissing = proftpd === undefined ? 'ProFTPD is not unpacked' : needsRoot('ProFTPD')
const pureFtpd = unpackedProgram('pure-ftpd', 'usr/sbin/pure-ftpd')
export const pureFtpdMissing = pureFtpd === undefined ? 'Pure-FTPd is not unpacked' : needsRoot('Pure-FTPd')

function prepared(name: string, certificate: ServerCertificate): { readonly folder: string; readonly home: string } {
  const folder = serverFolder(name)
  chownSync(folder, 0, 0)
  const home = join(folder, 'home')
  mkdirSync(home, { mode: 0o755 })
  chownSync(home, daemonId, daemonId)
  for (const part of ['cert', 'key'] as const) {
    writeFileSync(join(folder, `${part}.pem`), certificate[part])
    chmodSync(join(folder, `${part}.pem`), 0o600)
  }
  writeFileSync(join(folder, 'both.pem'), `${certificate.cert}\n${certificate.key}`, { mode: 0o600 })
  return { folder, home }
}

/** ProFTPD that accepts sign-ins only over TLS. */
export async function startProftpd({ certificate, settings = [] }: FtpServerOptions): Promise<FtpServer> {
  if (proftpd === undefined) throw new Error('ProFTPD is not unpacked')
  const { folder, home } = prepared('proftpd', certificate)
  const port = await freePort()
  const hash = spawnSync('openssl', ['passwd', '-6', account.password], { encoding: 'utf8' }).stdout.trim()
  writeFileSync(join(folder, 'users'), `${account.username}:${hash}:${daemonId}:${daemonId}::${home}:/bin/sh\n`, {
    mode: 0o600,
  })
  const lines = [
    `ModulePath ${proftpd.root}/usr/lib/proftpd`,
    'LoadModule mod_tls.c',
    'ServerType standalone',
    `Port ${port}`,
    'DefaultAddress 127.0.0.1',
    'UseIPv6 off',
    'User nobody',
    'Group nogroup',
    `AuthUserFile ${folder}/users`,
    'AuthOrder mod_auth_file.c',
    'RequireValidShell off',
    'UseFtpUsers off',
    `PidFile ${folder}/pid`,
    `ScoreboardFile ${folder}/scoreboard`,
    `ControlsSocket ${folder}/controls`,
    `DelayTable ${folder}/delay`,
    'WtmpLog off',
    'TransferLog none',
    `SystemLog ${folder}/log`,
    'DefaultRoot ~',
    'AllowOverwrite on',
    'TLSEngine on',
    'TLSRequired on',
    'TLSOptions NoSessionReuseRequired',
    `TLSRSACertificateFile ${folder}/cert.pem`,
    `TLSRSACertificateKeyFile ${folder}/key.pem`,
    `TLSCertificateChainFile ${folder}/cert.pem`,
    ...settings,
  ]
  // A certificate with an elliptic key has settings of its own.
  const text = lines.join('\n').replaceAll('TLSRSACertificate', 'TLSECCertificate')
  writeFileSync(join(folder, 'proftpd.conf'), `${text}\n`)
  const running = await startDaemon(
    '/usr/bin/env',
    [
      ...Object.entries(proftpd.env).map(([name, value]) => `${name}=${value}`),
      ...[proftpd.program, '--nodaemon', '--config', join(folder, 'proftpd.conf')],
    ],
    port,
  )
  return {
    port,
    ...account,
    home,
    remove: async () => {
      await running.stop()
      remove(folder)
    },
  }
}

/** Pure-FTPd that offers TLS. Its binary looks for the certificate where `-2` says. */
export async function startPureFtpd({ certificate, settings = [] }: FtpServerOptions): Promise<FtpServer> {
  if (pureFtpd === undefined) throw new Error('Pure-FTPd is not unpacked')
  const { folder, home } = prepared('pure-ftpd', certificate)
  const port = await freePort()
  const users = join(folder, 'users')
  // pure-pw would hash the password so that each sign-in takes seconds.
  const hash = spawnSync('openssl', ['passwd', '-6', account.password], { encoding: 'utf8' }).stdout.trim()
  writeFileSync(users, `${account.username}:${hash}:${daemonId}:${daemonId}::${home}/./::::::::::::\n`, { mode: 0o600 })
  const database = `${users}.pdb`
  const indexed = spawnSync(join(pureFtpd.root, 'usr/bin/pure-pw'), ['mkdb', database, '-f', users])
  if (indexed.status !== 0) throw new Error(`pure-pw mkdb: ${indexed.stderr}`)
  const running = await startDaemon(
    '/usr/bin/env',
    [
      ...Object.entries(pureFtpd.env).map(([name, value]) => `${name}=${value}`),
      pureFtpd.program,
      ...['-S', `127.0.0.1,${port}`, '-4', '-H', '-E', '-u', '1', '-l', `puredb:${database}`, '-f', 'none'],
      ...['-Y', '1', '-2', join(folder, 'both.pem'), '-g', join(folder, 'pid')],
      ...settings,
    ],
    port,
  )
  return {
    port,
    ...account,
    home,
    remove: async () => {
      await running.stop()
      remove(folder)
    },
  }
}
