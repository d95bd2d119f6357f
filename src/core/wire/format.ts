import type { Dto } from '../protocol/index.ts'

/** The body formats of the interface (section 1). */
export type FormatName = 'json' | 'csv'

/** A DTO in memory: dates are `Date`, durations are milliseconds, unset fields are absent. */
export type WireValues = Record<string, unknown>

export type Format = {
  readonly name: FormatName
  /** The Content-Type header, including the charset. */
  readonly contentType: string
  /** Never writes unknown properties of `value`. */
  readonly encode: (schema: Dto, value: unknown) => string
  /** Strict, for requests. Throws `Fault` Unreadable (400) that names every invalid field. */
  readonly decode: (schema: Dto, body: string) => WireValues
}

/** Content type of JSONP answers (F2). */
export const jsonpContentType = 'text/javascript; charset=utf-8'

/** `Content-Disposition` of a successful CSV answer (F3). `requestName` is the operation's name on the wire. */
export const attachment = (requestName: string): string => `attachment;filename="${requestName}.csv"`
