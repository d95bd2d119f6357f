import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const script = new URL('../../support/program/preloaded.ts', import.meta.url).pathname

/** The modules that a process of its own loads: see its script. */
export async function preloaded(...args: readonly string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--disable-warning=ExperimentalWarning',
    script,
    ...args,
  ])
  return JSON.parse(stdout)
}
