import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from './own-daemon.ts'
import { findProgram, freePort, remove } from './server.ts'

const daemon = findProgram('sshd')
const keygen = spawnSync('ssh-keygen', ['-?']).error === undefined
export const sshdMissing =
  daemon === undefined ? 'OpenSSH (sshd) is not installed' : keygen ? undefined : 'ssh-keygen is not installed'

export type Sshd = {
  readonly log: () => string
  readonly port: number
  readonly address: string
  /** `SHA256:…` of its key, as ssh-keygen prints it. */
  readonly hostKey: string
  readonly hostKeyFile: string
  /** Who may sign in: the account that the test runs under. */
  readonly user: string
  readonly privateKey: string
  /** The same key, under the passphrase `correct horse`. */
  readonly lockedKey: string
  /** A key that opens nothing. */
  readonly strangerKey: string
  /** A folder to read and write in. */
  readonly files: string
  readonly sessions: () => number
  readonly freeze: () => void
  readonly thaw: () => void
  /** Ends it, and keeps its files. */
  readonly stop: () => Promise<void>
  readonly remove: () => Promise<void>
}

/** A real sshd on a free port of 127.0.0.1, with its own configuration and host key, for this account and its key alone. */
export async function startSshd(settings: readonly string[] = []): Promise<Sshd> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sshd-'))
  const files = join(folder, 'files')
  mkdirSync(files)
  const key = (name: string, passphrase = ''): string => {
    const file = join(folder, name)
    const made = spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', passphrase, '-C', 'test', '-f', file])
    if (made.status !== 0) throw new Error(`ssh-keygen: ${made.stderr}`)
    return file
  }
  const [host, user, stranger, locked] = [key('host'), key('user'), key('stranger'), key('locked', 'correct horse')]
  const publicKeys = [user, locked].map((file) => readFileSync(`${file}.pub`, 'utf8')).join('')
  writeFileSync(join(folder, 'authorized'), publicKeys, { mode: 0o600 })
  const fingerprint = spawnSync('ssh-keygen', ['-lf', `${host}.pub`], { encoding: 'utf8' }).stdout.split(' ')[1] ?? ''
  const port = await freePort()
  // Debian's build requires it, and nothing creates it where sshd does not run as a service.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  const config = join(folder, 'sshd_config')
  const lines = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${host}`,
    `PidFile ${join(folder, 'pid')}`,
    `AuthorizedKeysFile ${join(folder, 'authorized')}`,
    'StrictModes no',
    'UsePAM no',
    'PermitRootLogin prohibit-password',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    ...(settings.some((line) => line.startsWith('Subsystem ')) ? [] : ['Subsystem sftp internal-sftp']),
    ...settings,
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  const running = await startDaemon(daemon ?? '', ['-D', '-e', '-f', config], port)
  return {
    port,
    address: `127.0.0.1:${port}`,
    hostKey: fingerprint,
    hostKeyFile: `${host}.pub`,
    user: userInfo().username,
    privateKey: readFileSync(user, 'utf8'),
    lockedKey: readFileSync(locked, 'utf8'),
    strangerKey: readFileSync(stranger, 'utf8'),
    files,
    log: running.log,
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
