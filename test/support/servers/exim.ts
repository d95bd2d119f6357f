import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerCertificate } from './certs.ts'
import { startDaemon } from './own-daemon.ts'
import { findProgram, freePort, remove, serverFolder } from './server.ts'

const program = findProgram('exim4')
/** As another account than root, Exim refuses a configuration of its own. */
export const eximMissing =
  program === undefined
    ? 'Exim (exim4) is not installed'
    : process.getuid?.() === 0
      ? undefined
      : 'Exim needs root for a configuration of its own'

export type Exim = {
  readonly port: number
  /** The program and the arguments with which its queue is read. */
  readonly program: string
  readonly config: string
  readonly spool: string
  /** Puts messages into the queue, from which nothing delivers them. */
  readonly queue: (messages: number) => void
  readonly freeze: () => void
  readonly thaw: () => void
  readonly stop: () => Promise<void>
  readonly remove: () => Promise<void>
}

/** Lines of the configuration with which Exim reports a full spool: it wants more room than any disk has. */
export const fullSpool = ['check_spool_space = 1000000000G']
/** Lines of the configuration with which Exim defers every recipient, as a server with greylisting does. */
export const greylisting = ['acl_smtp_rcpt = greylist']
/** Lines of the configuration with which Exim refuses every recipient. */
export const refusingAll = ['acl_smtp_rcpt = refuse']
/** Lines of the configuration with which Exim serves one connection, and refuses any other. */
export const oneConnection = ['smtp_accept_max = 1']

/**
 * A real Exim on a free port of 127.0.0.1, with its own configuration and spool. It delivers nothing. It offers STARTTLS
 * with a certificate, and does not know nobody@svc.test.
 */
export async function startExim(global: readonly string[] = [], certificate?: ServerCertificate): Promise<Exim> {
  const folder = serverFolder('exim')
  const port = await freePort()
  const config = join(folder, 'exim.conf')
  const acl = global.some((line) => line.startsWith('acl_smtp_rcpt')) ? [] : ['acl_smtp_rcpt = everything']
  const tls = certificate ? tlsLines(folder, certificate) : ['tls_advertise_hosts =']
  const lines = [
    `spool_directory = ${join(folder, 'spool')}`,
    `log_file_path = ${join(folder, 'log-%s')}`,
    `pid_file_path = ${join(folder, 'pid')}`,
    'primary_hostname = mail.svc.test',
    'local_interfaces = 127.0.0.1',
    `daemon_smtp_ports = ${port}`,
    'host_lookup =',
    'rfc1413_query_timeout = 0s',
    'queue_only = true',
    'trusted_users = root',
    // The account that owns the folder.
    'exim_user = nobody',
    'exim_group = nogroup',
    'keep_environment =',
    ...tls,
    ...acl,
    ...global,
    'begin acl',
    'everything:',
    '  deny recipients = nobody@svc.test',
    '       message = 5.1.1 User unknown',
    '  accept',
    'greylist:',
    '  defer message = greylisted, come back later',
    'refuse:',
    '  deny message = mail is not accepted',
    'begin routers',
    'nowhere:',
    '  driver = accept',
    '  transport = discard',
    'begin transports',
    'discard:',
    '  driver = appendfile',
    '  file = /dev/null',
    '  user = nobody',
    '',
  ]
  writeFileSync(config, lines.join('\n'))
  const running = await startDaemon(program ?? '', ['-C', config, '-bdf'], port)
  return {
    port,
    program: program ?? '',
    config,
    spool: join(folder, 'spool'),
    queue: (messages) => {
      for (let sent = 0; sent < messages; sent += 1) {
        const mail = spawnSync(program ?? '', ['-C', config, '-odq', 'someone@svc.test'], {
          input: 'Subject: waits\n\nwaits\n',
          encoding: 'utf8',
        })
        if (mail.status !== 0) throw new Error(`exim: ${mail.stderr}`)
      }
    },
    freeze: running.freeze,
    thaw: running.thaw,
    stop: running.stop,
    remove: async () => {
      await running.stop()
      remove(folder)
    },
  }
}

function tlsLines(folder: string, { cert, key }: ServerCertificate): readonly string[] {
  // Exim reads both as the account of its configuration.
  const [certificate, privateKey] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  writeFileSync(certificate, cert, { mode: 0o644 })
  writeFileSync(privateKey, key, { mode: 0o644 })
  return ['tls_advertise_hosts = *', `tls_certificate = ${certificate}`, `tls_privatekey = ${privateKey}`]
}
