import { count, showBytes, showDuration } from '../../../base/format.ts'
import { figure, flag, limitOnDatabase, onDatabase, text, truth } from '../../database/index.ts'
import { notChecked, ok, warn } from '../../engine/index.ts'
import { hiddenFrom, inMs, privilege, readRole } from './checks.ts'

/** The number of names in a message. */
const maxNames = 3

/** The first names of a list, and how many more there are. */
const listed = (names: readonly string[], all: number): string =>
  `${names.slice(0, maxNames).join(', ')}${all > maxNames ? ` and ${all - maxNames} more` : ''}`

export const invalidIndexes = onDatabase({
  depth: 'Advanced',
  results: {
    'invalid indexes':
      'No index of this database remains from CREATE INDEX or REINDEX CONCURRENTLY that failed: queries do not use it, and every write maintains it',
  },
  privilege,
  observe: async ({ ask, user }) => {
    const [row] = await ask("SELECT to_regclass('pg_catalog.pg_stat_progress_create_index') IS NOT NULL AS reported")
    // PostgreSQL before 12 does not report which indexes are being built; VACUUM takes the same lock for a while.
    const building = truth(row, 'reported')
      ? 'SELECT relid, index_relid FROM pg_stat_progress_create_index WHERE datname = current_database()'
      : `SELECT relation, 0::oid FROM pg_locks WHERE mode = 'ShareUpdateExclusiveLock' AND relation IS NOT NULL`
    const rows = await ask(`WITH building(relid, index_relid) AS (${building})
      SELECT n.nspname || '.' || c.relname AS name, count(*) OVER ()::int AS all,
        (SELECT count(*) FROM building WHERE relid IS NULL)::int AS hidden
      FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
      WHERE NOT i.indisvalid AND c.relkind = 'i'
        AND NOT EXISTS (SELECT FROM building WHERE relid = i.indrelid OR index_relid = i.indexrelid)
      ORDER BY 1 LIMIT 20`)
    return {
      user,
      isReported: row !== undefined && flag(row, 'reported') !== undefined,
      names: rows.map((one) => text(one, 'name', 128)),
      all: rows.length === 0 ? 0 : figure(rows[0], 'all'),
      /** The number of indexes that are being built, of which this account does not see which. */
      hidden: figure(rows[0], 'hidden') ?? 0,
    }
  },
  evaluate: ({ user, isReported, names, all, hidden }) => {
    const check = 'invalid indexes'
    if (!isReported || all === undefined) return notChecked(check, 'missing', 'the indexes are not reported')
    if (all === 0) return ok(check, 'none')
    if (hidden > 0) return hiddenFrom(check, user, hidden, 'index build')
    const [first = ''] = names
    return warn(check, `${count(all, 'index is', 'indexes are')} invalid: ${listed(names, all)}`, {
      measurement: { value: all, unit: 'count', warn: 0, bound: 'atMost' },
      details: [...names.slice(maxNames), `next: REINDEX INDEX CONCURRENTLY ${first}, or drop it`],
    })
  },
})

export const pendingRestart = onDatabase({
  depth: 'Advanced',
  results: {
    'pending restart':
      'No changed setting waits for a restart of the server; settings of its command line are left out, because a restart keeps them',
  },
  observe: async ({ ask }) => {
    // After a reload, a setting of the command line is pending whenever the file has another value.
    const rows = await ask(`SELECT name, count(*) OVER ()::int AS all FROM pg_settings
      WHERE pending_restart AND source <> 'command line' ORDER BY name LIMIT 20`)
    // A row that always exists shows that the server answers.
    const [row] = await ask(`SELECT count(*)::int AS settings FROM pg_settings WHERE name = 'max_connections'`)
    return {
      isReported: figure(row, 'settings') === 1,
      names: rows.map((one) => text(one, 'name')),
      all: rows.length === 0 ? 0 : figure(rows[0], 'all'),
    }
  },
  evaluate: ({ isReported, names, all }) => {
    const check = 'pending restart'
    if (!isReported || all === undefined) return notChecked(check, 'missing', 'the settings are not reported')
    if (all === 0) return ok(check, 'no setting waits for a restart')
    return warn(check, `${count(all, 'setting waits', 'settings wait')} for a restart: ${listed(names, all)}`, {
      measurement: { value: all, unit: 'count', warn: 0, bound: 'atMost' },
      details: names.slice(maxNames),
    })
  },
})

export const checkpointAge = limitOnDatabase({
  depth: 'Advanced',
  check: 'checkpoint age',
  proves: 'Checkpoints are completed while there is WAL to write; omitted on a standby',
  setting: 'checkpointAge',
  unit: 'percent',
  default: { warn: 300, limit: 1_000 },
  doc: 'Time since the last completed checkpoint began, in percent of checkpoint_timeout. A server that has written less than one WAL segment since it ended needs no checkpoint',
  observe: async (connection) => {
    const isStandby = flag(await readRole(connection), 'standby')
    if (isStandby !== false) return { isStandby }
    // From the record of the checkpoint on: what was written while it ran does not make the server begin the next one.
    const [row] = await connection.ask(`SELECT ${inMs('clock_timestamp() - checkpoint_time')} AS age,
        pg_wal_lsn_diff(pg_current_wal_lsn(), checkpoint_lsn)::float8 AS written,
        (SELECT setting::float8 FROM pg_settings WHERE name = 'wal_segment_size') AS segment,
        (SELECT setting::float8 * 1000 FROM pg_settings WHERE name = 'checkpoint_timeout') AS timeout
      FROM pg_control_checkpoint()`)
    return {
      isStandby,
      ageMs: figure(row, 'age'),
      /** Bytes of WAL since that checkpoint ended. */
      written: figure(row, 'written'),
      segment: figure(row, 'segment'),
      timeoutMs: figure(row, 'timeout'),
    }
  },
  evaluate: ({ isStandby, ageMs, written, segment, timeoutMs }, compare) => {
    const check = 'checkpoint age'
    if (isStandby) return []
    if (ageMs === undefined || written === undefined || segment === undefined || !timeoutMs) {
      return notChecked(check, 'missing', 'the last checkpoint is not reported')
    }
    const age = Math.max(0, ageMs)
    const what = `the last checkpoint began ${showDuration(age)} ago, and ${showBytes(Math.max(0, written))} of WAL were written since it ended:`
    if (written < segment) {
      return ok(
        check,
        `the last checkpoint began ${showDuration(age)} ago, and little WAL was written since it ended`,
        {
          measurement: { value: (age / timeoutMs) * 100, unit: 'percent' },
        },
      )
    }
    return compare({
      what,
      value: (age / timeoutMs) * 100,
      after: 'of checkpoint_timeout',
      details: ["check the disk and the server's log: a restart would replay all of this WAL, and more"],
    })
  },
})

export const exclusiveBackup = limitOnDatabase({
  depth: 'Advanced',
  check: 'exclusive backup',
  proves: 'No exclusive backup was forgotten; omitted on a standby and since PostgreSQL 15',
  setting: 'exclusiveBackup',
  unit: 'duration',
  default: { warn: 86_400_000 },
  doc: 'Maximum time since pg_start_backup() began an exclusive backup, which only PostgreSQL before 15 has. A server that crashes meanwhile may not start again',
  observe: async ({ ask }) => {
    const [role] = await ask(`SELECT pg_is_in_recovery() AS standby,
      to_regprocedure('pg_catalog.pg_backup_start_time()') IS NOT NULL AS supported`)
    const [isStandby, isSupported] = [flag(role, 'standby'), flag(role, 'supported')]
    if (isStandby !== false || isSupported !== true) return { isStandby, isSupported }
    const [row] = await ask(`SELECT pg_is_in_backup() AS running,
      ${inMs('clock_timestamp() - pg_backup_start_time()')} AS since`)
    return { isStandby, isSupported, isRunning: flag(row, 'running'), sinceMs: figure(row, 'since') }
  },
  evaluate: ({ isStandby, isSupported, isRunning, sinceMs: value }, compare) => {
    const check = 'exclusive backup'
    if (isStandby || isSupported === false) return []
    if (isRunning === undefined) return notChecked(check, 'missing', 'the state of the backup is not reported')
    if (!isRunning) return ok(check, 'none')
    const details = ['next: SELECT pg_stop_backup(), if no backup is running']
    return compare({ what: 'an exclusive backup has been running for', value, details })
  },
})

/** In the order of their results. */
export const upkeepChecks = [invalidIndexes, pendingRestart, checkpointAge, exclusiveBackup]
