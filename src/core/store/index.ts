/** The store: its place, how to open it, and its queries. */

import { FileStoreOutage } from '../base/errors.ts'
import { refuseGone, type UsedStores } from './open.ts'
import { schemaCheck } from './own-schema.ts'
import { refuseSilentShare } from './path.ts'
import { migrations } from './schema.ts'
import type { Claim } from './serve-lock.ts'

export type {
  Actor,
  AuditBeginning,
  AuditGate,
  AuditRow,
  Bucket,
  Changed,
  Data,
  DigestSecret,
  EndingGrant,
  FailureCount,
  Grant,
  GrantEdits,
  Grants,
  Holdings,
  IdentityRow,
  KeyRow,
  RefreshRow,
  Rotation,
  SessionRow,
  Settlement,
  SignedInSession,
  SignInRecord,
  SilenceRows,
  StoredNodes,
  StoredRoleChange,
  TokenRow,
  User,
  UserToAdd,
} from './data.ts'
export { adminGrant } from './grants.ts'
export type { Newer, StoreHolder } from './hold.ts'
export { openStore, prepareStore, refuseUnopenable, type Store, type StoreOptions, type UsedStores } from './open.ts'
export type { Backup } from './upkeep/backup.ts'
export type { Keeper, KeeperLog } from './upkeep/keeper.ts'
// Loaded on demand: only `svc serve` needs the keeper and the marker, only completion the names, only root the store of the
// service, and only a few commands the last ones.
/** Loads the module of the seals, which only a server and the commands of the audit need. */
export const loadSeals = async () => void (await import('./rows/seals.ts'))
export const loadMarkers = async () => (await import('./own-marker.ts')).keepMarker
export const loadClaims = async () => {
  const [{ claimStore }, claims] = await Promise.all([import('./serve-lock.ts'), import('./upkeep/claims.ts')])
  /** Makes nothing in place of a store that is gone: its disk may be mounted there later. */
  const claim = async (store: string, used: UsedStores | undefined): Promise<Claim> => {
    // Whatever looks at a silent share in this process would block it.
    await refuseSilentShare(store)
    try {
      await refuseGone(store, used)
    } catch (error) {
      if (!(error instanceof FileStoreOutage)) throw error
      return { is: 'impossible', why: error.why }
    }
    return claimStore(store)
  }
  return { claim, ...claims }
}
export const loadNodesOfNewerStore = async () => (await import('./newer-nodes.ts')).nodesOfNewerStore
export const loadHold = async () => (await import('./hold.ts')).holdStore
export const ownSchemaCheck = () => schemaCheck(migrations)
export const loadKeeper = async () => (await import('./upkeep/keeper.ts')).keepStore
/**
 * Loads the module that compares the schema while a server runs: before the server listens, as everything that requests
 * use.
 */
export const loadInspection = async () => await import('./inspect-schema.ts')
export const loadStoredNames = async () => (await import('./names.ts')).storedNames
export const loadServiceStore = async () => (await import('./service-store.ts')).storeOfService
/** Loads the table for questions about a time, which few commands ask. */
export const loadPastTable = async () => (await import('./rows/past-table.ts')).PastTable
export const loadAuditEvents = () => import('./audit-events.ts')
export const loadBackup = async () => (await import('./upkeep/backup.ts')).backUp
export const loadRestore = async () => (await import('./upkeep/restore.ts')).restore
export { nonceLivesMs, prefixesKeptMs } from './data.ts'
export { type DataOptions, openData } from './open-data.ts'
export { hasUnit, shownStore, storeKind, storePathFor } from './path.ts'
export { applicationId } from './schema.ts'
export type { StoreUser } from './serve-lock.ts'
export type { ServiceStore } from './service-store.ts'
export { nameKey } from './tables.ts'
export type { Restored } from './upkeep/restore.ts'
export type { RolledBack } from './upkeep/rollback.ts'
