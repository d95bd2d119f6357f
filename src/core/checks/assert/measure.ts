import { noRedaction, quote, type Redact, sanitize } from '../../base/net/text.ts'
import type { Expectation, SettingsSpec, Threshold, ThresholdUnit, Values } from '../../base/settings/index.ts'
import { atLeast, atMost, fail, ok, type Result, warn } from '../engine/index.ts'
import {
  type DocumentAnswer,
  type Item,
  maxItems,
  missingList,
  pathProblem,
  readDate,
  relativeProblem,
  select,
} from './document.ts'
import { expectationProblem, isAbsence, UnjudgedError, unmetEach } from './expectation.ts'

/** A measure: a count, a number or a date in a JSON or XML answer. */
export const measureFields = {
  name: { type: 'text', required: true, doc: 'Name in messages: `failed jobs`' },
  path: { type: 'text', observed: true, required: true, doc: 'Path of the items: $.Jobs[*] in JSON, /Jobs/Job in XML' },
  where: {
    type: 'map',
    negatable: true,
    observed: true,
    doc: 'Only items with these values: path within the item to text, /pattern/ or comparison',
  },
  time: {
    type: 'text',
    observed: true,
    doc: 'Path of a date within the item: ISO 8601, /Date(ms)/ or seconds; UTC without a zone',
  },
  last: { type: 'duration', observed: true, doc: 'Only items whose `time` is more recent than this' },
  needs: { type: 'texts', doc: 'Paths that each item must have' },
  count: { type: 'threshold', unit: 'count', doc: 'Maximum number of items' },
  least: { type: 'threshold', unit: 'count', isMinimum: true, notAbove: 'count', doc: 'Minimum number of items' },
  value: {
    type: 'text',
    observed: true,
    default: '.',
    doc: 'Path of the figure within the item, for atMost and atLeast',
  },
  of: {
    type: 'text',
    observed: true,
    doc: 'Path of the total within the item; `value` is then evaluated as a percentage of it',
  },
  atMost: { type: 'threshold', unit: 'ratio', doc: 'Maximum of the figure; the largest counts' },
  atLeast: {
    type: 'threshold',
    unit: 'ratio',
    isMinimum: true,
    notAbove: 'atMost',
    doc: 'Minimum of the figure; the smallest counts',
  },
  age: { type: 'threshold', unit: 'duration', doc: 'How long ago `time` may be; the oldest counts' },
  left: { type: 'threshold', unit: 'days', isMinimum: true, doc: 'Minimum days until `time`; the earliest counts' },
} as const satisfies SettingsSpec
export type Measure = Values<typeof measureFields>

/** The items of the results of measures. */
export const measuresIn = ({ measure = [] }: { readonly measure?: readonly Measure[] | undefined }) =>
  measure.map(({ name }) => name)

const judged = ['needs', 'count', 'least', 'atMost', 'atLeast', 'age', 'left'] as const
/** The conditions that fail without an item. The others are met by an empty list. */
const demanding = ['least', 'atMost', 'atLeast', 'left'] as const
const dated = ['last', 'age', 'left'] as const

/** Why a measure is invalid, or undefined. */
export function measureProblem(measure: Measure): string | undefined {
  const of = `measure ${quote(measure.name, 64)}`
  const problem =
    pathProblem(measure.path) ??
    [...Object.keys(measure.where ?? {}), ...(measure.needs ?? []), measure.time, measure.value, measure.of]
      .flatMap((path) => (path === undefined ? [] : (relativeProblem(path) ?? [])))
      .at(0)
  if (problem !== undefined) return `${of}: ${problem}`
  const lost = Object.values(measure.where ?? {})
    .map(expectationProblem)
    .find((problem) => problem !== undefined)
  if (lost !== undefined) return `${of}: where: ${lost}`
  if (judged.every((key) => measure[key] === undefined))
    return `${of} evaluates nothing: add one of ${judged.join(', ')}`
  const needsTime = dated.find((key) => measure[key] !== undefined)
  return needsTime !== undefined && measure.time === undefined ? `${of}: ${needsTime} needs time` : undefined
}

type MeasureContext = {
  readonly answer: DocumentAnswer
  readonly at: Date
  readonly address: string
  readonly redact: Redact
  /** The prefix of a failed measure's message, by its name. */
  readonly code: (name: string) => string
}

/** Evaluates each measure of one answer. */
export const evaluateMeasures = (measures: readonly Measure[], context: MeasureContext): readonly Result<'measure'>[] =>
  measures.flatMap((measure) =>
    take(measure, context).map((result) => ({
      ...coded(result, context.code(measure.name)),
      subject: measure.name,
    })),
  )

const coded = (result: Result<'measure'>, code: string): Result<'measure'> =>
  result.status === 'ok' || code === '' ? result : { ...result, message: `${code}${result.message}` }

function take(measure: Measure, { answer, at, address, redact }: MeasureContext): readonly Result<'measure'>[] {
  const name = sanitize(measure.name, 64)
  const more = { address }
  const failure = (why: string): readonly Result<'measure'>[] => [
    fail('measure', 'data', `${address}: ${name}: ${why}`, more),
  ]
  const selected = select(answer, measure.path)
  if ('problem' in selected) return [fail('measure', 'protocol', `${address}: ${name}: ${selected.problem}`, more)]
  const lost = missingList(answer, measure.path)
  if (lost !== undefined && demanding.every((key) => measure[key] === undefined)) {
    const why = `not checked: ${address}: ${name}: the answer has no list ${sanitize(lost, 80)}`
    return [warn('measure', why, { ...more, notChecked: 'missing' })]
  }
  let matching: readonly Item[]
  try {
    matching = fitting(selected.slice(0, maxItems), measure.where)
  } catch (error) {
    if (error instanceof UnjudgedError) return failure(error.message)
    throw error
  }
  const times = measure.time === undefined ? undefined : matching.map((item) => timeOf(item, measure.time ?? ''))
  const undated = times?.find((time) => typeof time !== 'number')
  if (undated !== undefined)
    return failure(
      `${sanitize(measure.time ?? '', 64)} is ${undated === '' ? 'missing' : `${quote(redact(undated), 40)}, which is not a date`}`,
    )
  const now = at.getTime()
  const fresh = matching
    .map((item, index) => ({ item, time: Number(times?.[index]) }))
    .filter(({ time }) => measure.last === undefined || now - time <= measure.last)
  const items = fresh.map(({ item }) => item)
  const when = times === undefined ? [] : fresh.map(({ time }) => time)
  const results: Result<'measure'>[] = []
  const figure = (
    evaluate: typeof atMost<'measure'>,
    value: number,
    unit: ThresholdUnit,
    threshold: Threshold,
    what = `${name}:`,
    more: { readonly after?: string; readonly at?: Date } = {},
  ): void => {
    results.push(evaluate({ check: 'measure', what: `${address}: ${what}`, ...more, value, unit, threshold, address }))
  }
  const most = selected.length > maxItems ? `${name} (of the first ${maxItems} of ${selected.length}):` : `${name}:`
  if (measure.count) figure(atMost, items.length, 'count', measure.count, most)
  if (measure.least) figure(atLeast, items.length, 'count', measure.least, most)
  for (const need of measure.needs ?? []) {
    const lacking = items.filter((item) => !item.within(need)?.length).length
    if (lacking > 0) results.push(...failure(`${lacking} of ${items.length} have no ${sanitize(need, 64)}`))
  }
  if (measure.needs && results.length === 0)
    results.push(ok('measure', `${address}: ${name}: ${items.length} with all required paths`, more))
  if (measure.age) {
    if (when.length === 0) results.push(ok('measure', `${address}: ${name}: none`, more))
    else {
      const oldest = Math.min(...when)
      figure(atMost, now - oldest, 'duration', measure.age, `${name}: oldest`, { at: new Date(oldest) })
    }
  }
  if (measure.left) {
    if (when.length === 0) return [...results, ...failure(`the answer has no ${sanitize(measure.path, 80)}`)]
    const first = Math.min(...when)
    const more = { after: 'left', at: new Date(first) }
    figure(atLeast, (first - now) / 86_400_000, 'days', measure.left, `${name}:`, more)
  }
  if (!measure.atMost && !measure.atLeast) return results
  if (items.length === 0) return [...results, ...failure(`the answer has no ${sanitize(measure.path, 80)}`)]
  const figures = items.map((item) => figureOf(item, measure))
  const unread = figures.find((value) => typeof value !== 'number')
  if (unread !== undefined) return [...results, ...failure(`${quote(redact(unread), 40)} is not a number`)]
  const unit = measure.of === undefined ? 'ratio' : 'percent'
  if (measure.atMost) figure(atMost, Math.max(...figures.map(Number)), unit, measure.atMost)
  if (measure.atLeast) figure(atLeast, Math.min(...figures.map(Number)), unit, measure.atLeast)
  return results
}

/** The items whose values meet the expectations. An item without the value does not. Throws UnjudgedError. */
function fitting(items: readonly Item[], where: Readonly<Record<string, Expectation>> = {}): readonly Item[] {
  return Object.entries(where).reduce((left, [path, expectation]) => {
    if (isAbsence(expectation)) return left.filter((item) => !item.within(path)?.length)
    const values = left.flatMap((item) => {
      const [value] = item.within(path) ?? []
      return value === undefined ? [] : [{ item, text: value.text }]
    })
    const texts = values.map(({ text }) => text)
    const mismatches = unmetEach(texts, expectation, noRedaction)
    return values.flatMap(({ item }, index) => (mismatches[index] === undefined ? [item] : []))
  }, items)
}

/** Milliseconds since 1970, or the text that is not a date. */
function timeOf(item: Item, path: string): number | string {
  const text = item.within(path)?.at(0)?.text ?? ''
  return readDate(text) ?? text
}

/** The number, or the text that is none. */
function figureOf(item: Item, measure: Measure): number | string {
  const text = item.within(measure.value)?.at(0)?.text ?? ''
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (!Number.isFinite(value)) return text
  if (measure.of === undefined) return value
  const whole = item.within(measure.of)?.at(0)?.text ?? ''
  return Number(whole) > 0 ? (value / Number(whole)) * 100 : whole
}
