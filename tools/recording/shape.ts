/** A line that record.ts writes: a run of one monitor, with the names that the engine has for things then. */
export type RawLine = {
  readonly kind: string
  readonly mode: string
  readonly settings: unknown
  readonly results: readonly Fields[]
  readonly test: string
}
type Fields = Readonly<Record<string, unknown>>

/** A result as recordings compare it, whatever the engine calls its parts. */
export type Result = {
  readonly check: unknown
  readonly status: unknown
  readonly fault?: unknown
  readonly subject?: unknown
  readonly address?: unknown
  readonly message: unknown
  readonly details?: unknown
  readonly value?: unknown
  readonly unit?: unknown
  readonly limit?: unknown
  readonly deployment?: unknown
}

type Monitor = { readonly name: string; readonly kind: Fields; readonly settings: unknown }
type Report = { readonly name: string } & Fields

/** One report of a run, with the names of today's engine or of one that calls a kind's name `name` and findings `results`. */
export const rawLine = (monitor: Monitor | undefined, report: Report, mode: string, test: string): RawLine => ({
  kind: String(monitor?.kind.kind ?? monitor?.kind.name),
  mode,
  settings: monitor?.settings,
  results: (report.findings ?? report.results) as readonly Fields[],
  test,
})

const statuses: Readonly<Record<string, string>> = { warn: 'warning', fail: 'failed' }

/** A finding `{level, observed, unit, limit}` or a result `{status, measurement: {value, unit, warn, limit}}`. */
export function resultOf(recorded: Fields): Result {
  const { check, fault, subject, address, message, details, deployment } = recorded
  const status = recorded.status ?? recorded.level
  const measurement = (recorded.measurement ?? { ...recorded, value: recorded.observed }) as Fields
  return {
    check,
    status: statuses[String(status)] ?? status,
    fault,
    subject,
    address,
    message,
    details: Array.isArray(details) && details.length === 0 ? undefined : details,
    value: measurement.value,
    unit: measurement.unit,
    limit: measurement.limit ?? measurement.warn,
    deployment: deployment === true ? true : undefined,
  }
}
