import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../suite/until.ts'
import { entry, type Home } from './svc.ts'
import { unwatched } from './unwatched.ts'

export const admin = { userName: 'Ann', password: 'violet-harbour-42' } as const

/** A `svc serve` in a process of its own, with a store in its home where Ann is Admin. */
export type ServeCommand = {
  readonly port: number
  readonly pid: number
  readonly url: string
  readonly log: () => string
  /** SIGTERM; gives the exit code. */
  readonly stop: () => Promise<number | null>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** Milliseconds until one that does not end after SIGTERM is killed. */
const endMs = 15_000

/**
 * Starts `svc serve` of this home with this svc.yaml, which runs nothing by itself unless it says how often, at a free port or at `at`, and resolves once it listens. Throws its
 * log when it ends instead.
 */
export async function startServe(
  home: Home,
  yaml: string,
  flags: readonly string[] = [],
  at = 0,
): Promise<ServeCommand> {
  const host = flags.includes('--host') ? (flags[flags.indexOf('--host') + 1] ?? '') : '127.0.0.1'
  const folder = join(home.folder, 'server')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content, { mode: 0o600 })
    return join(folder, name)
  }
  const portFile = file('port', '')
  const args = [
    ...['serve', '--port', String(at), '--port-file', portFile, '--store', join(folder, 'svc.db')],
    ...['--config', file('svc.yaml', home.program === entry ? unwatched(yaml) : yaml)],
    ...['--bootstrap-admin', admin.userName, '--bootstrap-password-file', file('password', admin.password)],
    ...flags,
  ]
  const child = spawn(process.execPath, [home.program, ...args], { env: home.env, stdio: ['ignore', 'ignore', 'pipe'] })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += String(chunk)
  })
  const closed = once(child, 'close')
  const stop = async (): Promise<number | null> => {
    const timer = setTimeout(kill, endMs)
    child.kill('SIGTERM')
    await closed
    clearTimeout(timer)
    process.off('exit', kill)
    return child.exitCode
  }
  try {
    await until(() => {
      if (child.exitCode !== null) throw new Error(`svc serve ended with ${child.exitCode}: ${log}`)
      return existsSync(portFile) && readFileSync(portFile, 'utf8') !== ''
    })
  } catch (error) {
    await stop()
    throw error
  }
  const port = Number(readFileSync(portFile, 'utf8'))
  const dispose = async (): Promise<void> => void (await stop())
  return {
    port,
    pid: child.pid ?? 0,
    url: `http://${host}:${port}`,
    log: () => log,
    stop,
    [Symbol.asyncDispose]: dispose,
  }
}
