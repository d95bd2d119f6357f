import { randomBytes } from 'node:crypto'
import type { Expectation } from '../../base/settings/index.ts'
import { mapText, textIn } from './expectation.ts'

/** `{nonce}`. `${nonce}` is a parameter of a profile or a value of a step, and stays unchanged. */
const mark = /(?<!\$)\{nonce\}/
const marks = /(?<!\$)\{nonce\}/g

type Texts = Readonly<Record<string, Expectation>> | undefined

/** The value for `{nonce}`, made on first use: node:crypto takes 7 ms to load. */
export type Nonce = () => string

/** A value for `{nonce}`: 16 random hexadecimal characters that no peer can have prepared. */
export function newNonce(): Nonce {
  let value: string | undefined
  return () => {
    value ??= randomBytes(8).toString('hex')
    return value
  }
}

/** Whether any of the texts, or of the maps' values, contains `{nonce}`. */
export const holdsNonce = (...texts: readonly (string | Texts)[]): boolean =>
  // A negation is a map of one text.
  texts.some((one) =>
    typeof one === 'string' ? mark.test(one) : Object.values(one ?? {}).some((value) => mark.test(textIn(value))),
  )

/** Inserts the nonce into a text. As hexadecimal it needs no escaping in a URL, a header, JSON, XML or a pattern. */
export const withNonce = <T extends Expectation | undefined>(text: T, nonce: Nonce): T =>
  (text === undefined ? undefined : mapText(text, (one) => one.replace(marks, nonce))) as T

/** Inserts the nonce into the values of a map. */
export const valuesWithNonce = <T extends Texts>(texts: T, nonce: Nonce): T =>
  (texts && Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, withNonce(text, nonce)]))) as T
