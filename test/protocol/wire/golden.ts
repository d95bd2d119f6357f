import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'vitest'

const folder = new URL('../../golden/wire/', import.meta.url)

/** Compares with `test/golden/wire/<name>`, byte for byte; `UPDATE=1` rewrites it. */
export const expectGolden = (name: string, actual: string): void => {
  const file = new URL(name, folder)
  if (process.env['UPDATE'] === '1') {
    mkdirSync(folder, { recursive: true })
    writeFileSync(file, actual)
  }
  expect(actual).toBe(readFileSync(file, 'utf8'))
}
