import { execFile } from 'node:child_process'
import { appendFile, cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { folder } from './given.ts'

const tool = fileURLToPath(new URL('../../tools/reference.ts', import.meta.url))

async function reference(...args: readonly string[]): Promise<{ readonly code: number; readonly text: string }> {
  return await promisify(execFile)(process.execPath, [tool, ...args]).then(
    ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      text: error.stdout + error.stderr,
    }),
  )
}

test('docs/reference matches the tables, and a file that does not is named', async () => {
  // One run proves both: it names the changed file, and no other one.
  const into = await folder()
  await cp(fileURLToPath(new URL('../../docs/reference', import.meta.url)), into, { recursive: true })
  await appendFile(join(into, 'errors.md'), 'one more line\n')
  expect(await reference('--check', '--into', into)).toEqual({
    code: 1,
    text: 'docs/reference is stale: errors.md\n  Next: npm run generate\n',
  })
  expect(await readFile(join(into, 'errors.md'), 'utf8')).toContain('one more line')
})
