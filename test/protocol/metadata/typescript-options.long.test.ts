import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Accounts, startAccounts } from '../../server/accounts.ts'
import { ask } from '../../server/site.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'

const tsc = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url))
const folder = temporaryFolder()
let site: Accounts
beforeAll(async () => {
  site = await startAccounts()
})
afterAll(() => site.close())

test.each(['MakePropertiesOptional=False&AddImplicitVersion=3', 'GlobalNamespace=api.types&AddResponseStatus=True'])(
  'R6 TypeScript and its declarations compile under tsc --strict with %s',
  async (query) => {
    for (const [language, name] of [
      ['typescript', 'options.ts'],
      ['typescript.d', 'options-declared.d.ts'],
    ] as const) {
      const file = join(folder, name)
      writeFileSync(file, (await ask(site.port, `/types/${language}?${query}`)).text)
      const { status, stdout } = spawnSync(process.execPath, [tsc, '--strict', '--noEmit', file], {
        cwd: folder,
        encoding: 'utf8',
      })
      expect([status, stdout]).toEqual([0, ''])
    }
  },
  60_000,
)
