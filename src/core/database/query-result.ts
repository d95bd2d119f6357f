import { readDate } from '../assert/document.ts'
import { UnjudgedError, unmetEach } from '../assert/expectation.ts'
import { atLeast, atMost, classify, fail, ok, type Result, warn } from '../engine/index.ts'
import { showDuration } from '../format.ts'
import { nothingHidden, quoted, said } from '../net/text.ts'
import type { Threshold } from '../settings/index.ts'
import type { Asked } from './query.ts'
import type { Query } from './query-settings.ts'
import { type Cell, type Column, maxValueLength } from './rows.ts'

const check = 'queries' as const
/** Milliseconds by which a date may lie ahead of our clock: what lies further is of another zone. */
const aheadMs = 60_000

/** Judges what one query gave; each thing that it says of the column is one finding. */
export function evaluateAsked(asked: Asked): readonly Result<'queries'>[] {
  const { query } = asked
  const name = said(query.name, 64)
  const results = 'column' in asked ? evaluateColumn(asked.column, asked.at, query) : [failed(asked)]
  return results.map((result) => ({
    ...result,
    message: `${name}: ${result.message}`,
    subject: name,
    ...(result.status === 'ok' ? {} : { details: [...(result.details ?? []), `asked: ${said(query.sql, 240)}`] }),
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

/** Not a silent green: what was not kept may be just what is wrong. */
function evaluatePart({ rows, kept, more, cut }: Column): readonly Result<'queries'>[] {
  const only = (part: string, next: string): Result<'queries'> =>
    warn(check, `only the first ${part} were judged, and there are more`, { details: [`next: ${next}`] })
  return [
    ...(more || kept < rows ? [only(`${kept} rows`, 'let the database sum them up: count(*), min(…), max(…)')] : []),
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
  if (unread >= 0) return [fail(check, 'data', `${shown(values[unread])} is not a number`)]
  const known = figures.filter((figure) => figure !== undefined)
  const of = { check, unit: 'ratio' } as const
  return [
    ...(query.atMost ? [atMost({ ...of, value: Math.max(...known), threshold: query.atMost })] : []),
    ...(query.atLeast ? [atLeast({ ...of, value: Math.min(...known), threshold: query.atLeast })] : []),
  ]
}

function evaluateAge(values: readonly Exclude<Cell, null>[], at: number, threshold: Threshold): Result<'queries'> {
  const dates = values.map(dateOf)
  const unread = dates.indexOf(undefined)
  if (unread >= 0) return fail(check, 'data', `${shown(values[unread])} is no date`)
  const age = at - Math.min(...dates.filter((date) => date !== undefined))
  // Not a silent green: what is hours ahead by its zone could not grow old for hours.
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
    const wrong = unmetEach(texts, expect, nothingHidden).filter((one) => one !== undefined)
    const [first] = wrong
    if (first === undefined) return ok(check, `is ${texts.length === 1 ? shown(texts[0]) : 'as expected'}`)
    return fail(check, 'data', values.length > 1 ? `${first} (${wrong.length} of ${values.length})` : first)
  } catch (error) {
    if (error instanceof UnjudgedError) return fail(check, 'data', error.message)
    throw error
  }
}

const textOf = (cell: Exclude<Cell, null>): string =>
  cell instanceof Date ? (Number.isNaN(cell.getTime()) ? '' : cell.toISOString()) : String(cell)
const shown = (cell: Cell | undefined): string => quoted(textOf(cell ?? ''), 80)

function figureOf(cell: Exclude<Cell, null>): number | undefined {
  const value = typeof cell === 'number' ? cell : decimal.test(textOf(cell).trim()) ? Number(cell) : Number.NaN
  return Number.isFinite(value) ? value : undefined
}
const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i

/** Milliseconds since 1970: a date, its text as databases write it, or seconds or milliseconds. */
function dateOf(cell: Exclude<Cell, null>): number | undefined {
  if (cell instanceof Date) return Number.isNaN(cell.getTime()) ? undefined : cell.getTime()
  // PostgreSQL leaves out the minutes of a zone that has none.
  return readDate(
    String(cell)
      .trim()
      .replace(/(:\d\d(?:\.\d+)?[+-]\d\d)$/, '$1:00'),
  )
}
