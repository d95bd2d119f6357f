import type { FaultClass } from '../../base/probe-error.ts'
import type { ServerType } from '../../protocol/index.ts'
import { type HttpFault, overMs } from './settings.ts'

/** A fault of a monitor in a script. */
export type MonitorFault = {
  readonly type: ServerType
  /** Its MonitorName. */
  readonly monitor: string
  readonly check: string
  readonly fault: FaultClass
  readonly message: string
}
/** The subject that a step makes fail. */
export type FaultSubject = { readonly monitor: MonitorFault } | { readonly http: HttpFault }

/** The effect of one step, before later steps end it. Times are milliseconds from the start of the server. */
export type ScriptStep = {
  readonly at: number
  /** How long it lasts. Undefined: until another step ends it. */
  readonly lastsMs: number | undefined
  /** Counted from 1, in the file. */
  readonly line: number
  /** `ends` ends the faults of a monitor, those of one of its checks, or that of http. */
  readonly does: FaultSubject | { readonly ends: EndedSubject }
}
export type EndedSubject =
  | 'http'
  | { readonly type: ServerType; readonly monitor: string; readonly check: string | undefined }

/** A fault and when it is active: from `from`, until before `to`. */
export type ScriptedFault = {
  readonly from: number
  readonly to: number
  readonly line: number
  readonly subject: FaultSubject
}

export type Script = {
  /** When the rehearsal is over. Milliseconds from the start of the server. */
  readonly endsMs: number
  /** In the order of the file. */
  readonly faults: readonly ScriptedFault[]
}

/** The script of these steps, which are in the order of time. */
export function scriptOf(steps: readonly ScriptStep[], endsMs: number): Script {
  const faults = steps.flatMap(({ at, lastsMs, line, does }, index): readonly ScriptedFault[] => {
    if ('ends' in does) return []
    const next = steps.slice(index + 1).find((later) => replaces(later.does, does))
    const to = Math.min(endsMs, next?.at ?? endsMs, lastsMs === undefined ? endsMs : at + lastsMs)
    return [{ from: at, to, line, subject: does }]
  })
  return { endsMs, faults }
}

/** Whether a later step ends what an earlier one began. */
function replaces(later: ScriptStep['does'], earlier: FaultSubject): boolean {
  if ('http' in earlier) return 'http' in later || ('ends' in later && later.ends === 'http')
  const { type, monitor, check } = earlier.monitor
  const other = 'monitor' in later ? later.monitor : 'ends' in later && later.ends !== 'http' ? later.ends : undefined
  return other?.type === type && other.monitor === monitor && (other.check ?? check) === check
}

const faultsAt = ({ faults }: Script, at: number): readonly ScriptedFault[] =>
  faults.filter(({ from, to }) => from <= at && at < to)

/** The active faults at a time, in milliseconds from the start of the server: those by monitor, and that of http. */
export type ScriptState = {
  /** The faults of a monitor. */
  readonly of: (type: ServerType, monitor: string) => readonly MonitorFault[]
  /** `over`: the script has ended. */
  readonly http: HttpFault | 'over' | undefined
}

/** The active faults at a time. Nothing is active before the start and after the end. */
export function stateAt(script: Script, at: number): ScriptState {
  const now = faultsAt(script, at)
  return {
    of: (type, monitor) =>
      now.flatMap(({ subject }) =>
        'monitor' in subject && subject.monitor.type === type && subject.monitor.monitor === monitor
          ? [subject.monitor]
          : [],
      ),
    http: at >= script.endsMs ? 'over' : now.flatMap(({ subject }) => ('http' in subject ? [subject.http] : [])).at(-1),
  }
}

/** Whether the process has to end. */
export const mustExit = ({ endsMs }: Script, at: number): boolean => at >= endsMs + overMs

/** `Sql/postgres orders round trip: refused`, `http: hang` */
export const describeSubject = (subject: FaultSubject): string =>
  'http' in subject
    ? `http: ${subject.http}`
    : `${subject.monitor.type}/${subject.monitor.monitor} ${subject.monitor.check}: ${subject.monitor.fault}`

/** The clocks of a rehearsal, which tests replace. */
export type RehearsalPace = {
  /** Milliseconds. It may stand still while the machine sleeps. */
  readonly monotonic: () => number
  /** Milliseconds since 1970. Somebody may set it. */
  readonly wall: () => number
  /** How often the state of the script is examined. Milliseconds. */
  readonly beatMs: number
}
