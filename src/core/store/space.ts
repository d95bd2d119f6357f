import { statfsSync } from 'node:fs'

/** Why nothing more can be written to the file system of a folder, after it said that it has no space. */
export function fullFileSystem(folder: string): string {
  return hasNoInode(folder) ? 'no inode is left on its file system' : 'the disk is full'
}

/** Whether a file system has no inode left, so that no file can be created although there is space. */
export function hasNoInode(folder: string): boolean {
  try {
    const { files, ffree } = statfsSync(folder)
    // Btrfs and others make inodes as needed, and report none.
    return files > 0 && ffree === 0
  } catch {
    return false
  }
}
