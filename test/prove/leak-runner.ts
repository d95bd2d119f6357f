import { getEventListeners } from 'node:events'
import { performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { resolveHost } from '../../src/core/base/net/connect.ts'
import type { FaultClass } from '../../src/core/base/probe-error.ts'
import { readSettings } from '../../src/core/base/settings/index.ts'
import { runInChild } from '../../src/core/checks/child/index.ts'
import {
  type AnyKind,
  type CheckContext,
  type EngineContext,
  limits as newLimits,
  type PlannedMonitor,
  runMonitors,
  Slots,
} from '../../src/core/checks/engine/index.ts'
import type { KindName } from '../../src/core/checks/kinds/index.ts'
import { hostKind, loadKind } from '../../src/core/checks/plan/index.ts'
import { kindProblem, readMonitor } from '../../src/core/config/monitors.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import { openData } from '../../src/core/store/index.ts'
import { type Holdings, type Memory, measureHoldings, measureMemory } from './leak-figures.ts'

/** One way to run a kind, well or against something broken. */
export type Case = {
  readonly name: string
  /** As svc.yaml would give them. */
  readonly settings: Readonly<Record<string, unknown>>
  /** Taken in turn. */
  readonly modes: readonly ExecutionMode[]
  /** `well`: nothing fails; `fails`: a check does, and not svc itself; else the fault classes of which one must be reported. */
  readonly expect: 'well' | 'fails' | readonly FaultClass[]
  readonly atOnce: number
}
export type Task = {
  readonly kind: KindName
  readonly env: Readonly<Record<string, string>>
  /** Folders whose programs may be run. */
  readonly allow: readonly string[]
  /** A store with heartbeats. */
  readonly store: string | undefined
}
export type Order =
  | { readonly do: 'begin'; readonly task: Task }
  | { readonly do: 'run'; readonly one: Case; readonly runs: number }
  | { readonly do: 'holdings' }
  | { readonly do: 'memory' }
  | { readonly do: 'end' }
/** The outcome of `runs`. */
export type Ran = {
  readonly ms: number
  /** Runs that were not as expected, each different one once. */
  readonly unexpected: readonly string[]
  /** Runs that should be well, and were but for taking too long: what a busy machine makes of some. */
  readonly late: number
  /** Listeners left on the signals that the monitors were given, and on the one of all runs. */
  readonly listeners: number
  readonly warnings: readonly string[]
}
export type Reply = { readonly error: string } | { readonly value: Ran | Holdings | Memory | undefined }

const warnings: string[] = []
process.on('warning', ({ name, message }) => {
  if (name !== 'ExperimentalWarning') warnings.push(`${name}: ${message}`)
})

/** One for all runs, as a long-lived process has. */
const life = new AbortController()
let task: Task | undefined
let context: Omit<EngineContext, 'limits'> | undefined
let close: () => Promise<void> = async () => {}
// Wide, so that runs are at once; one for all, so that what it keeps is seen.
const slots = new Slots({ callers: 200, schedule: 200, host: 200, database: 200 })

async function begin(input: Task): Promise<void> {
  const data = input.store === undefined ? undefined : await openData({ store: input.store, create: false })
  close = async () => await data?.close()
  task = input
  context = {
    now: () => performance.now(),
    date: () => new Date(),
    resolve: resolveHost,
    inChild: runInChild,
    measureState: () => () => ({}),
    services: { exec: { allow: input.allow }, heartbeats: data && (() => data.heartbeats.list()) },
  }
}

async function planned(one: Case, { kind, env }: Task): Promise<PlannedMonitor> {
  const context = { env, folder: '/' }
  if (kind === hostKind) {
    const loaded = await loadKind(kind)
    const { timeout, ...settings } = one.settings
    const { values, problems } = readSettings(loaded.settings, settings, context)
    if (problems.length > 0) throw new Error(`${one.name}: ${JSON.stringify(problems)}`)
    const timeoutMs = timeout === undefined ? undefined : Number.parseInt(String(timeout), 10)
    const common = { depth: 'Basic', host: true, dependsOn: [], retries: 0, deployment: false } as const
    return { name: kind, kind: loaded, settings: values, timeoutMs, ...common }
  }
  const { monitor, problems } = await readMonitor({ kind, name: 'proved', ...one.settings }, context, kindProblem)
  if (!monitor) throw new Error(`${one.name}: ${JSON.stringify(problems)}`)
  return monitor
}

async function run(one: Case, runs: number): Promise<Ran> {
  if (!task || !context) throw new Error('nothing has begun')
  const monitor = await planned(one, task)
  const unexpected = new Set<string>()
  const signals: AbortSignal[] = [life.signal]
  let startMs = 0
  let late = 0
  const start = performance.now()
  const lane = async (): Promise<void> => {
    while (startMs < runs) {
      const mode = one.modes[startMs % one.modes.length] ?? 'Basic'
      startMs += 1
      const watched: AnyKind = {
        ...monitor.kind,
        run: (settings: never, observation: CheckContext) => {
          signals.push(observation.signal)
          return monitor.kind.run(settings, observation)
        },
      }
      // A refused sign-in is not repeated, so each run begins without a memory of the last.
      const limits = { ...newLimits(), slots }
      const { monitors } = await runMonitors([{ ...monitor, kind: watched }], { ...context, limits } as EngineContext, {
        mode,
        signal: life.signal,
      })
      const results = monitors[0]?.results ?? []
      const problems = evaluate(one, mode, results)
      if (problems === undefined) continue
      if (one.expect === 'well' && isLate(results)) late += 1
      else unexpected.add(problems)
    }
  }
  await Promise.all(Array.from({ length: Math.min(one.atOnce, runs) }, lane))
  const ms = performance.now() - start
  // What listens on behalf of a socket goes when that is closed, which it is not at once.
  let listeners = listening(signals)
  for (let round = 0; round < 100 && listeners > 0; round += 1) {
    await wait(20)
    listeners = listening(signals)
  }
  return { ms, unexpected: [...unexpected].slice(0, 5), late, listeners, warnings: warnings.splice(0) }
}

const listening = (signals: readonly AbortSignal[]): number =>
  signals.reduce((sum, signal) => sum + getEventListeners(signal, 'abort').length, 0)

type Results = Awaited<ReturnType<typeof runMonitors>>['monitors'][number]['results']

/** Whether something was found, and nothing of it is wrong but the time that it took. */
const isLate = (results: Results): boolean =>
  results.length > 0 &&
  results.every(
    ({ status, fault, measurement }) =>
      status !== 'failed' || fault === 'timeout' || (fault === 'threshold' && measurement?.unit === 'milliseconds'),
  )

function evaluate({ name, expect }: Case, mode: ExecutionMode, results: Results): string | undefined {
  const failed = results.filter(({ status }) => status === 'failed')
  const failures = failed.map(({ check, fault, message }) => `${check} (${fault}): ${message}`).join(' | ')
  if (results.length === 0) return `${name} ${mode}: nothing was found`
  if (expect === 'well') return failed.length === 0 ? undefined : `${name} ${mode}: ${failures}`
  const fitting =
    expect === 'fails'
      ? failed.length > 0 && failed.every(({ fault }) => fault !== 'internal')
      : failed.some(({ fault }) => fault !== undefined && expect.includes(fault))
  return fitting ? undefined : `${name} ${mode}: not ${String(expect)}, but ${failures || 'well'}`
}

async function obey(order: Order): Promise<Ran | Holdings | Memory | undefined> {
  switch (order.do) {
    case 'begin':
      await begin(order.task)
      return undefined
    case 'run':
      return await run(order.one, order.runs)
    case 'holdings':
      return measureHoldings()
    case 'memory':
      return await measureMemory()
    case 'end':
      await close()
      return undefined
  }
}

process.on('message', (order: Order) => {
  const say = (reply: Reply): void => {
    process.send?.(reply, undefined, undefined, () => {
      // Nobody ends this process: it ends by itself when nothing keeps it.
      if (order.do === 'end') process.disconnect()
    })
  }
  obey(order).then(
    (value) => say({ value }),
    (error: unknown) => say({ error: String((error as Error).stack ?? error) }),
  )
})
