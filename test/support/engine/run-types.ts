import type { MonitorReport } from '../../../src/core/checks/engine/index.ts'
import type { ExecutionMode, ServerType } from '../../../src/core/protocol/index.ts'
import { load } from '../../config/given.ts'
import { type RunConfigOptions, runConfig } from './run-config.ts'

export type RunTypesOptions = RunConfigOptions & {
  readonly env?: Readonly<Record<string, string>>
  /** Run the host block of the type instead of its monitors. */
  readonly host?: boolean
}

/** Loads a svc.yaml and runs a type of it through the real engine. */
export const runType = async (
  yaml: string,
  type: ServerType,
  mode: ExecutionMode,
  options: RunTypesOptions = {},
): Promise<readonly MonitorReport[]> => runConfig(await load(yaml, options.env ?? {}), type, mode, options)

/** `monitor check: message` of everything that is not ok. */
export const complaints = (
  reports: readonly MonitorReport[],
  status: 'warning' | 'failed' = 'failed',
): readonly string[] =>
  reports.flatMap(({ name, results }) =>
    results.filter((one) => one.status === status).map((one) => `${name} ${one.check}: ${one.message}`),
  )
