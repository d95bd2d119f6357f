import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../suite/until.ts'
import { svcHome } from './svc.ts'
import { unwatched } from './unwatched.ts'

const program = new URL('../../../bin/run.js', import.meta.url).pathname

/** A real `svc serve`, built and in a process of its own, with a home of its own. */
export type ServeProcess = {
  readonly port: number
  readonly signal: (name: NodeJS.Signals) => void
  /** How it ends; settles once. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  readonly log: () => string
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

export type ServeSurroundings = {
  readonly env?: Readonly<Record<string, string>>
  /** The command that runs a command elsewhere, as in mounts of its own. */
  readonly within?: (file: string, args: readonly string[]) => readonly [string, readonly string[]]
}

/** Starts `svc serve --only health`, or with `--rehearse` in the flags a rehearsal, with this svc.yaml, under the account `uid` if given, and resolves once it listens. */
export async function startServeProcess(
  yaml: string,
  flags: readonly string[] = [],
  uid?: number,
  { env = {}, within = (file, args) => [file, args] }: ServeSurroundings = {},
): Promise<ServeProcess> {
  const home = svcHome()
  const config = join(home.folder, 'svc.yaml')
  const portFile = join(home.folder, 'port')
  writeFileSync(config, unwatched(yaml), { mode: 0o600 })
  if (uid !== undefined) for (const path of [home.folder, config]) chownSync(path, uid, uid)
  const only = flags.includes('--rehearse') ? [] : ['--only', 'health']
  const args = ['serve', ...only, '--config', config, '--port', '0', '--port-file', portFile, ...flags]
  const [file, all] = within(process.execPath, [program, ...args])
  const child: ChildProcess = spawn(file, [...all], {
    env: { ...home.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  let log = ''
  child.stderr?.on('data', (chunk) => {
    log += String(chunk)
  })
  const ended = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }))
  const dispose = async (): Promise<void> => {
    kill()
    await ended
    process.off('exit', kill)
    home.remove()
  }
  try {
    await until(() => {
      if (child.exitCode !== null) throw new Error(`svc serve ended: ${log}`)
      return existsSync(portFile) && readFileSync(portFile, 'utf8') !== ''
    })
  } catch (error) {
    await dispose()
    throw error
  }
  return {
    port: Number(readFileSync(portFile, 'utf8')),
    signal: (name) => void child.kill(name),
    ended,
    log: () => log,
    [Symbol.asyncDispose]: dispose,
  }
}
