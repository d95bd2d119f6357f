export * from './addresses.ts'
export { loadNextSteps } from './attempts.ts'
export * from './certificates.ts'
export * from './check.ts'
export * from './classify.ts'
export * from './client-expiry.ts'
export type { AddedCost, Cost, KindCost, MeasuredCost } from './cost.ts'
export * from './kind.ts'
export type { IntervalOf, LatestOfMonitor, LatestOfType, LatestOptions, LatestReport, LatestReports } from './latest.ts'
export * from './limits.ts'
export type {
  BegunObservation,
  EngineContext,
  IsOwed,
  MonitorReport,
  ObservationEnd,
  PlannedMonitor,
  Run,
  RunCause,
  RunOptions,
  Serving,
  ServingObservation,
} from './monitor.ts'
export * from './monitor-key.ts'
export * from './network-kind.ts'
export { deadlines, settingsProblem } from './observe.ts'
export type { RefusalStore } from './refusal-file.ts'
export * from './result.ts'
export { dependenciesOfMonitor, limits, loadSignIns, runMonitor, runMonitors } from './run.ts'
export type { StoredMonitor } from './series.ts'
export * from './shared-runs.ts'

/** Load what only `svc serve` needs. */
export const loadCosts = () => import('./cost.ts')
export const loadLatest = () => import('./latest.ts')
export const loadServing = () => import('./serving.ts')
export { Heap } from './waiting-list.ts'
