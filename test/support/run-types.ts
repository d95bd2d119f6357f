import { type EngineContext, limits, type MonitorReport, runMonitors } from '../../src/core/engine/index.ts'
import { resolveHost } from '../../src/core/net/connect.ts'
import type { ExecutionMode, ServerType } from '../../src/core/protocol/index.ts'
import { load } from '../config/given.ts'
import { runInChild } from './cached-child.ts'

export type RunTypesOptions = {
  readonly env?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  readonly resolve?: EngineContext['resolve']
  readonly date?: EngineContext['date']
  readonly history?: EngineContext['history']
}

/** Loads a svc.yaml and runs a type of it through the real engine. */
export async function runType(
  yaml: string,
  type: ServerType,
  mode: ExecutionMode,
  options: RunTypesOptions = {},
): Promise<readonly MonitorReport[]> {
  const config = await load(yaml, options.env ?? {})
  const context: EngineContext = {
    now: () => performance.now(),
    date: options.date ?? (() => new Date()),
    resolve: options.resolve ?? resolveHost,
    inChild: runInChild,
    measureState: () => () => ({}),
    limits: limits(),
    history: options.history,
  }
  const run = await runMonitors(config.types[type]?.monitors ?? [], context, {
    mode,
    signal: new AbortController().signal,
    timeoutMs: options.timeoutMs,
  })
  return run.monitors
}

/** `monitor check: message` of everything that is not ok. */
export const complaints = (
  reports: readonly MonitorReport[],
  status: 'warning' | 'failed' = 'failed',
): readonly string[] =>
  reports.flatMap(({ name, results }) =>
    results.filter((one) => one.status === status).map((one) => `${name} ${one.check}: ${one.message}`),
  )
