import type { Choice, Duration, Flag, Instant, Num, Schema, Text } from '../protocol/index.ts'
import { isoDate, readDate } from './dates.ts'
import { readDuration, writeDuration } from './durations.ts'
import { fold } from './fields.ts'

export type Scalar = Text | Flag | Num | Instant | Duration | Choice
export type ScalarValue = string | boolean | number | Date

export const isScalar = (schema: Schema): schema is Scalar =>
  schema.kind !== 'list' && schema.kind !== 'map' && schema.kind !== 'dto'

const trueTexts: ReadonlySet<string> = new Set(['true', 't', 'y', '1', 'on'])
const falseTexts: ReadonlySet<string> = new Set(['false', 'f', 'n', '0', 'off'])
const decimal = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/
const ordinal = /^[1-9]\d{0,3}$/

/** A value of a query, form, CSV cell or JSV text; undefined when the text is no such value. */
export const readScalar = (schema: Scalar, text: string): ScalarValue | undefined => {
  switch (schema.kind) {
    case 'text':
      return text.isWellFormed() ? text : undefined
    case 'flag':
      return readFlag(text.toLowerCase())
    case 'number':
      return decimal.test(text) ? number(schema, Number(text)) : undefined
    case 'date':
      return readDate(text)
    case 'duration':
      return readDuration(text)
    case 'choice':
      return readChoice(schema, text)
  }
}

const readFlag = (text: string): boolean | undefined =>
  trueTexts.has(text) ? true : falseTexts.has(text) ? false : undefined

export const number = (schema: Num, value: number): number | undefined =>
  (schema.integer ? Number.isSafeInteger(value) : Number.isFinite(value)) ? value : undefined

/** By name in any letter case, or by number counted from 1 (N1). */
const readChoice = (schema: Choice, text: string): string | undefined => {
  if (ordinal.test(text)) return schema.values[Number(text) - 1]
  const wanted = fold(text)
  return schema.values.find((value) => fold(value) === wanted)
}

/** As CSV and JSV write it (F3); undefined for what has no text, as NaN. */
export const writeScalar = (schema: Scalar, value: unknown): string | undefined => {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : isoDate(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return undefined
    return schema.kind === 'duration' ? writeDuration(value) : String(value)
  }
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return typeof value === 'string' ? value : undefined
}
