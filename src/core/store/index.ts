/** The embedded store: where it lies, and how it is opened. */
export { applicationId } from './migrate.ts'
export { openStore, type Store, type StoreOptions } from './open.ts'
export { storePathFor } from './path.ts'
