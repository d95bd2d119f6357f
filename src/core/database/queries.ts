import { readDate } from '../assert/document.ts'
import { expectationProblem, UnjudgedError, unmetEach } from '../assert/expectation.ts'
import { atLeast, atMost, type CheckContext, classify, fail, includes, ok, type Result, warn } from '../engine/index.ts'
import { showDuration } from '../format.ts'
import { noRedaction, quote, sanitize } from '../net/text.ts'
import type { ExecutionMode } from '../protocol/index.ts'
import type { SettingsSpec, Threshold, Values } from '../settings/index.ts'
import { type Cell, type Column, maxRows, maxValueLength, type Row } from './rows.ts'
import type { Ask, Read } from './session.ts'
import { type Dialect, sqlProblem } from './sql.ts'

const queryFields = {
  name: { type: 'text', required: true, doc: 'What it is, for messages: `waiting jobs`' },
  sql: {
    type: 'text',
    required: true,
    doc: 'One statement that reads; its first column is judged. It changes no rows, but functions that it calls do whatever the account may. It may take half of the time that is left, and up to 1,000 rows of it are read',
  },
  depth: {
    type: 'choice',
    values: ['Standard', 'Advanced'],
    default: 'Standard',
    doc: 'The mode from which on it is asked',
  },
  atMost: { type: 'threshold', unit: 'ratio', doc: 'How large the figure may be; the largest of the column speaks' },
  atLeast: { type: 'threshold', unit: 'ratio', doc: 'How large the figure must be; the smallest of the column speaks' },
  age: {
    type: 'threshold',
    unit: 'duration',
    doc: 'The column is a date: how long ago it may be; the oldest speaks. Without a zone it is taken for UTC',
  },
  rows: { type: 'threshold', unit: 'count', doc: 'How many rows there may be, up to 1,000' },
  leastRows: { type: 'threshold', unit: 'count', doc: 'How many rows there must be at least' },
  expect: { type: 'text', doc: 'Text, /pattern/ or comparison such as >= 3 that every value of the column meets' },
  none: {
    type: 'choice',
    values: ['ok', 'warn', 'fail'],
    doc: 'What it means when there is no value, for want of rows or because of NULL; without it: ok for `age`, else a failure',
  },
} as const satisfies SettingsSpec
export type Query = Values<typeof queryFields>

export const queriesSetting = {
  type: 'groups',
  fields: queryFields,
  doc: 'Questions of your own to the database, each one statement that reads; asked as an account that may only read',
} as const satisfies SettingsSpec[string]

const evaluated = ['atMost', 'atLeast', 'age', 'rows', 'leastRows', 'expect'] as const
const maxQueries = 50

/** Why the queries of a monitor are invalid, or undefined. */
export function queriesProblem(queries: readonly Query[] = [], dialect: Dialect): string | undefined {
  if (queries.length > maxQueries) return `queries are more than ${maxQueries}: give less`
  for (const query of queries) {
    const wrong = queryProblem(query, dialect)
    if (wrong !== undefined) return `query ${quote(query.name, 64)}: ${wrong}`
  }
  return undefined
}

function queryProblem(query: Query, dialect: Dialect): string | undefined {
  const wrong = sqlProblem(query.sql, dialect)
  if (wrong !== undefined) return wrong
  if (evaluated.every((key) => query[key] === undefined)) return `judges nothing: add one of ${evaluated.join(', ')}`
  const lost = query.expect === undefined ? undefined : expectationProblem(query.expect)
  if (lost !== undefined) return `expect: ${lost}`
  const bounds = [query.rows, query.leastRows].flatMap((one: Threshold = {}) => [one.warn ?? 0, one.limit ?? 0])
  if (Math.max(...bounds) <= maxRows) return undefined
  return `no more than ${maxRows} rows are read: let the database count them, by SELECT count(*) and atMost or atLeast`
}

/** The outcome of one query. */
export type QueryAnswer = {
  readonly query: Query
  /** Milliseconds since 1970, by our clock. */
  readonly at: number
} & ({ readonly column: Column } | { readonly cause: unknown; readonly afterMs: number })

/** The queries to run in a mode. */
export const dueQueries = (queries: readonly Query[] = [], mode: ExecutionMode): readonly Query[] =>
  queries.filter(({ depth }) => includes(mode, depth === 'Advanced' ? 'Advanced' : 'Standard'))

/**
 * Runs one query. Errors become part of the outcome, so that one does not hide the other queries. Only the deadline is
 * thrown.
 */
export async function askQuery(
  query: Query,
  context: Pick<CheckContext, 'now' | 'date' | 'signal'>,
  read: Read,
): Promise<QueryAnswer> {
  const since = context.now()
  try {
    const column = await read(query.sql, query.age !== undefined)
    return { query, at: context.date().getTime(), column }
  } catch (cause) {
    if (context.signal.aborted) throw cause
    return { query, at: context.date().getTime(), cause, afterMs: context.now() - since }
  }
}

/** A cheap query for what an account may do beyond reading. */
export type AccountQuestion = {
  readonly sql: string
  /** What the rows mean, in words that follow "queries run". Undefined when the account may only read. */
  readonly powers: (rows: readonly Row[]) => string | undefined
}

/** Runs it. The result is only a hint, so an error is no failure. The deadline is thrown. */
export async function readPowers(
  ask: Ask,
  { sql, powers }: AccountQuestion,
  { signal }: Pick<CheckContext, 'signal'>,
): Promise<string | undefined> {
  try {
    return powers(await ask(sql))
  } catch (error) {
    if (signal.aborted) throw error
    return undefined
  }
}

export const warnOfPowers = (powers: string): Result<'queries'> =>
  warn('queries', `queries run ${powers}: give svc an account that may only read`, {
    details: [
      'a transaction that cannot write keeps rows as they are, and no function from doing what its account may',
    ],
  })

const check = 'queries' as const
/** Milliseconds that a date may be ahead of our clock. A larger difference means another time zone. */
const aheadMs = 60_000

/** Evaluates one query. Each statement about the column is a separate result. */
export function evaluateAsked(answer: QueryAnswer): readonly Result<'queries'>[] {
  const { query } = answer
  const name = sanitize(query.name, 64)
  const results = 'column' in answer ? evaluateColumn(answer.column, answer.at, query) : [failed(answer)]
  return results.map((result) => ({
    ...result,
    message: `${name}: ${result.message}`,
    subject: name,
    ...(result.status === 'ok' ? {} : { details: [...(result.details ?? []), `asked: ${sanitize(query.sql, 240)}`] }),
  }))
}

function failed({ cause, afterMs }: { readonly cause: unknown; readonly afterMs: number }): Result<'queries'> {
  const { fault, message, details } = classify(cause, undefined, afterMs)
  return fail(check, fault, message, { details })
}

function evaluateColumn(column: Column, at: number, query: Query): readonly Result<'queries'>[] {
  return [...evaluateRows(column, query), ...evaluateValues(column, at, query)]
}

function evaluateRows({ rows, more }: Column, query: Query): readonly Result<'queries'>[] {
  const of = { check, value: more ? rows + 1 : rows, unit: 'count', what: more ? 'rows, at least' : 'rows' } as const
  return [
    ...(query.rows ? [atMost({ ...of, threshold: query.rows })] : []),
    ...(query.leastRows ? [atLeast({ ...of, threshold: query.leastRows })] : []),
  ]
}

function evaluateValues(column: Column, at: number, query: Query): readonly Result<'queries'>[] {
  const { age, expect } = query
  if (!query.atMost && !query.atLeast && !age && expect === undefined) return []
  const values = column.cells.filter((cell) => cell !== null)
  if (values.length === 0) return [evaluateNone(column, query), ...evaluatePart(column)]
  return [
    ...evaluateFigures(values, query),
    ...(age ? [evaluateAge(values, at, age)] : []),
    ...(expect === undefined ? [] : [evaluateText(values, expect)]),
    ...evaluatePart(column),
  ]
}

/** Reports an incomplete column instead of passing silently: the values left out may be the wrong ones. */
function evaluatePart({ rows, retained, more, cut }: Column): readonly Result<'queries'>[] {
  const only = (part: string, next: string): Result<'queries'> =>
    warn(check, `only the first ${part} were judged, and there are more`, { details: [`next: ${next}`] })
  return [
    ...(more || retained < rows
      ? [only(`${retained} rows`, 'let the database sum them up: count(*), min(…), max(…)')]
      : []),
    ...(cut ? [only(`${maxValueLength} characters of a value`, 'let the database pick out the part that counts')] : []),
  ]
}

function evaluateNone({ rows }: Column, { none, age }: Query): Result<'queries'> {
  const message = rows === 0 ? 'none (no row)' : 'none (NULL)'
  const status = none ?? (age ? 'ok' : 'fail')
  if (status === 'ok') return ok(check, message)
  return status === 'warn' ? warn(check, message) : fail(check, 'data', message)
}

function evaluateFigures(values: readonly Exclude<Cell, null>[], query: Query): readonly Result<'queries'>[] {
  if (!query.atMost && !query.atLeast) return []
  const figures = values.map(figureOf)
  const unread = figures.indexOf(undefined)
  if (unread >= 0) return [fail(check, 'data', `${display(values[unread])} is not a number`)]
  const numbers = figures.filter((figure) => figure !== undefined)
  const of = { check, unit: 'ratio' } as const
  return [
    ...(query.atMost ? [atMost({ ...of, value: Math.max(...numbers), threshold: query.atMost })] : []),
    ...(query.atLeast ? [atLeast({ ...of, value: Math.min(...numbers), threshold: query.atLeast })] : []),
  ]
}

function evaluateAge(values: readonly Exclude<Cell, null>[], at: number, threshold: Threshold): Result<'queries'> {
  const dates = values.map(dateOf)
  const unread = dates.indexOf(undefined)
  if (unread >= 0) return fail(check, 'data', `${display(values[unread])} is no date`)
  const age = at - Math.min(...dates.filter((date) => date !== undefined))
  // Report this instead of passing silently: a date hours ahead through its time zone would not age for hours.
  if (-age > aheadMs) {
    return warn(check, `the oldest is ${showDuration(-age)} in the future: its clock, or a zone other than UTC`, {
      measurement: { value: age, unit: 'milliseconds' },
    })
  }
  return atMost({ check, what: 'oldest', value: age, unit: 'duration', threshold })
}

function evaluateText(values: readonly Exclude<Cell, null>[], expect: string): Result<'queries'> {
  const texts = values.map(textOf)
  try {
    const wrong = unmetEach(texts, expect, noRedaction).filter((one) => one !== undefined)
    const [first] = wrong
    if (first === undefined) return ok(check, `is ${texts.length === 1 ? display(texts[0]) : 'as expected'}`)
    return fail(check, 'data', values.length > 1 ? `${first} (${wrong.length} of ${values.length})` : first)
  } catch (error) {
    if (error instanceof UnjudgedError) return fail(check, 'data', error.message)
    throw error
  }
}

const textOf = (cell: Exclude<Cell, null>): string =>
  cell instanceof Date ? (Number.isNaN(cell.getTime()) ? '' : cell.toISOString()) : String(cell)
const display = (cell: Cell | undefined): string => quote(textOf(cell ?? ''), 80)

function figureOf(cell: Exclude<Cell, null>): number | undefined {
  const value = typeof cell === 'number' ? cell : decimal.test(textOf(cell).trim()) ? Number(cell) : Number.NaN
  return Number.isFinite(value) ? value : undefined
}
const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i

/** Milliseconds since 1970, from a date, its text as databases write it, or seconds or milliseconds. */
function dateOf(cell: Exclude<Cell, null>): number | undefined {
  if (cell instanceof Date) return Number.isNaN(cell.getTime()) ? undefined : cell.getTime()
  // PostgreSQL omits the minutes of a time zone when they are zero.
  return readDate(
    String(cell)
      .trim()
      .replace(/(:\d\d(?:\.\d+)?[+-]\d\d)$/, '$1:00'),
  )
}
