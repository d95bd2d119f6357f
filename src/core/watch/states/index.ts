export { type NodeAnswer, type OtherNode, type Question, reaches } from './cross-check.ts'
export {
  type Ending,
  type IncidentRecord,
  type IncidentsQuery,
  Ledger,
  type StatesBatch,
  type StatesRows,
  type StoredState,
  type StoredStates,
} from './ledger.ts'
export { isUnreachable, rank } from './policy.ts'
export { type Effect, lineKey, monitorOfSvc, States, type SubjectView } from './states.ts'
export { namesOf, subjectId, subjectOf, toldAs } from './subject.ts'
export { StatesTable } from './table.ts'
export type * from './types.ts'
export { explaining, victimsBySubject } from './victims.ts'
