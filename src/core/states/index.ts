export { type Effect, States, type StoredSubject, type SubjectView } from './states.ts'
export type * from './types.ts'
