import { quoted } from '../net/text.ts'
import { ProbeError } from '../probe-error.ts'
import { transactProblem } from './query-transact.ts'

/** Whose SQL it is. */
export type Dialect = 'postgres' | 'mysql' | 'sqlserver' | 'sqlite'

const comment = /^(?:\s+|--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|\()/
const reads: ReadonlySet<string> = new Set(['select', 'with', 'values', 'table'])

/**
 * Why a statement cannot be one that only reads, or undefined: told when svc.yaml is validated, and not
 * in the night. Beyond that it is the database that refuses to change rows, and the account that bounds what
 * a function may do.
 */
export function sqlProblem(sql: string, dialect: Dialect): string | undefined {
  let rest = sql
  for (let skip = comment.exec(rest); skip; skip = comment.exec(rest)) rest = rest.slice(skip[0].length)
  const [first = ''] = /^\w+/.exec(rest) ?? []
  if (first === '') return 'sql is empty: write one statement that reads, such as SELECT count(*) FROM jobs'
  if (!reads.has(first.toLowerCase()))
    return `sql begins with ${quoted(first, 32)}: only SELECT (or WITH … SELECT) is asked`
  if (dialect === 'mysql') return mysqlProblem(sql)
  return dialect === 'sqlserver' ? transactProblem(sql) : undefined
}

/** For statements that the database itself would not keep from writing. Throws ProbeError. */
export function refuseToWrite(sql: string, dialect: Dialect): void {
  const wrong = sqlProblem(sql, dialect)
  if (wrong !== undefined) throw new ProbeError('data', wrong)
}

function mysqlProblem(sql: string): string | undefined {
  // CREATE TABLE ends a transaction that cannot write, instead of being refused by it.
  if (/\/\*M?!/i.test(sql)) return 'sql holds a comment that is carried out (/*! … */): write it without'
  // Reserved words: no name can be one, and no transaction takes back a file that is written.
  return refused(/\b(?:outfile|dumpfile)\b/i.exec(sql)?.[0])
}

const refused = (word: string | undefined): string | undefined =>
  word === undefined ? undefined : `sql holds ${word.toUpperCase()}, and only one statement that reads is asked`
