import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type Sshd, sshdMissing, startSshd } from '../support/servers/sshd.ts'
import { startVsftpd, type Vsftpd, vsftpdMissing, vsftpdPassword } from '../support/servers/vsftpd.ts'
import { corpus } from './corpus.ts'
import { fails, type Row } from './row.ts'

type Ssh = {
  readonly open: Sshd
  readonly denied: Sshd
  readonly withoutSftp: Sshd
  readonly forced: Sshd
  readonly motd: Sshd
}

const keys: Record<string, string> = {}
const sftp =
  (name: keyof Ssh, more: object = {}) =>
  (servers: Ssh) => ({
    kind: 'sftp',
    host: '127.0.0.1',
    port: servers[name].port,
    hostKey: [servers[name].hostKey],
    username: servers[name].user,
    privateKey: { env: name },
    ...more,
  })
const drop = (folder: string, files: number): (() => void) => {
  mkdirSync(folder, { mode: 0o755 })
  for (let n = 0; n < files; n += 1) writeFileSync(join(folder, `order-${n}.xml`), '<order/>')
  return () => rmSync(folder, { recursive: true })
}

const sshRows: readonly Row<Ssh>[] = [
  {
    fault: 'healthy',
    env: keys,
    monitor: (servers) => sftp('open', { allowWrites: true, probeFolder: servers.open.files })(servers),
    expected: { state: 'healthy' },
  },
  {
    fault: 'too many files wait in the drop folder',
    blind: 'held',
    env: keys,
    monitor: (servers) => sftp('open', { folder: join(servers.open.files, 'drop'), files: { limit: 2 } })(servers),
    plant: async ({ open }) => drop(join(open.files, 'drop'), 5),
    expected: fails('backlog', 'threshold', /\b5\b/),
  },
  {
    fault: 'the transfer is too slow',
    blind: 'wrong expectation',
    env: keys,
    monitor: (servers) =>
      sftp('open', { allowWrites: true, probeFolder: servers.open.files, throughput: { limit: '100GB' } })(servers),
    expected: fails('throughput', 'threshold', /bytes per second/),
  },
  {
    fault: 'the configuration no longer admits the account (DenyUsers)',
    blind: 'held',
    env: keys,
    monitor: sftp('denied'),
    expected: fails('sign-in', 'auth', /refused/),
  },
  {
    fault: 'the SFTP subsystem is missing',
    blind: 'held',
    env: keys,
    monitor: sftp('withoutSftp'),
    expected: fails('listing', 'any', /SFTP|subsystem/i),
  },
  {
    fault: 'a forced command stands where SFTP should be',
    blind: 'wrong expectation',
    env: keys,
    monitor: sftp('forced'),
    expected: fails('listing', 'data', /SFTP/),
  },
  {
    fault: 'healthy with a banner of the operator before the sign-in',
    blind: 'held',
    env: keys,
    monitor: sftp('motd'),
    expected: { state: 'healthy' },
  },
]

corpus<Ssh>({
  server: 'OpenSSH, blind rows',
  missing: sshdMissing,
  start: async () => {
    const servers = {
      open: await startSshd(),
      denied: await startSshd(['DenyUsers *']),
      withoutSftp: await startSshd(['Subsystem none /bin/true']),
      forced: await startSshd(['ForceCommand /bin/echo This account is currently not available.']),
      motd: await startSshd(['Banner /etc/os-release']),
    }
    for (const [name, server] of Object.entries(servers)) keys[name] = server.privateKey
    return servers
  },
  rows: sshRows,
})

type Ftp = {
  readonly open: Vsftpd
  readonly withoutPassive: Vsftpd
  readonly behindRouter: Vsftpd
  readonly taken: Vsftpd
  readonly one: Vsftpd
}
const env = { PASSWORD: vsftpdPassword }
const ftp =
  (name: keyof Ftp, more: object = {}) =>
  (servers: Ftp) => ({
    kind: 'ftp',
    host: '127.0.0.1',
    port: servers[name].port,
    tls: 'off',
    username: 'ftp',
    password: { env: 'PASSWORD' },
    ...more,
  })

const ftpRows: readonly Row<Ftp>[] = [
  {
    fault: 'healthy',
    monitor: ftp('open', { allowWrites: true, probeFolder: 'incoming' }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'too many files wait in the drop folder',
    blind: 'held',
    monitor: ftp('open', { folder: 'incoming/drop', files: { limit: 2 } }),
    plant: async ({ open }) => drop(join(open.incoming, 'drop'), 5),
    expected: fails('backlog', 'threshold', /\b5\b/),
  },
  {
    fault: 'the transfer is too slow',
    blind: 'wrong expectation',
    monitor: ftp('open', { allowWrites: true, probeFolder: 'incoming', throughput: { limit: '100GB' } }),
    expected: fails('throughput', 'threshold', /bytes per second/),
  },
  {
    fault: 'passive mode is switched off',
    blind: 'wrong expectation',
    monitor: ftp('withoutPassive'),
    expected: fails('EPSV', 'any', /550 Permission denied/),
  },
  {
    fault: 'the server names the wrong address behind its router (pasv_address)',
    blind: 'held',
    monitor: ftp('behindRouter'),
    expected: fails('PASV', 'any', /127\.0\.0\.9/),
  },
  {
    fault: 'every port for passive connections is in use',
    blind: 'wrong cause',
    monitor: ftp('taken'),
    // Two processes of the server answer and end: PASV may get its answer or the end of the connection.
    expected: fails('data connection', 'any', /EPSV (?:was answered )?with "500 OOPS: vsf_sysutil_bind/, {
      orCheck: 'PASV',
    }),
  },
  {
    fault: 'the server has all the sessions that it accepts (max_clients)',
    blind: 'held',
    monitor: ftp('one'),
    plant: async ({ one }) => {
      const session = connect(one.port, '127.0.0.1')
      await new Promise((resolve) => session.once('data', resolve))
      return () => void session.destroy()
    },
    expected: fails('banner', 'any', /421|sessions|too many/i),
  },
]

corpus<Ftp>({
  server: 'vsftpd, blind rows',
  env,
  missing: vsftpdMissing,
  start: async () => {
    const open = await startVsftpd()
    return {
      open,
      withoutPassive: await startVsftpd({ settings: { pasv_enable: 'NO' } }),
      behindRouter: await startVsftpd({ settings: { pasv_address: '127.0.0.9' } }),
      taken: await startVsftpd({ settings: { pasv_min_port: open.port, pasv_max_port: open.port } }),
      one: await startVsftpd({ settings: { max_clients: 1 } }),
    }
  },
  rows: ftpRows,
})
