import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { MonitorReport } from '../../../src/core/checks/engine/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { findProgram, remove } from '../servers/server.ts'

const unshare = findProgram('unshare') ?? ''
const nsenter = findProgram('nsenter') ?? ''
const child = new URL('../engine/type-child.ts', import.meta.url).pathname

/** Why there can be no mounts of a test's own, or undefined. */
export const mountNamespaceMissing =
  process.platform !== 'linux' || process.getuid?.() !== 0
    ? 'mounting needs root on Linux'
    : nsenter === '' || spawnSync(unshare, ['-m', 'true']).status !== 0
      ? 'there is no unshare or nsenter: mounting needs root and a kernel that allows it'
      : undefined

/** Mounts that nobody else sees. They end when `remove` ends the process that holds them. */
export type MountNamespace = {
  /** A folder of their own. */
  readonly folder: string
  /** Runs shell lines in these mounts. Throws what they write if they fail. */
  readonly shell: (lines: string) => Promise<string>
  /** The program and the arguments that run a program in these mounts. */
  readonly command: (program: string, args: readonly string[]) => readonly [string, readonly string[]]
  /** Runs the type App of a svc.yaml, or its host block, in these mounts. */
  readonly run: (yaml: string, mode: ExecutionMode, host: boolean) => Promise<readonly MonitorReport[]>
  /** The same, as another account. */
  readonly runAs: (uid: number, ...run: Parameters<MountNamespace['run']>) => Promise<readonly MonitorReport[]>
  readonly remove: () => Promise<void>
}

/** `network`: with a network of their own too, without any interface. */
export async function startMountNamespace({ network = false } = {}): Promise<MountNamespace> {
  const spaces = network ? ['-m', '-n'] : ['-m']
  const folder = mkdtempSync(join(tmpdir(), 'svc-mounts-'))
  const lines = 'mount --make-rprivate / && chmod 755 "$1" && echo ready && exec sleep infinity'
  const holder = spawn(unshare, [...spaces, 'sh', '-c', lines, 'sh', folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  const kill = (): void => void holder.kill('SIGKILL')
  process.once('exit', kill)
  await once(holder.stdout, 'data')
  const { pid } = holder
  if (pid === undefined) throw new Error('unshare cannot be started')
  const command: MountNamespace['command'] = (program, args) => [
    nsenter,
    ['-t', String(pid), ...spaces, program, ...args],
  ]
  const output = async (program: string, args: readonly string[]): Promise<string> => {
    const [file, all] = command(program, args)
    return (await promisify(execFile)(file, [...all], { timeout: 60_000, maxBuffer: 16 * 1024 * 1024 })).stdout
  }
  return {
    folder,
    shell: (text) => output('sh', ['-ec', text]),
    command,
    run: async (yaml, mode, host) => JSON.parse(await output(process.execPath, [child, yaml, mode, String(host)])),
    runAs: async (uid, yaml, mode, host) => {
      const account = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups']
      return JSON.parse(await output('setpriv', [...account, process.execPath, child, yaml, mode, String(host)]))
    },
    remove: async () => {
      const ended = once(holder, 'exit')
      kill()
      await ended
      process.off('exit', kill)
      remove(folder)
    },
  }
}
