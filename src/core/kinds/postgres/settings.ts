import { clockSetting, queriesSetting, tlsSetting } from '../../database/index.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'

const minute = 60_000
const gibibyte = 1024 ** 3

/** What svc.yaml may say of a postgres monitor. */
export const postgresSettings = {
  url: {
    type: 'url',
    protocols: ['postgres', 'postgresql'],
    required: true,
    doc: 'postgres://user@host:port/database, without a password',
  },
  password: { type: 'secret', doc: "The user's password" },
  tls: tlsSetting,
  role: { type: 'choice', values: ['primary', 'standby', 'any'], default: 'any', doc: 'What the server should be' },
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long the sign-in, and then SELECT 1, may take',
  },
  connections: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 80, limit: 95 },
    doc: 'Connections in use, of those that ordinary accounts may use',
  },
  clock: clockSetting,
  longestTransaction: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 2 * minute, limit: 5 * minute },
    doc: 'How long a transaction of a client may last',
  },
  lockWait: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: minute, limit: 2 * minute },
    doc: 'How long a session may wait for a lock',
  },
  restarted: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: minute },
    doc: 'How long the server should have been up at least',
  },
  replicationLag: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 5_000, limit: 30_000 },
    doc: 'How far a standby may be behind',
  },
  replicas: { type: 'integer', min: 0, max: 1_000, doc: 'How many replicas stream from this server at least' },
  slots: {
    type: 'threshold',
    unit: 'bytes',
    default: { warn: 10 * gibibyte },
    doc: 'How much WAL a replication slot may hold back',
  },
  inactiveSlots: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 10 * minute },
    doc: 'How long a replication slot may be without its consumer; before PostgreSQL 17 any such time counts',
  },
  wraparound: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 90, limit: 95 },
    doc: 'Age of the oldest transaction id, of the age at which the server takes emergency measures (vacuum_failsafe_age)',
  },
  preparedTransactions: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 30_000 },
    doc: 'How long a prepared transaction may wait for its second phase',
  },
  queries: queriesSetting,
} as const satisfies SettingsSpec
export type PostgresSettings = Values<typeof postgresSettings>
