import { queriesSetting } from '../../database/index.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'

const hour = 3_600_000

/** What svc.yaml may say of a sqlite monitor. */
export const sqliteSettings = {
  path: { type: 'text', required: true, doc: 'The whole path of the database file' },
  ownStore: { type: 'flag', default: false, doc: 'Judge it as the store of svc itself' },
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long opening, SELECT 1 and a write that is taken back may each take',
  },
  walSize: {
    type: 'threshold',
    unit: 'bytes',
    default: { warn: 64 * 1024 ** 2 },
    doc: 'How large the write-ahead log may grow: a reader that never ends keeps it from being taken in',
  },
  schemaVersion: { type: 'integer', min: 0, doc: 'Schema version (user_version) expected; skew is deployment-related' },
  diskFree: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 20, limit: 10 },
    doc: 'How much of the disk should be free at least',
  },
  backup: { type: 'text', doc: 'The whole path of a backup file, or of a folder whose newest file is the backup' },
  backupAge: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 48 * hour, limit: 72 * hour },
    doc: 'How old the backup may be; left out without `backup`',
  },
  queries: queriesSetting,
} as const satisfies SettingsSpec
export type SqliteSettings = Values<typeof sqliteSettings>
