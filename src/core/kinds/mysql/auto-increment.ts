import { figure, limitOnDatabase, type Row, text } from '../../database/index.ts'
import { notChecked, ok } from '../../engine/index.ts'
import { count } from '../../net/text.ts'
import { ownGrantee } from './checks.ts'

/** The bits of the integer types. */
const bits = `CASE c.data_type WHEN 'tinyint' THEN 8 WHEN 'smallint' THEN 16 WHEN 'mediumint' THEN 24
  WHEN 'int' THEN 32 WHEN 'bigint' THEN 64 END`
/** The largest value of a column, as a DOUBLE: a BIGINT would overflow. */
const largest = `POW(2, ${bits} - IF(c.column_type LIKE '%unsigned%', 0, 1)) - 1`

/** The database of the url; without one, all databases but those of the server. */
const inScope = (column: string): string => `(${column} = DATABASE() OR DATABASE() IS NULL AND
  ${column} NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema'))`

type Column = {
  /** For example `orders.jobs.id`. */
  readonly name: string
  readonly type: string
  /** Percent; undefined if the server does not report it. */
  readonly used: number | undefined
}

function columnOf(row: Row): Column {
  const [next, max] = [figure(row, 'next'), figure(row, 'most')]
  return {
    name: ['db', 'tbl', 'col'].map((name) => text(row, name)).join('.'),
    type: text(row, 'type'),
    used: next === undefined || !max ? undefined : (Math.max(0, next - 1) / max) * 100,
  }
}

export const autoIncrement = limitOnDatabase({
  depth: 'Advanced',
  check: 'auto-increment',
  proves: 'AUTO_INCREMENT columns have values left, of the tables in the database of the url (default: all)',
  setting: 'autoIncrement',
  unit: 'percent',
  default: { warn: 70, limit: 90 },
  doc: 'Maximum use of the values of an AUTO_INCREMENT column, in percent of what its type can hold',
  privilege: 'GRANT SELECT ON <database>.* TO <account>',
  observe: async ({ ask, user }) => {
    const [scope] = await ask(`SELECT DATABASE() AS db, (SELECT COUNT(*) FROM information_schema.tables AS t
        WHERE t.table_type = 'BASE TABLE' AND ${inScope('t.table_schema')}) AS tables,
      (SELECT COUNT(*) FROM information_schema.user_privileges
        WHERE privilege_type = 'SELECT' AND grantee = ${ownGrantee}) +
      (SELECT COUNT(*) FROM information_schema.schema_privileges AS p WHERE privilege_type = 'SELECT'
        AND grantee = ${ownGrantee} AND DATABASE() LIKE p.table_schema) AS may`)
    const rows = await ask(`SELECT t.table_schema AS db, t.table_name AS tbl, c.column_name AS col,
        c.column_type AS type, t.auto_increment AS next, ${largest} AS most
      FROM information_schema.columns AS c
        JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
      WHERE c.extra LIKE '%auto_increment%' AND t.table_type = 'BASE TABLE' AND t.auto_increment IS NOT NULL
        AND ${bits} IS NOT NULL AND ${inScope('t.table_schema')}
      ORDER BY next / most DESC LIMIT 10`)
    const database = text(scope, 'db') || '*'
    return {
      tables: figure(scope, 'tables'),
      /** Whether the account may read all tables, so that none is hidden from it. */
      mayRead: figure(scope, 'may') !== 0,
      grant: `GRANT SELECT ON ${database === '*' ? '*' : `\`${database}\``}.* TO '${user.replaceAll("'", "''")}'`,
      columns: rows.map(columnOf),
    }
  },
  evaluate: ({ tables, mayRead, grant, columns }, compare, { autoIncrement: threshold }) => {
    const check = 'auto-increment'
    if (tables === undefined) return notChecked(check, 'missing', 'the server does not report its tables')
    if (tables === 0 && !mayRead) {
      return notChecked(check, 'permission', `this account sees no table and needs ${grant}`, { details: [grant] })
    }
    const [fullest, ...others] = columns
    if (!fullest) return ok(check, `none of ${count(tables, 'table')} has an AUTO_INCREMENT column`)
    const { warn = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY } = threshold
    const full = others.filter(({ used = 0 }) => used > Math.min(warn, limit))
    const { name, type, used: value } = fullest
    const what = `${name} (${type}), values used:`
    const figure = `the next value of ${name}`
    const details = full.map((one) => `also ${one.name}`)
    return compare({ what, figure, value, details })
  },
})
