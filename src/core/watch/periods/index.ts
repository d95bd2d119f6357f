/** The history of results: what monitors found over 400 days, in periods that get longer with their age. */

export { type Availability, availability, type Outage, stepFor, timeKnown, worstMoments } from './availability.ts'
export { decodeBlock, encodeBlock, type NameOf } from './block.ts'
export { HistoryFollower } from './follower.ts'
export { HistoryKeeper } from './keeper.ts'
export { memorySource } from './memory.ts'
export { emptyPack, measure, type Pack, packed } from './pack.ts'
export {
  eachPeriods,
  type HistorySource,
  inSteps,
  type MonitorPeriods,
  type Period,
  periodsOf,
  restored,
  startOf,
} from './reader.ts'
export { type MonitorIdentity, Recorder } from './recorder.ts'
export type {
  BlockQuery,
  BlockRow,
  HistoryBatch,
  HistoryMonitor,
  HistoryRows,
  Numbered,
  RunsId,
  RunsRow,
  StoredBlock,
  StoredRuns,
  Unnumbered,
} from './rows.ts'
export { codeOf, maxCode, valueOfCode } from './significant.ts'
export { keptMs, runsKeptMs, tiers } from './tiers.ts'
export { type ObservedCheck, type ObservedRun, type Rank, slotMs, Timeline } from './timeline.ts'
