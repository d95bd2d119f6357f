import type { ServerType } from '../index.ts'

/**
 * The incidents of the monitors that the schedule runs, as one reader may see them. Instants are milliseconds since
 * 1970.
 */
export type Incidents = {
  /** By the monitor at fault, the worst first. */
  readonly open: readonly TroubledMonitor[]
  /** How many further monitors have an open incident, of types that the reader may not read. */
  readonly hidden: number
  /** The last ones that are over, without those of victims, the latest first. */
  readonly ended: readonly EndedIncident[]
  /** Whether no witness answers. Undefined without witnesses. */
  readonly isIsolated: boolean | undefined
}

export type TroubledMonitor = {
  /** Absent for the machine itself, and for a monitor that the reader may not read. */
  readonly type?: ServerType | undefined
  /** The MonitorName. Undefined for a monitor that the reader may not read, on which readable ones rest. */
  readonly monitor?: string | undefined
  /** Its own, the worst first. Empty if only its victims still fail, or if the reader may not read it. */
  readonly faults: readonly OpenFault[]
  /** The monitors that fail because of it, the first ones first. */
  readonly victims: readonly Victim[]
  /** Those that the reader may not read. */
  readonly hiddenVictims: number
}

export type OpenFault = {
  readonly check: string
  readonly item?: string | undefined
  readonly level: 'warning' | 'failed'
  /** `deciding`: confirmed, and svc is looking at the monitors on which it may rest. */
  readonly certainty: 'in doubt' | 'deciding' | 'confirmed'
  /** When the first bad run began. */
  readonly since: number
  readonly fault?: string | undefined
  readonly message: string
  readonly isFlapping: boolean
  readonly isUnobserved: boolean
  /** Since when runs are healthy again, until that is confirmed. */
  readonly recoveringSince?: number | undefined
}

export type Victim = {
  readonly type?: ServerType | undefined
  readonly monitor: string
  readonly since: number
}

export type EndedIncident = {
  readonly type?: ServerType | undefined
  readonly monitor: string
  readonly check: string
  readonly item?: string | undefined
  readonly level: 'warning' | 'failed'
  /**
   * `blip`: it was over before it was confirmed. `removed`: the monitor or item no longer exists. `unknown`: svc lost sight
   * of it.
   */
  readonly end: 'recovered' | 'observed' | 'removed' | 'blip' | 'unknown'
  readonly beganAt: number
  readonly endedAt: number
  readonly fault?: string | undefined
  readonly message: string
  /** How many monitors failed because of it. */
  readonly victims: number
  /** The monitor because of which it failed, where the reader asked for this one. */
  readonly cause?: string | undefined
}
