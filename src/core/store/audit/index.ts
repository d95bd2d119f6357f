/** Verifies the audit log, and derives the roles of the past from it: pure functions of its entries. */

export {
  type ChainEntry,
  type ChainHead,
  entryHash,
  headText,
  makeSeal,
  readHead,
  type Seal,
} from './chain.ts'
export { entryLine, exportLines, noteLine, sealLine, withdrawalLine } from './lines.ts'
export {
  holdingIn,
  type PastMoment,
  type PastUser,
  type RecordedRoles,
  type RoleEntry,
  RolesAt,
  type RolesPast,
  type UserRecord,
  type UserRecords,
} from './roles-past.ts'
export type { ChainOptions, ChainProblem, ChainVerdict } from './verify.ts'
export { unsealedIn, verifyLines } from './verify-lines.ts'
export { type ChainSource, sealsWithEntries, verifyStore } from './verify-store.ts'
