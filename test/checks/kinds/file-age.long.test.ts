import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'vitest'
import fileAge from '../../../src/core/checks/kinds/file-age.ts'
import { runInChild } from '../../support/engine/cached-child.ts'
import { finds } from '../../support/engine/finds.ts'
import { runKind } from '../../support/engine/run-kind.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'

test('a folder with more files than svc dates is evaluated by those, and is at best a warning', async () => {
  const folder = temporaryFolder()
  const look = (settings: Parameters<typeof runKind<typeof fileAge.settings>>[1]) =>
    runKind(fileAge, settings, 'Standard', { inChild: runInChild })
  for (let i = 0; i < 10_050; i += 1) writeFileSync(join(folder, String(i)), '')
  await finds(
    look({ path: folder, files: { limit: 20_000 } }),
    'age warning: …of more than can be dated (10000 files)…',
    'backlog: files waiting (there are more): 10000 (fail 20000)',
  )
  await finds(look({ path: folder, age: {} }), 'age ok')
})
