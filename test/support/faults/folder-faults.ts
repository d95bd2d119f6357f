import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A file whose date is so many milliseconds ago; negative: in the future. */
export function fileOfAge(folder: string, name: string, ageMs: number, content = 'x'): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  const at = new Date(Date.now() - ageMs)
  utimesSync(path, at, at)
  return path
}

/** A new folder with so many files of an age; resolves with what removes it. */
export function folderWith(folder: string, files: number, ageMs = 0): () => void {
  mkdirSync(folder, { mode: 0o755 })
  for (let one = 0; one < files; one += 1) fileOfAge(folder, `order-${one}.xml`, ageMs)
  return () => rmSync(folder, { recursive: true })
}
