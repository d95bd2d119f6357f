import { AlteredStore } from '../errors.ts'
import { sanitizeAndCut } from '../sanitize.ts'

/**
 * What a schema has beside the objects of svc. Nobody but svc makes objects that change what its tables contain: a trigger
 * may grant a role again after each removal. Pure, but for the text of the queries.
 */

/** An object of a schema. */
type FoundObject = {
  readonly kind: string
  readonly name: string
  /** The table that it belongs to; its own name for a table or a view. */
  readonly table: string
  /** The value of a default. */
  readonly text: string | null
  /** Whether its table refers to others, so that removing a row of svc may reach it. */
  readonly refers: boolean | number
}

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

/** The objects of svc, from the text of the steps that make them. */
export type OwnSchema = {
  readonly database: 'sqlite' | 'postgres'
  /** Tables and indexes. */
  readonly names: ReadonlySet<string>
  /** As `table.column`. */
  readonly columns: ReadonlySet<string>
  /** The default of `table.column`. */
  readonly defaults: ReadonlyMap<string, string>
  /** Tables whose defaults are not compared, because their version is not known. */
  readonly uncompared: ReadonlySet<string>
}

/**
 * All steps count, also those that a store has yet to take: an upgrade in progress has made some of their objects. `more`:
 * steps of tables with a version of their own in the same database.
 */
export function ownSchema(
  database: OwnSchema['database'],
  steps: readonly string[],
  more: readonly string[] = [],
): OwnSchema {
  const fold = folded(database)
  const namesIn = (texts: readonly string[]): readonly string[] =>
    texts.flatMap((text) =>
      [...text.matchAll(/CREATE (?:TABLE|(?:UNIQUE )?INDEX) "?(\w+)"?/g)].map(([, name = '']) => fold(name)),
    )
  const text = steps.join(';')
  const added = [...text.matchAll(/ALTER TABLE "(\w+)" ADD COLUMN "(\w+)"/g)]
  const columns = [...text.matchAll(/CREATE TABLE "?(\w+)"? \(\n([^;]*)\n *\)/g)].flatMap(([, table = '', body = '']) =>
    [...body.matchAll(/^ *"?(\w+)"? (?!KEY)[A-Z]/gm)].map(([, column = '']) => [table, column]),
  )
  const defaults = [...text.matchAll(/ALTER TABLE "(\w+)" ADD COLUMN "(\w+)"[^;]* DEFAULT ([^;]+);/g)]
  return {
    database,
    names: new Set(namesIn([...steps, ...more])),
    columns: new Set([...columns, ...added.map((match) => match.slice(1))].map((path) => fold(path.join('.')))),
    defaults: new Map(defaults.map(([, table = '', column = '', text = '']) => [fold(`${table}.${column}`), text])),
    uncompared: new Set(namesIn(more)),
  }
}

/** SQLite ignores the letter case of names. */
const folded = (database: OwnSchema['database']) => (name: string) =>
  database === 'sqlite' ? name.toLowerCase() : name

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
  const altering: ForeignObject[] = []
  const foreign: ForeignObject[] = []
  for (const object of JSON.parse(objects) as readonly FoundObject[]) {
    const effect = effectOf(object, own)
    if (effect === 'altering') altering.push(described(object, own))
    else if (effect === 'foreign') foreign.push(described(object, own))
  }
  return { altering, foreign }
}

function effectOf(
  { kind, name, table, text, refers }: FoundObject,
  { database, names, columns, defaults, uncompared }: OwnSchema,
): 'own' | 'altering' | 'foreign' {
  const fold = folded(database)
  const isOwn = names.has(fold(table))
  switch (kind) {
    case 'table':
    case 'index':
      return names.has(fold(name)) ? 'own' : 'foreign'
    case 'default': {
      const column = fold(`${table}.${name}`)
      if (!isOwn || uncompared.has(fold(table)) || withoutCast(text) === defaults.get(column)) return 'own'
      // The next version may have begun to upgrade the store. svc does not read the column.
      return columns.has(column) || !constant.test(text ?? '') ? 'altering' : 'foreign'
    }
    case 'generated column':
      return isOwn && !uncompared.has(fold(table)) ? 'altering' : 'own'
    case 'trigger':
      return isOwn || refers ? 'altering' : 'foreign'
    default:
      return isOwn ? 'altering' : 'foreign'
  }
}

/** A default that runs nothing. */
const constant = /^(?:'(?:[^']|'')*'|-?\d+(?:\.\d+)?|NULL|true|false)(?:::[\w" ]+)?$/i

/** PostgreSQL shows the type of a text. */
const withoutCast = (text: string | null): string | undefined => text?.replace(/::text$/, '')

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

/** What removes them, or what else helps. */
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
