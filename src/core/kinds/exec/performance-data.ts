import type { Measurement } from '../../engine/index.ts'
import { sanitize } from '../../net/text.ts'

/** A figure of a plug-in: its label, safe to show, and the figure as svc measures, with the plug-in's own limits. */
export type PluginFigure = {
  readonly label: string
  readonly measurement: Measurement
  /** The unit as the plug-in writes it, where svc has none like it: `C`, `W`, `dBm`. Safe to show. */
  readonly foreignUnit?: string | undefined
}

export type PluginFigures = {
  readonly figures: readonly PluginFigure[]
  /** Whether there are more than `maxFigures`. */
  readonly more: boolean
}

/** Figures that are kept of one plug-in. */
export const maxFigures = 50
/** Characters of one item that are read: of its label, and of what follows the `=`. */
const maxLabel = 256
const maxValue = 256

/** What a plug-in prints, taken apart: text for people, and text for programs. Blank lines are left out. */
export type PluginOutput = {
  readonly lines: readonly string[]
  readonly data: string
}

/**
 * Takes the output of a plug-in apart, as the development guidelines of the monitoring plug-ins have it: on the first
 * line, performance data follow the bar; in the lines after it they follow the first bar and go on to the end.
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
 * The figures among performance data: `'label'=value[UOM];[warn];[crit];[min];[max]`, separated by blanks. Whatever is
 * not written so is passed over, as is a label that was there before. `cut`: the text goes on where nobody reads, so
 * what stands at its end may be the half of a figure.
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

/** Where the blank after `from` is, or the end. */
function endOf(text: string, from: number): number {
  let at = from
  while (at < text.length && !isBlank(text, at)) at += 1
  return at
}

type Label = {
  /** Undefined where there is none. */
  readonly label: string | undefined
  /** Where the value begins; without a label, from where the next item may be. */
  readonly next: number
}

/**
 * The label at `from`, which `=` follows; in quotes if it holds blanks. After a quote that nothing ends, or nothing
 * near, there is no item any more: what follows could be a part of the label.
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

/** Units of performance data: what a figure is multiplied by to have the unit of svc. A megabyte is 2^20 bytes. */
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

/** The number at `from`, and where it ends; undefined where there is none, or one that is not finite. */
function numberAt(text: string, from: number): { readonly value: number; readonly end: number } | undefined {
  number.lastIndex = from
  const [written] = number.exec(text) ?? []
  if (written === undefined) return undefined
  const value = Number(written)
  return Number.isFinite(value) ? { value, end: from + written.length } : undefined
}

/** A whole text that is one number. */
function numberIn(text: string): number | undefined {
  const read = numberAt(text, 0)
  return read?.end === text.length ? read.value : undefined
}

/** `value[UOM];[warn];[crit];[min];[max]`; undefined where that is no figure: `U` says that the plug-in has none. */
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
 * The limit that a range is: `10`, `0:10` and `~:10` are the upper one 10, `10:` is the lower one 10. Undefined for
 * ranges with two ends (`10:20`) and for inverted ones (`@10:20`), which are no limit of ours.
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

/** Both limits, where they lie on one side; the one that there is; none where they contradict each other. */
function limitsOf(warn: Edge | undefined, limit: Edge | undefined, by: number): Omit<Measurement, 'value' | 'unit'> {
  const bound = warn?.bound ?? limit?.bound
  if (bound === undefined || (limit && limit.bound !== bound)) return {}
  const scaled = (one: Edge | undefined): number | undefined =>
    one && Number.isFinite(one.at * by) ? one.at * by : undefined
  return { warn: scaled(warn), limit: scaled(limit), bound }
}
