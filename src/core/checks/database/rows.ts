import { sanitize } from '../../base/net/text.ts'

export type Row = Readonly<Record<string, unknown>>

/**
 * A number of a row, whatever type the driver returns. Undefined for NULL or anything that is not a number.
 *
 * @example
 * ```ts
 * figure({ connections: '12' }, 'connections') // 12
 * figure({}, 'connections') // undefined
 * ```
 */
export function figure(row: Row | undefined, name: string): number | undefined {
  const value = row?.[name]
  if (value === null || value === undefined || value === '') return undefined
  const number = Number(value)
  return Number.isFinite(number) ? number : undefined
}

/**
 * A sanitized text of a row. Empty for NULL.
 *
 * @example
 * ```ts
 * text({ state: 'idle' }, 'state') // 'idle'
 * ```
 */
export const text = (row: Row | undefined, name: string, max = 64): string => {
  const value = row?.[name]
  return typeof value === 'string' || typeof value === 'number' ? sanitize(String(value), max) : ''
}

/** A boolean of a row. Undefined for NULL, or if the column is missing. */
export const flag = (row: Row | undefined, name: string): boolean | undefined => {
  const value = row?.[name]
  return typeof value === 'boolean' ? value : undefined
}

export const truth = (row: Row | undefined, name: string): boolean => row?.[name] === true

/** A value from a driver. A date with a known time zone is a Date. */
export type Cell = string | number | Date | null

/** The first column of a result. */
export type Column = {
  /** The values of the first rows. */
  readonly cells: readonly Cell[]
  /** How many rows were read. */
  readonly rows: number
  /** How many rows have their values kept; the others are only counted. */
  readonly retained: number
  /** True when there are more rows than were read. */
  readonly more: boolean
  /** True when a value was longer than the limit. */
  readonly cut: boolean
}

/** Maximum rows read: a query for a few values has few. */
export const maxRows = 1_000
/** Maximum characters of a value, or bytes of a binary one. Longer values are cut. */
export const maxValueLength = 1_024
/** Maximum characters of all values together, as JSON: it fits into a child's reply. */
const maxTextLength = 512 * 1024

/** Collects values of the first column from a driver, up to the limits. */
export class ColumnReader {
  readonly #cells: Cell[] = []
  #size = 0
  #rows = 0
  #full = false
  #more = false
  #cut = false

  /** Returns false when no more values are needed. Beyond the limit of text, rows are still counted. */
  take(value: unknown): boolean {
    this.#more ||= this.#rows >= maxRows
    if (this.#more) return false
    this.#rows += 1
    if (!this.#full) this.#keep(value)
    return true
  }

  #keep(value: unknown): void {
    const { cell, cut } = cellOf(value)
    const size = JSON.stringify(cell).length
    this.#full = this.#size + size > maxTextLength
    if (this.#full) return
    this.#size += size
    this.#cut ||= cut
    this.#cells.push(cell)
  }

  column(): Column {
    return { cells: this.#cells, rows: this.#rows, retained: this.#cells.length, more: this.#more, cut: this.#cut }
  }
}

function cellOf(value: unknown): { readonly cell: Cell; readonly cut: boolean } {
  if (value === null || value === undefined) return { cell: null, cut: false }
  if (typeof value === 'number' || value instanceof Date) return { cell: value, cut: false }
  if (value instanceof Uint8Array) {
    return { cell: new TextDecoder().decode(value.subarray(0, maxValueLength)), cut: value.length > maxValueLength }
  }
  const text =
    typeof value === 'string' ? value : typeof value === 'bigint' ? `${value}` : (JSON.stringify(value) ?? '')
  return { cell: text.slice(0, maxValueLength), cut: text.length > maxValueLength }
}
