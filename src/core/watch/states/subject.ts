import type { Incident, KeyedMonitor, StoredSubject, Subject } from './types.ts'

/** The name of a subject in tables: the same wherever something is kept about it. */
export const subjectId = ({ key, check, item }: Subject): string =>
  JSON.stringify(item === undefined ? [key, check] : [key, check, item])

/** Every name by which silences cover a subject: its own, and those that its monitor has had before since it failed. */
export const namesOf = <T extends KeyedMonitor>(
  subject: T,
  incident: Pick<Incident, 'formerly'> | undefined,
): readonly [T, ...KeyedMonitor[]] => [subject, ...(incident?.formerly ?? [])]

/** The subject as receivers know it while the incident is open. */
export const toldAs = (
  subject: StoredSubject,
  { formerly: [first] = [] }: Pick<Incident, 'formerly'>,
): StoredSubject => (first === undefined ? subject : { ...subject, ...first })

/** The subject alone, of something that has more. */
export const subjectOf = ({ key, type, monitor, check, item }: StoredSubject): StoredSubject => ({
  key,
  type,
  monitor,
  check,
  ...(item === undefined ? {} : { item }),
})
