import {
  describeResult,
  type EntryReading,
  isConsequence,
  messageIn,
  type Reading,
  results,
  stateWord,
} from '../../core/checks/reports/index.ts'
import type { Paint } from '../io/terminal.ts'
import { type Line, type Mark, type Marks, styles } from '../render/table.ts'
import { wrap } from '../render/width.ts'

/** Maximum length of a message or detail, and of a name, on a terminal. `--output json` has the full texts. */
const maxText = 1_200
export const maxName = 120
const maxDetails = 8

/**
 * `verbose` shows every check, `failed` only what is not ok (failures, warnings, what was skipped or not checked),
 * `reasons` only why the exit code is not 0, and `verdict` the last line alone.
 */
export type Detail = 'verbose' | 'usual' | 'failed' | 'reasons' | 'verdict'

/** A line on the screen. Of equal hints, only the first one is shown. */
export type ScreenLine = Line & { readonly isHint?: true }

export type Look = { readonly width: number; readonly marks: Marks; readonly paint: Paint }

export const sign = (mark: Mark, { paint, marks }: Look): string => paint(styles[mark], marks[mark])

export const status = (result: Reading, marks: Marks): Line => ({
  text: `${isConsequence(result) ? marks.dot : marks[result.level]} ${stateWord(result)}`,
  // A skipped check is a consequence, so it is dimmed: the cause should stand out.
  style: isConsequence(result) ? 'dim' : styles[result.level],
})

export function message(result: Reading, marks: Marks): readonly ScreenLine[] {
  const first = { text: limited(messageIn(result), marks), ...(isConsequence(result) ? { style: 'dim' as const } : {}) }
  if (result.level === 'ok') return [first]
  const details = result.details.flatMap((text) => text.split('\n'))
  const visible = details.slice(0, maxDetails).map((text) => ({
    text: limited(text.replace(/\s+/g, ' '), marks),
    style: 'dim' as const,
    inset: 2,
    ...(text.startsWith('next: ') ? { isHint: true as const } : {}),
  }))
  const left = details.length - visible.length
  const more = left > 0 ? [{ text: `${marks.more} ${left} more (--output json)`, style: 'dim' as const, inset: 2 }] : []
  return [first, ...visible, ...more]
}

export const limited = (text: string, marks: Pick<Marks, 'more'>, most = maxText): string =>
  text.length > most ? `${text.slice(0, most).toWellFormed()}${marks.more}` : text

export const entryMark = (entry: EntryReading): Mark => (entry.level === 'unknown' ? 'fail' : entry.level)

/**
 * The causes of an entry beyond the results of its monitors: the reason for a missing answer, and additions of a
 * foreign server.
 */
export function ownCauses(entry: EntryReading): readonly string[] {
  const explained = new Set(results(entry).map(describeResult))
  const own = entry.causes.filter((cause) => !explained.has(cause))
  if (entry.level === 'fail' && entry.monitors.length === 0 && own.length === 0) return [entry.headline]
  return own
}

export const hintTexts = (hint: string): readonly ScreenLine[] =>
  hint.split('\n').map((text) => ({ text, style: 'dim', inset: 2, isHint: true }))

export const hintLines = (entry: EntryReading, look: Look): readonly string[] =>
  (entry.error?.hints ?? []).flatMap((hint) => hint.split('\n')).flatMap((line) => inset(line, look))

/** Indented text. */
export function inset(text: string, look: Look): readonly string[] {
  const available = look.width - 4
  return wrap(limited(text, look.marks), available).map((line, at) => (at === 0 ? '  ' : '    ') + line)
}
