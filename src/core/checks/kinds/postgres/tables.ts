import { count } from '../../../base/format.ts'
import type { SettingsSpec } from '../../../base/settings/index.ts'
import { skipSetting, withoutSkipped } from '../../assert/skip.ts'
import { figure, flag, limitOnDatabase, type Row, text } from '../../database/index.ts'
import { notChecked, ok, warn } from '../../engine/index.ts'
import { hiddenWithout, inMs } from './checks.ts'
import { identifier } from './errors.ts'

const largeTables = {
  type: 'integer',
  min: 0,
  max: 1_000_000_000,
  default: 10_000,
  doc: 'Number of rows, dead ones included, above which `dead tuples` and `last vacuum` check a table',
} as const satisfies SettingsSpec[string]

const skipTables = skipSetting('Tables of `dead tuples` and `last vacuum`, as schema.table,')

/** The first table that svc.yaml does not leave out, of rows that begin with the worst. */
const firstOf = (rows: readonly Row[], skipped: readonly string[]): Row | undefined =>
  withoutSkipped(rows, (row) => text(row, 'name', 128), skipped)[0]
/** The number of tables that are read to find it. */
const candidates = (skipped: readonly string[]): number => (skipped.length === 0 ? 1 : 1_000)

const noTables = (rows: number): string => `no table of this database has more than ${rows} rows`
const standbyCountsNothing = 'the server does not count tuples (track_counts)'

/** Whether the statistics of tables say anything: a standby counts nothing, and vacuums nothing. */
const counting = `pg_is_in_recovery() AS standby, current_setting('track_counts') = 'on' AS counted`

export const deadTuples = limitOnDatabase({
  depth: 'Advanced',
  check: 'dead tuples',
  proves: 'No large table of this database consists of too many dead tuples; omitted on a standby',
  setting: 'deadTuples',
  unit: 'percent',
  default: { warn: 20, limit: 40 },
  doc: 'Maximum share of dead tuples in a table',
  settings: { largeTables, skipTables },
  observe: async ({ ask }, { largeTables: rows, skipTables: skipped }) => {
    const all = await ask(`SELECT ${counting}, worst.* FROM (SELECT 1) AS one LEFT JOIN LATERAL (
        SELECT schemaname || '.' || relname AS name, n_dead_tup AS dead,
          100 * n_dead_tup::float8 / (n_live_tup + n_dead_tup) AS percent
        FROM pg_stat_user_tables WHERE n_live_tup + n_dead_tup > ${rows} ORDER BY percent DESC LIMIT ${candidates(skipped)}) AS worst ON true`)
    const [row] = all
    const worst = firstOf(all, skipped)
    return {
      isStandby: flag(row, 'standby'),
      isCounted: flag(row, 'counted'),
      /** Empty if no table is large. */
      name: text(worst, 'name', 128),
      dead: figure(worst, 'dead'),
      percent: figure(worst, 'percent'),
    }
  },
  evaluate: ({ isStandby, isCounted, name, dead = 0, percent: value }, compare, { largeTables: rows }) => {
    const check = 'dead tuples'
    if (isStandby) return []
    if (!isCounted) return notChecked(check, 'missing', standbyCountsNothing)
    if (name === '') return ok(check, noTables(rows))
    const details = [`${dead} dead tuples`, `next: VACUUM ${name}, and look for old transactions and slots`]
    return compare({ what: `most dead tuples, in ${name}:`, value, details })
  },
})

export const lastVacuum = limitOnDatabase({
  depth: 'Advanced',
  check: 'last vacuum',
  proves: 'Every large table of this database that is due for VACUUM gets it; omitted on a standby',
  setting: 'lastVacuum',
  unit: 'duration',
  default: { warn: 7 * 86_400_000 },
  doc: 'Maximum time since the last VACUUM of a table whose dead tuples make it due for autovacuum',
  settings: { largeTables, skipTables },
  observe: async ({ ask }, { largeTables: rows, skipTables: skipped }) => {
    // A table that was never vacuumed has waited since the statistics began, at the earliest.
    const all = await ask(`SELECT ${counting}, current_setting('autovacuum') = 'on' AS autovacuum,
        (SELECT count(*) FROM pg_stat_user_tables WHERE n_live_tup + n_dead_tup > ${rows}) AS tables, oldest.*
      FROM (SELECT 1) AS one LEFT JOIN LATERAL (
        SELECT schemaname || '.' || t.relname AS name, ${inMs(`clock_timestamp() - coalesce(
            greatest(last_vacuum, last_autovacuum), d.stats_reset, pg_postmaster_start_time())`)} AS age
        FROM pg_stat_user_tables AS t JOIN pg_class AS c ON c.oid = t.relid
          JOIN pg_stat_database AS d ON d.datname = current_database()
        WHERE n_live_tup + n_dead_tup > ${rows} AND n_dead_tup > greatest(c.reltuples, 0) *
          current_setting('autovacuum_vacuum_scale_factor')::float8 + current_setting('autovacuum_vacuum_threshold')::float8
        ORDER BY age DESC LIMIT ${candidates(skipped)}) AS oldest ON true`)
    const [row] = all
    const oldest = firstOf(all, skipped)
    return {
      isStandby: flag(row, 'standby'),
      isCounted: flag(row, 'counted'),
      isAutomatic: flag(row, 'autovacuum'),
      tables: figure(row, 'tables'),
      /** The table that has waited longest; empty if none is due. */
      name: text(oldest, 'name', 128),
      ageMs: figure(oldest, 'age'),
    }
  },
  evaluate: ({ isStandby, isCounted, isAutomatic, tables, name, ageMs: value }, compare, settings) => {
    const check = 'last vacuum'
    if (isStandby) return []
    if (!isCounted || tables === undefined) return notChecked(check, 'missing', standbyCountsNothing)
    const none = tables === 0 ? noTables(settings.largeTables) : `none of ${count(tables, 'large table')} is due`
    const what = `due and not vacuumed for longest, ${name}:`
    const threshold = settings.lastVacuum
    const result = name === '' ? ok(check, none) : compare({ what, value, threshold })
    if (isAutomatic || result.status !== 'ok') return result
    return warn(check, `autovacuum is off; ${result.message}`, { measurement: result.measurement })
  },
})

const maxOf = (column: string): string =>
  `CASE ${column} WHEN 'int2'::regtype THEN 32767 WHEN 'int4'::regtype THEN 2147483647 ELSE 9223372036854775807 END`

export const sequences = limitOnDatabase({
  depth: 'Advanced',
  check: 'sequences',
  proves: 'No sequence of this database has used up its values, or those of its column',
  setting: 'sequences',
  unit: 'percent',
  default: { warn: 70, limit: 90 },
  doc: 'Used part of the values of a sequence, in percent; they end at its maximum, or at the largest value that its column can hold',
  privilege: 'GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO <account>',
  observe: async ({ ask, user }) => {
    // A sequence that cycles never runs out. The type of a column that owns a sequence may be smaller than its own.
    // Counting through 64 bits takes thousands of years, and a sequence of a table that never had a row is new: whether
    // these are hidden from the account makes no difference.
    const [row] = await ask(`WITH visible AS (
        SELECT n.nspname AS schema, c.relname AS name, s.*, has_sequence_privilege(c.oid, 'USAGE, SELECT') AS allowed,
          NOT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_depend AS d JOIN pg_class AS t ON t.oid = d.refobjid
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass
              AND d.deptype IN ('a', 'i') AND t.relkind = 'r' AND pg_relation_size(t.oid) = 0
              AND pg_stat_get_tuples_inserted(t.oid) = 0) AS fresh,
          c.oid AS sequence, coalesce((SELECT ${maxOf('a.atttypid')} FROM pg_depend AS d JOIN pg_attribute AS a
              ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass
              AND d.deptype IN ('a', 'i') LIMIT 1), 9223372036854775807) AS column_max
        FROM pg_sequence AS s JOIN pg_class AS c ON c.oid = s.seqrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relpersistence = 'p' AND NOT s.seqcycle),
      used AS (SELECT schema || '.' || name AS name, 100 * CASE WHEN seqincrement > 0
            THEN (value::float8 - low) / greatest(least(seqmax, column_max)::float8 - low, 1)
            ELSE (high - value::float8) / greatest(high - seqmin::float8, 1) END AS percent, value
        FROM (SELECT *, greatest(seqmin, 1)::float8 - 1 AS low, least(seqmax, seqstart)::float8 + 1 AS high,
            CASE WHEN allowed THEN pg_sequence_last_value(sequence) END AS value FROM visible) AS valued),
      hidden AS (SELECT schema FROM visible WHERE NOT allowed AND NOT fresh
        AND NOT (seqincrement = 1 AND least(seqmax, column_max) = 9223372036854775807))
      SELECT (SELECT count(*) FROM visible) AS count, (SELECT count(*) FROM hidden) AS hidden,
        (SELECT string_agg(DISTINCT schema, E'\\n') FROM hidden) AS schemas, worst.*
      FROM (SELECT 1) AS one LEFT JOIN LATERAL (
        SELECT name, value::text, percent FROM used WHERE value IS NOT NULL ORDER BY percent DESC LIMIT 1) AS worst ON true`)
    const schemas = row?.['schemas']
    return {
      user,
      count: figure(row, 'count'),
      /** The number of sequences that this account may not read, and their schemas. */
      hidden: figure(row, 'hidden'),
      schemas: typeof schemas === 'string' ? schemas.split('\n').slice(0, 20) : [],
      /** The sequence that is nearest to its end; empty if none has been used. */
      name: text(row, 'name', 128),
      value: text(row, 'value'),
      percent: figure(row, 'percent'),
    }
  },
  evaluate: ({ user, count: all, hidden, schemas, name, value, percent }, compare) => {
    const check = 'sequences'
    if (all === undefined || hidden === undefined) return notChecked(check, 'missing', 'the sequences are not reported')
    const none = ok(check, all === 0 ? 'none' : 'none has been used')
    const what = `${name} is at ${value}:`
    const result = name === '' ? none : compare({ what, value: percent })
    if (hidden === 0 || result.status === 'failed') return result
    const details = schemas.map(
      (schema) => `GRANT SELECT ON ALL SEQUENCES IN SCHEMA ${identifier(schema)} TO ${identifier(user)}`,
    )
    const [grant = 'SELECT on it'] = details
    const why = hiddenWithout(count(hidden, 'sequence is', 'sequences are'), grant)
    return notChecked(check, 'permission', why, { details })
  },
})
