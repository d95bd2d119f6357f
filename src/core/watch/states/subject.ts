import type { StoredSubject } from './states.ts'
import type { Subject } from './types.ts'

/** The name of a subject in tables: the same wherever something is kept about it. */
export const subjectId = ({ key, check, item }: Subject): string =>
  JSON.stringify(item === undefined ? [key, check] : [key, check, item])

/** The subject alone, of something that has more. */
export const subjectOf = ({ key, type, monitor, check, item }: StoredSubject): StoredSubject => ({
  key,
  type,
  monitor,
  check,
  ...(item === undefined ? {} : { item }),
})
