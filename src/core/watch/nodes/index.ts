export { factsIn, maxFacts } from './facts.ts'
export { groupsOf } from './groups.ts'
export {
  afterFailure,
  afterRenewal,
  afterStandstill,
  type Lease,
  type Mode,
  modeOf,
  noLease,
} from './lease.ts'
export {
  isByItself,
  type MemberEffect,
  type MemberSettings,
  Membership,
  type Voice,
  type WritePermit,
} from './member.ts'
export { afterLook, type OtherNodes, sendsAlone, unknownNodes } from './outdated.ts'
export { type NodesOverview, overviewOf, type ViewedNode } from './overview.ts'
export { machineKey, nameWithNode, nodeOfKey, ownersOf, plainKey, secondFor } from './owner.ts'
export { aloneMs, awayMs, outMs, renewEveryMs, renewTimeoutMs, reportedOutMs, standstillMs } from './policy.ts'
export { nodesKey, nodeVerdicts } from './report.ts'
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
