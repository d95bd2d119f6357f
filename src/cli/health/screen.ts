import { exits } from '../../core/errors.ts'
import { showBytes, showDuration } from '../../core/format.ts'
import {
  bySeverity,
  count,
  describeResult,
  type Entry,
  type EntryReading,
  isBad,
  isConsequence,
  type MonitorReading,
  type Reading,
  read,
  results,
  shownFault,
  stateWord,
} from '../../core/reports/index.ts'
import { type Paint, painter } from '../io/terminal.ts'
import {
  type Line,
  type Mark,
  type Marks,
  marks,
  type Shrink,
  styles,
  type Table,
  type TableCell,
  table,
} from '../render/table.ts'
import { cut, padEnd, width, wrap } from '../render/width.ts'

/** Maximum length of a message or detail, and of a name, on a terminal. `--output json` has the full texts. */
const maxText = 1_200
const maxName = 120
const maxDetails = 8

const columns = [{ title: 'MONITOR' }, { title: 'CHECK' }, { title: 'STATUS' }, { title: 'MESSAGE' }]
const shrink: Shrink = [
  { columns: [3], least: 44 },
  { columns: [0, 1], least: 16 },
  { columns: [3], least: 28 },
  { columns: [0, 1], least: 11 },
  { columns: [3], least: 24 },
]

export type Look = { readonly width: number; readonly marks: Marks; readonly paint: Paint }

/** The results of one answer: a table, or a list if the terminal is too narrow. */
export function resultTable(entry: EntryReading, look: Look): Table {
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
  const statusRoom = Math.max(11, ...checks.map((result) => width(status(result, look.marks).text) + 2))
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
        Math.max(5, look.width - 4 - statusRoom),
      )
      return [
        `    ${look.paint(style, text)}${' '.repeat(Math.max(1, statusRoom - width(text)))}${check}`.trimEnd(),
        ...rest.map((line) => ' '.repeat(4 + statusRoom) + line),
        ...message(result, look.marks).flatMap((line) => inset(line, 6)),
      ]
    }),
  ])
  return { lines, width: look.width }
}

const status = (result: Reading, marks: Marks): Line => ({
  text: `${isConsequence(result) ? marks.dot : marks[result.level]} ${stateWord(result)}`,
  // A skipped check is a consequence, so it is dimmed: the cause should stand out.
  style: isConsequence(result) ? 'dim' : styles[result.level],
})

function message(result: Reading, marks: Marks): TableCell {
  const first = { text: limited(withFault(result), marks), ...(isConsequence(result) ? { style: 'dim' as const } : {}) }
  if (result.level === 'ok') return [first]
  const details = result.details.flatMap((text) => text.split('\n'))
  const visible = details.slice(0, maxDetails).map((text) => ({
    text: limited(text.replace(/\s+/g, ' '), marks),
    style: 'dim' as const,
    inset: 2,
  }))
  const left = details.length - visible.length
  const more = left > 0 ? [{ text: `${marks.more} ${left} more (--output json)`, style: 'dim' as const, inset: 2 }] : []
  return [first, ...visible, ...more]
}

const limited = (text: string, marks: Pick<Marks, 'more'>, most = maxText): string =>
  text.length > most ? `${text.slice(0, most).toWellFormed()}${marks.more}` : text

/** Words of a message that already tell its fault class. */
const obvious: Readonly<Record<string, RegExp>> = {
  threshold: /./,
  dependency: /./,
  data: /configured/i,
  refused: /refus|no route/i,
  timeout: /timed? ?out|answer|within/i,
  tls: /tls|certificate/i,
  dns: /dns|resolve/i,
  auth: /auth|sign|password|credential/i,
}

function withFault(reading: Reading): string {
  const { message } = reading
  const fault = shownFault(reading)
  if (fault === undefined || obvious[fault]?.test(message) || message.toLowerCase().includes(fault)) return message
  return `${message} (${fault})`
}

export type HealthScreen = {
  /** Columns of the terminal. */
  readonly width: number
  readonly colour: boolean
  /** False when ASCII replaces the signs. */
  readonly unicode: boolean
  /** `verbose` shows every check, `verdict` the last line alone. */
  readonly detail?: 'verbose' | 'usual' | 'verdict'
  /** Whether a server ran the checks. Its log has the correlation id; after a run in process, no log has it. */
  readonly atServer: boolean
  /** Seconds since the run of each answer ended, in the order of the entries, as the transport reports. */
  readonly ages?: readonly (number | undefined)[]
}

const narrowest = 24

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
  const body = detail === 'verbose' ? fullBlocks(readings, look) : monitorLines(readings, look)
  const servers = readings.map(({ state }) => state?.name)
  const facts = readings.flatMap((entry, at) => [
    // Every type repeats the state of the machine.
    ...(servers.indexOf(entry.state?.name) === at ? stateLines(entry, look) : []),
    ...(screen.atServer && (detail === 'verbose' || isBad(entry.level))
      ? correlationLine(entry, readings.length > 1, look)
      : []),
  ])
  const ends = (lines: readonly string[]): boolean => lines.length === 0 || lines.at(-1) === ''
  const gap = facts.length > 0 && !ends(body) ? [''] : []
  const above = [...body, ...gap, ...facts]
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

/** One line on the screen: a sign, whose it is, and what to say. */
type Row = {
  /** `idle`: it did not run, because something else failed. */
  readonly mark: Mark | 'idle'
  readonly type: string
  readonly name: string
  readonly check: string
  readonly lines: readonly Line[]
  /** Figures that fill the rest of one line, the most telling first. */
  readonly figures?: readonly string[]
}

function monitorLines(readings: readonly EntryReading[], look: Look): readonly string[] {
  const host = worstHost(readings)
  const rows = [
    ...(host ? monitorRows('', host, look) : []),
    ...readings.flatMap((entry) => [
      ...ownCauses(entry).map((cause, at) => ({
        mark: entryMark(entry),
        type: entry.type,
        name: '',
        check: '',
        lines: [
          { text: limited(cause, look.marks) },
          ...(at === 0 ? (entry.error?.hints ?? []).flatMap(hintTexts) : []),
        ],
      })),
      ...entry.monitors.filter((monitor) => !monitor.host).flatMap((monitor) => monitorRows(entry.type, monitor, look)),
    ]),
  ]
  return beside(rows, look) ?? below(rows, look)
}

/** The checks of the machine, which every type repeats, once: those of the worst run. */
function worstHost(readings: readonly EntryReading[]): MonitorReading | undefined {
  const hosts = readings.flatMap((entry) => entry.monitors.filter((monitor) => monitor.host))
  return hosts.toSorted(bySeverity).at(0)
}

/** A line for the monitor if all is well, else a line for each failure and each warning. */
function monitorRows(type: string, monitor: MonitorReading, look: Look): readonly Row[] {
  const name = limited(monitor.name, look.marks, maxName)
  const wrong = monitor.results.filter((result) => result.level !== 'ok' && !isConsequence(result)).toSorted(bySeverity)
  const ran = monitor.results.filter((result) => !isConsequence(result))
  const idle = monitor.results.length - ran.length
  if (wrong.length === 0) {
    const [only] = monitor.results
    if (idle > 0 && only) {
      return [
        { mark: 'idle', type, name, check: '', lines: [{ text: limited(only.message, look.marks), style: 'dim' }] },
      ]
    }
    // Of several results of one check, the first.
    const figures = [...Map.groupBy(ran, (result) => result.check).values()].flatMap(
      ([first]) => (first && figureText(first)) ?? [],
    )
    const check = count(monitor.results.length, 'check')
    if (figures.length > 0) return [{ mark: monitor.level, type, name, check, lines: [], figures }]
    const text = limited(ran.length === 1 && only ? only.message : '', look.marks)
    return [{ mark: monitor.level, type, name, check, lines: [{ text }] }]
  }
  const well = ran.length - wrong.length
  const rest = [
    ...(well > 0 ? [`${count(well, 'other check')} ok`] : []),
    ...(idle > 0 ? [`${count(idle, 'check')} skipped`] : []),
  ].join(', ')
  return [
    ...wrong.map((result, at) => ({
      mark: result.level,
      type: at === 0 ? type : '',
      name: at === 0 ? name : '',
      check: limited(result.check, look.marks, maxName),
      lines: message(result, look.marks),
    })),
    ...(rest === ''
      ? []
      : [{ mark: 'ok' as const, type: '', name: '', check: '', lines: [{ text: rest, style: 'dim' as const }] }]),
  ]
}

/** What a check measured, in a few words: `latency 12 ms`. */
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

/** The least room for messages beside the names. */
const leastBeside = 30

/** The rows in columns, or undefined when the terminal is too narrow for them. */
function beside(rows: readonly Row[], look: Look): readonly string[] | undefined {
  const widest = (text: (row: Row) => string): number => rows.reduce((most, row) => Math.max(most, width(text(row))), 0)
  const room = look.width - 4
  const types = widest((row) => row.type)
  const natural = { name: widest((row) => row.name), check: widest((row) => row.check) }
  const least = Math.min(room, Math.max(leastBeside, Math.floor(room / 2)))
  const gaps = types > 0 ? 6 : 4
  const over = types + natural.name + natural.check + gaps + least - room
  const names = over > 0 ? Math.max(14, Math.min(natural.name, natural.name - Math.ceil(over / 2))) : natural.name
  const checks = Math.max(12, Math.min(natural.check, natural.check - Math.max(0, over - (natural.name - names))))
  const left = types + names + checks + gaps
  if (room - left < Math.min(leastBeside, room)) return undefined
  return rows.flatMap((row) => {
    const name = wrap(row.name, names)
    const check = wrap(row.check, checks)
    const text = textOf(row, room - left, look)
    const height = Math.max(1, name.length, check.length, text.length)
    return Array.from({ length: height }, (_, at) => {
      const cells = [
        ...(types > 0 ? [padEnd(at === 0 ? row.type : '', types)] : []),
        padEnd(name[at] ?? '', names),
        padEnd(check[at] ?? '', checks),
      ].join('  ')
      const line = text[at]
      return `  ${at === 0 ? rowSign(row, look) : ' '} ${cells}  ${line ? look.paint(line.style, line.text) : ''}`.trimEnd()
    })
  })
}

/** The rows one below the other, for narrow terminals. */
function below(rows: readonly Row[], look: Look): readonly string[] {
  const room = look.width - 2
  return rows.flatMap((row) => {
    const title = [row.type, row.name, row.check].filter(Boolean).join(' ')
    const text = textOf(row, look.width - 4, look)
    const first = wrap(title, room).map((line, at) => `${at === 0 ? rowSign(row, look) : ' '} ${line}`.trimEnd())
    return [...(title === '' ? [] : first), ...text.map((line) => `    ${look.paint(line.style, line.text)}`.trimEnd())]
  })
}

/** The text of a row in lines of at most `columns`. */
function textOf(row: Row, columns: number, look: Look): readonly Line[] {
  if (row.figures) return [{ text: fittingFigures(row.figures, columns, look) }]
  return row.lines.flatMap(({ text, style, inset: by = 0 }) => {
    const indent = Math.min(by, columns - 1)
    return wrap(text, Math.max(1, columns - indent)).map((line) => ({ text: ' '.repeat(indent) + line, style }))
  })
}

/** As many figures as one line has room for, in their order. */
function fittingFigures(figures: readonly string[], columns: number, { marks }: Look): string {
  const gap = ` ${marks.dot} `
  const [first = '', ...others] = figures
  let text = cut(first, columns, marks.more)
  for (const figure of others) {
    if (width(text) + width(gap) + width(figure) <= columns) text += gap + figure
  }
  return text
}

const sign = (mark: Mark, { paint, marks }: Look): string => paint(styles[mark], marks[mark])

/** A row about checks that are well, beneath one that is not, has no sign of its own. */
function rowSign({ mark, type, name, check }: Row, look: Look): string {
  if (type + name + check === '') return ' '
  return mark === 'idle' ? look.paint('dim', look.marks.dot) : sign(mark, look)
}

const entryMark = (entry: EntryReading): Mark => (entry.level === 'unknown' ? 'fail' : entry.level)

/** What an entry says beyond the results of its monitors: why there is no answer, what a foreign server adds. */
function ownCauses(entry: EntryReading): readonly string[] {
  const explained = new Set(results(entry).map(describeResult))
  const own = entry.causes.filter((cause) => !explained.has(cause))
  if (entry.level === 'fail' && entry.monitors.length === 0 && own.length === 0) return [entry.headline]
  return own
}

const hintTexts = (hint: string): readonly Line[] =>
  hint.split('\n').map((text) => ({ text, style: 'dim' as const, inset: 2 }))

const hintLines = (entry: EntryReading, look: Look): readonly string[] =>
  (entry.error?.hints ?? []).flatMap((hint) => hint.split('\n')).flatMap((line) => inset(line, look))

/** Indented text. */
function inset(text: string, look: Look): readonly string[] {
  const room = look.width - 4
  return wrap(limited(text, look.marks), room).map((line, at) => (at === 0 ? '  ' : '    ') + line)
}

const verdictWords = {
  ok: 'HEALTHY',
  warn: 'HEALTHY',
  'not checked': 'NOT CHECKED',
  fail: 'UNHEALTHY',
  unknown: 'NOT CHECKED',
} as const

/** Whether its warnings alone make it exit with 3. */
const failsOnWarning = ({ level, exitCode }: EntryReading): boolean =>
  level === 'warn' && exitCode === exits.unhealthy.code

/** Mistakes in the configuration prove nothing about a server. With `--fail-on warn`, a warning is a failure. */
function verdictOf(reading: EntryReading): EntryReading['level'] {
  const { level, exitCode } = reading
  if (level === 'fail' && exitCode === exits.local.code) return 'unknown'
  return failsOnWarning(reading) ? 'fail' : level
}

/** `✗ UNHEALTHY  web1 · 1 of 4 monitors failed · 2 warnings · Advanced · 0.5 s`. */
function verdictLines(
  readings: readonly EntryReading[],
  ages: readonly (number | undefined)[],
  detail: NonNullable<HealthScreen['detail']>,
  look: Look,
): readonly string[] {
  const { marks, paint } = look
  const levels = readings.map(verdictOf)
  const level = (['fail', 'unknown', 'not checked', 'warn'] as const).find((each) => levels.includes(each))
  const verdict = readings.length === 0 ? 'unknown' : (level ?? 'ok')
  const mark = verdict === 'unknown' ? 'fail' : verdict
  const age = Math.max(0, ...readings.map((entry, at) => (entry.error ? 0 : (ages[at] ?? 0))))
  const durations = readings.flatMap(({ duration }) => duration ?? [])
  const facts = [
    ...new Set(readings.map((entry) => entry.target)),
    ...monitorCounts(readings),
    ...(readings.some(failsOnWarning) ? ['warnings count as failures (--fail-on warn)'] : []),
    ...new Set(readings.map((entry) => entry.mode)),
    ...(durations.length > 0 ? [showDuration(Math.max(...durations))] : []),
    ...(age > 1 ? [`age ${showDuration(Math.floor(age) * 1_000)}`] : []),
  ].filter(Boolean)
  const word = verdictWords[verdict]
  const text = `${word}  ${facts.join(` ${marks.dot} `)}`.trimEnd()
  const hidden = detail === 'usual' && readings.some((entry) => results(entry).length > 0)
  const hint = '-v shows every check'
  const lines = wrap(text, look.width - 2)
  const [first = '', ...others] = lines
  const head = `${paint(styles[mark], `${marks[mark]} ${first.slice(0, word.length)}`)}${first.slice(word.length)}`
  const room = look.width - 2 - width(lines.at(-1) ?? '')
  const lastLines = [head, ...others.map((line) => `  ${line}`)]
  if (!hidden || room < hint.length + 3) return lastLines
  return [...lastLines.slice(0, -1), `${lastLines.at(-1)}${' '.repeat(3)}${paint('dim', hint)}`]
}

/** `1 of 4 monitors failed`, `2 warnings`, `Ftp not checked`. The host counts once. */
function monitorCounts(readings: readonly EntryReading[]): readonly string[] {
  const host = worstHost(readings)
  const monitors = [
    ...(host ? [host] : []),
    ...readings.flatMap((entry) => entry.monitors.filter((monitor) => !monitor.host)),
  ]
  const unchecked = monitors.filter((monitor) => monitor.level === 'not checked').length
  const failed = monitors.filter((monitor) => monitor.level === 'fail').length
  const unnamed = readings.reduce((sum, entry) => sum + Math.max(0, entry.failed - failedOf(entry)), 0)
  const warnings = monitors.flatMap((monitor) => monitor.results).filter((result) => result.level === 'warn').length
  const unknown = readings.filter((entry) => entry.level === 'unknown')
  const total = monitors.length + unnamed
  return [
    ...(total === 0 || (unchecked > 0 && failed + unnamed === 0) ? [] : [failedText(failed + unnamed, total)]),
    ...(unchecked > 0 ? [uncheckedText(unchecked, failed + unnamed, total)] : []),
    ...(warnings > 0 ? [count(warnings, 'warning')] : []),
    ...unknown.map((entry) => `${entry.type} not checked`),
  ]
}

function failedText(failed: number, total: number): string {
  if (failed === 0) return count(total, 'monitor')
  return total === 1 ? '1 monitor failed' : `${failed} of ${count(total, 'monitor')} failed`
}

/** Beside the monitors that failed, only their number. */
const uncheckedText = (unchecked: number, failed: number, total: number): string =>
  `${failed > 0 ? unchecked : `${unchecked} of ${count(total, 'monitor')}`} not checked`

const failedOf = (entry: EntryReading): number => entry.monitors.filter(({ level }) => level === 'fail').length

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
