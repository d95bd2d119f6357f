export { factsIn, maxFacts } from './facts.ts'
export type { LeaseAsk, LeaseRow } from './lease.ts'
export {
  isByItself,
  type MemberEffect,
  type MemberSettings,
  Membership,
  type Mode,
  shardsOf,
  type Voice,
} from './member.ts'
export { machineKey, nameWithNode, nodeOfKey, plainKey, presentKeys } from './names.ts'
export { type NodeLease, soleNode } from './node-lease.ts'
export { afterLook, type OtherNodes, sendsAlone, unknownNodes } from './outdated.ts'
export { overviewOf, type ViewedNode } from './overview.ts'
export { aloneMs, answerTimeoutMs, outMs, reportedOutMs } from './policy.ts'
export { nodesKey, nodeVerdicts } from './report.ts'
export type { AddressedNode } from './speakers.ts'
export * from './types.ts'
