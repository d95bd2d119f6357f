import { performance } from 'node:perf_hooks'
import type { Config } from './config/index.ts'
import { Fault } from './errors.ts'
import {
  answer,
  assemble,
  type EngineWorld,
  limits,
  listeningPorts,
  notice,
  type PlannedMonitor,
  resolveHost,
  runInChild,
  runMonitors,
  SharedRuns,
  stateMeter,
} from './health/index.ts'
import { localService, type Parts, viewFor } from './local.ts'
import type { ExecutionMode, ServerType } from './protocol/index.ts'
import type { Call, Runtime, ServeOptions, Service } from './service.ts'

export type OpenOptions = {
  readonly version: string
  readonly config: Config
  /** The embedded store's file; undefined: run without a store (`serve --only health`). */
  readonly store: string | undefined
  /** True in `svc serve`: runs are shared and results serve for a while. */
  readonly shared: boolean
  readonly details: ServeOptions['details']
}

/**
 * The only composing module: makes store, engine and Service. A shared core opens its store now and
 * fails with a Fault when it cannot; a command's core opens it only for what needs it.
 */
export async function openCore(
  options: OpenOptions,
): Promise<{ readonly service: Service; readonly runtime: Runtime }> {
  const now = (): number => performance.now()
  const world: EngineWorld = {
    now,
    date: () => new Date(),
    resolve: resolveHost,
    inChild: runInChild,
    measureState: stateMeter(now),
    limits: limits(),
  }
  const life = new AbortController()
  const held = options.shared && options.store !== undefined ? await openHeldStore(options.store) : undefined

  const plan = async (
    type: ServerType,
    mode: ExecutionMode,
    signal: AbortSignal,
  ): Promise<readonly PlannedMonitor[]> => {
    const configured = options.config.types[type]
    const unconfigured = !configured || configured.monitors.length === 0
    const storeProblem = unconfigured && type === 'Sql' && !held ? await prepareStore(options.store) : undefined
    const planned = await assemble(type, {
      configured: configured?.monitors ?? [],
      host: configured?.host ?? {},
      parts: { storePath: options.store, version: options.version },
      listening: listeningPorts,
      signal,
      mode,
    })
    if (!storeProblem) return planned
    const told = await notice('sqlite own store', 'fail', storeProblem)
    return planned.map((monitor) => (monitor.name === told.name ? told : monitor))
  }

  const runs = new Map<string, { mode: ExecutionMode; type: ServerType }>()
  const sharedRuns = new SharedRuns(now, async (mode, type, signal) => {
    runs.set(`${mode} ${type}`, { mode, type })
    return await runMonitors(await plan(type, mode, signal), world, {
      mode,
      signal: AbortSignal.any([signal, life.signal]),
    })
  })

  const parts: Parts = {
    details: options.details,
    plan: async (type, mode, call) => wanted(await plan(type, mode, call.signal), call),
    run: (planned, mode, call) =>
      runMonitors(planned, world, {
        mode,
        signal: AbortSignal.any([call.signal, life.signal]),
        timeoutMs: call.timeoutMs,
        calledByPeer: call.calledByPeer,
      }),
    shared: options.shared
      ? (mode, type, call) =>
          sharedRuns.get(mode, type, {
            signal: AbortSignal.any([call.signal, life.signal]),
            fresh: call.fresh === true,
            patienceMs: call.timeoutMs,
          })
      : undefined,
  }

  const runtime: Runtime = {
    version: options.version,
    facts: {
      store: options.store,
      configuration: options.config.origin,
      types: Object.entries(options.config.types).flatMap(([type, entry]) =>
        entry.monitors.length > 0 ? [type as ServerType] : [],
      ),
    },
    ready: async () => {
      if (life.signal.aborted) throw new Fault('Unavailable', 'Shutting down', { retryAfter: 5 })
      held?.ping()
    },
    recent: (caller) =>
      [...runs.values()].flatMap(({ mode, type }) => {
        const last = sharedRuns.last(mode, type)
        if (!last) return []
        const flags = { IncludeServerStateInformation: true }
        const view = viewFor(caller, options.details)
        const response = answer(last.run, { type, correlationId: last.run.id, flags, view })
        return [{ type, mode, response, ageSeconds: Math.floor(last.ageMs / 1_000) }]
      }),
    close: async () => {
      life.abort(new Fault('Unavailable', 'Shutting down', { retryAfter: 5 }))
      held?.close()
    },
  }
  return { service: localService(parts), runtime }
}

/** For a command: leaves out monitors that its selection cannot want, so that they are not run. */
function wanted(planned: readonly PlannedMonitor[], call: Call): readonly PlannedMonitor[] {
  const skip = call.selection?.skip ?? []
  if (skip.length === 0) return planned
  const named = new Set(skip.map((name) => name.toLowerCase()))
  return planned.filter((monitor) => !named.has(monitor.name.toLowerCase()))
}

async function openHeldStore(path: string): Promise<{ ping: () => void; close: () => void }> {
  const { openStore } = await import('./store/index.ts')
  const store = openStore({ path, create: true })
  let open = true
  return {
    ping: () => {
      if (!open) throw new Fault('Unavailable', 'The store is closed', { retryAfter: 5 })
      store.database.prepare('SELECT 1').get()
    },
    close: () => {
      if (open) store.close()
      open = false
    },
  }
}

/** Creates the store as `svc serve` would; gives the sentence to report when it cannot be opened. */
async function prepareStore(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  const { openStore } = await import('./store/index.ts')
  try {
    openStore({ path, create: true }).close()
    return undefined
  } catch (error) {
    if (error instanceof Fault) return [error.message, ...(error.details.hints ?? [])].join(' ')
    throw error
  }
}
