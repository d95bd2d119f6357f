import type { Style } from '../colour.ts'

export type Mark = 'ok' | 'warn' | 'fail'

/** The signs of the screen. The words beside them carry the meaning; these are for the eye. */
export type Marks = Readonly<Record<Mark, string>> & { readonly dot: string; readonly more: string }

export const marks = (unicode: boolean): Marks =>
  unicode
    ? { ok: '✓', warn: '!', fail: '✗', dot: '·', more: '…' }
    : { ok: '+', warn: '!', fail: 'x', dot: '-', more: '...' }

export const words: Readonly<Record<Mark, string>> = { ok: 'ok', warn: 'warn', fail: 'FAIL' }
export const styles: Readonly<Record<Mark, Style>> = { ok: 'good', warn: 'caution', fail: 'bad' }
