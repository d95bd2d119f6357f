import { clockSetting, queriesSetting, tlsSetting } from '../../database/index.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** What svc.yaml may say of a sqlserver monitor. */
export const sqlserverSettings = {
  url: {
    type: 'url',
    protocols: ['sqlserver', 'mssql'],
    required: true,
    doc: 'sqlserver://user@host:port/database, without a password, for a login of SQL Server itself; a named instance is given by its port',
  },
  password: { type: 'secret', doc: "The login's password" },
  tls: tlsSetting,
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long the sign-in, and then SELECT 1, may take',
  },
  ignore: { type: 'texts', default: [], doc: 'Databases that no check looks at' },
  sessions: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 80, limit: 95 },
    doc: 'User connections, of how many the server takes',
  },
  blocked: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: minute },
    doc: 'How long a request may wait for another',
  },
  logReuse: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 50 },
    doc: 'How full a log may be while something keeps its space from being used again',
  },
  dataSpace: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 10, limit: 5 },
    doc: "Free space for the data of the url's database, of all that its files may grow to",
  },
  logSpace: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 10, limit: 5 },
    doc: 'Free space for the log of each database, of all that its files may grow to',
  },
  fullBackup: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 48 * hour, limit: 72 * hour },
    doc: 'Age of the last full backup of each database, {} to leave it out',
  },
  logBackup: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 30 * minute, limit: 60 * minute },
    doc: 'Age of the last log backup of each database in FULL recovery, {} to leave it out',
  },
  tempdb: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 10 },
    doc: 'Free space in tempdb, of all that its files may grow to',
  },
  failedJobs: {
    type: 'threshold',
    unit: 'count',
    default: { warn: 0 },
    doc: 'Enabled Agent jobs whose last run failed',
  },
  checkdb: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 14 * day },
    doc: 'Age of the last DBCC CHECKDB of each database that found nothing wrong',
  },
  clock: clockSetting,
  queries: queriesSetting,
} as const satisfies SettingsSpec
export type SqlserverSettings = Values<typeof sqlserverSettings>
