/**
 * The engine of one checkout under a steady load, in a process of its own: `node engine-load-runs.ts`, started with an
 * IPC channel. Receives one `Load` and sends one `Outcome`.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import type * as Connect from '../src/core/base/net/connect.ts'
import type * as Resources from '../src/core/base/system/resources.ts'
import type * as Engine from '../src/core/checks/engine/index.ts'
import type * as Http from '../src/core/checks/kinds/http/index.ts'
import type * as RunKind from '../test/support/engine/run-kind.ts'

export type Load = {
  /** The folder of the checkout. */
  readonly checkout: string
  readonly port: number
  /** Loopback addresses that the server listens on, from 127.0.0.1. */
  readonly addresses: number
  readonly perMinute: number
  /** A monitor runs again after this time. */
  readonly intervalMs: number
  readonly warmUpMs: number
  readonly measuredMs: number
}
export type Outcome = {
  readonly runs: number
  /** Milliseconds from the moment at which a run was due to the first step of its monitor. */
  readonly p50: number
  readonly p99: number
  /** Runs whose monitor was not checked, or failed. */
  readonly notChecked: number
  readonly failed: number
  readonly loopDelayMs: number
  /** Processor time of this process ÷ time. */
  readonly cores: number
  readonly rss: number
}

process.once('message', (load: Load) => {
  void measure(load).then((outcome) => {
    process.send?.(outcome)
    process.disconnect()
  })
})

async function measure(load: Load): Promise<Outcome> {
  const from = async <T>(path: string): Promise<T> =>
    (await import(pathToFileURL(`${load.checkout}/${path}`).href)) as T
  const { limits, runMonitors } = await from<typeof Engine>('src/core/checks/engine/index.ts')
  const { default: http } = await from<typeof Http>('src/core/checks/kinds/http/index.ts')
  const { resolveHost } = await from<typeof Connect>('src/core/base/net/connect.ts')
  const { stateMeter } = await from<typeof Resources>('src/core/base/system/resources.ts')
  const { withDefaults } = await from<typeof RunKind>('test/support/engine/run-kind.ts')

  const now = (): number => performance.now()
  const context: Engine.EngineContext = {
    now,
    date: () => new Date(),
    resolve: resolveHost,
    inChild: () => Promise.reject(new Error('http needs no child process')),
    measureState: stateMeter(now),
    limits: limits(),
  }
  const begins = new WeakMap<object, () => void>()
  const kind = {
    ...http,
    run: (settings: never, check: never) => {
      begins.get(settings)?.()
      return http.run(settings, check)
    },
  } as unknown as Engine.AnyKind
  const monitors = Array.from({ length: Math.round((load.perMinute / 60_000) * load.intervalMs) }, (_, at) => {
    const url = `http://127.0.0.${(at % load.addresses) + 1}:${load.port}/${at}`
    const common = { depth: 'Basic', host: false, dependsOn: [], retries: 0, deployment: false } as const
    return { ...common, name: `http ${at}`, kind, settings: withDefaults(http.settings, { url }) }
  })

  const late: number[] = []
  let [notChecked, failed, rss] = [0, 0, 0]
  const { signal } = new AbortController()
  const run = async (monitor: Engine.PlannedMonitor, due: number, isMeasured: boolean): Promise<void> => {
    begins.set(monitor.settings as object, () => {
      if (isMeasured) late.push(now() - due)
    })
    const { monitors: reports } = await runMonitors([monitor], context, { mode: 'Standard', signal })
    const results = reports.flatMap((report) => report.results)
    if (!isMeasured) return
    if (results.some((result) => result.notChecked !== undefined)) notChecked += 1
    else if (results.some(({ status }) => status === 'failed')) failed += 1
  }

  const delay = monitorEventLoopDelay({ resolution: 5 })
  const betweenMs = 60_000 / load.perMinute
  const start = now()
  const measured = start + load.warmUpMs
  const end = measured + load.measuredMs
  let spent: NodeJS.CpuUsage | undefined
  const underWay = new Set<Promise<void>>()
  let runs = 0
  await new Promise<void>((resolve) => {
    let at = 0
    const begin = (): void => {
      const present = Math.min(now(), end)
      if (spent === undefined && present >= measured) {
        spent = process.cpuUsage()
        delay.enable()
      }
      for (let due = start + at * betweenMs; due < present; due = start + at * betweenMs) {
        const monitor = monitors[at % monitors.length]
        at += 1
        if (!monitor) continue
        if (due >= measured) runs += 1
        const one = run(monitor, due, due >= measured).finally(() => underWay.delete(one))
        underWay.add(one)
      }
      rss = Math.max(rss, process.memoryUsage.rss())
      if (present < end) setTimeout(begin, 5)
      else resolve()
    }
    begin()
  })
  const used = process.cpuUsage(spent)
  const tookMs = now() - measured
  await Promise.all(underWay)
  delay.disable()
  late.sort((a, b) => a - b)
  const at = (share: number): number => late[Math.floor(late.length * share)] ?? Number.NaN
  return {
    runs,
    p50: at(0.5),
    p99: at(0.99),
    notChecked: notChecked / runs,
    failed: failed / runs,
    loopDelayMs: delay.max / 1e6,
    cores: (used.user + used.system) / 1_000 / tookMs,
    rss,
  }
}
