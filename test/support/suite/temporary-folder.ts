import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished, TestRunner } from 'vitest'

/** A folder that exists until the end of the test that asks for it or, outside of tests, of the suite. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  if (TestRunner.getCurrentTest() === undefined) afterAll(remove)
  else onTestFinished(remove)
  return folder
}
