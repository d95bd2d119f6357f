import { sanitize } from '../net/text.ts'

export type Row = Readonly<Record<string, unknown>>

/** A number of a row, whatever the driver made of it; undefined for NULL or what is no number. */
export function figure(row: Row | undefined, name: string): number | undefined {
  const value = row?.[name]
  if (value === null || value === undefined || value === '') return undefined
  const number = Number(value)
  return Number.isFinite(number) ? number : undefined
}

/** A text of a row, fit to be shown; empty for NULL. */
export const text = (row: Row | undefined, name: string, max = 64): string => {
  const value = row?.[name]
  return typeof value === 'string' || typeof value === 'number' ? sanitize(String(value), max) : ''
}

export const truth = (row: Row | undefined, name: string): boolean => row?.[name] === true

/** What a driver made of a value; a date that it knows the zone of is a Date. */
export type Cell = string | number | Date | null

/** The first column of what a statement read. */
export type Column = {
  /** The values of the first rows. */
  readonly cells: readonly Cell[]
  /** How many rows were read. */
  readonly rows: number
  /** Of how many of them the values were kept; the others are only counted. */
  readonly retained: number
  /** True where there are more rows than were read. */
  readonly more: boolean
  /** True where a value was longer than is kept of one. */
  readonly cut: boolean
}

/** No more rows than this are read: a question for a few figures has few. */
export const maxRows = 1_000
/** Characters of one value, or bytes of a binary one: what is longer is cut. */
export const maxValueLength = 1_024
/** Characters of all values together, as JSON: what a child may answer has room for them. */
const maxTextLength = 512 * 1024

/** Takes values of the first column, as a driver gives them, until it is enough. */
export class ColumnReader {
  readonly #cells: Cell[] = []
  #size = 0
  #rows = 0
  #full = false
  #more = false
  #cut = false

  /** False when no more are wanted. Where no more text is kept, rows are still counted. */
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
