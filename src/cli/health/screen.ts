import { exits } from '../../core/base/errors.ts'
import { count, showDuration } from '../../core/base/format.ts'
import {
  counting,
  type Entry,
  type EntryReading,
  isBad,
  read,
  results,
  silencedSentence,
} from '../../core/checks/reports/index.ts'
import { markText } from '../../core/protocol/index.ts'
import { painter } from '../io/terminal.ts'
import { type Line, marks, type Shrink, styles, type Table, type TableCell, table } from '../render/table.ts'
import { width, wrap } from '../render/width.ts'
import { failsOnWarning, overview, worstHost } from './overview.ts'
import {
  type Detail,
  entryMark,
  hintLines,
  inset,
  type Look,
  limited,
  maxName,
  message,
  ownCauses,
  sign,
  status,
} from './text.ts'

const verdictWords = {
  ok: 'HEALTHY',
  warn: 'HEALTHY',
  'not checked': 'NOT CHECKED',
  fail: 'UNHEALTHY',
  unknown: 'NOT CHECKED',
} as const

/** Mistakes in the configuration prove nothing about a server. With `--fail-on warn`, a warning is a failure. */
export function verdictOf(reading: EntryReading): EntryReading['level'] {
  const { level, exitCode } = reading
  if (level === 'fail' && exitCode === exits.local.code) return 'unknown'
  return failsOnWarning(reading) ? 'fail' : level
}

/**
 * `✗ UNHEALTHY  web1 · 1 of 4 monitors failed · 2 warnings · Advanced · 0.5 s`, or `✓ HEALTHY, 2 warnings  web1 · …`
 * where nothing but warnings differs from healthy.
 */
function verdictLines(
  readings: readonly EntryReading[],
  ages: readonly (number | undefined)[],
  detail: Detail,
  look: Look,
): readonly string[] {
  const { marks, paint } = look
  const levels = readings.map(verdictOf)
  const level = (['fail', 'unknown', 'not checked', 'warn'] as const).find((each) => levels.includes(each))
  const verdict = readings.length === 0 ? 'unknown' : (level ?? 'ok')
  const { warnings, texts } = monitorCounts(readings)
  const beside = verdict === 'warn' && warnings > 0 ? `, ${count(warnings, 'warning')}` : ''
  const mark = verdict === 'unknown' ? 'fail' : verdict === 'warn' ? 'ok' : verdict
  const age = Math.max(0, ...readings.map((entry, at) => (entry.error ? 0 : (ages[at] ?? 0))))
  const durations = readings.flatMap(({ duration }) => duration ?? [])
  const facts = [
    // A profile and its address are two facts.
    ...new Set(readings.flatMap((entry) => entry.target.split(' · '))),
    ...texts,
    ...(warnings > 0 && beside === '' ? [count(warnings, 'warning')] : []),
    ...readings.filter((entry) => entry.level === 'unknown').map((entry) => `${entry.type} not checked`),
    ...[silencedSentence(readings.reduce((sum, { silencedResults = 0 }) => sum + silencedResults, 0)) ?? []].flat(),
    ...(readings.some(failsOnWarning) ? ['warnings count as failures (--fail-on warn)'] : []),
    ...new Set(readings.map((entry) => entry.mode)),
    ...(durations.length > 0 ? [showDuration(Math.max(...durations))] : []),
    ...(age > 1 ? [`age ${showDuration(Math.floor(age) * 1_000)}`] : []),
  ].filter(Boolean)
  const isDrill = readings.some(({ drill }) => drill)
  const word = isDrill ? markText(verdictWords[verdict]) : verdictWords[verdict]
  const hidden = (detail === 'usual' || detail === 'failed') && readings.some((entry) => results(entry).length > 0)
  const hint = '-v shows every check'
  const lines = factLines(`${word}${beside} `, facts, look)
  const [first = '', ...others] = lines
  const state = paint(styles[mark], `${marks[mark]} ${first.slice(0, word.length)}`)
  const caution = paint(styles.warn, first.slice(word.length, word.length + beside.length))
  const head = `${state}${caution}${first.slice(word.length + beside.length)}`
  const available = look.width - 2 - width(lines.at(-1) ?? '')
  const lastLines = [head, ...others.map((line) => `  ${line}`)]
  if (!hidden || available < hint.length + 3) return lastLines
  return [...lastLines.slice(0, -1), `${lastLines.at(-1)}${' '.repeat(3)}${paint('dim', hint)}`]
}

/** The start and the facts in lines, which begin with the sign between two facts where one of them does not fit. */
export function factLines(start: string, facts: readonly string[], { width: columns, marks }: Look): readonly string[] {
  const available = columns - 2
  const lines = [start]
  for (const [at, fact] of facts.entries()) {
    const part = at === 0 ? fact : `${marks.dot} ${fact}`
    const joined = `${lines.at(-1)} ${part}`
    if (width(joined) <= available) lines[lines.length - 1] = joined
    else lines.push(part)
  }
  return lines.flatMap((line) => wrap(line.trimEnd(), available))
}

/** `1 of 4 monitors failed`, `2 not checked`, and the number of warnings. The host counts once. */
function monitorCounts(readings: readonly EntryReading[]): {
  readonly warnings: number
  readonly texts: readonly string[]
} {
  const host = worstHost(readings)
  const monitors = [
    ...(host ? [host] : []),
    ...readings.flatMap((entry) => entry.monitors.filter((monitor) => !monitor.host)),
  ]
  const unchecked = monitors.filter((monitor) => monitor.level === 'not checked').length
  const failed = monitors.filter((monitor) => monitor.level === 'fail').length
  const unnamed = readings.reduce((sum, entry) => sum + Math.max(0, entry.failed - failedOf(entry)), 0)
  const warnings = counting(monitors.flatMap((one) => one.results)).filter(({ level }) => level === 'warn').length
  const total = monitors.length + unnamed
  return {
    warnings,
    texts: [
      ...(total === 0 || (unchecked > 0 && failed + unnamed === 0) ? [] : [failedText(failed + unnamed, total)]),
      ...(unchecked > 0 ? [uncheckedText(unchecked, failed + unnamed, total)] : []),
    ],
  }
}

function failedText(failed: number, total: number): string {
  if (failed === 0) return count(total, 'monitor')
  return total === 1 ? `${count(failed, 'monitor')} failed` : `${failed} of ${count(total, 'monitor')} failed`
}

/** Beside the monitors that failed, only their number. */
const uncheckedText = (unchecked: number, failed: number, total: number): string =>
  `${failed > 0 ? unchecked : `${unchecked} of ${count(total, 'monitor')}`} not checked`

const failedOf = (entry: EntryReading): number => entry.monitors.filter(({ level }) => level === 'fail').length

const columns = [{ title: 'MONITOR' }, { title: 'CHECK' }, { title: 'STATUS' }, { title: 'MESSAGE' }]
const shrink: Shrink = [
  { columns: [3], least: 44 },
  { columns: [0, 1], least: 16 },
  { columns: [3], least: 28 },
  { columns: [0, 1], least: 11 },
  { columns: [3], least: 24 },
]

/** The results of one answer: a table, or a list if the terminal is too narrow. */
function resultTable(entry: EntryReading, look: Look): Table {
  const rows = entry.monitors.flatMap((monitor) =>
    monitor.results.map((result, at): readonly TableCell[] => [
      [{ text: at === 0 ? limited(monitor.name, look.marks, maxName) : '' }],
      [{ text: limited(result.check, look.marks, maxName) || '-' }],
      [status(result, look.marks)],
      message(result, look.marks),
    ]),
  )
  return table(columns, rows, { width: look.width, shrink, paint: look.paint }) ?? list(entry, look)
}

function list(entry: EntryReading, look: Look): Table {
  const checks = entry.monitors.flatMap((monitor) => monitor.results)
  const statusWidth = Math.max(11, ...checks.map((result) => width(status(result, look.marks).text) + 2))
  const inset = (line: Line, from: number): readonly string[] => {
    const by = from + (line.inset ?? 0)
    return wrap(line.text, Math.max(12, look.width - by)).map((text) => ' '.repeat(by) + look.paint(line.style, text))
  }
  const lines = entry.monitors.flatMap((monitor) => [
    ...inset({ text: limited(monitor.name, look.marks, maxName), style: 'strong' }, 2),
    ...monitor.results.flatMap((result) => {
      const { text, style } = status(result, look.marks)
      const [check = '', ...rest] = wrap(
        limited(result.check, look.marks, maxName),
        Math.max(5, look.width - 4 - statusWidth),
      )
      return [
        `    ${look.paint(style, text)}${' '.repeat(Math.max(1, statusWidth - width(text)))}${check}`.trimEnd(),
        ...rest.map((line) => ' '.repeat(4 + statusWidth) + line),
        ...message(result, look.marks).flatMap((line) => inset(line, 6)),
      ]
    }),
  ])
  return { lines, width: look.width }
}

export type HealthScreen = {
  /** Columns of the terminal. */
  readonly width: number
  /** Lines of the terminal, in which failures and verdict have to have room. Absent in a pipe. */
  readonly height?: number | undefined
  readonly colour: boolean
  /** False when ASCII replaces the signs. */
  readonly unicode: boolean
  readonly detail?: Detail
  /** Whether a server ran the checks. Its log has the correlation id; after a run in process, no log has it. */
  readonly atServer: boolean
  /** Seconds since the run of each answer ended, in the order of the entries, as the transport reports. */
  readonly ages?: readonly (number | undefined)[]
}

const narrowest = 24
/** Lines that failures have in the lowest terminal. */
const leastHeight = 8

/**
 * Health answers for people: one line for each monitor, its failures and warnings in full, and the verdict on the last
 * line, where a terminal stops scrolling.
 */
export function renderHealth(entries: readonly Entry[], screen: HealthScreen): string {
  const look: Look = {
    width: Math.max(narrowest, screen.width),
    marks: marks(screen.unicode),
    paint: painter(screen.colour),
  }
  const readings = entries.map(read)
  const detail = screen.detail ?? 'usual'
  const verdict = verdictLines(readings, screen.ages ?? [], detail, look)
  if (detail === 'verdict') return `${verdict.join('\n')}\n`
  // The prompt needs a line too, and so does the blank line above the verdict.
  const height = screen.height === undefined ? undefined : Math.max(leastHeight, screen.height - verdict.length - 2)
  const { lines: body, folded } =
    detail === 'verbose'
      ? { lines: fullBlocks(readings, look), folded: false }
      : overview(readings, detail, look, height)
  const servers = readings.map(({ state }) => state?.name)
  const facts = readings.flatMap((entry, at) => [
    // Every type repeats the state of the machine.
    ...(servers.indexOf(entry.state?.name) === at ? stateLines(entry, look) : []),
    ...(screen.atServer && (detail === 'verbose' || isBad(entry.level))
      ? correlationLine(entry, readings.length > 1, look)
      : []),
  ])
  const ends = (lines: readonly string[]): boolean => lines.length === 0 || lines.at(-1) === ''
  // Failures stand last among many lines, so that a terminal shows them when it stops scrolling.
  const [upper, lower] = folded ? [facts, body] : [body, facts]
  const gap = upper.length > 0 && lower.length > 0 && !ends(upper) ? [''] : []
  const above = [...upper, ...gap, ...lower]
  // Where all is well, one line for each monitor and the verdict are one block.
  const apart = detail === 'verbose' || facts.length > 0 || readings.some(({ level }) => level !== 'ok')
  return `${[...above, ...(apart && !ends(above) ? [''] : []), ...verdict].join('\n')}\n`
}

/** Every check of the machine, once, then every check of each type. */
function fullBlocks(readings: readonly EntryReading[], look: Look): readonly string[] {
  const host = worstHost(readings)
  const [first, second] = readings
  if (!host || !first || !second) return readings.flatMap((entry) => fullBlock(entry, look))
  const title = `${sign(host.level, look)} ${look.paint('strong', limited(host.name, look.marks, maxName))}`
  return [
    title,
    ...resultTable({ ...first, monitors: [host] }, look).lines,
    '',
    ...readings.flatMap((entry) =>
      fullBlock({ ...entry, monitors: entry.monitors.filter((monitor) => !monitor.host) }, look),
    ),
  ]
}

/** Every check of one entry, under its headline. */
function fullBlock(entry: EntryReading, look: Look): readonly string[] {
  const title = wrap(entry.headline, look.width - 2).map(
    (line, at) => `${at === 0 ? sign(entryMark(entry), look) : ' '} ${look.paint('strong', line)}`,
  )
  const body = results(entry).length > 0 ? resultTable(entry, look).lines : []
  return [...title, ...ownCauses(entry).flatMap((cause) => inset(cause, look)), ...hintLines(entry, look), ...body, '']
}

function stateLines(entry: EntryReading, look: Look): readonly string[] {
  const { state } = entry
  if (!state) return []
  const parts = [
    `Server ${state.name}`.trim(),
    ...(state.freeMb === undefined || state.totalMb === undefined ? [] : [memory(state.freeMb, state.totalMb)]),
    ...(state.cpu === undefined ? [] : [`CPU ${Math.round(state.cpu)} %`]),
  ]
  const line = `  ${parts.join('   ')}`
  return width(line) <= look.width ? [line] : parts.flatMap((part, at) => inset(at === 0 ? part : `  ${part}`, look))
}

function memory(freeMb: number, totalMb: number): string {
  if (totalMb < 1_024) return `RAM ${Math.round(freeMb)} of ${Math.round(totalMb)} MiB free`
  return `RAM ${(freeMb / 1_024).toFixed(1)} of ${(totalMb / 1_024).toFixed(1)} GiB free`
}

const correlationLine = (entry: EntryReading, several: boolean, look: Look): readonly string[] =>
  entry.correlationId === ''
    ? []
    : inset(`${several ? `${entry.type} ` : ''}correlation ${entry.correlationId}`, look).map((line) =>
        look.paint('dim', line),
      )
