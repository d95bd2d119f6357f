import { count, showBytes, showDuration } from '../../core/base/format.ts'
import {
  bySeverity,
  type EntryReading,
  isConsequence,
  type MonitorReading,
  type Reading,
  shownLevel,
} from '../../core/checks/reports/index.ts'
import type { Line, Mark } from '../render/table.ts'
import { wrap } from '../render/width.ts'
import { layOut, type ScreenRow } from './rows.ts'
import { entryMark, hintTexts, type Look, limited, maxName, message, ownCauses, sign } from './text.ts'

/** Above this number of lines, the monitors that are ok become one line, and failures stand last. */
const maxLines = 30

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
 * A line for each monitor, with its failures and warnings in full. `failed` leaves out what is ok. Above 30 lines, the
 * monitors that are ok become one line, those that wait for the same one row, and failures stand last.
 */
export function overview(readings: readonly EntryReading[], detail: 'usual' | 'failed', look: Look): Overview {
  const items = itemsOf(readings, look).filter((item) => detail === 'usual' || !isOk(item))
  const rows = inOrder(items).flatMap((item) => itemRows(item, detail))
  const lines = rows.length > maxLines ? undefined : layOut(labelOnce(rows), look).lines
  if (lines && lines.length <= maxLines) return { lines, folded: false }
  return { lines: foldedLines(items, detail, look), folded: true }
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
  { level, results }: MonitorReading,
  ran: readonly Reading[],
  { marks }: Look,
): ScreenRow {
  const [only] = results
  if (results.length > ran.length && only) {
    return { mark: 'idle', type, name, check: '', lines: [{ text: limited(only.message, marks), style: 'dim' }] }
  }
  // Of several results of one check, the first.
  const figures = [...Map.groupBy(ran, (result) => result.check).values()].flatMap(
    ([first]) => (first && figureText(first)) ?? [],
  )
  const check = count(results.length, 'check')
  if (figures.length > 0) return { mark: level, type, name, check, lines: [], figures }
  return {
    mark: level,
    type,
    name,
    check,
    lines: [{ text: limited(ran.length === 1 && only ? only.message : '', marks) }],
  }
}

/** The measurement of a check, in a few words: `latency 12 ms`. */
function figureText({ check, measurement }: Reading): string | undefined {
  if (!measurement) return undefined
  const figure = showFigure(measurement)
  return figure === undefined ? undefined : `${limited(check, { more: '…' }, 40)} ${figure}`
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
function itemRows(item: Item, detail: 'usual' | 'failed'): readonly ScreenRow[] {
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
    const isSame =
      row.name !== '' && row.monitors === undefined && before?.name === row.name && before.type === row.type
    return isSame ? { ...row, type: '', name: '' } : row
  })

/** The states in the order in which the folded rows stand: what matters most is nearest to the verdict. */
const bestFirst: readonly ScreenRow['mark'][] = ['warn', 'idle', 'not checked', 'fail']

function foldedLines(items: readonly Item[], detail: 'usual' | 'failed', look: Look): readonly string[] {
  const failed = items.some(hasFailed)
  const isAside = (item: Item, row: ScreenRow): boolean => failed && item.host && isWarning(row)
  const problems = items.filter((item) => !isOk(item))
  const rows = problems.flatMap((item) => withSkipped(item).filter((row) => !isAside(item, row)))
  const machine = problems.flatMap((item) => rowsOf(item).filter((row) => isAside(item, row)))
  const sorted = bestFirst.flatMap((mark) => foldEqual(rows.filter((row) => row.mark === mark)))
  const { lines, indent } = layOut(labelOnce([...sorted, ...(detail === 'failed' ? machine : [])]), look)
  const first = foldLine(items.filter(isOk).length, detail === 'failed' ? 0 : machine.length, look)
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
 * Makes one row of three or more that say the same about different monitors, at the place of the first. Durations may
 * differ: the row has the shortest and the longest. A failure keeps its own row: whoever is called has to see its name.
 */
function foldEqual(rows: readonly ScreenRow[]): readonly ScreenRow[] {
  const groups = Map.groupBy(rows, keyOf)
  return [...groups.values()].flatMap((group) => (group.length < leastEqual ? group : [merged(group)]))
}

function keyOf(row: ScreenRow): unknown {
  if (row.mark === 'fail' || row.name === '') return row
  return JSON.stringify([row.mark, row.type, row.check, row.lines.map(({ text }) => text.replace(duration, '#'))])
}

function merged(rows: readonly ScreenRow[]): ScreenRow {
  const [first] = rows
  if (!first) throw new Error('no row to merge')
  return {
    ...first,
    name: `${rows.length} monitors`,
    monitors: rows.map(({ name }) => name),
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
