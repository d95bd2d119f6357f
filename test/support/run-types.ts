import {
  type EngineWorld,
  limits,
  type MonitorReport,
  resolveHost,
  runInChild,
  runMonitors,
} from '../../src/core/health/index.ts'
import type { ExecutionMode, ServerType } from '../../src/core/protocol/index.ts'
import { load } from '../config/given.ts'

export type RunTypesOptions = {
  readonly env?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  readonly resolve?: EngineWorld['resolve']
  readonly date?: EngineWorld['date']
  readonly history?: EngineWorld['history']
}

/** Loads a svc.yaml and runs what it says of a type through the real engine. */
export async function runType(
  yaml: string,
  type: ServerType,
  mode: ExecutionMode,
  options: RunTypesOptions = {},
): Promise<readonly MonitorReport[]> {
  const config = await load(yaml, options.env ?? {})
  const world: EngineWorld = {
    now: () => performance.now(),
    date: options.date ?? (() => new Date()),
    resolve: options.resolve ?? resolveHost,
    inChild: runInChild,
    measureState: () => () => ({}),
    limits: limits(),
    history: options.history,
  }
  const run = await runMonitors(config.types[type]?.monitors ?? [], world, {
    mode,
    signal: new AbortController().signal,
    timeoutMs: options.timeoutMs,
  })
  return run.monitors
}

/** `monitor check: message` of everything that is not ok. */
export const complaints = (reports: readonly MonitorReport[], level: 'warn' | 'fail' = 'fail'): readonly string[] =>
  reports.flatMap(({ name, findings }) =>
    findings.filter((one) => one.level === level).map((one) => `${name} ${one.check}: ${one.message}`),
  )
