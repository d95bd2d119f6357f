import { type Entry, type EntryReading, isConsequence, type Reading, read, results } from '../../core/reports/index.ts'
import { type Paint, painter } from '../terminal.ts'
import {
  type Line,
  type Marks,
  marks,
  type Shrink,
  showDuration,
  styles,
  type Table,
  type TableCell,
  table,
  words,
} from './table.ts'
import { cut, width, wrap } from './width.ts'

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
  const inset = (line: Line, from: number): readonly string[] => {
    const by = from + (line.inset ?? 0)
    return wrap(line.text, Math.max(12, look.width - by)).map((text) => ' '.repeat(by) + look.paint(line.style, text))
  }
  const lines = entry.monitors.flatMap((monitor) => [
    ...inset({ text: limited(monitor.name, look.marks, maxName), style: 'strong' }, 2),
    ...monitor.results.flatMap((result) => {
      const { text, style } = status(result, look.marks)
      const [check = '', ...rest] = wrap(limited(result.check, look.marks, maxName), Math.max(12, look.width - 12))
      return [
        `    ${look.paint(style, text)}${' '.repeat(8 - width(text))}${check}`.trimEnd(),
        ...rest.map((line) => ' '.repeat(12) + line),
        ...message(result, look.marks).flatMap((line) => inset(line, 6)),
      ]
    }),
  ])
  return { lines, width: look.width }
}

const status = (result: Reading, marks: Marks): Line => ({
  text: `${marks[result.level]} ${words[result.level]}`,
  // A check that did not run is a consequence, so it is dimmed: the cause should stand out.
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

const limited = (text: string, marks: Marks, most = maxText): string =>
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

function withFault({ fault, message }: Reading): string {
  if (fault === undefined || obvious[fault]?.test(message) || message.toLowerCase().includes(fault)) return message
  return `${message} (${fault})`
}

export type HealthScreen = {
  /** Columns of the terminal. */
  readonly width: number
  readonly colour: boolean
  /** False when ASCII replaces the signs. */
  readonly unicode: boolean
  /** Seconds since the run of each answer ended, in the order of the entries, as the transport reports. */
  readonly ages?: readonly (number | undefined)[]
}

const maxCauses = 5
const causeLines = 2
/** An answer with more lines repeats its headline at the end, where a terminal stops scrolling. */
const longScreen = 40
const narrowest = 24

/** Health answers for people: one block each, and a summary line for several. */
export function renderHealth(entries: readonly Entry[], screen: HealthScreen): string {
  const look: Look = {
    width: Math.max(narrowest, screen.width),
    marks: marks(screen.unicode),
    paint: painter(screen.colour),
  }
  const readings = entries.map(read)
  const blocks = readings.map((reading, at) => block(reading, screen.ages?.[at] ?? 0, look))
  const closing = readings.length === 1 ? [] : [summary(readings, look)]
  return `${[...blocks, ...closing].map((lines) => lines.join('\n')).join('\n\n')}\n`
}

function block(entry: EntryReading, ageSeconds: number, look: Look): readonly string[] {
  const body = results(entry).length > 0 ? resultTable(entry, look) : { lines: [], width: 0 }
  const facts = [...stateLines(entry, look), ...correlationLine(entry, look)]
  const head = heading(entry, ageSeconds, body.width, look)
  const hints = (entry.error?.hints ?? []).flatMap((hint) => hint.split('\n')).flatMap((line) => inset(line, look))
  const again = body.lines.length > longScreen ? ['', ...narrowTitle(entry, look)] : []
  return [head, hints, body.lines, facts]
    .filter((part) => part.length > 0)
    .flatMap(spaced)
    .concat(again)
}

const spaced = (part: readonly string[], at: number): readonly string[] => (at === 0 ? part : ['', ...part])

const markOf = (entry: EntryReading) => (entry.level === 'unknown' ? 'fail' : entry.level)

function titleLine(entry: EntryReading, look: Look): string {
  const mark = markOf(entry)
  return `${look.paint(styles[mark], look.marks[mark])} ${look.paint('strong', entry.headline)}`
}

/** The headline with mode, duration and age on the right, and below it the causes and the target. */
function heading(entry: EntryReading, ageSeconds: number, tableWidth: number, look: Look): readonly string[] {
  const { marks, paint } = look
  const title = titleLine(entry, look)
  const titleWidth = width(entry.headline) + 2
  const when = [
    entry.mode,
    ...(entry.duration === undefined ? [] : [showDuration(entry.duration)]),
    ...(ageSeconds > 1 && entry.error === undefined ? [`age ${showDuration(Math.floor(ageSeconds) * 1_000)}`] : []),
  ].join(` ${marks.dot} `)
  const [first, ...others] = shownCauses(entry)
  const block = Math.min(look.width, Math.max(tableWidth, titleWidth + 4 + width(when), 64))
  const right = Math.max(width(when), width(entry.target))
  const left = block - right
  const beside = (text: string, textWidth: number, aside: string): string =>
    `${text}${' '.repeat(Math.max(0, left - textWidth))}${paint('dim', aside)}`
  // The preferred layout: both on the right, if headline and first cause leave room for them.
  if (first !== undefined && left >= titleWidth + 3 && left >= width(first) + 5) {
    return [
      beside(title, titleWidth, when),
      beside(`  ${first}`, width(first) + 2, entry.target),
      ...others.flatMap((cause) => inset(cause, look, causeLines)),
    ]
  }
  const target = inset(entry.target, look).map((line) => paint('dim', line))
  const causes = [first ?? '', ...others].filter(Boolean).flatMap((cause) => inset(cause, look, causeLines))
  if (look.width >= titleWidth + 3 + width(when)) {
    const gap = ' '.repeat(Math.max(3, block - titleWidth - width(when)))
    return [`${title}${gap}${paint('dim', when)}`, ...target, ...causes]
  }
  return [...narrowTitle(entry, look), ...inset(when, look).map((line) => paint('dim', line)), ...target, ...causes]
}

function narrowTitle(entry: EntryReading, look: Look): readonly string[] {
  const mark = markOf(entry)
  return wrap(entry.headline, look.width - 2).map(
    (line, at) => `${at === 0 ? look.paint(styles[mark], look.marks[mark]) : ' '} ${look.paint('strong', line)}`,
  )
}

function shownCauses(entry: EntryReading): readonly string[] {
  const visible = entry.causes.slice(0, maxCauses)
  const left = entry.causes.length - visible.length
  return left > 0 ? [...visible, `and ${left} more`] : visible
}

/** Indented text, on at most `most` lines: the table has the rest of a longer cause. */
function inset(text: string, look: Look, most = Number.POSITIVE_INFINITY): readonly string[] {
  const room = look.width - 4
  const lines = wrap(text.slice(0, room * 40), room)
  const visible = lines.length > most ? [...lines.slice(0, most - 1), ended(lines[most - 1] ?? '', room, look)] : lines
  return visible.map((line, at) => (at === 0 ? '  ' : '    ') + line)
}

/** A line cut after a word, with a sign that it continues. */
function ended(line: string, room: number, look: Look): string {
  const { more } = look.marks
  const word = line.lastIndexOf(' ')
  return width(line) + width(more) <= room || word < 1 ? cut(line + more, room, more) : line.slice(0, word) + more
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

const correlationLine = (entry: EntryReading, look: Look): readonly string[] =>
  entry.correlationId === ''
    ? []
    : inset(`Correlation ${entry.correlationId}`, look).map((line) => look.paint('dim', line))

/** `3 checked: 1 healthy, 1 unhealthy (Sql), 1 not checked (Ftp)`. */
function summary(readings: readonly EntryReading[], look: Look): readonly string[] {
  const targets = new Set(readings.map((reading) => reading.target))
  const name = (reading: EntryReading): string =>
    targets.size > 1 ? `${reading.type} at ${reading.target}` : reading.type
  const part = (level: EntryReading['level'], word: string): readonly string[] => {
    const these = readings.filter((reading) => reading.level === level)
    if (these.length === 0) return []
    return [`${these.length} ${word}${level === 'ok' ? '' : ` (${these.map(name).join(', ')})`}`]
  }
  const parts = [
    ...part('ok', 'healthy'),
    ...part('warn', 'healthy with warnings'),
    ...part('fail', 'unhealthy'),
    ...part('unknown', 'not checked'),
  ]
  const text = `${readings.length === 0 ? 'nothing' : readings.length} checked${parts.length > 0 ? ': ' : ''}${parts.join(', ')}`
  const bad =
    readings.length === 0 || readings.some((reading) => reading.level === 'fail' || reading.level === 'unknown')
  const mark = bad ? 'fail' : readings.some((reading) => reading.level === 'warn') ? 'warn' : 'ok'
  return wrap(text, look.width - 2).map((line, at) =>
    at === 0
      ? `${look.paint(styles[mark], look.marks[mark])} ${look.paint('strong', line)}`
      : `  ${look.paint('strong', line)}`,
  )
}
