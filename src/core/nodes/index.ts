export { groupsOf } from './groups.ts'
export {
  afterFailure,
  afterRenewal,
  afterStandstill,
  type Lease,
  noLease,
  type Renewal,
  type Standing,
  standingOf,
} from './lease.ts'
export { type NodesOverview, overviewOf, type ViewedNode } from './overview.ts'
export { machineKey, nodeOfKey, ownerOf, ownersOf, secondOpinionOf } from './owner.ts'
export { aloneMs, outMs, renewEveryMs, reportedOutMs, standstillMs } from './policy.ts'
export {
  type Choose,
  type Fenced,
  type NodesRows,
  NodesTable,
  ownedBy,
  type RenewalAnswer,
  type RenewalRequest,
  type Taken,
} from './table.ts'
export type * from './types.ts'
