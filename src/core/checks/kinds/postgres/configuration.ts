import { basename, isAbsolute, join } from 'node:path'
import { count } from '../../../base/format.ts'
import { sanitize } from '../../../base/net/text.ts'
import { type DatabaseConnection, figure, onDatabase, text, truth } from '../../database/index.ts'
import { type CheckContext, fail, notChecked, ok, warn } from '../../engine/index.ts'

type Ask = DatabaseConnection['ask']

/** The grants by which an account reads the files as the server does: no superuser, and none of the rows of a table. */
const readsFiles =
  'GRANT SELECT ON pg_file_settings, pg_hba_file_rules, pg_config TO <account>; GRANT EXECUTE ON FUNCTION pg_show_all_file_settings(), pg_hba_file_rules(), pg_config() TO <account>'

/** Asked before a view is read: the server logs each read that it refuses. */
async function mayRead(ask: Ask, view: string, call: string): Promise<boolean> {
  const [row] = await ask(`SELECT has_table_privilege('pg_catalog.${view}', 'SELECT')
    AND has_function_privilege('pg_catalog.${call}()', 'EXECUTE') AS may`)
  return truth(row, 'may')
}

export const configurationFiles = onDatabase({
  depth: 'Advanced',
  results: {
    'configuration files':
      'No line of postgresql.conf and pg_hba.conf has an error, with which the server reloads nothing, and does not start; left out without the privilege',
  },
  privilege: readsFiles,
  optional: true,
  observe: async ({ ask }) => {
    const settings = await mayRead(ask, 'pg_file_settings', 'pg_show_all_file_settings')
    const rules = await mayRead(ask, 'pg_hba_file_rules', 'pg_hba_file_rules')
    // A setting that waits for a restart has an error of its own, which the check of these reports.
    const views = [
      `SELECT sourcefile AS file, sourceline AS line, error FROM pg_file_settings AS f WHERE error IS NOT NULL
        AND NOT EXISTS (SELECT FROM pg_settings AS s WHERE lower(s.name) = lower(f.name) AND pending_restart)`,
      `SELECT coalesce(to_jsonb(r)->>'file_name', current_setting('hba_file', true), 'pg_hba.conf'), line_number, error
        FROM pg_hba_file_rules AS r WHERE error IS NOT NULL`,
    ].filter((_, index) => [settings, rules][index])
    if (views.length === 0) return undefined
    const rows = await ask(`${views.join(' UNION ALL ')} LIMIT 20`)
    return rows.map(
      (row) => `${basename(text(row, 'file', 200))} line ${figure(row, 'line') ?? '?'}: ${text(row, 'error', 200)}`,
    )
  },
  evaluate: (errors) => {
    const check = 'configuration files'
    if (errors === undefined) return []
    const [first, ...others] = errors
    if (first === undefined) return ok(check, 'no line has an error')
    const more = others.length === 0 ? '' : ` (and ${count(others.length, 'other')})`
    const message = `${first}${more}: the server keeps what it has loaded, and does not start again`
    return warn(check, message, { details: others })
  },
})

/** The libraries of a list such as `pg_stat_statements, "$libdir/other"`. */
export const librariesOf = (list: string): readonly string[] =>
  list
    .split(',')
    .map((one) => one.trim().replaceAll('"', ''))
    .filter((one) => one !== '')

/** Where the server looks for a library: the file itself, or one with the ending of shared libraries. */
export function placesOf(library: string, path: string, libdir: string): readonly string[] {
  const expand = (folder: string): string => folder.replace(/^\$libdir(?=\/|$)/, () => libdir)
  const files = library.includes('/')
    ? [expand(library)]
    : path
        .split(':')
        .filter((folder) => folder !== '')
        .map((folder) => join(expand(folder), library))
  return files.flatMap((file) => [`${file}.so`, file])
}

/** Whether a process of this machine serves the session with this port: the server shows so in its command line. */
async function isHere(context: CheckContext, pid: number | undefined, port: number | undefined): Promise<boolean> {
  if (process.platform !== 'linux' || pid === undefined || port === undefined) return false
  try {
    const line = await process.getBuiltinModule('node:fs/promises').readFile(`/proc/${pid}/cmdline`, 'latin1')
    return line.startsWith('postgres: ') && line.includes(`(${port})`)
  } catch {
    context.signal.throwIfAborted()
    return false
  }
}

const exists = async ({ files, signal }: CheckContext, path: string): Promise<boolean | undefined> => {
  try {
    await files('status', { path })
    return true
  } catch (error) {
    signal.throwIfAborted()
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? false : undefined
  }
}

export const preloadLibraries = onDatabase({
  depth: 'Advanced',
  results: {
    'preload libraries':
      'The libraries that the server loads at its next start (shared_preload_libraries) exist; left out without the privilege, and where the server runs on another machine',
  },
  privilege: readsFiles,
  optional: true,
  observe: async ({ ask }, _, context) => {
    if (!(await mayRead(ask, 'pg_file_settings', 'pg_show_all_file_settings'))) return undefined
    if (!(await mayRead(ask, 'pg_config', 'pg_config'))) return undefined
    const [row] = await ask(`SELECT pg_backend_pid() AS pid, inet_client_port() AS port,
        current_setting('dynamic_library_path', true) AS path,
        (SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR') AS libdir,
        coalesce((SELECT f.setting FROM pg_file_settings AS f, pg_settings AS s
          WHERE f.name = 'shared_preload_libraries' AND s.name = f.name AND s.source <> 'command line'
          ORDER BY seqno DESC LIMIT 1), '') AS libraries`)
    const [path, libdir] = [text(row, 'path', 1_000), text(row, 'libdir', 1_000)]
    const libraries = librariesOf(text(row, 'libraries', 1_000))
    if (libraries.length === 0) return { libraries, missing: [] }
    if (!(await isHere(context, figure(row, 'pid'), figure(row, 'port')))) return undefined
    if (!isAbsolute(libdir) || (await exists(context, libdir)) !== true) return undefined
    const missing: string[] = []
    for (const library of libraries) {
      const present = await Promise.all(placesOf(library, path, libdir).map((place) => exists(context, place)))
      if (present.every((one) => one === false)) missing.push(sanitize(library, 64))
    }
    return { libraries, missing }
  },
  evaluate: (observed) => {
    const check = 'preload libraries'
    if (observed === undefined) return []
    const { libraries, missing } = observed
    if (missing.length === 0) return ok(check, libraries.length === 0 ? 'none is set' : `all ${libraries.length} exist`)
    return fail(check, 'data', `${missing.join(', ')} does not exist: the server does not start again`, {
      details: ['next: install it, or remove it from shared_preload_libraries'],
    })
  },
})

/** Where the server knows versions of collations, and which of them are not what the system has now. */
const collationsOf = {
  databases: `SELECT datname AS name FROM pg_database WHERE datallowconn
    AND datcollversion <> pg_database_collation_actual_version(oid)`,
  objects: `SELECT DISTINCT 'collation ' || c.collname AS name FROM pg_collation AS c JOIN pg_depend AS d
      ON d.refclassid = 'pg_collation'::regclass AND d.refobjid = c.oid
    WHERE c.collversion <> pg_collation_actual_version(c.oid)`,
}

export const collationVersions = onDatabase({
  depth: 'Advanced',
  results: {
    'collation versions':
      'The system sorts text as it did when the databases (since PostgreSQL 15), and the collations that this database uses, were made: else indexes of text miss rows',
  },
  observe: async ({ ask }) => {
    const [row] = await ask(
      "SELECT to_regprocedure('pg_catalog.pg_database_collation_actual_version(oid)') IS NOT NULL AS has",
    )
    const statements = truth(row, 'has') ? [collationsOf.databases, collationsOf.objects] : [collationsOf.objects]
    const rows = await ask(`${statements.join(' UNION ALL ')} ORDER BY name LIMIT 20`)
    return { isReported: row !== undefined && 'has' in row, names: rows.map((one) => text(one, 'name')) }
  },
  evaluate: ({ isReported, names }) => {
    const check = 'collation versions'
    if (!isReported) return notChecked(check, 'missing', 'the collations are not reported')
    const [first, ...others] = names
    if (first === undefined) return ok(check, 'as when the databases were made')
    const more = others.length === 0 ? '' : ` (and ${count(others.length, 'other')})`
    const message = `${first}${more}: the system sorts text differently since, so that indexes of text may miss rows`
    return warn(check, message, {
      details: [...others, 'next: REINDEX DATABASE, then ALTER DATABASE (or COLLATION) … REFRESH COLLATION VERSION'],
    })
  },
})

export const configurationChecks = [configurationFiles, preloadLibraries, collationVersions]
