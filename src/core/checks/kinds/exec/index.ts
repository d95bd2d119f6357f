import { isOnShare } from '../../../base/files/index.ts'
import { show, showBytes, showDuration } from '../../../base/format.ts'
import { sanitize } from '../../../base/net/text.ts'
import type { Expectation, SettingsSpec } from '../../../base/settings/index.ts'
import { admitted, type ExecConfig } from '../../../base/system/allowed-program.ts'
import { type Ended, plainEnvironment, runProgram } from '../../../base/system/run-program.ts'
import { isNegation, isPattern, patternProblem, textIn, textMismatch } from '../../assert/expectation.ts'
import {
  checksOn,
  fail,
  type Measurement,
  machineKind,
  notChecked,
  ok,
  type Result,
  showThreshold,
  warn,
} from '../../engine/index.ts'

/** A figure of a plug-in: its label, safe to show, and its value in the units of svc, with the plug-in's own limits. */
type PluginFigure = {
  readonly label: string
  readonly measurement: Measurement
  /** The unit as the plug-in writes it, if svc has no equivalent: `C`, `W`, `dBm`. Safe to show. */
  readonly foreignUnit?: string | undefined
}

type PluginFigures = {
  readonly figures: readonly PluginFigure[]
  /** True if there are more than `maxFigures`. */
  readonly more: boolean
}

/** Maximum number of figures kept of one plug-in. */
const maxFigures = 50
/** Maximum characters read of one item: of its label, and of the text after the `=`. */
const maxLabel = 256
const maxValue = 256

/** The parsed output of a plug-in: text for people, and performance data for programs. Omits blank lines. */
type PluginOutput = {
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

declare module '../../engine/index.ts' {
  interface Services {
    /** The programs that may be run. Absent: none. */
    readonly exec: ExecConfig
  }
}

/** Maximum bytes kept of stdout and of stderr, and the maximum number of further lines that become details. */
const keep = 64 * 1024
const maxDetails = 10

const commandSettings = {
  command: {
    type: 'text',
    observed: true,
    required: true,
    absolute: true,
    doc: "Absolute path of the program, in a folder that the system's svc.yaml allows",
  },
  args: {
    type: 'texts',
    observed: true,
    allowsEmpty: true,
    doc: 'Arguments, passed unchanged and without a shell; do not put a password here',
  },
} as const satisfies SettingsSpec

export const result = checksOn<object>()({
  depth: 'Basic',
  results: {
    result: 'The exit code is 0 (ok), 1 (warning), 2 (failure) or 3 (unknown)',
    figure: 'A figure of its performance data, by label; informational',
    output: { doc: 'The program prints what is expected', when: ['expect'] },
  },
  settings: {
    ...commandSettings,
    expect: {
      type: 'text',
      negatable: true,
      doc: 'Text that the standard output contains, or /pattern/; up to 64 KiB are read. Evaluated if the exit code is 0 or 1',
    },
  },
  async observe(_, { command, args = [] }, context) {
    context.step('result', command)
    const file = await admitted(command, context.services.exec, context.files)
    const start = context.now()
    const program = { file, args, env: plainEnvironment(), keep, isOnShare: isOnShare(file) }
    const ended = await runProgram(program, context.signal)
    return { ...ended, ms: context.now() - start }
  },
  evaluate(ended, { command, expect }) {
    const { lines, data } = splitOutput(ended.stdout)
    const cut = ended.more && !ended.stdout.endsWith('\n')
    // A program that did not exit as a plug-in does may have stopped in the middle of a figure.
    const { figures, more } = isVerdict(ended.code) ? readFigures(data, cut) : noFigures
    const output = expect === undefined ? [] : [evaluateOutput(ended, expect)]
    return [stateOf(ended, lines, more, command), ...output, ...figures.map(figureResult)]
  },
})

const noFigures: PluginFigures = { figures: [], more: false }
const isVerdict = (code: number | undefined): boolean => code !== undefined && code <= 3

/** Evaluates the standard output of a program that succeeded: an error message contains anything, or lacks it. */
function evaluateOutput({ code, stdout, more }: Ended, expect: Expectation): Result<'output'> {
  if (code !== 0 && code !== 1) return notChecked('output', 'status', 'the program did not succeed')
  const mismatch = textMismatch(stdout, expect)
  if (mismatch !== undefined) return fail('output', 'data', `the output ${mismatch}`)
  const why = `only the first ${showBytes(keep)} of the output were read, and \`not\` needs all`
  if (more && isNegation(expect)) return notChecked('output', 'missing', why)
  return ok('output', 'the output is as expected')
}

/** The meaning of the exit code, in the words of the first line. */
function stateOf(
  { code, signal, stderr, more, ms }: Ended & { readonly ms: number },
  lines: readonly string[],
  moreFigures: boolean,
  command: string,
): Result<'result'> {
  const [first = '', ...long] = lines.map((line) => sanitize(line))
  const errors = stderr
    .split(/\r?\n/)
    .map((line) => sanitize(line))
    .filter((line) => line !== '')
  const others = [...long.filter((line) => line !== ''), ...errors]
  const cut = [
    ...(more ? ['(the rest of the output was discarded)'] : []),
    ...(moreFigures ? [`(figures beyond the first ${maxFigures} were discarded)`] : []),
  ]
  const about: Partial<Result> = {
    measurement: { value: ms, unit: 'milliseconds' },
    details: [...others.slice(0, maxDetails), ...cut],
  }
  const [error] = errors
  const message = first !== '' ? first : error === undefined ? 'no output' : `no output; on standard error: ${error}`
  if (code === 0) return ok('result', `${message} (after ${showDuration(ms)})`, about)
  if (code === 1) return warn('result', message, about)
  if (code === 2) return fail('result', 'threshold', message, about)
  if (code === 3) return fail('result', 'data', `unknown: ${message}`, about)
  const how = signal === undefined ? `exited with ${code}` : `was ended by ${signal}`
  return fail('result', 'protocol', `${command} ${how}, which is not a status of a plug-in (0 to 3): ${message}`, about)
}

/** Shows the plug-in's own limits beside a figure without evaluating them: its exit code already did that. */
function figureResult({ label, measurement, foreignUnit }: PluginFigure): Result<'figure'> {
  const { value, unit, warn: warnAt, limit, bound } = measurement
  const format = (figure: number): string =>
    foreignUnit === undefined
      ? show(figure, unit === 'milliseconds' ? 'duration' : unit)
      : `${show(figure, 'count')} ${foreignUnit}`
  const limits = showThreshold({ warn: warnAt, limit }, format, bound ?? 'atMost')
  const ofPlugin = limits === '' ? '' : ` (plug-in: ${limits})`
  return ok('figure', `${label} ${format(value)}${ofPlugin}`, { subject: label, measurement })
}

/**
 * Runs a program that follows the Nagios plug-in conventions: the exit code decides the status, and the first line is
 * the message. Each figure after the bar becomes a result. Disabled unless the system's svc.yaml allows the folder.
 * Never uses a shell.
 */
export default machineKind({
  name: 'exec',
  runsPrograms: true,
  title: 'A program in an allowed folder (a Nagios plug-in) reports success',
  cost: { unknown: 'It runs a program of yours, and only that program determines what it sends.' },
  validate: ({ expect = '' }) => (isPattern(textIn(expect)) ? patternProblem(textIn(expect)) : undefined),
  open: () => ({}),
  checks: [result],
})
