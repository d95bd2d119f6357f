import type { Dto } from '../index.ts'

/** The body formats: those of the interface (section 1), and JSV, which clients of .NET send and expect (F6). */
export type FormatName = 'json' | 'csv' | 'jsv'

/** A DTO in memory: dates are `Date`, durations are milliseconds, unset fields are absent. */
export type WireValues = Record<string, unknown>

/** Members after those of the answer itself, e.g. a ResponseStatus after a failed health answer (H1). */
export type Trailing = { readonly schema: Dto; readonly value: unknown }

export type Format = {
  readonly name: FormatName
  /** The Content-Type header, including the charset. */
  readonly contentType: string
  /** Never writes unknown properties of `value`. CSV leaves out trailing members, because they have no column. */
  readonly encode: (schema: Dto, value: unknown, trailing?: Trailing) => string
  /** Joins encoded answers into the answer to a batch (R3). */
  readonly join: (schema: Dto, encoded: readonly string[]) => string
  /** Strict, for requests. Throws `Fault` Unreadable (400) that names every invalid field. */
  readonly decode: (schema: Dto, body: string) => WireValues
}

/** A batch in a format that has lists. */
export const joinAsList = (_schema: Dto, encoded: readonly string[]): string => `[${encoded.join(',')}]`

/** Content type of JSONP answers (F2). */
export const jsonpContentType = 'text/javascript; charset=utf-8'

/**
 * `Content-Disposition` of a successful CSV answer (F3). `requestName` is the operation's name on the wire.
 *
 * @example
 * ```ts
 * attachment('HealthCheck') // 'attachment;filename="HealthCheck.csv"'
 * ```
 */
export const attachment = (requestName: string): string => `attachment;filename="${requestName}.csv"`
