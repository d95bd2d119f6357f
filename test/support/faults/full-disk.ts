import { spawnSync } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Mounts a file system without free space over a folder, with its owner and its permissions. Needs root. */
export function fillDisk(folder: string): { readonly free: () => void } {
  const { uid, gid, mode } = statSync(folder)
  const options = `size=64k,uid=${uid},gid=${gid},mode=${(mode & 0o7777).toString(8)}`
  command('mount', ['-t', 'tmpfs', '-o', options, 'none', folder])
  try {
    writeFileSync(join(folder, 'filler'), Buffer.alloc(64 * 1024))
  } catch (error) {
    command('umount', [folder])
    throw error
  }
  return { free: () => command('umount', ['--lazy', folder]) }
}

function command(program: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program}: ${stderr}`)
}
