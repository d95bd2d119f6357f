import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Data, openData } from '../../../src/core/store/index.ts'

/** An embedded store of a test's own: `await using`. */
export async function storeOfTest(): Promise<{ readonly data: Data } & AsyncDisposable> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-store-'))
  const data = await openData({ store: join(folder, 'own', 'svc.db'), create: true })
  return {
    data,
    [Symbol.asyncDispose]: async () => {
      await data.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
