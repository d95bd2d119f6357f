/** Drills: whether the path of an alarm works, from a fault to the receivers. */
export { type DrillHistory, type DrillTimes, drillTimes } from './due.ts'
export {
  type DrillFacts,
  type Hop,
  type HopResult,
  hopsOf,
  type ReceiverFacts,
  resultOf,
  traceKey,
  withOpened,
} from './judge.ts'
export { drillsInMemory } from './memory.ts'
export {
  confirmedLink,
  type DrillLink,
  type DrillRecord,
  type DrillRows,
  keptDrills,
  linkIn,
  linkMs,
} from './report.ts'
export { type DrillConfig, drillSettings } from './settings.ts'
