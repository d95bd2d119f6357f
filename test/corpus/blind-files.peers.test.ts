import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type Sshd, sshdMissing, startSshd } from '../support/servers/sshd.ts'
import { startVsftpd, type Vsftpd, vsftpdMissing, vsftpdPassword } from '../support/servers/vsftpd.ts'
import { corpus } from './corpus.ts'
import type { Row } from './row.ts'

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
    expected: { state: 'unhealthy', check: 'backlog', fault: 'threshold', says: /\b5\b/ },
  },
  {
    fault: 'the transfer is too slow',
    blind: 'wrong expectation',
    env: keys,
    monitor: (servers) =>
      sftp('open', { allowWrites: true, probeFolder: servers.open.files, throughput: { limit: '100GB' } })(servers),
    expected: { state: 'unhealthy', check: 'throughput', fault: 'threshold', says: /bytes per second/ },
  },
  {
    fault: 'the configuration no longer admits the account (DenyUsers)',
    blind: 'held',
    env: keys,
    monitor: sftp('denied'),
    expected: { state: 'unhealthy', check: 'sign-in', fault: 'auth', says: /refused/ },
  },
  {
    fault: 'the SFTP subsystem is missing',
    blind: 'held',
    env: keys,
    monitor: sftp('withoutSftp'),
    expected: { state: 'unhealthy', check: 'listing', says: /SFTP|subsystem/i },
  },
  {
    fault: 'a forced command stands where SFTP should be',
    blind: 'wrong expectation',
    env: keys,
    monitor: sftp('forced'),
    expected: { state: 'unhealthy', check: 'listing', fault: 'data', says: /SFTP/ },
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
  stop: async (servers) => {
    for (const server of Object.values(servers)) await server.remove()
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
    env,
    monitor: ftp('open', { allowWrites: true, probeFolder: 'incoming' }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'too many files wait in the drop folder',
    blind: 'held',
    env,
    monitor: ftp('open', { folder: 'incoming/drop', files: { limit: 2 } }),
    plant: async ({ open }) => drop(join(open.incoming, 'drop'), 5),
    expected: { state: 'unhealthy', check: 'backlog', fault: 'threshold', says: /\b5\b/ },
  },
  {
    fault: 'the transfer is too slow',
    blind: 'wrong expectation',
    env,
    monitor: ftp('open', { allowWrites: true, probeFolder: 'incoming', throughput: { limit: '100GB' } }),
    expected: { state: 'unhealthy', check: 'throughput', fault: 'threshold', says: /bytes per second/ },
  },
  {
    fault: 'passive mode is switched off',
    blind: 'wrong expectation',
    env,
    monitor: ftp('withoutPassive'),
    expected: { state: 'unhealthy', check: 'EPSV', says: /550 Permission denied/ },
  },
  {
    fault: 'the server names the wrong address behind its router (pasv_address)',
    blind: 'held',
    env,
    monitor: ftp('behindRouter'),
    expected: { state: 'unhealthy', check: 'PASV', says: /127\.0\.0\.9/ },
  },
  {
    fault: 'every port for passive connections is in use',
    blind: 'wrong cause',
    env,
    monitor: ftp('taken'),
    // Two processes of the server answer and end: PASV may get its answer or the end of the connection.
    expected: {
      state: 'unhealthy',
      check: 'data connection',
      orCheck: 'PASV',
      says: /EPSV (?:was answered )?with "500 OOPS: vsf_sysutil_bind/,
    },
  },
  {
    fault: 'the server has all the sessions that it accepts (max_clients)',
    blind: 'held',
    env,
    monitor: ftp('one'),
    plant: async ({ one }) => {
      const session = connect(one.port, '127.0.0.1')
      await new Promise((resolve) => session.once('data', resolve))
      return () => void session.destroy()
    },
    expected: { state: 'unhealthy', check: 'banner', says: /421|sessions|too many/i },
  },
]

corpus<Ftp>({
  server: 'vsftpd, blind rows',
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
  stop: async (servers) => {
    for (const server of Object.values(servers)) await server.remove()
  },
  rows: ftpRows,
})
