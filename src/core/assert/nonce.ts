import { randomBytes } from 'node:crypto'

/** `{nonce}`; `${nonce}` is a parameter of a profile or a value of a step, and stays as it is. */
const mark = /(?<!\$)\{nonce\}/
const marks = /(?<!\$)\{nonce\}/g

type Texts = Readonly<Record<string, string>> | undefined

/** What `{nonce}` stands for, once: 16 hexadecimal characters that nobody can have in store. */
export const newNonce = (): string => randomBytes(8).toString('hex')

/** Whether any of the texts, or of the values of the maps, holds `{nonce}`. */
export const holdsNonce = (...texts: readonly (string | Texts)[]): boolean =>
  texts.some((one) => (typeof one === 'string' ? mark.test(one) : Object.values(one ?? {}).some((v) => mark.test(v))))

/** A text with its nonce. Being hexadecimal, it is itself in a URL, a header, JSON, XML and a pattern. */
export const withNonce = <T extends string | undefined>(text: T, nonce: string): T => text?.replace(marks, nonce) as T

/** A map with the nonce in its values. */
export const valuesWithNonce = <T extends Texts>(texts: T, nonce: string): T =>
  (texts && Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, withNonce(text, nonce)]))) as T
