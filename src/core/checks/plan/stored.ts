import { ServerType } from '../../protocol/index.ts'
import type { PlannedMonitor } from '../engine/index.ts'
import { hostBlock, ofType } from './assemble.ts'

type Configured = {
  readonly monitors: readonly PlannedMonitor[]
  readonly host: Readonly<Record<string, unknown>> | false
}

/** The monitors that keep values between runs, of all types: those of svc.yaml, and every form of the host block. */
export async function storedMonitors(
  types: {
    readonly [T in ServerType]?: Configured
  },
): Promise<readonly PlannedMonitor[]> {
  const all = await Promise.all(
    ServerType.values.map(async (type) => {
      const { monitors = [], host = {} } = types[type] ?? {}
      const own = monitors.map((monitor) => ofType(type, monitor))
      return host === false ? own : [...own, await hostBlock(host)]
    }),
  )
  return all.flat()
}
