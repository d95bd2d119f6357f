import type { EntryReading, Measured, Reading } from './reading.ts'

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

/**
 * A figure without floating-point noise: 15 significant digits of what is no integer, unless the value then lies on the
 * other side of a limit.
 *
 * @example
 * ```ts
 * withoutNoise({ value: 0.1 + 0.2, warn: undefined, limit: 1, bound: 'atMost' }).value // 0.3
 * ```
 */
export function withoutNoise<One extends Figure>(figure: One): One {
  const edges = [figure.warn, figure.limit].filter((edge) => edge !== undefined)
  // Adding 0 turns -0 into 0.
  const value = (Number.isInteger(figure.value) ? figure.value : Number(figure.value.toPrecision(15))) + 0
  return edges.every((edge) => Math.sign(value - edge) === Math.sign(figure.value - edge))
    ? { ...figure, value }
    : figure
}
