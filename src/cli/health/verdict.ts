import { exits } from '../../core/errors.ts'
import { showDuration } from '../../core/format.ts'
import { count, type EntryReading, results } from '../../core/reports/index.ts'
import { styles } from '../render/table.ts'
import { width, wrap } from '../render/width.ts'
import { worstHost } from './overview.ts'
import type { Detail, Look } from './text.ts'

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

/**
 * `✗ UNHEALTHY  web1 · 1 of 4 monitors failed · 2 warnings · Advanced · 0.5 s`, or `✓ HEALTHY, 2 warnings  web1 · …`
 * where nothing but warnings differs from healthy.
 */
export function verdictLines(
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
    ...(readings.some(failsOnWarning) ? ['warnings count as failures (--fail-on warn)'] : []),
    ...new Set(readings.map((entry) => entry.mode)),
    ...(durations.length > 0 ? [showDuration(Math.max(...durations))] : []),
    ...(age > 1 ? [`age ${showDuration(Math.floor(age) * 1_000)}`] : []),
  ].filter(Boolean)
  const word = verdictWords[verdict]
  const hidden = detail !== 'verbose' && detail !== 'verdict' && readings.some((entry) => results(entry).length > 0)
  const hint = '-v shows every check'
  const lines = factLines(`${word}${beside} `, facts, look)
  const [first = '', ...others] = lines
  const state = paint(styles[mark], `${marks[mark]} ${first.slice(0, word.length)}`)
  const caution = paint(styles.warn, first.slice(word.length, word.length + beside.length))
  const head = `${state}${caution}${first.slice(word.length + beside.length)}`
  const room = look.width - 2 - width(lines.at(-1) ?? '')
  const lastLines = [head, ...others.map((line) => `  ${line}`)]
  if (!hidden || room < hint.length + 3) return lastLines
  return [...lastLines.slice(0, -1), `${lastLines.at(-1)}${' '.repeat(3)}${paint('dim', hint)}`]
}

/** The start and the facts in lines, which begin with the sign between two facts where one of them does not fit. */
function factLines(start: string, facts: readonly string[], { width: columns, marks }: Look): readonly string[] {
  const room = columns - 2
  const lines = [start]
  for (const [at, fact] of facts.entries()) {
    const part = at === 0 ? fact : `${marks.dot} ${fact}`
    const joined = `${lines.at(-1)} ${part}`
    if (width(joined) <= room) lines[lines.length - 1] = joined
    else lines.push(part)
  }
  return lines.flatMap((line) => wrap(line.trimEnd(), room))
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
  const warnings = monitors.flatMap((monitor) => monitor.results).filter((result) => result.level === 'warn').length
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
  return total === 1 ? '1 monitor failed' : `${failed} of ${count(total, 'monitor')} failed`
}

/** Beside the monitors that failed, only their number. */
const uncheckedText = (unchecked: number, failed: number, total: number): string =>
  `${failed > 0 ? unchecked : `${unchecked} of ${count(total, 'monitor')}`} not checked`

const failedOf = (entry: EntryReading): number => entry.monitors.filter(({ level }) => level === 'fail').length
