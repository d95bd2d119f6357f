import { resolveHost } from '../../../src/core/base/net/connect.ts'
import {
  type EngineContext,
  limits,
  type MonitorReport,
  type PlannedMonitor,
  runMonitors,
} from '../../../src/core/checks/engine/index.ts'
import { assemble } from '../../../src/core/checks/plan/index.ts'
import type { Config } from '../../../src/core/config/index.ts'
import type { ExecutionMode, ServerType } from '../../../src/core/protocol/index.ts'
import { farMs, unhurried, wallClock } from '../suite/until.ts'
import { runInChild } from './cached-child.ts'

export type RunConfigOptions = {
  readonly timeoutMs?: number | undefined
  readonly resolve?: EngineContext['resolve']
  readonly now?: EngineContext['now'] | undefined
  readonly date?: EngineContext['date']
  readonly history?: EngineContext['history']
  readonly services?: EngineContext['services']
}

/**
 * Runs the monitors of a type through the real engine. Without `timeoutMs` deadlines are far away, and the clock is one on
 * which nothing is slow. `host` runs the host block of the type instead.
 */
export async function runConfig(
  config: Config,
  type: ServerType,
  mode: ExecutionMode,
  options: RunConfigOptions & { readonly host?: boolean } = {},
): Promise<readonly MonitorReport[]> {
  const listed = options.host ? await hostOf(config, type) : (config.types[type]?.monitors ?? [])
  const isTimed = options.timeoutMs !== undefined
  const planned = isTimed ? listed : listed.map((one) => ({ ...one, timeoutMs: one.timeoutMs ?? farMs }))
  const context: EngineContext = {
    now: options.now ?? (isTimed ? wallClock : unhurried),
    date: options.date ?? (() => new Date()),
    resolve: options.resolve ?? resolveHost,
    inChild: runInChild,
    measureState: () => () => ({}),
    limits: limits(),
    processorWaitMs: () => undefined,
    history: options.history,
    services: options.services,
  }
  const signal = new AbortController().signal
  const run = await runMonitors(planned, context, { mode, signal, timeoutMs: options.timeoutMs ?? farMs })
  return run.monitors
}

async function hostOf(config: Config, type: ServerType): Promise<readonly PlannedMonitor[]> {
  const planned = await assemble(type, {
    configured: config.types[type]?.monitors ?? [],
    host: config.types[type]?.host ?? {},
    parts: { storePath: undefined, version: '0' },
    listening: () => Promise.resolve([]),
    signal: new AbortController().signal,
  })
  return planned.filter(({ kind }) => kind.name === 'host')
}
