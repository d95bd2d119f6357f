import { clockSetting, type DatabaseTarget, databaseTarget, tlsSetting } from '../../database/index.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'

const hour = 3_600_000

export const mongoRoles = ['primary', 'secondary', 'arbiter', 'standalone', 'mongos'] as const

/** What svc.yaml may say of a mongo monitor. */
export const mongoSettings = {
  url: {
    type: 'url',
    protocols: ['mongodb', 'mongodb+srv'],
    required: true,
    doc: 'mongodb://user@host:port/database: one node, which is asked itself; the database is the one that knows the user (admin when left out). Without a user nothing is signed in to',
  },
  password: { type: 'secret', doc: "The user's password" },
  tls: tlsSetting,
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long the sign-in, then `hello`, then `ping` may take, each',
  },
  role: {
    type: 'choice',
    values: ['any', ...mongoRoles],
    default: 'any',
    doc: 'What the node should be; `any`: whatever it says, as long as it serves',
  },
  replicaSet: { type: 'text', doc: 'Name of the replica set that the node should belong to' },
  connections: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 80, limit: 95 },
    doc: 'Connections in use, of all that the node takes',
  },
  replicationLag: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 10_000, limit: 30_000 },
    doc: 'How far a secondary may be behind, beyond a delay that it is configured to have',
  },
  oplogWindow: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 24 * hour, limit: 4 * hour },
    doc: 'How long the oplog should reach back at least, once it is full',
  },
  allowWrites: {
    type: 'flag',
    default: false,
    doc: 'Lets `write concern` insert, read and delete a document of its own; documents that it left behind are swept',
  },
  probeDatabase: {
    type: 'text',
    default: 'svc_health',
    pattern: /^[A-Za-z0-9_-]{1,38}$/,
    doc: 'Database in which `write concern` writes, in the collection `probe`',
  },
  writeConcern: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 5_000 },
    doc: 'How long a majority may take to acknowledge a write',
  },
  queues: {
    type: 'threshold',
    unit: 'count',
    default: { warn: 10, limit: 30 },
    doc: 'Operations that wait for a lock',
  },
  cache: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 95 },
    doc: 'How full the cache of WiredTiger may be',
  },
  cacheDirty: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 20 },
    doc: 'How much of the cache may wait to be written',
  },
  clock: clockSetting,
} as const satisfies SettingsSpec
export type MongoSettings = Values<typeof mongoSettings>

export const mongoPort = 27_017

/** What the settings name; the user is empty where nothing is to be signed in to. Throws as `databaseTarget`. */
export function mongoTarget(given: MongoSettings): DatabaseTarget {
  const url = new URL(given.url)
  if (url.username !== '') return databaseTarget(given, mongoPort)
  url.username = 'nobody'
  return { ...databaseTarget({ ...given, url: url.href }, mongoPort), user: '' }
}
