import type { SettingsSpec, Values } from '../settings.ts'
import { clockSetting } from './clock.ts'
import { queriesSetting } from './query-settings.ts'
import { tlsSetting } from './target.ts'

const minute = 60_000

/** What svc.yaml may say of a mysql monitor. */
export const mysqlSettings = {
  url: {
    type: 'url',
    protocols: ['mysql', 'mariadb'],
    required: true,
    doc: 'mysql://user@host:port/database, without a password; the database may be left out',
  },
  password: { type: 'secret', doc: "The user's password" },
  tls: tlsSetting,
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long the sign-in, and then SELECT 1, may take',
  },
  connections: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 80 },
    doc: 'Connections in use (Threads_connected), of max_connections',
  },
  running: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 60 },
    doc: 'Connections at work (Threads_running), of max_connections',
  },
  restarted: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: minute },
    doc: 'How long the server should have been up at least',
  },
  replica: { type: 'flag', default: false, doc: 'The server is a replica: without replication set up it fails' },
  replicationLag: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 30_000 },
    doc: 'How far a replica may be behind',
  },
  clock: clockSetting,
  longestTransaction: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 2 * minute, limit: 5 * minute },
    doc: 'How long an InnoDB transaction may last',
  },
  queries: queriesSetting,
} as const satisfies SettingsSpec
export type MysqlSettings = Values<typeof mysqlSettings>
