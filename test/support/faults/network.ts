import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { findProgram } from '../servers/server.ts'

/**
 * A network namespace of its own, whose one interface is loopback with three more addresses: what is not loopback by
 * its number can be listened on there, without a second machine and without changing this one.
 */
export const linkLocal4 = '169.254.77.1'
export const linkLocal6 = 'fe80::77%lo'
export const privateAddress = '10.77.0.1'

/** Names as the hosts file of the namespace has them, in its order. */
const hosts = `
127.0.0.1 localhost
${linkLocal4} link4.test
${linkLocal6} link6.test
${privateAddress} private.test 127.private.test elsewhere.localhost
127.0.0.2 loopback.test here.localhost
${privateAddress} mixed.test
127.0.0.2 mixed.test
`

const setUp = `
set -e
mount --bind "$1" /etc/hosts
shift
ip link set lo up
ip address add ${linkLocal4}/32 dev lo
ip address add ${privateAddress}/32 dev lo
ip address add ${linkLocal6.replace(/%.*/, '')}/64 dev lo nodad
exec "$@"
`
const unshare = 'unshare'
/** Its arguments. */
const within = (hostsFile: string, ...command: readonly string[]): readonly string[] => [
  ...['--map-root-user', '--net', '--mount', 'sh', '-c', setUp, 'sh', hostsFile],
  ...command,
]

/** Why there is no such namespace here, or undefined. */
export function missingNamespace(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are a part of Linux'
  const absent = [unshare, 'ip', 'mount'].find((program) => findProgram(program) === undefined)
  if (absent !== undefined) return `${absent} is not installed`
  const { status } = spawnSync(unshare, within('/etc/hosts', 'true'))
  return status === 0 ? undefined : 'a network namespace needs root or user namespaces, and IPv6'
}

/** Milliseconds that a script may take in all. */
const maxMs = 170_000

/** Runs a script of Node in the namespace, and returns the JSON that it prints. Rejects with its standard error. */
export async function inNamespace(script: URL): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-network-'))
  const file = join(folder, 'hosts')
  writeFileSync(file, hosts)
  try {
    const command = within(file, process.execPath, script.pathname)
    const child = spawn(unshare, command, { stdio: ['ignore', 'pipe', 'pipe'], timeout: maxMs })
    const [answer, complaint, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ])
    if (code !== 0) throw new Error(`${script.pathname} ended with ${code}: ${complaint}`)
    return JSON.parse(answer)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
