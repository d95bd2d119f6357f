import { expectationProblem } from '../assert/expectation.ts'
import { quoted } from '../net/text.ts'
import type { SettingsSpec, Threshold, Values } from '../settings/index.ts'
import { maxRows } from './rows.ts'
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

const judged = ['atMost', 'atLeast', 'age', 'rows', 'leastRows', 'expect'] as const
const mostQueries = 50

/** Why the queries of a monitor cannot be asked, or undefined. */
export function queriesProblem(queries: readonly Query[] = [], dialect: Dialect): string | undefined {
  if (queries.length > mostQueries) return `queries are more than ${mostQueries}: give less`
  for (const query of queries) {
    const wrong = queryProblem(query, dialect)
    if (wrong !== undefined) return `query ${quoted(query.name, 64)}: ${wrong}`
  }
  return undefined
}

function queryProblem(query: Query, dialect: Dialect): string | undefined {
  const wrong = sqlProblem(query.sql, dialect)
  if (wrong !== undefined) return wrong
  if (judged.every((key) => query[key] === undefined)) return `judges nothing: add one of ${judged.join(', ')}`
  const lost = query.expect === undefined ? undefined : expectationProblem(query.expect)
  if (lost !== undefined) return `expect: ${lost}`
  const bounds = [query.rows, query.leastRows].flatMap((one: Threshold = {}) => [one.warn ?? 0, one.limit ?? 0])
  if (Math.max(...bounds) <= maxRows) return undefined
  return `no more than ${maxRows} rows are read: let the database count them, by SELECT count(*) and atMost or atLeast`
}
