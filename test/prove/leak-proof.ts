import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import type { KindName } from '../../src/core/checks/kinds/index.ts'
import type { Holdings, Memory } from './leak-figures.ts'
import type { Row, Started } from './leak-row.ts'
import type { Case, Order, Ran, Reply } from './leak-runner.ts'

/** With full counts; `npm test` runs a tenth, and a kind whose run costs much still less. */
export const proving = process.env.SVC_PROVE === '1'

type Counts = { readonly well: number; readonly broken: number; readonly warm: number }
const counts: Record<Row['cost'], Counts> = proving
  ? { cheap: { well: 1_000, broken: 1_000, warm: 60 }, dear: { well: 1_000, broken: 1_000, warm: 12 } }
  : { cheap: { well: 30, broken: 20, warm: 3 }, dear: { well: 18, broken: 12, warm: 2 } }

const cache = join(tmpdir(), `svc-leaks-code-${process.pid}`)
/** Once nothing is proved any more. */
export const forgetCode = (): void => rmSync(cache, { recursive: true, force: true })
const program = new URL('./leak-runner.ts', import.meta.url).pathname
/** Milliseconds in which what was let go of must be gone, here and at the peer's. */
const patienceMs = 10_000

/** A process of its own that runs one kind: nothing else is in its figures. */
class Runner {
  readonly #child: ChildProcess
  readonly #exit: Promise<unknown[]>
  #output = ''

  constructor(started: Started) {
    // Small young generations: what dies young must not pass for what stays.
    const options = ['--expose-gc', '--max-semi-space-size=1', '--disable-warning=ExperimentalWarning']
    const [execPath = '', ...execArgv] = [...(started.within ?? []), process.execPath, ...options]
    this.#child = fork(program, {
      execPath,
      execArgv,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      // All of them load the same.
      env: { ...process.env, NODE_COMPILE_CACHE: cache },
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk) => {
        this.#output = `${this.#output}${chunk}`.slice(-4_000)
      })
    }
    this.#exit = once(this.#child, 'exit')
  }

  async ask<T>(order: Order): Promise<T> {
    const abort = new AbortController()
    const ended = this.#exit.then((how): never => {
      throw new Error(`the runner ended: ${how.join(' ')} ${this.#output}`)
    })
    try {
      this.#child.send(order)
      const [reply] = (await Promise.race([once(this.#child, 'message', { signal: abort.signal }), ended])) as [Reply]
      if ('error' in reply) throw new Error(reply.error)
      return reply.value as T
    } finally {
      abort.abort()
    }
  }

  /** Lets it go: how it ended, by itself or not. */
  async end(): Promise<string> {
    await this.ask({ do: 'end' })
    const timer = setTimeout(() => this.kill(), patienceMs)
    const [code, signal] = await this.#exit
    clearTimeout(timer)
    return `exit ${code ?? signal}${this.#output === '' ? '' : `: ${this.#output}`}`
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

export const added = (now: Memory, before: Memory): Memory =>
  Object.fromEntries(
    Object.keys(now).map((key) => [key, now[key as keyof Memory] - before[key as keyof Memory]]),
  ) as Memory

export type Looked = Holdings & Memory
type Process = { readonly holdings: () => Promise<Holdings>; readonly memory: () => Promise<Memory> }

/** Looks once it holds what is wanted, or after a while: what settles takes a moment, what leaks never does. */
export async function look({ holdings, memory }: Process, expected: Holdings, calmMs = 0): Promise<Looked> {
  const until = performance.now() + patienceMs
  let records = await holdings()
  while (!isDeepStrictEqual(records, holds(expected)) && performance.now() < until) {
    await wait(50)
    records = await holdings()
  }
  return { ...records, ...(await least(memory, calmMs)) }
}

/** The memory in use before or after a moment, whichever is less: finalizers free some of it in their own time. */
async function least(memory: Process['memory'], calmMs: number): Promise<Memory> {
  const first = await memory()
  if (calmMs === 0) return first
  await wait(calmMs)
  const second = await memory()
  return second.objects < first.objects ? second : first
}

/** Looks once what it holds has stayed the same for so many milliseconds: the last run may be still letting go. */
export async function rested({ holdings, memory }: Process, calmMs: number): Promise<Looked> {
  // The first look at what is kept brings three objects of its own, and costs as much as ten runs.
  if (proving) await memory()
  let last = await holdings()
  let since = performance.now()
  const until = since + patienceMs
  while (performance.now() - since < calmMs && performance.now() < until) {
    await wait(50)
    const next = await holdings()
    if (!isDeepStrictEqual(next, last)) since = performance.now()
    last = next
  }
  return { ...last, ...(await least(memory, proving ? calmMs : 0)) }
}

/** The measurements of a kind; numbers of the second half, which no cache explains. */
export type Measured = {
  readonly kind: string
  readonly runs: number
  readonly seconds: number
  readonly before: Looked
  readonly after: Looked
  readonly second: Memory
}

/** Runs a kind against all that its row names, and expects that nothing of it is left anywhere. */
export async function proveKind(kind: KindName, row: Row): Promise<Measured> {
  const started = await row.start()
  const { breaks, env = {}, allow = [], store } = started
  const cases = [...started.cases, ...(breaks?.cases ?? [])]
  const runner = new Runner(started)
  const { well, broken, warm } = counts[row.cost]
  const problems = cases.filter((one) => one.expect !== 'well').length
  const of = (one: Case): number =>
    Math.ceil(one.expect === 'well' ? well / (cases.length - problems) : broken / Math.max(1, problems))
  try {
    await runner.ask({ do: 'begin', task: { kind, env, allow, store } })
    let [attempts, late] = [0, 0]
    const all = async (many: (one: Case) => number): Promise<number> => {
      let runs = 0
      for (const one of cases) {
        const ran = await runner.ask<Ran>({ do: 'run', one, runs: many(one) })
        runs += many(one)
        if (one.expect === 'well') attempts += many(one)
        late += ran.late
        expect({ case: one.name, ...ran, ms: 0, late: 0 }).toEqual({
          case: one.name,
          ms: 0,
          late: 0,
          unexpected: [],
          listeners: 0,
          warnings: [],
        })
      }
      return runs
    }
    const there: Process = {
      holdings: () => runner.ask<Holdings>({ do: 'holdings' }),
      memory: () => runner.ask<Memory>({ do: 'memory' }),
    }
    // Drivers are loaded, and keep what they learn once.
    await all(() => warm)
    await all(() => warm)
    const before = await rested(there, 300)
    const start = performance.now()
    let runs = await all((one) => Math.floor(of(one) / 2))
    const middle = await look(there, before)
    const half = runs
    runs += await all((one) => Math.ceil(of(one) / 2))
    const after = await look(there, before)
    const seconds = (performance.now() - start) / 1_000
    const measured = { kind, runs, seconds, before, after, second: added(after, middle) }
    expect(holds(after)).toEqual(holds(before))
    expect(tooMuch(measured, half, fewest(half) + (row.hoards ?? 0))).toEqual([])
    // What ends before it has done anything leaks nothing.
    expect(late).toBeLessThanOrEqual(attempts / 2)
    const left = async () => [...((await started.left?.()) ?? []), ...(breaks?.left() ?? [])]
    expect(await emptied(left)).toEqual([])
    expect(await runner.end()).toBe('exit 0')
    return measured
  } finally {
    runner.kill()
    await breaks?.stop()
    await started.stop()
  }
}

export const holds = ({ resources, files, threads, children, zombies, listeners }: Holdings): Holdings => ({
  resources,
  files,
  threads,
  children,
  zombies,
  listeners,
})

/** Bytes that the engine takes for code it has come to know well; after few runs it is still learning. */
const learned = (proving ? 192 : 512) * 1024

/** Objects that may be more after so many runs: what leaks one a run is far beyond. */
const fewest = (runs: number): number => 30 + 0.01 * runs

/**
 * The figures that grew with the runs, as sentences. A cache that is full grows no more; noise does not grow with the
 * count.
 */
export function tooMuch({ before, after, second }: Measured, half: number, objects: number): readonly string[] {
  const bounds: Partial<Record<keyof Memory, number>> = {
    objects,
    heap: learned + 32 * half,
    external: learned + 32 * half,
    rss: 12 * 1024 * 1024,
  }
  return Object.entries(bounds).flatMap(([name, most]) => {
    const [first, last] = [before[name as keyof Memory], after[name as keyof Memory]]
    const late = second[name as keyof Memory]
    // What leaks grows over all of the runs, and over the last ones as well.
    return Math.min(late, last - first) > most
      ? [`${name}: ${first} at first, ${last} at last, ${late} more in the last ${half} runs`]
      : []
  })
}

/** The connections that peers still hold, as soon as there are none, or after a while. */
export async function emptied(left: NonNullable<Started['left']>): Promise<readonly string[]> {
  const until = performance.now() + patienceMs
  for (;;) {
    const records = await left()
    if (records.length === 0 || performance.now() > until) return records
    await wait(100)
  }
}

/** One line of figures. */
export function describeMeasured({ kind, runs, seconds, before, after, second }: Measured): string {
  const mib = (bytes: number): string => (bytes / 1024 ** 2).toFixed(1)
  const kib = (bytes: number): string => (bytes / 1024).toFixed(0)
  const busy = Object.values(after.resources).reduce((sum, one) => sum + one, 0)
  return (
    `${kind.padEnd(11)} ${String(runs).padStart(5)} runs ${seconds.toFixed(1).padStart(6)} s | ` +
    `fds ${before.files}→${after.files}, resources ${busy}, children ${after.children}, ` +
    `objects ${before.objects}→${after.objects} (2nd half ${second.objects}), ` +
    `heap ${mib(before.heap)}→${mib(after.heap)} MiB (2nd half ${kib(second.heap)} KiB), ` +
    `rss ${mib(before.rss)}→${mib(after.rss)} MiB (2nd half ${mib(second.rss)} MiB)\n`
  )
}
