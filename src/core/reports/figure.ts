import type { EntryReading, Measured, Reading } from './reading.ts'

/** A figure and its limits in another unit. */
export type Figure = Omit<Measured, 'unit'>

/** A reading that measured something. */
export type MeasuredReading = Reading & { readonly measurement: Measured }

/** Every result of an entry that has a figure, in order. */
export const measuredResults = ({ monitors }: EntryReading): readonly MeasuredReading[] =>
  monitors.flatMap((monitor) => monitor.results.filter(hasFigure))

const hasFigure = (reading: Reading): reading is MeasuredReading => reading.measurement !== undefined

/** A figure and its limits, divided. Rounded, so that a division leaves no noise behind. */
export function divided({ value, warn, limit, bound }: Measured, by: number): Figure {
  const scale = (number: number): number => Number((number / by).toFixed(9))
  return {
    value: scale(value),
    warn: warn === undefined ? undefined : scale(warn),
    limit: limit === undefined ? undefined : scale(limit),
    bound,
  }
}
