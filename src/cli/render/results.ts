import { type EntryReading, isConsequence, type Reading } from '../../core/reports/index.ts'
import type { Paint } from '../colour.ts'
import { type Marks, styles, words } from './marks.ts'
import { type Cell, type Line, type Shrink, type Table, table } from './table.ts'
import { width, wrap } from './width.ts'

/** What one message, detail or name may fill on a screen; `--output json` has all of it. */
const mostText = 1_200
const mostName = 120
const mostDetails = 8

const columns = [{ title: 'MONITOR' }, { title: 'CHECK' }, { title: 'STATUS' }, { title: 'MESSAGE' }]
const shrink: Shrink = [
  { columns: [3], least: 44 },
  { columns: [0, 1], least: 16 },
  { columns: [3], least: 28 },
  { columns: [0, 1], least: 11 },
  { columns: [3], least: 24 },
]

export type Look = { readonly width: number; readonly marks: Marks; readonly paint: Paint }

/** The results of one answer: a table, or a list where the screen is too narrow for one. */
export function resultTable(entry: EntryReading, look: Look): Table {
  const rows = entry.monitors.flatMap((monitor) =>
    monitor.results.map((result, at): readonly Cell[] => [
      [{ text: at === 0 ? limited(monitor.name, look.marks, mostName) : '' }],
      [{ text: limited(result.check, look.marks, mostName) || '-' }],
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
    ...inset({ text: limited(monitor.name, look.marks, mostName), style: 'strong' }, 2),
    ...monitor.results.flatMap((result) => {
      const { text, style } = status(result, look.marks)
      const [check = '', ...rest] = wrap(limited(result.check, look.marks, mostName), Math.max(12, look.width - 12))
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
  // What was not run is a consequence: the eye should find the cause.
  style: isConsequence(result) ? 'dim' : styles[result.level],
})

function message(result: Reading, marks: Marks): Cell {
  const first = { text: limited(withFault(result), marks), ...(isConsequence(result) ? { style: 'dim' as const } : {}) }
  if (result.level === 'ok') return [first]
  const details = result.details.flatMap((text) => text.split('\n'))
  const shown = details.slice(0, mostDetails).map((text) => ({
    text: limited(text.replace(/\s+/g, ' '), marks),
    style: 'dim' as const,
    inset: 2,
  }))
  const left = details.length - shown.length
  const more = left > 0 ? [{ text: `${marks.more} ${left} more (--output json)`, style: 'dim' as const, inset: 2 }] : []
  return [first, ...shown, ...more]
}

const limited = (text: string, marks: Marks, most = mostText): string =>
  text.length > most ? `${text.slice(0, most).toWellFormed()}${marks.more}` : text

/** What in a message already says its fault class. */
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
