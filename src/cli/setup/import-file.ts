import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Imported } from '../../core/config/import/index.ts'
import { loadConfig, loadImport } from '../../core/config/index.ts'
import type { Io } from '../io/io.ts'
import { machine } from '../io/process.ts'
import { awaitShare, trouble } from '../settings/private-file.ts'
import { proposedBy } from './discovery.ts'
import { schemaLine } from './init-file.ts'

/** A svc.yaml from a file of another tool. Throws `Fault` for a file that cannot be read or is of no known format. */
export async function importedFrom(
  path: string,
  from: string | undefined,
  { clock }: Pick<Io, 'clock'>,
): Promise<Imported> {
  await awaitShare(path)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw trouble(path, 'read', error)
  }
  const { importFile } = await loadImport()
  const folder = mkdtempSync(join(tmpdir(), 'svc-import-'))
  try {
    return await importFile(
      { path, text, from, head: [schemaLine(), proposedBy('svc import', clock)] },
      async (yaml) => {
        writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
        return await loadConfig({ env: { SVC_HOME: folder }, platform: machine.platform, home: folder, tolerant: true })
      },
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
