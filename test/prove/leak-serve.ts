import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { unwatched } from '../support/program/unwatched.ts'
import type { Holdings, Memory } from './leak-figures.ts'

const program = new URL('../../bin/dev.js', import.meta.url).pathname
const watched = new URL('./leak-watched.ts', import.meta.url).href

export type Serve = {
  readonly origin: string
  readonly port: number
  readonly pid: number
  readonly holdings: () => Promise<Holdings>
  readonly memory: () => Promise<Memory>
  /** The warnings of Node itself: about listeners that pile up, for instance. */
  readonly warnings: () => readonly string[]
  /** SIGTERM: its exit code, and which of the processes that it had started are still there. */
  readonly stop: () => Promise<{ readonly code: number | null; readonly left: readonly string[] }>
}

/** A real `svc serve` from the sources, with a home and a store of its own, and with this svc.yaml if there is one. */
export async function startServe(yaml?: string, env: Readonly<Record<string, string>> = {}): Promise<Serve> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-leaks-'))
  if (yaml !== undefined) writeFileSync(join(folder, 'svc.yaml'), unwatched(yaml), { mode: 0o600 })
  const portFile = join(folder, 'port')
  const serving = ['serve', '--port', '0', '--port-file', portFile, '--store', join(folder, 'store', 'svc.db')]
  const options = ['--expose-gc', '--max-semi-space-size=1', '--disable-warning=ExperimentalWarning']
  const child = spawn(process.execPath, [...options, '--import', watched, program, ...serving], {
    env: { PATH: process.env.PATH ?? '', HOME: folder, SVC_HOME: folder, NODE_DISABLE_COMPILE_CACHE: '1', ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let log = ''
  const warnings: string[] = []
  if (child.stderr) {
    createInterface({ input: child.stderr }).on('line', (line) => {
      log = `${log}${line}\n`.slice(-4_000)
      if (line.includes('"msg":"(node:')) warnings.push(line)
    })
  }
  const running = (): boolean => child.exitCode === null && child.signalCode === null
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  for (let round = 0; round < 600 && running() && !existsSync(portFile); round += 1) await wait(50)
  const port = Number(existsSync(portFile) ? readFileSync(portFile, 'utf8') : '')
  if (!port || child.pid === undefined) {
    kill()
    throw new Error(`svc serve did not start: ${log}`)
  }
  const { pid } = child
  const measurementOf = async <T>(what: 'holdings' | 'memory'): Promise<T> => {
    const answer = once(child, 'message')
    child.send(what)
    return ((await answer) as [T])[0]
  }
  return {
    port,
    origin: `http://127.0.0.1:${port}`,
    pid,
    holdings: () => measurementOf<Holdings>('holdings'),
    memory: () => measurementOf<Memory>('memory'),
    warnings: () => warnings,
    stop: async () => {
      if (!running()) return { code: child.exitCode, left: [] }
      const started = descendants(pid)
      const exit = once(child, 'exit')
      const timer = setTimeout(kill, 15_000)
      child.kill('SIGTERM')
      const [code] = (await exit) as [number | null]
      clearTimeout(timer)
      process.off('exit', kill)
      rmSync(folder, { recursive: true, force: true })
      let left = started.filter(alive)
      for (let round = 0; round < 40 && left.length > 0; round += 1) {
        await wait(50)
        left = left.filter(alive)
      }
      return { code, left }
    },
  }
}

type Process = { readonly pid: string; readonly began: string }
const fields = (pid: string): readonly string[] =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')

/** Everything below a process, each with when it began: a process id may serve again. */
function descendants(pid: number): readonly string[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const parents = new Map<string, string>()
  for (const one of all) {
    try {
      parents.set(one, fields(one)[1] ?? '')
    } catch {
      // It has ended.
    }
  }
  const below = (of: string): string[] =>
    [...parents].filter(([, parent]) => parent === of).flatMap(([one]) => [one, ...below(one)])
  return below(String(pid)).flatMap((one) => {
    try {
      return [processName({ pid: one, began: fields(one)[19] ?? '' })]
    } catch {
      return []
    }
  })
}

const processName = ({ pid, began }: Process): string => `${pid}@${began}`

function alive(name: string): boolean {
  const [pid = '', began] = name.split('@')
  try {
    const [state, , ...rest] = fields(pid)
    return state !== 'Z' && rest[17] === began
  } catch {
    return false
  }
}
