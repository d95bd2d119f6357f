import { type EntryReading, type Measured, type Reading, withoutNoise } from './reading.ts'

/** A figure and its limits, converted to another unit. */
export type Figure = Omit<Measured, 'unit'>

/** A reading with a measurement. */
export type MeasuredReading = Reading & { readonly measurement: Measured }

/** All results of an entry that have a measurement, in order. */
export const measuredResults = ({ monitors }: EntryReading): readonly MeasuredReading[] =>
  monitors.flatMap((monitor) => monitor.results.filter(hasFigure))

const hasFigure = (reading: Reading): reading is MeasuredReading => reading.measurement !== undefined

/** Divides a figure and its limits. */
export function divided({ value, warn, limit, bound }: Measured, by: number): Figure {
  const scaled = (number: number | undefined): number | undefined => number && number / by
  return withoutNoise({ value: value / by, warn: scaled(warn), limit: scaled(limit), bound })
}
