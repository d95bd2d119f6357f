import { exits } from '../../core/base/errors.ts'
import { count, showBytes, showDuration } from '../../core/base/format.ts'
import {
  bySeverity,
  type EntryReading,
  isConsequence,
  type MonitorReading,
  messageIn,
  type Reading,
  shownLevel,
} from '../../core/checks/reports/index.ts'
import type { Line, Mark } from '../render/table.ts'
import { wrap } from '../render/width.ts'
import { type Layout, layOut, type ScreenRow } from './rows.ts'
import { type Detail, entryMark, hintTexts, type Look, limited, maxName, message, ownCauses, sign } from './text.ts'

type OverviewDetail = Exclude<Detail, 'verbose' | 'verdict'>

/** Above this number of lines, the monitors that are ok become one line, and failures stand last. */
const maxLines = 30
/** The rows of `reasons`. */
const maxReasons = 20

/** The rows and counts of one monitor, or of an answer itself. */
type Item = {
  readonly host: boolean
  /** The row of a monitor that is ok or did not run. Undefined if anything is wrong. */
  readonly whole: ScreenRow | undefined
  /** A row for each failure, each warning and each check without a verdict, the worst first. */
  readonly problems: readonly ScreenRow[]
  /** The checks beside those that are wrong. */
  readonly ok: number
  readonly skipped: number
}

export type Overview = {
  readonly lines: readonly string[]
  /** Whether the monitors that are ok are one line. The last line is then one of a failure, if anything failed. */
  readonly folded: boolean
}

/**
 * A line for each monitor, with its failures and warnings in full. `failed` leaves out what is ok. Above 30 lines, or
 * more than `height`, the monitors that are ok become one line, those that say the same one row, and failures stand last.
 */
export function overview(
  readings: readonly EntryReading[],
  detail: OverviewDetail,
  look: Look,
  height: number = Number.POSITIVE_INFINITY,
): Overview {
  const items = itemsOf(readings, look).filter((item) => detail === 'usual' || !isOk(item))
  if (detail === 'reasons') return { lines: reasonLines(items, readings.some(failsOnWarning), look), folded: true }
  const most = Math.min(maxLines, height)
  const rows = inOrder(items).flatMap((item) => itemRows(item, detail))
  const lines = rows.length > most ? undefined : laidOut(rows, look).lines
  if (lines && lines.length <= most) return { lines, folded: false }
  return { lines: foldedLines(items, detail, look, height), folded: true }
}

/** Whether its warnings alone make it exit with 3. */
export const failsOnWarning = ({ level, exitCode }: EntryReading): boolean =>
  level === 'warn' && exitCode === exits.unhealthy.code

/** The rows on the screen: a monitor is named only in the first of its rows, and a hint stands once. */
const laidOut = (rows: readonly ScreenRow[], look: Look): Layout => layOut(labelOnce(withHintsOnce(rows)), look)

export function withHintsOnce(rows: readonly ScreenRow[]): readonly ScreenRow[] {
  const hints = new Set<string>()
  const isNew = ({ text }: Line): boolean => hints.size < hints.add(text).size
  return rows.map((row) => ({ ...row, lines: row.lines.filter((line) => !line.isHint || isNew(line)) }))
}

function itemsOf(readings: readonly EntryReading[], look: Look): readonly Item[] {
  const host = worstHost(readings)
  return [
    ...(host ? [monitorItem('', host, look)] : []),
    ...readings.flatMap((entry) => [
      ...ownCauses(entry).map((cause, at) => ({
        host: false,
        whole: undefined,
        problems: [causeRow(entry, cause, at, look)],
        ok: 0,
        skipped: 0,
      })),
      ...entry.monitors.filter((monitor) => !monitor.host).map((monitor) => monitorItem(entry.type, monitor, look)),
    ]),
  ]
}

const causeRow = (entry: EntryReading, cause: string, at: number, look: Look): ScreenRow => ({
  mark: entryMark(entry),
  type: entry.type,
  name: '',
  check: '',
  lines: [{ text: limited(cause, look.marks) }, ...(at === 0 ? (entry.error?.hints ?? []).flatMap(hintTexts) : [])],
})

/** The checks of the machine, which every type repeats, once: those of the worst run. */
export function worstHost(readings: readonly EntryReading[]): MonitorReading | undefined {
  const hosts = readings.flatMap((entry) => entry.monitors.filter((monitor) => monitor.host))
  return hosts.toSorted((a, b) => bySeverity({ level: shownLevel(a) }, { level: shownLevel(b) })).at(0)
}

function monitorItem(type: string, monitor: MonitorReading, look: Look): Item {
  const name = limited(monitor.name, look.marks, maxName)
  const ran = monitor.results.filter((result) => !isConsequence(result))
  const problems = ran.filter((result) => result.level !== 'ok').toSorted(bySeverity)
  return {
    host: monitor.host,
    whole: problems.length === 0 ? wholeRow(type, name, monitor, ran, look) : undefined,
    problems: problems.map((result) => ({
      mark: result.level,
      type,
      name,
      check: limited(result.check, look.marks, maxName),
      lines: message(result, look.marks),
    })),
    ok: ran.length - problems.length,
    skipped: monitor.results.length - ran.length,
  }
}

/** The row of a monitor of which nothing is wrong: its figures, or why it did not run. */
function wholeRow(
  type: string,
  name: string,
  { level, results, host }: MonitorReading,
  ran: readonly Reading[],
  { marks }: Look,
): ScreenRow {
  const [only] = results
  if (results.length > ran.length && only) {
    return { mark: 'idle', type, name, check: '', lines: [{ text: limited(only.message, marks), style: 'dim' }] }
  }
  // Of several results of one check, the first.
  const figures = [...Map.groupBy(ran, (result) => result.check).values()].flatMap(
    ([first]) => (first && figureText(first, host)) ?? [],
  )
  const check = count(results.length, 'check')
  if (figures.length > 0) return { mark: level, type, name, check, lines: [], figures }
  return {
    mark: level,
    type,
    name,
    check,
    lines: [{ text: limited(ran.length === 1 && only ? messageIn(only) : '', marks) }],
  }
}

/** The measurement of a check, in a few words: `latency 12 ms`. What a machine needs enough of is its free part. */
function figureText({ check, measurement }: Reading, host: boolean): string | undefined {
  if (!measurement) return undefined
  const figure = showFigure(measurement)
  const free = host && measurement.unit === 'percent' && measurement.bound === 'atLeast' ? ' free' : ''
  return figure === undefined ? undefined : `${limited(check, { more: '…' }, 40)} ${figure}${free}`
}

function showFigure({ value, unit }: NonNullable<Reading['measurement']>): string | undefined {
  switch (unit) {
    case 'milliseconds':
      return showDuration(value)
    case 'bytes':
      return showBytes(value)
    case 'percent':
      return `${Number(value.toFixed(value < 10 ? 1 : 0))} %`
    case 'days':
      return `${Number(value.toFixed(value < 10 ? 1 : 0))} d`
    case 'count':
    case 'ratio':
      return String(Number(value.toFixed(2)))
    default:
      return undefined
  }
}

const isOk = ({ whole }: Item): boolean => whole?.mark === 'ok'

/** Warnings of the machine stand below the failures, so that the first thing on the screen is not a side issue. */
function inOrder(items: readonly Item[]): readonly Item[] {
  const last = items.some(hasFailed) ? items.filter((item) => item.host && item.problems.some(isWarning)) : []
  return [...items.filter((item) => !last.includes(item)), ...last]
}

const rowsOf = ({ whole, problems }: Item): readonly ScreenRow[] => (whole ? [whole] : problems)
const isWarning = ({ mark }: ScreenRow): boolean => mark === 'warn'
const hasFailed = (item: Item): boolean => rowsOf(item).some(({ mark }) => mark === 'fail')

/** The rows of an item, and a row for the checks beside those that are wrong. */
function itemRows(item: Item, detail: OverviewDetail): readonly ScreenRow[] {
  const rest = item.whole ? '' : restText(detail === 'usual' ? item : { ...item, ok: 0 })
  const beneath = { mark: 'ok', type: '', name: '', check: '', lines: [{ text: rest, style: 'dim' }] } as const
  return rest === '' ? rowsOf(item) : [...rowsOf(item), beneath]
}

const restText = ({ ok, skipped }: Pick<Item, 'ok' | 'skipped'>): string =>
  [
    ...(ok > 0 ? [`${count(ok, 'other check')} ok`] : []),
    ...(skipped > 0 ? [`${count(skipped, 'check')} skipped`] : []),
  ].join(', ')

/** Names a monitor only in the first of its rows. */
const labelOnce = (rows: readonly ScreenRow[]): readonly ScreenRow[] =>
  rows.map((row, at) => {
    const before = rows[at - 1]
    const isSame = row.name !== '' && row.names === undefined && before?.name === row.name && before.type === row.type
    return isSame ? { ...row, type: '', name: '' } : row
  })

/** The states in the order in which the folded rows stand: what matters most is nearest to the verdict. */
const bestFirst = ['warn', 'idle', 'not checked', 'fail'] as const

const stands = ({ names }: ScreenRow): number => names?.length ?? 1

/** The rows in the order of their states, those that say the same as one, which stands below single ones. */
const sortedRows = (rows: readonly ScreenRow[]): readonly ScreenRow[] =>
  bestFirst.flatMap((mark) =>
    foldEqual(rows.filter((row) => row.mark === mark)).toSorted((one, other) => stands(one) - stands(other)),
  )

/** The rows that make the exit code other than 0: at most 20 rows, then a count. */
function reasonLines(items: readonly Item[], warnings: boolean, look: Look): readonly string[] {
  const marks: readonly ScreenRow['mark'][] = ['fail', 'not checked', ...(warnings ? (['warn'] as const) : [])]
  const rows = sortedRows(items.flatMap((item) => rowsOf(item).filter(({ mark }) => marks.includes(mark))))
  return cutLines(rows, maxReasons, Number.POSITIVE_INFINITY, '', look).lines
}

/** The last rows that have room, and a line with the number of the others. */
function cutLines(rows: readonly ScreenRow[], mostRows: number, height: number, hint: string, look: Look): Layout {
  for (let left = Math.max(0, rows.length - mostRows); ; left += 1) {
    const { lines, indent } = laidOut(rows.slice(left), look)
    const more = moreText(rows.slice(0, left), rows.slice(left))
    const last = more === '' ? [] : wrap(`${look.marks.more} ${more}${hint}`, look.width - indent)
    const all = [...lines, ...last.map((line) => ' '.repeat(indent) + line)]
    if (all.length <= height || left >= rows.length - 1) return { lines: all, indent }
  }
}

const moreWords = { fail: 'failed', 'not checked': 'not checked', idle: 'skipped', warn: 'with a warning' } as const

/** `180 more failed, 3 more with a warning`: the monitors of rows without room, but not those that other rows name. */
function moreText(hidden: readonly ScreenRow[], visible: readonly ScreenRow[]): string {
  const monitors = (rows: readonly ScreenRow[], mark: ScreenRow['mark']): ReadonlySet<string> =>
    new Set(
      rows
        .filter((row) => row.mark === mark)
        .flatMap((row) => (row.names ?? [row.name]).map((name) => `${row.type} ${name}`)),
    )
  return bestFirst
    .toReversed()
    .flatMap((mark) => {
      const ofVisible = monitors(visible, mark)
      const { length } = [...monitors(hidden, mark)].filter((one) => !ofVisible.has(one))
      return length === 0 ? [] : [`${length} more ${moreWords[mark]}`]
    })
    .join(', ')
}

function foldedLines(items: readonly Item[], detail: OverviewDetail, look: Look, height: number): readonly string[] {
  const failed = items.some(hasFailed)
  const isAside = (item: Item, row: ScreenRow): boolean => failed && item.host && isWarning(row)
  const problems = items.filter((item) => !isOk(item))
  const rows = problems.flatMap((item) => withSkipped(item).filter((row) => !isAside(item, row)))
  const machine = problems.flatMap((item) => rowsOf(item).filter((row) => isAside(item, row)))
  const first = foldLine(items.filter(isOk).length, detail === 'failed' ? 0 : machine.length, look)
  const all = [...sortedRows(rows), ...(detail === 'failed' ? machine : [])]
  const most = detail === 'failed' ? Number.POSITIVE_INFINITY : height - first.length
  const { lines, indent } = cutLines(all, most, most, ' (--failed shows all)', look)
  return [...first.map((line) => ' '.repeat(indent) + line), ...lines]
}

/** The rows of an item. The worst says how many checks were skipped. */
function withSkipped(item: Item): readonly ScreenRow[] {
  const [worst, ...others] = rowsOf(item)
  const rest = item.whole ? '' : restText({ ok: 0, skipped: item.skipped })
  if (!worst || rest === '') return rowsOf(item)
  return [{ ...worst, lines: [...worst.lines, { text: rest, style: 'dim' }] }, ...others]
}

/** `✓ 193 ok · host: 2 warnings (--failed shows them)`: beside failures, the warnings of the machine have no lines. */
function foldLine(ok: number, warnings: number, look: Look): readonly string[] {
  const mark: Mark = ok > 0 ? 'ok' : 'warn'
  const parts = [
    ...(ok > 0 ? [`${ok} ok`] : []),
    ...(warnings > 0 ? [`host: ${count(warnings, 'warning')} (--failed shows ${warnings === 1 ? 'it' : 'them'})`] : []),
  ]
  if (parts.length === 0) return []
  return wrap(parts.join(` ${look.marks.dot} `), look.width - 4).map((line, at) =>
    at === 0 ? `${sign(mark, look)} ${line}` : `  ${line}`,
  )
}

/** Fewer rows than these do not get shorter as one. */
const leastEqual = 3
/** A duration as svc writes it. */
const duration = /\b\d+(?:\.\d+)? (?:ms|s|min|h|d)\b/g

/**
 * Makes one row of three or more that say the same about different monitors, at the place of the first, or about
 * different types or servers. Durations may differ: the row has the shortest and the longest. `as` is what a row says
 * beside others, which may be less than it says alone.
 */
export function foldEqual<Row extends ScreenRow>(
  rows: readonly Row[],
  as: (row: Row) => ScreenRow = (row) => row,
): readonly (Row | ScreenRow)[] {
  const groups = Map.groupBy(rows, (row) => keyOf(as(row)))
  return [...groups.values()].flatMap((group) => (group.length < leastEqual ? group : [merged(group.map(as))]))
}

const keyOf = ({ mark, type, name, check, lines }: ScreenRow): string =>
  JSON.stringify([mark, name === '' ? '' : type, check, lines.map(({ text }) => text.replace(duration, '#'))])

function merged(rows: readonly ScreenRow[]): ScreenRow {
  const [first] = rows
  if (!first) throw new Error('no row to merge')
  const isTypes = first.name === ''
  return {
    ...first,
    ...(isTypes ? { type: '' } : {}),
    name: `${rows.length} ${first.unit ?? (isTypes ? 'types' : 'monitors')}`,
    names: rows.map(({ type, name }) => (isTypes ? type : name)),
    lines: first.lines.map((line, at) => mergedLine(line, rows, at)),
  }
}

/** The line with the range of each duration that differs. */
function mergedLine(line: Line, rows: readonly ScreenRow[], at: number): Line {
  const texts = rows.map(({ lines }) => lines[at]?.text.match(duration) ?? [])
  let index = -1
  const text = line.text.replace(duration, () => {
    index += 1
    return rangeOf(texts.map((durations) => durations[index] ?? ''))
  })
  return { ...line, text }
}

function rangeOf(durations: readonly string[]): string {
  const sorted = [...new Set(durations)].toSorted((a, b) => millisecondsOf(a) - millisecondsOf(b))
  const [shortest = '', ...longer] = sorted
  return longer.length === 0 ? shortest : `${shortest} to ${longer.at(-1)}`
}

const factors: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

function millisecondsOf(text: string): number {
  const [value = '', unit = ''] = text.split(' ')
  return Number(value) * (factors[unit] ?? 0)
}
