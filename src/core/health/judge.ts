import type { Finding } from './monitor.ts'
import type { Threshold, ThresholdUnit } from './settings.ts'

const units: Record<ThresholdUnit, string | undefined> = {
  duration: 'ms',
  percent: '%',
  bytes: 'B',
  count: undefined,
  ratio: undefined,
  days: 'days',
}

/** A duration for people: `14 ms`, `1.28 s`, `53 h`, `3 d`. */
export function showDuration(ms: number): string {
  const abs = Math.abs(ms)
  if (abs < 1) return `${round(ms, 1)} ms`
  if (abs < 1_000) return `${Math.round(ms)} ms`
  if (abs < 60_000) return `${round(ms / 1_000, 2)} s`
  if (abs < 3_600_000) return `${round(ms / 60_000, 1)} min`
  if (abs < 72 * 3_600_000) return `${round(ms / 3_600_000, 1)} h`
  return `${round(ms / 86_400_000, 1)} d`
}

/** Bytes for people, in powers of 1024. */
export function showBytes(bytes: number): string {
  const steps = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  let value = bytes
  let step = 0
  // Rounded as it will be shown: never 1024 MiB.
  while (Math.round(Math.abs(value)) >= 1024 && step < steps.length - 1) {
    value /= 1024
    step += 1
  }
  return `${round(value, value < 10 ? 1 : 0)} ${steps[step]}`
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits))

/** A value of a threshold's unit, for people. */
export function show(value: number, unit: ThresholdUnit): string {
  if (unit === 'duration') return showDuration(value)
  if (unit === 'bytes') return showBytes(value)
  if (unit === 'percent') return `${round(value, 1)} %`
  if (unit === 'days') return `${round(value, 1)} d`
  return String(round(value, 2))
}

type Measured = {
  readonly check: string
  readonly value: number
  readonly unit: ThresholdUnit
  readonly threshold: Threshold
  /** What the value is, in words that go before it, e.g. `replication lag`. Empty: the value alone. */
  readonly what?: string
  /** What follows the value: `ago`, `left`. */
  readonly after?: string
  readonly address?: string | undefined
  readonly details?: readonly string[] | undefined
}

function measured(m: Measured, level: Finding['level'], bound: number | undefined, word: string): Finding {
  const value = show(m.value, m.unit)
  const said = [m.what, value, m.after].filter(Boolean).join(' ')
  return {
    check: m.check,
    level,
    message: bound === undefined ? said : `${said} (${word} ${show(bound, m.unit)})`,
    ...(level === 'fail' ? { fault: 'threshold' as const } : {}),
    observed: m.value,
    unit: units[m.unit],
    limit: m.threshold.limit ?? m.threshold.warn,
    address: m.address,
    details: m.details,
  }
}

/** Fails above the limit, warns above `warn`; the boundary itself is ok. */
export function atMost(m: Measured): Finding {
  const { warn, limit } = m.threshold
  if (limit !== undefined && m.value > limit) return measured(m, 'fail', limit, 'limit')
  if (warn !== undefined && m.value > warn) return measured(m, 'warn', warn, 'warns above')
  return measured(m, 'ok', limit ?? warn, limit === undefined ? 'warns above' : 'limit')
}

/** Fails below the limit, warns below `warn`; the boundary itself is ok. */
export function atLeast(m: Measured): Finding {
  const { warn, limit } = m.threshold
  if (limit !== undefined && m.value < limit) return measured(m, 'fail', limit, 'at least')
  if (warn !== undefined && m.value < warn) return measured(m, 'warn', warn, 'warns below')
  return measured(m, 'ok', limit ?? warn, limit === undefined ? 'warns below' : 'at least')
}

/** Findings, one or many, as of the address that was probed. */
export const atAddress = (address: string, found: Finding | readonly Finding[]): readonly Finding[] =>
  [found].flat().map((finding) => ({ ...finding, address }))

/** Findings, one or many, as of one of the things that a check looks at: each waits by itself (`for`). */
export const about = (subject: string, found: Finding | readonly Finding[]): readonly Finding[] =>
  [found].flat().map((finding) => ({ ...finding, subject }))

export const ok = (check: string, message: string, more: Partial<Finding> = {}): Finding => ({
  ...more,
  check,
  level: 'ok',
  message,
})
export const warn = (check: string, message: string, more: Partial<Finding> = {}): Finding => ({
  ...more,
  check,
  level: 'warn',
  message,
})
export const fail = (
  check: string,
  fault: NonNullable<Finding['fault']>,
  message: string,
  more: Partial<Finding> = {},
): Finding => ({ ...more, check, level: 'fail', fault, message })
