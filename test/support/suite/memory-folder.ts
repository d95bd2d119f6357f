import { readFileSync, statfsSync } from 'node:fs'

/** Bytes that clusters of PostgreSQL and stores of several files at a time may take. */
const neededBytes = 4 * 2 ** 30
const folder = '/dev/shm'

/**
 * For the environment of quick tests: temporary folders in memory. On a disk, waiting until it has written each commit takes up
 * to half of the time of a test with a store. Empty where memory has no such folder, or programs may not run from it: then
 * they are on the disk. What a store keeps when the power fails is the subject of slow tests, which are on the disk.
 */
export const memoryFolder: { readonly TMPDIR?: string } = isUsable() ? { TMPDIR: folder } : {}

function isUsable(): boolean {
  try {
    const options = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .find(([, place, type]) => place === folder && type === 'tmpfs')?.[3]
      ?.split(',')
    const { bavail, bsize } = statfsSync(folder)
    return options?.includes('rw') === true && !options.includes('noexec') && bavail * bsize >= neededBytes
  } catch {
    // Not Linux.
    return false
  }
}
