import { ProbeError } from '../monitor.ts'
import { quoted } from '../probe/text.ts'

/** Whose SQL it is. */
export type Dialect = 'postgres' | 'mysql' | 'sqlserver' | 'sqlite'

const comment = /^(?:\s+|--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|\()/
const reads: ReadonlySet<string> = new Set(['select', 'with', 'values', 'table'])

/**
 * Why a statement cannot be one that only reads, or undefined: told when svc.yaml is validated, and not
 * in the night. Beyond that it is the database that refuses to write.
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

/**
 * Strings, names in brackets or quotes, and comments, which may hold one another only as text. A comment
 * within a comment stays, and is refused: where the outer one ends is read in more than one way.
 */
const opaque = /'(?:[^']|'')*'|"(?:[^"]|"")*"|\[(?:[^\]]|\]\])*\]|--[^\r\n]*|\/\*(?:(?!\/\*)[\s\S])*?\*\//g
/** Reserved words of Transact-SQL: outside of brackets and quotes no name can be one. */
const writes =
  /\b(?:insert|update|delete|merge|truncate|create|alter|drop|exec|execute|commit|rollback|begin|save|grant|revoke|deny|into|backup|restore|dbcc|set|use|shutdown|kill|bulk|writetext|updatetext|reconfigure|waitfor|declare|openrowset|openquery|opendatasource|while|if|goto|revert|checkpoint|next\s+value)\b/i

/**
 * SQL Server knows no transaction that cannot write, and a batch takes several statements without
 * even a semicolon between them. So no word that could begin another one, or end the transaction, is let in.
 */
function transactProblem(sql: string): string | undefined {
  const bare = sql.replace(opaque, ' ')
  if (/['"[\]]|\/\*/.test(bare)) return 'sql has a quote, a bracket or a comment that is not closed'
  if (/;\s*\S/.test(bare)) return 'sql holds more than one statement'
  return refused(writes.exec(bare)?.[0])
}
