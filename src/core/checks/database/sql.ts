import { quote } from '../../base/net/text.ts'
import { ProbeError } from '../../base/probe-error.ts'

/** The SQL dialects. */
export type Dialect = 'postgres' | 'mysql' | 'sqlserver' | 'sqlite'

const comment = /^(?:\s+|--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/|\()/
const reads: ReadonlySet<string> = new Set(['select', 'with', 'values', 'table'])

/**
 * Why a statement is not read-only, or undefined. It reports such statements when svc.yaml is validated and not only at
 * run time. Besides, the database refuses to change rows, and the rights of the account limit what a function may do.
 *
 * @example
 * ```ts
 * sqlProblem('SELECT 1', 'postgres') // undefined
 * ```
 */
export function sqlProblem(sql: string, dialect: Dialect): string | undefined {
  let rest = sql
  for (let skip = comment.exec(rest); skip; skip = comment.exec(rest)) rest = rest.slice(skip[0].length)
  const [first = ''] = /^\w+/.exec(rest) ?? []
  if (first === '') return 'sql is empty: write one statement that reads, such as SELECT count(*) FROM jobs'
  if (!reads.has(first.toLowerCase()))
    return `sql begins with ${quote(first, 32)}: only SELECT (or WITH … SELECT) is allowed`
  if (dialect === 'sqlserver') return transactProblem(sql)
  return (dialect === 'mysql' ? mysqlProblem(sql) : undefined) ?? severalProblem(sql, shapesOf[dialect]())
}

/** Refuses statements that the database itself would allow to write. Throws ProbeError. */
export function refuseToWrite(sql: string, dialect: Dialect): void {
  const problem = sqlProblem(sql, dialect)
  if (problem !== undefined) throw new ProbeError('data', problem)
}

function mysqlProblem(sql: string): string | undefined {
  // CREATE TABLE is not refused in a read-only transaction: it ends the transaction.
  if (/\/\*M?!/i.test(sql)) return 'sql contains an executable comment (/*! … */): remove it'
  // Reserved words, so no name matches. A rollback does not remove a written file.
  const [word] = /\b(?:outfile|dumpfile)\b/i.exec(sql) ?? []
  return word === undefined ? undefined : `sql contains ${word.toUpperCase()}: only one read-only statement is allowed`
}

type Kind = 'space' | 'opaque' | 'number' | 'word' | 'sign' | 'unknown'
type Token = { readonly kind: Kind; readonly text: string }
type Shapes = readonly (readonly [Kind, RegExp])[]

/**
 * The tokens of Transact-SQL. Strings, names in brackets or quotes, and comments contain one another only as text.
 * Anything not listed is `unknown`, and refused.
 */
const transactShapes = (): Shapes => [
  ['space', /[ \t\r\n]+|--[^\n]*|\/\*(?:(?!\/\*)[\s\S])*?\*\//y],
  ['opaque', /'(?:[^']|'')*'|"(?:[^"]|"")*"|\[(?:[^\]]|\]\])*\]/y],
  ['number', /0x[\da-f]*|\$?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?/iy],
  ['word', /[\p{L}_@#][\p{L}\p{Nd}_@#$]*/uy],
  ['sign', /\/(?!\*)|-(?!-)|[(),.;+*%=<>!&|^~:]/y],
  ['unknown', /[\s\S]/uy],
]

/** The tokens of the other dialects outside of comments, strings and names in quotes. */
const others = (): Shapes => [
  ['word', /[\p{L}_][\p{L}\p{N}_$]*/uy],
  ['sign', /[\s\S]/uy],
]

/**
 * The tokens of the other dialects, as far as it takes to find the end of a statement. What begins like a string or a comment and
 * does not end as one is `unknown`: settings of the server decide about a part of these forms.
 */
const shapesOf: { readonly [D in Exclude<Dialect, 'sqlserver'>]: () => Shapes } = {
  postgres: () => [
    ['space', /\s+|--[^\n]*|\/\*(?:(?!\/\*)[\s\S])*?\*\//y],
    ['opaque', /[eE]'(?:[^'\\]|\\[\s\S])*'|'[^']*'|"[^"]*"|(\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$)[\s\S]*?\1/uy],
    ['unknown', /['"]|\/\*|\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy],
    ...others(),
  ],
  mysql: () => [
    ['space', /\s+|#[^\n]*|--(?=\s|$)[^\n]*|\/\*[\s\S]*?\*\//y],
    ['opaque', /'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*"|`[^`]*`/y],
    ['unknown', /['"`]|\/\*/y],
    ...others(),
  ],
  sqlite: () => [
    ['space', /\s+|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y],
    ['opaque', /'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]/y],
    ['unknown', /['"`[]/y],
    ...others(),
  ],
}

const several = 'sql contains more than one statement: write each as a query of its own'

/** That a text contains a second statement. Undefined where the text is not understood: the database then decides. */
function severalProblem(sql: string, shapes: Shapes): string | undefined {
  const tokens = tokensOf(sql, shapes).filter(({ kind }) => kind !== 'space')
  const end = tokens.findIndex(({ text }) => text === ';')
  if (end < 0 || tokens.some(({ kind }) => kind === 'unknown')) return undefined
  return tokens.slice(end).some(({ text }) => text !== ';') ? several : undefined
}

/** Characters that only some parsers treat as blanks or line ends, so that two parsers may read a text differently. */
const unclear = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]|\r(?!\n)/

/**
 * Words that begin a statement, end a transaction, or have effects outside it. Almost all are reserved: outside
 * brackets and quotes, no name matches.
 */
const writes: ReadonlySet<string> = new Set(
  `add alter authorization backup begin break bulk checkpoint close commit continue conversation create dbcc deallocate
  declare delete deny drop dump exec execute goto grant if insert into kill lineno load merge openquery opendatasource
  openrowset open print proc procedure raiserror readtext receive reconfigure restore return revert revoke rollback save
  set setuser shutdown throw tran transaction trigger truncate update updatetext use waitfor while writetext`.split(
    /\s+/,
  ),
)
const beforeSelect: ReadonlySet<string> = new Set(['(', 'union', 'all', 'except', 'intersect'])

/**
 * Why a text is not a single read-only statement of Transact-SQL, or undefined. SQL Server has no read-only
 * transactions, and a batch may contain several statements without even a semicolon between them. Anything that could
 * begin another statement or end the transaction is therefore refused.
 */
function transactProblem(sql: string): string | undefined {
  if (!sql.isWellFormed()) return 'sql contains half of a surrogate pair: write the whole character'
  const odd = unclear.exec(sql)?.[0]
  if (odd !== undefined)
    return `sql contains ${codeOf(odd)}: of the control characters, only tabs and line ends are allowed`
  const tokens = tokensOf(sql, transactShapes())
  for (const [at, { kind, text }] of tokens.entries()) {
    const next = tokens[at + 1]
    if (kind === 'unknown') {
      if (/['"[\]/]/.test(text)) return 'sql has an unclosed quote, bracket or comment'
      return `sql contains ${/[!-~]/.test(text) ? quote(text, 8) : codeOf(text)}, which is not allowed outside quotes and brackets`
    }
    if (kind === 'number' && next && (/^(?:number|word)$/.test(next.kind) || next.text === '.'))
      return `sql needs a blank between ${quote(text, 32)} and ${quote(next.text, 32)}`
  }
  return shapeProblem(tokens.filter(({ kind }) => kind !== 'space'))
}

const codeOf = (text: string): string => `U+${text.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`

function tokensOf(sql: string, shapes: Shapes): readonly Token[] {
  const tokens: Token[] = []
  for (let at = 0; at < sql.length; ) {
    const token = tokenAt(sql, at, shapes)
    tokens.push(token)
    // It is refused anyway. After an unclosed bracket, a search for the end of each further bracket would be slow.
    if (token.kind === 'unknown') break
    at += token.text.length
  }
  return tokens
}

function tokenAt(sql: string, at: number, shapes: Shapes): Token {
  for (const [kind, shape] of shapes) {
    shape.lastIndex = at
    const text = shape.exec(sql)?.[0]
    if (text !== undefined) return { kind, text }
  }
  throw new RangeError('nothing is left to read')
}

/** Checks for one SELECT, including WITH before it, UNION and the like beside it, and subqueries in parentheses. */
function shapeProblem(tokens: readonly Token[]): string | undefined {
  const words = tokens.map(({ kind, text }) => (kind === 'opaque' ? "'" : plain(text)))
  if (words.includes(';') && words.slice(words.indexOf(';')).some((word) => word !== ';')) return several
  for (const [at, { kind, text }] of tokens.entries()) {
    if (kind !== 'word') continue
    const problem = partsOf(text).find((part) => writes.has(part))
    if (problem !== undefined) return refused(problem)
    if (words[at] === 'next' && words[at + 1] === 'value')
      return 'sql contains NEXT VALUE, which consumes a sequence number'
  }
  const first = words.findIndex((word) => word !== '(')
  if (words[first] !== 'select' && words[first] !== 'with') return 'sql begins with neither SELECT nor WITH'
  let after = words[first] === 'with' ? 1 : 0
  for (const [at, word] of words.entries()) {
    if (word !== 'select' || at <= first || beforeSelect.has(words[at - 1] ?? '')) continue
    // The SELECT of a WITH follows its last parenthesis.
    if (words[at - 1] !== ')' || depthAt(words, at) > 0 || after === 0) return several
    after -= 1
  }
  return undefined
}

const depthAt = (words: readonly string[], at: number): number =>
  words.slice(0, at).reduce((depth, word) => depth + (word === '(' ? 1 : word === ')' ? -1 : 0), 0)

/**
 * Normalizes a word for comparison with keywords: full-width letters and the Turkish i become the letters they
 * resemble.
 */
const plain = (text: string): string => text.normalize('NFKC').toLowerCase().replace(/ı|i̇/g, 'i')

/** A word, and its ASCII parts, for servers that know fewer letters. */
const partsOf = (text: string): readonly string[] => [plain(text), ...plain(text).split(/[^\x20-\x7e]+/)]

const refused = (word: string): string => {
  const name = word.toUpperCase()
  return `sql contains ${name}: only one read-only statement is allowed (if it is a name, write [${name}])`
}
