import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { findProgram } from '../servers/server.ts'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from './mount-namespace.ts'

export const shareMissing =
  mountNamespaceMissing ?? (findProgram('bindfs') === undefined ? 'bindfs is not installed' : undefined)

/** A real file system of FUSE in mounts of its own. While it is stopped, whoever uses a path below it waits. */
export type FuseShare = {
  /** The folder that it shows, and the place where it shows that. */
  readonly real: string
  readonly point: string
  readonly mounts: MountNamespace
  readonly stop: () => Promise<void>
  readonly go: () => void
  readonly remove: () => Promise<void>
}

/** Milliseconds that the kernel remembers what is at a path. */
const rememberedMs = 1_200

export async function startShare(): Promise<FuseShare> {
  const mounts = await startMountNamespace()
  const [real, point] = [join(mounts.folder, 'real'), join(mounts.folder, 'share')]
  for (const folder of [real, point]) mkdirSync(folder)
  const [file, args] = mounts.command('bindfs', ['-f', real, point])
  const daemon = spawn(file, [...args], { stdio: ['ignore', 'ignore', 'inherit'] })
  const kill = (): void => void daemon.kill('SIGKILL')
  process.once('exit', kill)
  await mounts.shell(`for round in $(seq 100); do mountpoint -q ${point} && exit; sleep 0.05; done; exit 1`)
  return {
    real,
    point,
    mounts,
    stop: async () => {
      daemon.kill('SIGSTOP')
      await wait(rememberedMs)
    },
    go: () => void daemon.kill('SIGCONT'),
    remove: async () => {
      const ended = once(daemon, 'exit')
      kill()
      await ended
      process.off('exit', kill)
      await mounts.remove()
    },
  }
}
