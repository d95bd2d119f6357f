import { said } from '../net/text.ts'

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
  return typeof value === 'string' || typeof value === 'number' ? said(String(value), max) : ''
}

export const truth = (row: Row | undefined, name: string): boolean => row?.[name] === true
