import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Data, openData, openStore } from '../../../src/core/store/index.ts'

let empty: Buffer | undefined

/**
 * Puts an empty store at a path where there is nothing: a copy of one that svc has made. The steps of the schema take
 * longer than most tests of what a store contains.
 */
export function placeStore(path: string): void {
  empty ??= emptyStore()
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, empty, { mode: 0o600, flag: 'wx' })
}

function emptyStore(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'svc-empty-store-'))
  try {
    const path = join(folder, 'own', 'svc.db')
    openStore({ path, create: true }).close()
    return readFileSync(path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** An embedded store of a test's own: `await using`. */
export async function storeOfTest(): Promise<{ readonly data: Data } & AsyncDisposable> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-store-'))
  const store = join(folder, 'own', 'svc.db')
  placeStore(store)
  const data = await openData({ store, create: false })
  return {
    data,
    [Symbol.asyncDispose]: async () => {
      await data.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
