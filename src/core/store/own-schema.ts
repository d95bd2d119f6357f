import { AlteredStore } from '../base/errors.ts'
import { sanitizeAndCut } from '../base/sanitize.ts'
import { type FoundObject, type OwnSchema, ownSchema, unknownObjects } from './schema.ts'

/**
 * The objects in a schema beside those of svc. Nobody but svc makes objects that change what its tables contain: a
 * trigger may grant a role again after each removal. Pure, but for the text of the queries.
 */

/** More objects are not listed. Those that are refused come first. */
const maxObjects = 2_000

/** An expression: all objects of a SQLite database as a JSON list. */
export const sqliteObjects = `
SELECT json_group_array(json_object('kind', "kind", 'name', "name", 'table', "table", 'text', "text", 'refers', "refers"))
FROM (
  SELECT type AS "kind", name AS "name", tbl_name AS "table", NULL AS "text",
    EXISTS (SELECT 1 FROM pragma_foreign_key_list(tbl_name)) AS "refers"
  FROM sqlite_schema WHERE type IN ('trigger', 'view')
  UNION ALL
  SELECT iif(c.hidden IN (2, 3), 'generated column', 'default'), c.name, t.name, c.dflt_value, 0
  FROM sqlite_schema t, pragma_table_xinfo(t.name) c
  WHERE t.type = 'table' AND (c.dflt_value IS NOT NULL OR c.hidden IN (2, 3))
  UNION ALL
  SELECT iif(sql LIKE 'CREATE VIRTUAL%', 'virtual table', type), name, tbl_name, NULL, 0
  FROM sqlite_schema WHERE type IN ('table', 'index') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
  LIMIT ${maxObjects}
)`

/** The same for the schema of a PostgreSQL database in which svc makes its tables. */
export const postgresObjects = `
SELECT coalesce(json_agg(o), '[]')::text FROM (
  SELECT 'trigger' AS "kind", t.tgname AS "name", c.relname AS "table", NULL AS "text", EXISTS (
      SELECT 1 FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f'
    ) AS "refers"
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
  WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND NOT t.tgisinternal
  UNION ALL
  SELECT 'rule', r.rulename, c.relname, NULL, false
  FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
  WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('r', 'p')
  UNION ALL
  SELECT 'policy', p.polname, c.relname, NULL, false
  FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
  WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema()))
  UNION ALL
  SELECT CASE a.attgenerated WHEN '' THEN 'default' ELSE 'generated column' END, a.attname, c.relname,
    pg_catalog.pg_get_expr(d.adbin, d.adrelid), false
  FROM pg_catalog.pg_attrdef d
    JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum AND NOT a.attisdropped
    JOIN pg_catalog.pg_class c ON c.oid = d.adrelid
  WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('r', 'p')
  UNION ALL
  SELECT CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table'
      WHEN 'i' THEN 'index' ELSE 'table' END, c.relname, c.relname, NULL, false
  FROM pg_catalog.pg_class c
  WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('v', 'm', 'f', 'r', 'p', 'i')
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k WHERE k.conindid = c.oid)
  LIMIT ${maxObjects}
) o`

/** An object that svc did not make. `drop`: the statement that removes it, where there is one. */
export type ForeignObject = { readonly label: string; readonly drop: string | undefined }

export type SchemaReport = {
  /** Objects that change what svc reads or writes: such a store is not used. */
  readonly altering: readonly ForeignObject[]
  /** All others. */
  readonly foreign: readonly ForeignObject[]
}

/** Compares the objects that a query has found, as JSON, with those of svc. */
export function compareSchema(objects: string, own: OwnSchema): SchemaReport {
  const { altering, foreign } = unknownObjects(objects, own)
  const describe = (object: FoundObject): ForeignObject => described(object, own)
  return { altering: altering.map(describe), foreign: foreign.map(describe) }
}

const maxNameLength = 64
/** Kinds whose name is that of a table, or of a table's index. */
const standalone: ReadonlySet<string> = new Set([
  'table',
  'index',
  'view',
  'materialized view',
  'foreign table',
  'virtual table',
])

function described({ kind, name, table }: FoundObject, { database }: OwnSchema): ForeignObject {
  const quote = (text: string): string => `"${sanitizeAndCut(text, maxNameLength)}"`
  const label = standalone.has(kind)
    ? `the ${kind} ${quote(name)}`
    : `the ${kind} ${kind === 'default' ? 'of the column ' : ''}${quote(name)} ${kind === 'trigger' || kind === 'rule' ? 'on' : 'of'} the table ${quote(table)}`
  // A name that cannot be shown as it is would make another statement.
  const isPlain = [name, table].every((text) => /^[\w .:-]{1,64}$/.test(text))
  return { label, drop: isPlain ? dropOf(kind, `"${name}"`, `"${table}"`, database) : undefined }
}

function dropOf(kind: string, name: string, table: string, database: OwnSchema['database']): string | undefined {
  switch (kind) {
    case 'trigger':
      return database === 'sqlite' ? `DROP TRIGGER ${name};` : `DROP TRIGGER ${name} ON ${table};`
    case 'rule':
    case 'policy':
      return `DROP ${kind.toUpperCase()} ${name} ON ${table};`
    case 'default':
      // SQLite cannot change the default of a column.
      return database === 'sqlite' ? undefined : `ALTER TABLE ${table} ALTER COLUMN ${name} DROP DEFAULT;`
    case 'generated column':
      return `ALTER TABLE ${table} DROP COLUMN ${name};`
    case 'virtual table':
      return `DROP TABLE ${name};`
    default:
      return `DROP ${kind.toUpperCase()} ${name};`
  }
}

/** How many objects a message names. */
const maxNamed = 3

/** Some objects, as the end of a sentence. */
export function namesOf(objects: readonly ForeignObject[]): string {
  const more = objects.length - maxNamed
  return [...objects.slice(0, maxNamed).map(({ label }) => label), ...(more > 0 ? [`${more} more`] : [])].join(', ')
}

/** The ways to remove the objects, or another remedy. */
export function waysToRemove(objects: readonly ForeignObject[]): readonly string[] {
  const drops = objects.slice(0, maxNamed).flatMap(({ drop }) => drop ?? [])
  return [
    ...(drops.length === 0 ? [] : [`Find out who made it. To remove it: ${drops.join(' ')}`]),
    ...(drops.length === objects.length ? [] : ['Restore the store from a backup without it.']),
  ]
}

/** For the monitor of the embedded store, which reads the objects itself. */
export function schemaCheck(steps: readonly string[]) {
  const own = ownSchema('sqlite', steps)
  return {
    query: sqliteObjects,
    altering: (objects: string, version: number) => {
      const { altering } = version > steps.length ? { altering: [] } : compareSchema(objects, own)
      return altering.length === 0 ? undefined : { names: namesOf(altering), next: waysToRemove(altering) }
    },
  }
}

/** A store with objects that change what svc reads or writes. `store`: as shown to people, with its kind before. */
export function alteredStore(store: string, altering: readonly ForeignObject[]): AlteredStore | undefined {
  if (altering.length === 0) return undefined
  return new AlteredStore(store, `has what svc did not make: ${namesOf(altering)}`, waysToRemove(altering))
}
