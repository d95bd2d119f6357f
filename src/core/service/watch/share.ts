import type { Config } from '../../config/index.ts'
import type { OtherNode, WatchedMonitor } from '../../watch/states/index.ts'
import type { ScheduledMonitor } from './scheduled-monitors.ts'

/** Which monitors this process runs, where several nodes share them. */
export type NodeMonitors = {
  /** The name of this node. */
  readonly node: string
  readonly runs: (key: string) => boolean
  /** Whether states and messages of a monitor are those of this process. What it has but must not run now waits. */
  readonly has: (key: string) => boolean
  /** Whether another node takes care of what is known of it. */
  readonly isElsewhere: (key: string) => boolean
  /** The configuration is another one from now on. The caller then configures states and schedule. */
  readonly configured: (monitors: readonly ScheduledMonitor[], config: Config) => void
  /** Over how many milliseconds first runs are spread: what another node ran until now waits no longer than necessary. */
  readonly spreadMs: () => number | undefined
  /** Who can be asked whether it reaches a monitor of the network. */
  readonly otherNode: (key: string) => OtherNode | undefined
  /** The reports of the nodes on each other, as a monitor that no schedule runs. */
  readonly reports: WatchedMonitor
}
