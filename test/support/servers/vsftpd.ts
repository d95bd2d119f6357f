import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerCertificate } from './certs.ts'
import { startDaemon } from './own-daemon.ts'
import { findProgram, freePort, remove, serverFolder } from './server.ts'

const daemon = findProgram('vsftpd')
/** It needs root for its chroot; without, its suite cannot run. */
export const vsftpdMissing =
  daemon === undefined
    ? 'vsftpd is not installed'
    : process.getuid?.() === 0
      ? undefined
      : 'vsftpd needs root for its chroot'

export type Vsftpd = {
  readonly port: number
  readonly address: string
  /** The folder that is `/` of a session; `incoming` in it is writable. */
  readonly root: string
  readonly incoming: string
  /** Processes that serve a connection. */
  readonly sessions: () => number
  readonly freeze: () => void
  readonly thaw: () => void
  /** Ends it, and keeps its files. */
  readonly stop: () => Promise<void>
  readonly remove: () => Promise<void>
}
export type VsftpdOptions = {
  readonly certificate?: ServerCertificate
  /** `name: value` of vsftpd.conf. */
  readonly settings?: Readonly<Record<string, string | number>>
}

const daemonId = 1
/** The only password that the account `ftp` accepts. */
export const vsftpdPassword = 'correct-horse@svc.test'

/** A real vsftpd on a free port of 127.0.0.1, with its own configuration, in a chroot of its own. */
export async function startVsftpd({ certificate, settings = {} }: VsftpdOptions = {}): Promise<Vsftpd> {
  const folder = serverFolder('vsftpd')
  const [root, empty] = [join(folder, 'root'), join(folder, 'empty')]
  const incoming = join(root, 'incoming')
  for (const path of [root, empty, incoming]) mkdirSync(path, { mode: 0o755 })
  // The root of a chroot must belong to somebody else (vsftpd refuses it otherwise).
  for (const path of [folder, root, empty]) chownSync(path, 0, 0)
  // Debian's account daemon: a session begins in its home, which is there.
  chownSync(incoming, daemonId, daemonId)
  const passwords = join(folder, 'passwords')
  writeFileSync(passwords, `${vsftpdPassword}\n`)
  const files: Record<string, string> = {}
  if (certificate) {
    for (const name of ['key', 'cert'] as const) {
      files[name] = join(folder, `${name}.pem`)
      writeFileSync(files[name], certificate[name])
      chmodSync(files[name], 0o600)
    }
  }
  const port = await freePort()
  const written = {
    listen: 'YES',
    listen_address: '127.0.0.1',
    listen_port: port,
    background: 'NO',
    seccomp_sandbox: 'NO',
    anonymous_enable: 'YES',
    local_enable: 'NO',
    ftp_username: 'daemon',
    nopriv_user: 'nobody',
    secure_chroot_dir: empty,
    anon_root: root,
    secure_email_list_enable: 'YES',
    email_password_file: passwords,
    write_enable: 'YES',
    anon_upload_enable: 'YES',
    anon_other_write_enable: 'YES',
    anon_world_readable_only: 'NO',
    anon_umask: '022',
    max_login_fails: 3,
    delay_failed_login: 0,
    xferlog_enable: 'NO',
    ...(certificate
      ? {
          ssl_enable: 'YES',
          allow_anon_ssl: 'YES',
          force_anon_logins_ssl: 'YES',
          force_anon_data_ssl: 'YES',
          ssl_ciphers: 'HIGH',
          rsa_cert_file: files.cert ?? '',
          rsa_private_key_file: files.key ?? '',
        }
      : {}),
    ...settings,
  }
  const config = join(folder, 'vsftpd.conf')
  writeFileSync(
    config,
    Object.entries(written)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  )
  const running = await startDaemon(daemon ?? '', [config], port)
  return {
    port,
    address: `127.0.0.1:${port}`,
    root,
    incoming,
    sessions: running.sessions,
    freeze: running.freeze,
    thaw: running.thaw,
    stop: running.stop,
    remove: async () => {
      await running.stop()
      remove(folder)
    },
  }
}
