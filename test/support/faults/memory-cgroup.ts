import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A group of processes whose memory the kernel limits, as it does in a container. */
export type MemoryCgroup = {
  /** The program and first arguments that start another program in the group. */
  readonly command: readonly string[]
  /** The most that the group has used, page cache included, in bytes. */
  readonly peak: () => number
  /** Only when no process is left in it. */
  readonly remove: () => void
}

/** Version 1 of the kernel's interface has a folder for each resource; version 2 has one for all. */
const version1 = existsSync('/sys/fs/cgroup/memory/memory.limit_in_bytes')
const interfaces = version1
  ? { root: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes', peak: 'memory.max_usage_in_bytes' }
  : { root: '/sys/fs/cgroup', limit: 'memory.max', peak: 'memory.peak' }

/** Why none can be made here. */
export const memoryCgroupMissing: string | undefined = (() => {
  try {
    accessSync(interfaces.root, constants.W_OK)
    const made = startMemoryCgroup(64)
    made.remove()
    return undefined
  } catch (error) {
    return `needs root, to make a memory cgroup: ${(error as Error).message}`
  }
})()

/** Throws where `memoryCgroupMissing` says why. */
export function startMemoryCgroup(megabytes: number): MemoryCgroup {
  const { root, limit, peak } = interfaces
  const folder = join(root, `svc-test-${process.pid}-${megabytes}`)
  mkdirSync(folder)
  try {
    writeFileSync(join(folder, limit), String(megabytes * 2 ** 20))
  } catch (error) {
    rmdirSync(folder)
    throw error
  }
  return {
    command: ['/bin/sh', '-c', `echo $$ > ${folder}/cgroup.procs && exec "$@"`, 'sh'],
    peak: () => Number(readFileSync(join(folder, peak), 'utf8')),
    remove: () => rmdirSync(folder),
  }
}
