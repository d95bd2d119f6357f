import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { serving } from '../support/program/serving.ts'
import { unwatched } from '../support/program/unwatched.ts'
import type { Ending } from '../support/suite/daemon.ts'
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
  readonly stop: () => Promise<{ readonly code: Ending; readonly left: readonly string[] }>
}

/** A real `svc serve` from the sources, with a home and a store of its own, and with this svc.yaml if there is one. */
export async function startServe(yaml?: string, env: Readonly<Record<string, string>> = {}): Promise<Serve> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-leaks-'))
  if (yaml !== undefined) writeFileSync(join(folder, 'svc.yaml'), unwatched(yaml), { mode: 0o600 })
  const options = ['--expose-gc', '--max-semi-space-size=1', '--disable-warning=ExperimentalWarning']
  const { port, url, pid, ask, log, isRunning, ended, stop } = await serving(
    ['--store', join(folder, 'store', 'svc.db')],
    {
      folder,
      node: [...options, '--import', watched],
      program,
      env: { PATH: process.env.PATH ?? '', HOME: folder, SVC_HOME: folder, NODE_DISABLE_COMPILE_CACHE: '1', ...env },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      end: 'exit',
      remove: () => rmSync(folder, { recursive: true, force: true }),
    },
  )
  return {
    port,
    origin: url,
    pid,
    holdings: () => ask<Holdings>('holdings'),
    memory: () => ask<Memory>('memory'),
    warnings: () =>
      log()
        .split('\n')
        .filter((line) => line.includes('"msg":"(node:')),
    stop: async () => {
      if (!isRunning()) return { code: await ended, left: [] }
      const started = descendants(pid)
      const code = await stop()
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
