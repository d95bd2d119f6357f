import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { compiledCode } from '../support/program/compiled-code.ts'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export type Result = { readonly status: number | null; readonly stdout: string; readonly stderr: string }

/** Runs a program with these variables only, and fails to start loudly. */
export function run(program: string, args: readonly string[], env: Record<string, string> = {}, cwd = root): Result {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    env,
    encoding: 'utf8',
    timeout: 240_000,
    maxBuffer: 64 * 1024 * 1024,
  })
  if (error) throw error
  return { status, stdout, stderr }
}

/** As an operator would call it: with a home, and none of this process's variables. `path` is PATH. */
export const account = (home: string, path = '/usr/bin:/bin'): Record<string, string> => ({
  HOME: home,
  PATH: path,
  ...compiledCode,
})

/** Whether a program can be started. */
export const isInstalled = (program: string): boolean => spawnSync(program, ['--version']).error === undefined
