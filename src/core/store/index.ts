/** The store: where it lies, how it is opened, and what it is asked. */
export type {
  Actor,
  AuditRow,
  Data,
  Grants,
  KeyRow,
  RefreshRow,
  SessionRow,
  TokenRow,
  User,
} from './data.ts'
export { applicationId } from './migrate.ts'
export { openStore, type Store, type StoreOptions } from './open.ts'
export { type DataOptions, openData } from './open-data.ts'
export { shownStore, storeKind, storePathFor } from './path.ts'
