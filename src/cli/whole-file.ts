import { stat, writeFile } from 'node:fs/promises'
import { replaceFile } from './private-file.ts'

/**
 * Writes a file that others wait for: they find the whole of it or nothing. What is there and is no regular file, a
 * device or a pipe, is written to as it is. Throws what the file system throws; nothing is left behind then.
 */
export async function writeWhole(file: string, content: string, mode = 0o666): Promise<void> {
  const there = await stat(file).catch(() => undefined)
  if (there !== undefined && !there.isFile()) return await writeFile(file, content)
  replaceFile(file, content, mode)
}
