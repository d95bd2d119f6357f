import type { Measurement } from '../../engine/index.ts'
import { sanitize } from '../../net/text.ts'

/** A figure of a plug-in: its label, safe to show, and its value in the units of svc, with the plug-in's own limits. */
export type PluginFigure = {
  readonly label: string
  readonly measurement: Measurement
  /** The unit as the plug-in writes it, if svc has no equivalent: `C`, `W`, `dBm`. Safe to show. */
  readonly foreignUnit?: string | undefined
}

export type PluginFigures = {
  readonly figures: readonly PluginFigure[]
  /** True if there are more than `maxFigures`. */
  readonly more: boolean
}

/** Maximum number of figures kept of one plug-in. */
export const maxFigures = 50
/** Maximum characters read of one item: of its label, and of the text after the `=`. */
const maxLabel = 256
const maxValue = 256

/** The parsed output of a plug-in: text for people, and performance data for programs. Omits blank lines. */
export type PluginOutput = {
  readonly lines: readonly string[]
  readonly data: string
}

/**
 * Splits the output of a plug-in according to the Monitoring Plugins guidelines: on the first line, performance data
 * follow the bar; in the remaining lines, they follow the first bar and continue to the end.
 */
export function splitOutput(stdout: string): PluginOutput {
  const [first = '', ...others] = stdout.split(/\r?\n/).filter((line) => line.trim() !== '')
  const [text, data] = parted(first)
  const from = others.findIndex((line) => line.includes('|'))
  if (from < 0) return { lines: [text, ...others], data }
  const [last, begin] = parted(others[from] ?? '')
  const long = [...others.slice(0, from), last].filter((line) => line.trim() !== '')
  return { lines: [text, ...long], data: [data, begin, ...others.slice(from + 1)].join('\n') }
}

function parted(line: string): readonly [text: string, data: string] {
  const bar = line.indexOf('|')
  return bar < 0 ? [line, ''] : [line.slice(0, bar), line.slice(bar + 1)]
}

/**
 * Parses the figures in performance data: `'label'=value[UOM];[warn];[crit];[min];[max]`, separated by blanks. Skips
 * any other text and any repeated label. `cut` means that the output was truncated, so the text at the end may be half
 * a figure.
 */
export function readFigures(data: string, cut = false): PluginFigures {
  const figures = new Map<string, PluginFigure>()
  let at = 0
  for (;;) {
    while (at < data.length && isBlank(data, at)) at += 1
    if (at === data.length) return { figures: [...figures.values()], more: false }
    const labelled = labelAt(data, at)
    const from = labelled.next
    const next = endOf(data, from)
    at = next
    if (labelled.label === undefined || next - from > maxValue || (cut && next === data.length)) continue
    const label = sanitize(labelled.label, 128)
    const read = figureOf(data.slice(from, next))
    if (read === undefined || label === '' || figures.has(label)) continue
    if (figures.size === maxFigures) return { figures: [...figures.values()], more: true }
    figures.set(label, { label, ...read })
  }
}

const isBlank = (text: string, at: number): boolean => ' \t\r\n'.includes(text.charAt(at))

/** The index of the next blank at or after `from`, or the length of the text. */
function endOf(text: string, from: number): number {
  let at = from
  while (at < text.length && !isBlank(text, at)) at += 1
  return at
}

type Label = {
  /** Undefined if there is no label. */
  readonly label: string | undefined
  /** The start of the value; without a label, the earliest start of the next item. */
  readonly next: number
}

/**
 * The label at `from`, up to its `=`; quoted if it contains blanks. If a quote is not closed, or not within the limit,
 * no further item can be read: the following text might belong to the label.
 */
function labelAt(data: string, from: number): Label {
  const quote = data[from] === "'"
  let label = ''
  for (let at = quote ? from + 1 : from; at < data.length && at - from <= maxLabel; at += 1) {
    const character = data.charAt(at)
    if (!quote) {
      if (character === '=') return { label, next: at + 1 }
      if (isBlank(data, at)) return { label: undefined, next: at }
    } else if (character === "'") {
      if (data[at + 1] !== "'")
        return data[at + 1] === '=' ? { label, next: at + 2 } : { label: undefined, next: at + 1 }
      at += 1
    }
    label += character
  }
  return { label: undefined, next: quote ? data.length : from }
}

/** Units of performance data: the factor that converts a figure to a unit of svc. A megabyte is 2^20 bytes. */
const units: Readonly<Record<string, { readonly by: number; readonly unit: Measurement['unit'] }>> = {
  s: { by: 1_000, unit: 'milliseconds' },
  ms: { by: 1, unit: 'milliseconds' },
  us: { by: 1e-3, unit: 'milliseconds' },
  ns: { by: 1e-6, unit: 'milliseconds' },
  '%': { by: 1, unit: 'percent' },
  B: { by: 1, unit: 'bytes' },
  KB: { by: 2 ** 10, unit: 'bytes' },
  MB: { by: 2 ** 20, unit: 'bytes' },
  GB: { by: 2 ** 30, unit: 'bytes' },
  TB: { by: 2 ** 40, unit: 'bytes' },
  PB: { by: 2 ** 50, unit: 'bytes' },
  c: { by: 1, unit: 'count' },
  '': { by: 1, unit: 'count' },
}

const number = /[-+]?(?:[0-9]{1,40}(?:[.][0-9]{0,40})?|[.][0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?/y

/** The number at `from` and the index of its end; undefined if there is no number or it is not finite. */
function numberAt(text: string, from: number): { readonly value: number; readonly end: number } | undefined {
  number.lastIndex = from
  const [written] = number.exec(text) ?? []
  if (written === undefined) return undefined
  const value = Number(written)
  return Number.isFinite(value) ? { value, end: from + written.length } : undefined
}

/** Parses a text that consists of exactly one number. */
function numberIn(text: string): number | undefined {
  const read = numberAt(text, 0)
  return read?.end === text.length ? read.value : undefined
}

/**
 * Parses `value[UOM];[warn];[crit];[min];[max]`. Returns undefined for any other text, such as `U`, which means that
 * the plug-in has no value.
 */
function figureOf(text: string): Omit<PluginFigure, 'label'> | undefined {
  const [first = '', warn = '', limit = '', ...rest] = text.split(';')
  const read = numberAt(first, 0)
  if (read === undefined || rest.slice(2).some((text) => text !== '')) return undefined
  const written = first.slice(read.end)
  if (written.length > 16 || /[0-9.,'"=]/.test(written)) return undefined
  const unitOf = Object.hasOwn(units, written) ? units[written] : undefined
  const { by, unit } = unitOf ?? { by: 1, unit: 'count' as const }
  const value = read.value * by
  if (!Number.isFinite(value)) return undefined
  return {
    measurement: { value, unit, ...limitsOf(edgeOf(warn), edgeOf(limit), by) },
    foreignUnit: unitOf ? undefined : sanitize(written, 16),
  }
}

type Edge = { readonly at: number; readonly bound: NonNullable<Measurement['bound']> }

/**
 * Converts a range to one limit: `10`, `0:10` and `~:10` are an upper limit of 10, `10:` is a lower limit of 10.
 * Returns undefined for two-sided ranges (`10:20`) and inverted ranges (`@10:20`), which svc does not have.
 */
function edgeOf(range: string): Edge | undefined {
  const [start = '', end, ...rest] = range.split(':')
  if (rest.length > 0) return undefined
  if (end === undefined) return edge(numberIn(start), 'atMost')
  if (end === '') return edge(numberIn(start), 'atLeast')
  const open = start === '' || start === '~' || numberIn(start) === 0
  return open ? edge(numberIn(end), 'atMost') : undefined
}

const edge = (at: number | undefined, bound: Edge['bound']): Edge | undefined =>
  at === undefined ? undefined : { at, bound }

/** Keeps both limits if they are on the same side, or the only one given. Drops both if they contradict each other. */
function limitsOf(warn: Edge | undefined, limit: Edge | undefined, by: number): Omit<Measurement, 'value' | 'unit'> {
  const bound = warn?.bound ?? limit?.bound
  if (bound === undefined || (limit && limit.bound !== bound)) return {}
  const scaled = (one: Edge | undefined): number | undefined =>
    one && Number.isFinite(one.at * by) ? one.at * by : undefined
  return { warn: scaled(warn), limit: scaled(limit), bound }
}
