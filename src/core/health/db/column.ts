/** What a driver made of a value; a date that it knows the zone of is a Date. */
export type Cell = string | number | Date | null

/** The first column of what a statement read. */
export type Column = {
  readonly cells: readonly Cell[]
  /** How many rows were read. */
  readonly rows: number
  /** True where there are more than were read. */
  readonly more: boolean
}

/** No more rows than this are read: a question for a few figures has few. */
export const mostRows = 1_000
/** Characters of one value: what is longer is cut. */
const widest = 1_024
/** Characters of all values together, as JSON: what a child may answer has room for them. */
const mostText = 512 * 1024

/** Takes values of the first column, as a driver gives them, until it is enough. */
export class ColumnReader {
  readonly #cells: Cell[] = []
  #size = 0
  #more = false

  /** False when no more are wanted. */
  take(value: unknown): boolean {
    if (this.#more) return false
    const cell = cellOf(value)
    const size = JSON.stringify(cell).length
    this.#more = this.#cells.length >= mostRows || this.#size + size > mostText
    if (this.#more) return false
    this.#size += size
    this.#cells.push(cell)
    return true
  }

  column(): Column {
    return { cells: this.#cells, rows: this.#cells.length, more: this.#more }
  }
}

function cellOf(value: unknown): Cell {
  if (value === null || value === undefined) return null
  if (typeof value === 'number' || value instanceof Date) return value
  if (value instanceof Uint8Array) return new TextDecoder().decode(value.subarray(0, widest))
  const text =
    typeof value === 'string' ? value : typeof value === 'bigint' ? `${value}` : (JSON.stringify(value) ?? '')
  return text.slice(0, widest)
}
