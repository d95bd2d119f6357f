import { statfs } from 'node:fs/promises'

/** A file system as statfs describes it. `available` is what an unprivileged program may write, in blocks. */
export type Space = {
  readonly blockBytes: number
  readonly blocks: number
  readonly available: number
  /** Both 0 where the file system creates inodes on demand. */
  readonly inodes: number
  readonly freeInodes: number
}

/** Reads the figures of the file system at a path. Waits as long as the file system does. */
export async function readSpace(path: string): Promise<Space> {
  const { bavail, blocks, bsize, ffree, files } = await statfs(path)
  return { blockBytes: bsize, blocks, available: bavail, inodes: files, freeInodes: ffree }
}
