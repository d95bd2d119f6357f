import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

/** Where groups with a memory limit are made: version 2, or version 1. */
const version2 = existsSync('/sys/fs/cgroup/cgroup.controllers')
const folder = version2 ? '/sys/fs/cgroup' : '/sys/fs/cgroup/memory'
const limitFile = version2 ? 'memory.max' : 'memory.limit_in_bytes'
const group = join(folder, `svc-test-${process.pid}`)

export const oomMissing = ((): string | undefined => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'a memory limit needs root on Linux'
  try {
    mkdirSync(group)
    return existsSync(join(group, limitFile)) ? undefined : 'the memory controller needs root of the whole machine'
  } catch {
    return 'a group of processes needs root of the whole machine'
  } finally {
    if (existsSync(group)) rmdirSync(group)
  }
})()

/** Lets a process exceed its memory limit of 16 MiB, so that the kernel ends it. */
export async function killForLackOfMemory(): Promise<void> {
  mkdirSync(group)
  try {
    writeFileSync(join(group, limitFile), String(16 * 1024 * 1024))
    const grows = 'const all = []; for (;;) all.push(Buffer.alloc(1e6, 1))'
    const lines = `echo $$ > ${join(group, 'cgroup.procs')}; exec ${process.execPath} -e '${grows}'`
    const { signal } = spawnSync('sh', ['-c', lines], { timeout: 30_000 })
    if (signal !== 'SIGKILL') throw new Error('the kernel did not end the process')
  } finally {
    // The kernel takes a moment until the group is empty.
    for (let round = 0; round < 100 && existsSync(group); round += 1) {
      try {
        rmdirSync(group)
      } catch {
        await pause(20)
      }
    }
  }
}
