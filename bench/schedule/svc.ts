/** `svc serve` of the built program, as the schedule bench starts it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { envOf } from '../../test/support/program/serve-node.ts'
import { until } from '../../test/support/suite/until.ts'
import type { LoopFigures } from './hook.ts'

const program = new URL('../../bin/run.js', import.meta.url).pathname
const hookSource = new URL('./hook.ts', import.meta.url)

export type Svc = {
  readonly url: string
  readonly pid: number
  /** Of its event loop, since the call before. `collect`: after a collection of garbage, with --expose-gc. */
  readonly loop: (message?: 'figures' | 'collect') => Promise<LoopFigures>
  readonly log: () => string
  readonly stop: () => Promise<void>
}

/** Milliseconds: a start with 20,000 monitors on a busy machine, an answer of its loop, an end. */
const [startMs, answerMs, endMs] = [90_000, 30_000, 12_000]

/** Starts it on an empty store, and resolves once it listens. Throws its log when it ends instead. */
export async function startSvc(yaml: string, nodeFlags: readonly string[] = []): Promise<Svc> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  mkdirSync(join(folder, 'store'), { mode: 0o700 })
  const [config, portFile] = [join(folder, 'svc.yaml'), join(folder, 'port')]
  writeFileSync(config, yaml, { mode: 0o600 })
  writeFileSync(portFile, '')
  // As JavaScript: what removes types in a process takes 13 MB of its memory.
  writeFileSync(join(folder, 'hook.mjs'), stripTypeScriptTypes(readFileSync(hookSource, 'utf8')))
  const args = ['serve', '--port', '0', '--port-file', portFile, '--config', config]
  const flags = ['--disable-warning=ExperimentalWarning', '--import', join(folder, 'hook.mjs'), ...nodeFlags]
  const child = spawn(process.execPath, [...flags, program, ...args, '--store', join(folder, 'store', 'svc.db')], {
    env: { ...envOf(folder), SVC_BENCH_PARENT: String(process.pid) },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  let log = ''
  child.stderr?.on('data', (chunk) => {
    log = `${log}${String(chunk)}`.slice(-100_000)
  })
  const stop = async (): Promise<void> => {
    const timer = setTimeout(kill, endMs)
    await endOf(child)
    clearTimeout(timer)
    process.off('exit', kill)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await until(() => {
      if (!isRunning(child)) throw new Error(`svc serve ended with ${child.exitCode ?? child.signalCode}: ${log}`)
      return readFileSync(portFile, 'utf8') !== ''
    }, startMs)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url: `http://127.0.0.1:${readFileSync(portFile, 'utf8').trim()}`,
    pid: child.pid ?? 0,
    loop: async (message = 'figures') => {
      const answer = once(child, 'message', { signal: AbortSignal.timeout(answerMs) })
      child.send(message)
      return ((await answer) as [LoopFigures])[0]
    },
    log: () => log,
    stop,
  }
}

const isRunning = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null

async function endOf(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
