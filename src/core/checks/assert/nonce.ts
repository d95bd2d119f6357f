import { randomBytes } from 'node:crypto'

/** `{nonce}`. `${nonce}` is a parameter of a profile or a value of a step, and stays unchanged. */
const mark = /(?<!\$)\{nonce\}/
const marks = /(?<!\$)\{nonce\}/g

type Texts = Readonly<Record<string, string>> | undefined

/** A value for `{nonce}`: 16 random hexadecimal characters that no peer can have prepared. */
export const newNonce = (): string => randomBytes(8).toString('hex')

/** Whether any of the texts, or of the maps' values, contains `{nonce}`. */
export const holdsNonce = (...texts: readonly (string | Texts)[]): boolean =>
  texts.some((one) => (typeof one === 'string' ? mark.test(one) : Object.values(one ?? {}).some((v) => mark.test(v))))

/** Inserts the nonce into a text. As hexadecimal it needs no escaping in a URL, a header, JSON, XML or a pattern. */
export const withNonce = <T extends string | undefined>(text: T, nonce: string): T => text?.replace(marks, nonce) as T

/** Inserts the nonce into the values of a map. */
export const valuesWithNonce = <T extends Texts>(texts: T, nonce: string): T =>
  (texts && Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, withNonce(text, nonce)]))) as T
