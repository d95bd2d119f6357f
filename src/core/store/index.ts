/** The store: where it lies, how it is opened, and what it is asked. */
export type {
  Actor,
  AuditRow,
  Changed,
  Data,
  Grants,
  HeartbeatRow,
  KeyRow,
  RefreshRow,
  Rotation,
  SessionRow,
  SignInRecord as SignIn,
  StoredRoleChange as RoleChange,
  TokenRow,
  User,
} from './data.ts'
export { nameKey } from './names.ts'
export { openStore, type Store, type StoreOptions } from './open.ts'
export { type DataOptions, openData } from './open-data.ts'
export { shownStore, storeKind, storePathFor } from './path.ts'
export { applicationId } from './schema.ts'
