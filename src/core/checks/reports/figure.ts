import type { EntryReading, Measured, Reading } from './reading.ts'

/** A figure and its limits, converted to another unit. */
export type Figure = Omit<Measured, 'unit'>

/** A reading with a measurement. */
export type MeasuredReading = Reading & { readonly measurement: Measured }

/** All results of an entry that have a measurement, in order. */
export const measuredResults = ({ monitors }: EntryReading): readonly MeasuredReading[] =>
  monitors.flatMap((monitor) => monitor.results.filter(hasFigure))

const hasFigure = (reading: Reading): reading is MeasuredReading => reading.measurement !== undefined

/** Divides a figure and its limits. Rounds them to remove floating-point noise. */
export function divided({ value, warn, limit, bound }: Measured, by: number): Figure {
  const scale = (number: number): number => Number((number / by).toFixed(9))
  return {
    value: scale(value),
    warn: warn === undefined ? undefined : scale(warn),
    limit: limit === undefined ? undefined : scale(limit),
    bound,
  }
}
