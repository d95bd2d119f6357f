/** Rehearsals: a server whose faults a script gives, for what reads svc. Pure. */
export { Attendance, type FaultFinding, type Poller, type PollerRequest } from './attendance.ts'
export { declarationOf, type FaultsNow, firstCheck, rehearsedMonitor, sentences } from './monitors.ts'
export {
  describeSubject,
  type MonitorFault,
  mustExit,
  type RehearsalPace,
  type Script,
  type ScriptedFault,
  type ScriptState,
  type ScriptStep,
  scriptOf,
  stateAt,
} from './script.ts'
export {
  maxScriptMs,
  overMs,
  type RehearsalValues,
  rehearsalSettings,
} from './settings.ts'
