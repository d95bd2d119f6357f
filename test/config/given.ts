import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { type Config, type LoadOptions, loadConfig } from '../../src/core/config/index.ts'

/** A folder that only this account can write, gone after the test. */
export async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'svc-config-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

/** A file of this account alone, whatever the umask. */
export async function file(path: string, content: string | Uint8Array): Promise<string> {
  await writeFile(path, content)
  await chmod(path, 0o600)
  return path
}

export const here = (env: LoadOptions['env'], home: string): LoadOptions => ({ env, platform: process.platform, home })

/** Loads a text as if it were somebody's svc.yaml. */
export async function load(yaml: string, env: LoadOptions['env'] = {}): Promise<Config> {
  const home = await folder()
  const path = await file(join(home, 'svc.yaml'), yaml)
  return await loadConfig({ ...here(env, home), path })
}

/** The Fault that loading a text ends in. */
export const refused = (yaml: string): Promise<Fault> => faultOf(load(yaml))

export async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  const error: unknown = await promise.then(
    () => new Error('nothing was refused'),
    (reason: unknown) => reason,
  )
  if (error instanceof Fault) return error
  throw error
}

/** The problems that a Fault names, without the file's folder. */
export function problemsOf({ message, details }: Fault): readonly string[] {
  const lines = / has \d+ problems, at /.test(message) ? (details.hints ?? []).slice(0, -1) : [message]
  // The source follows on further lines.
  return lines.map((line) => line.replace(/\n.*/s, '').replace(/^.*?svc\.yaml:/, ''))
}
