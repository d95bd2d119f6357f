import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { Fault } from '../core/errors.ts'
import type { Environment } from './variable.ts'

export type Given = {
  readonly token: string
  readonly server: string
  readonly caFile?: string | undefined
}

/**
 * Runs a command with `SVC_TOKEN` and `SVC_SERVER` in its environment, on this terminal, and gives its exit code (128
 * and the signal's number for one that was killed). Rejects with `Fault` Local when it cannot be started.
 */
export async function runWithToken(command: readonly string[], given: Given, env: Environment): Promise<number> {
  const [program = '', ...args] = command
  const { SVC_PROFILE: _, ...rest } = env
  const child = spawn(program, args, {
    stdio: 'inherit',
    env: {
      ...rest,
      SVC_TOKEN: given.token,
      SVC_SERVER: given.server,
      ...(given.caFile === undefined ? {} : { SVC_CA_FILE: given.caFile }),
    },
  })
  const release = leaveSignalsTo(child)
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        reject(new Fault('Local', `${program} cannot be run (${error.code ?? 'unknown'})`))
      })
      child.once('exit', (code, signal) => resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]))
    })
  } finally {
    release()
  }
}

/** The terminal sends ctrl-C to both: it is the command's, however often. Other requests to end are passed on. */
function leaveSignalsTo(child: ChildProcess): () => void {
  const kept = (['SIGINT', 'SIGTERM'] as const).map((name) => [name, process.listeners(name)] as const)
  for (const [name] of kept) process.removeAllListeners(name)
  const ignore = (): void => {}
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal)
  process.on('SIGINT', ignore)
  process.on('SIGTERM', pass)
  process.on('SIGHUP', pass)
  return () => {
    process.off('SIGINT', ignore)
    process.off('SIGTERM', pass)
    process.off('SIGHUP', pass)
    for (const [name, listeners] of kept) for (const listener of listeners) process.on(name, listener as () => void)
  }
}
