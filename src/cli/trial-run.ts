import { openCore } from '../core/open.ts'
import type { ExecutionMode, ServerType } from '../core/protocol/index.ts'
import type { Trial } from '../core/service.ts'
import { monitorNamed, type NamedMonitor } from './monitor-named.ts'
import { configuration, storePath } from './session.ts'
import type { Environment } from './variable.ts'
import { packageJson } from './version.ts'

export type Tried = NamedMonitor & { readonly mode: ExecutionMode; readonly trial: Trial }

type TrialFlags = {
  readonly type?: ServerType | undefined
  readonly mode?: ExecutionMode | undefined
  readonly timeout?: number | undefined
  readonly config?: string | undefined
  readonly store?: string | undefined
}

/** Runs the monitor that svc.yaml has under a name, by itself and as deep as it can. Throws like `monitorNamed`. */
export async function tryMonitor(
  name: string,
  flags: TrialFlags,
  env: Environment,
  signal: AbortSignal,
): Promise<Tried> {
  const config = await configuration(flags, env)
  const named = monitorNamed(config, name, flags.type)
  const { mode = 'Advanced' } = flags
  const { trial, runtime } = await openCore({
    version: packageJson().version,
    config,
    store: await storePath(flags, env),
    shared: false,
    details: 'anyone',
  })
  try {
    return { ...named, mode, trial: await trial({ ...named, mode, timeoutMs: flags.timeout }, signal) }
  } finally {
    await runtime.close()
  }
}
