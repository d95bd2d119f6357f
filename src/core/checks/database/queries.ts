import { showDuration } from '../../base/format.ts'
import { noRedaction, quote, sanitize } from '../../base/net/text.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { Expectation, SettingsSpec, Threshold, Values } from '../../base/settings/index.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import { readDate } from '../assert/document.ts'
import { expectationProblem, isNegation, UnjudgedError, unmetEach } from '../assert/expectation.ts'
import {
  type AddedCost,
  atLeast,
  atMost,
  type CheckContext,
  classify,
  fail,
  includes,
  notChecked,
  ok,
  type Result,
  warn,
} from '../engine/index.ts'
import { type Cell, type Column, maxRows, maxValueLength, type Row } from './rows.ts'
import type { Ask, Read } from './session.ts'
import { type Dialect, sqlProblem } from './sql.ts'

/** The settings of a round trip in a table whose name the operator may choose. Each kind adds its own text. */
export const roundTripSettings = {
  probeTable: { type: 'text', default: 'svc_probe', pattern: /^\w{1,64}$/ },
  write: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 5_000 },
    doc: 'Maximum time to write, commit, read and delete a row',
  },
} as const

/** The result of a round trip that took `value` milliseconds. */
export const evaluateRoundTrip = (value: number, threshold: Threshold): Result<'write'> =>
  atMost({
    check: 'write',
    what: 'a row was written, committed, read and deleted in',
    value,
    unit: 'duration',
    threshold,
  })

/** The fault for a table of the configured name that svc has not created: emptying it could destroy data. */
export const foreignTable = (name: string): ProbeError =>
  new ProbeError('data', `svc has not created the table ${name}, and does not write to it`, [
    'next: set probeTable to a name that no other program uses',
  ])

const queryFields = {
  name: { type: 'text', required: true, doc: 'Name of the query in messages, such as `waiting jobs`' },
  sql: {
    type: 'text',
    observed: true,
    required: true,
    doc: 'One read-only statement, whose first column is evaluated. It cannot change rows, but functions that it calls can use all privileges of the account. It may take half of the remaining time; svc reads up to 1,000 rows',
  },
  depth: {
    type: 'choice',
    values: ['Standard', 'Advanced'],
    default: 'Standard',
    doc: 'Shallowest mode that runs the query',
  },
  atMost: { type: 'threshold', unit: 'ratio', doc: 'Maximum value; applies to the largest value of the column' },
  atLeast: {
    type: 'threshold',
    unit: 'ratio',
    isMinimum: true,
    notAbove: 'atMost',
    doc: 'Minimum value; applies to the smallest value of the column',
  },
  age: {
    type: 'threshold',
    unit: 'duration',
    doc: 'Maximum age, for a column of dates; applies to the oldest date. A date without a time zone counts as UTC',
  },
  rows: { type: 'threshold', unit: 'count', doc: 'Maximum number of rows, up to 1,000' },
  leastRows: { type: 'threshold', unit: 'count', isMinimum: true, notAbove: 'rows', doc: 'Minimum number of rows' },
  expect: {
    type: 'text',
    negatable: true,
    doc: 'Text, /pattern/ or comparison such as >= 3 that every value of the column must meet',
  },
  none: {
    type: 'choice',
    values: ['ok', 'warn', 'fail'],
    doc: 'Status if there is no value, because there are no rows or only NULL; default: ok for `age`, otherwise fail',
  },
} as const satisfies SettingsSpec
export type Query = Values<typeof queryFields>

/** The cost that `queries` add to a run: the question about the account once, and some statements for each query. */
export const queriesCost = (statements: number): readonly AddedCost[] => [
  { setting: 'queries', from: 'Standard', requests: 1 },
  { setting: 'queries', each: true, from: 'Standard', requests: statements },
]

export const queriesSetting = {
  type: 'groups',
  fields: queryFields,
  doc: 'Your own queries, each a single read-only statement; use an account that can only read',
} as const satisfies SettingsSpec[string]

const evaluated = ['atMost', 'atLeast', 'age', 'rows', 'leastRows', 'expect'] as const
const maxQueries = 50

/** Why the queries of a monitor are invalid, or undefined. */
export function queriesProblem(queries: readonly Query[] = [], dialect: Dialect): string | undefined {
  if (queries.length > maxQueries) return `queries has more than ${maxQueries} entries: list fewer`
  for (const query of queries) {
    const problem = queryProblem(query, dialect)
    if (problem !== undefined) return `query ${quote(query.name, 64)}: ${problem}`
  }
  return undefined
}

function queryProblem(query: Query, dialect: Dialect): string | undefined {
  const problem = sqlProblem(query.sql, dialect)
  if (problem !== undefined) return problem
  if (evaluated.every((key) => query[key] === undefined)) return `has no condition: add one of ${evaluated.join(', ')}`
  const lost = query.expect === undefined ? undefined : expectationProblem(query.expect)
  if (lost !== undefined) return `expect: ${lost}`
  const bounds = [query.rows, query.leastRows].flatMap((one: Threshold = {}) => [one.warn ?? 0, one.limit ?? 0])
  if (Math.max(...bounds) <= maxRows) return undefined
  return `svc reads at most ${maxRows} rows: let the database count them, with SELECT count(*) and atMost or atLeast`
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
  /** The meaning of the rows, in words that follow "queries run". Undefined when the account may only read. */
  readonly powers: (rows: readonly Row[]) => string | undefined
}

/** Runs it. The result is only a hint, so an error is not a failure. The deadline is thrown. */
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
  warn('queries', `queries run ${powers}: use a read-only account for svc`, {
    details: [
      'a read-only transaction protects rows, but does not stop functions from using the privileges of the account',
    ],
  })

const check = 'queries' as const
/** Milliseconds that a date may be ahead of our clock. A larger difference means another time zone. */
const aheadMs = 60_000

/** The item of the results of a query. */
export const itemOf = ({ name }: Query): string => sanitize(name, 64)

/** Evaluates one query. Each statement about the column is a separate result. */
export function evaluateAsked(answer: QueryAnswer): readonly Result<'queries'>[] {
  const { query } = answer
  const name = itemOf(query)
  const results = 'column' in answer ? evaluateColumn(answer.column, answer.at, query) : [failed(answer)]
  return results.map((result) => ({
    ...result,
    message: `${name}: ${result.message}`,
    subject: name,
    ...(result.status === 'ok' ? {} : { details: [...(result.details ?? []), `query: ${sanitize(query.sql, 240)}`] }),
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
    ...(expect === undefined ? [] : [evaluateText(values, expect, column)]),
    ...evaluatePart(column),
  ]
}

/** Reports an incomplete column instead of passing silently: the values left out may be the wrong ones. */
function evaluatePart({ rows, retained, more, cut }: Column): readonly Result<'queries'>[] {
  const only = (part: string, next: string): Result<'queries'> =>
    warn(check, `only the first ${part} were evaluated; there are more`, { details: [`next: ${next}`] })
  return [
    ...(more || retained < rows
      ? [only(`${retained} rows`, 'let the database aggregate them: count(*), min(…), max(…)')]
      : []),
    ...(cut ? [only(`${maxValueLength} characters of a value`, 'let the database select the relevant part')] : []),
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
  if (unread >= 0) return fail(check, 'data', `${display(values[unread])} ${whyNoDate(values[unread])}`)
  const age = at - Math.min(...dates.filter((date) => date !== undefined))
  // Report this instead of passing silently: a date hours ahead through its time zone would not age for hours.
  if (-age > aheadMs) {
    return warn(
      check,
      `the oldest is ${showDuration(-age)} in the future: a wrong clock, or a time zone other than UTC`,
      {
        measurement: { value: age, unit: 'milliseconds' },
      },
    )
  }
  return atMost({ check, what: 'oldest', value: age, unit: 'duration', threshold })
}

/** MySQL and MariaDB store dates whose parts are zero. */
function whyNoDate(cell: Cell | undefined): string {
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)/.exec(textOf(cell ?? '')) ?? []
  const lacks = [
    ...(Number(year) === 0 ? ['year'] : []),
    ...(Number(month) === 0 ? ['month'] : []),
    ...(Number(day) === 0 ? ['day'] : []),
  ]
  return lacks.length === 0 ? 'is not a date' : `is a date without a ${lacks.join(' and a ')}`
}

function evaluateText(
  values: readonly Exclude<Cell, null>[],
  expect: Expectation,
  { more, cut, retained, rows }: Column,
): Result<'queries'> {
  const texts = values.map(textOf)
  try {
    const mismatches = unmetEach(texts, expect, noRedaction).filter((one) => one !== undefined)
    const [first] = mismatches
    // The warning about the rest says how to have all of it evaluated.
    if (first === undefined && isNegation(expect) && (more || cut || retained < rows))
      return notChecked(check, 'missing', 'not all of the column was read, so that `not` cannot be evaluated')
    if (first === undefined) return ok(check, `is ${texts.length === 1 ? display(texts[0]) : 'as expected'}`)
    return fail(check, 'data', values.length > 1 ? `${first} (${mismatches.length} of ${values.length})` : first)
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
