import { showDuration } from '../../core/base/format.ts'
import { humanTime, zonedTime } from '../../core/base/zone.ts'
import type { Style } from '../io/terminal.ts'
import { styles } from '../render/table.ts'
import { cut, padEnd, width } from '../render/width.ts'
import type { Look } from './text.ts'
import { faces, knownIn, type State, states, type Watched, type WatchSubject } from './watched.ts'

/** The choices of the reader of the screen. */
export type View = {
  readonly failuresOnly: boolean
  /** The key of the selected row, and where it was. */
  readonly selected?: string | undefined
  readonly at: number
  /** The keys of the rows that show their monitors. */
  readonly open: ReadonlySet<string>
  /** The key of the monitor whose report is visible, and how far it is scrolled. */
  readonly report?: string | undefined
  readonly scroll: number
}

/** A line of the list: one monitor, the answer of one type, or several that say the same. */
export type WatchRow = {
  readonly key: string
  readonly subjects: readonly [WatchSubject, ...(readonly WatchSubject[])]
  readonly isMember?: true
}

const signOf = (state: State, { marks }: Pick<Look, 'marks'>): string => marks[faces[state].mark]
const styleOf = (state: State): Style => {
  const { mark } = faces[state]
  return mark === 'dot' ? 'dim' : styles[mark]
}

/** Fewer than these are not one row. */
const leastEqual = 3
/** A figure that differs from one monitor to the next, although both say the same. */
const figures = /(?<![\d.])\d+(?:\.\d+)? (?:ms|s|min|h|d)\b/g

/**
 * The rows of the list, the worst first, and of these the latest. Monitors that say the same are one row, and so are those
 * that were ok all the time if the list is longer than `lines`.
 */
export function rowsOf(watched: Watched, view: View, lines: number): readonly WatchRow[] {
  const visible = knownIn(watched).filter(
    (one) => one.state !== 'ok' || (!view.failuresOnly && (one.name !== '' || one.before)),
  )
  const foldsOk = visible.length > lines
  const groups = Map.groupBy(visible, ({ state, text, before, since }) =>
    state !== 'ok' ? `${state} ${text.replace(figures, '#')}` : before ? `ok ${since}` : 'ok',
  )
  const order = ([, members]: readonly [string, readonly WatchSubject[]]): number => {
    const latest = Math.max(...members.map(({ state, round, before }) => (before || state !== 'ok' ? round : 0)))
    return states.indexOf(members[0]?.state ?? 'ok') * 1e9 - latest
  }
  return [...groups]
    .toSorted((one, other) => order(one) - order(other))
    .flatMap(([key, [first, ...others]]): readonly WatchRow[] => {
      if (!first) return []
      const single = [first, ...others].map((one): WatchRow => ({ key: one.key, subjects: [one] }))
      if (others.length + 1 < leastEqual || (key === 'ok' && !foldsOk)) return single
      const members = view.open.has(key) ? single.map((one) => ({ ...one, isMember: true as const })) : []
      return [{ key, subjects: [first, ...others] }, ...members]
    })
}

/** When the first of the monitors of a row got its state. Undefined: before this watch. */
const sinceOf = ({ subjects }: WatchRow): number | undefined =>
  subjects.some(({ since }) => since === undefined)
    ? undefined
    : Math.min(...subjects.flatMap(({ since }) => since ?? []))

export const firstView = (failuresOnly: boolean): View => ({ failuresOnly, at: 0, open: new Set(), scroll: 0 })

/** The row that is selected. One that has left the list gives its place to the row that stands there now. */
export function selectedIn(view: Pick<View, 'selected' | 'at'>, rows: readonly WatchRow[]): number {
  const index = rows.findIndex(({ key }) => key === view.selected)
  return index === -1 ? Math.max(0, Math.min(view.at, rows.length - 1)) : index
}

/** The demands of keys beyond another view. The last three are those of every terminal. */
export type Demand = 'quit' | 'now' | 'interrupt' | 'suspend' | 'abort'

const moved = (view: View, rows: readonly WatchRow[], by: number): View => {
  if (view.report !== undefined) return { ...view, scroll: Math.max(0, view.scroll + by) }
  const at = Math.max(0, Math.min(selectedIn(view, rows) + by, rows.length - 1))
  return { ...view, at, selected: rows[at]?.key }
}

function entered(view: View, rows: readonly WatchRow[]): View {
  if (view.report !== undefined) return { ...view, report: undefined }
  const row = rows[selectedIn(view, rows)]
  if (!row) return view
  const [subject, ...others] = row.subjects
  if (others.length === 0) return { ...moved(view, rows, 0), report: subject.key, scroll: 0 }
  const open = new Set(view.open)
  if (!open.delete(row.key)) open.add(row.key)
  return { ...moved(view, rows, 0), open }
}

const down = (view: View, rows: readonly WatchRow[]): View => moved(view, rows, 1)
const up = (view: View, rows: readonly WatchRow[]): View => moved(view, rows, -1)

/** The effect of each key, by the characters that a terminal sends for it. */
export const keys: Readonly<Record<string, Demand | ((view: View, rows: readonly WatchRow[]) => View)>> = {
  q: 'quit',
  ' ': 'now',
  f: (view) => ({ ...view, failuresOnly: !view.failuresOnly }),
  j: down,
  k: up,
  '\u001b[B': down,
  '\u001b[A': up,
  '\r': entered,
  '\n': entered,
  '\u001b': (view) => ({ ...view, report: undefined }),
  '\u0003': 'interrupt',
  '\u001a': 'suspend',
  '\u001c': 'abort',
}

/** The keys in what a terminal sent: sequences of several characters, or one. */
export const keysIn = (sent: string): readonly string[] => sent.match(/\u001b\[[\d;]*[A-Za-z~]|[\s\S]/g) ?? []

const titleOf = ({ subjects: [first, ...others] }: WatchRow): string => {
  if (others.length === 0) return [first.type, first.name].filter(Boolean).join(' ')
  const types = new Set([first, ...others].map(({ type }) => type))
  const count = `${others.length + 1} monitors`
  return types.size === 1 && first.type !== '' ? `${first.type} ${count}` : count
}

const wordOf = (key: string, state: State): string => faces[state][key === 'verdict' ? 'verdict' : 'word']
const wholeSeconds = (ms: number): string => showDuration(Math.max(0, Math.floor(ms / 1_000)) * 1_000)

function clock(at: number): string {
  const { time, offset } = zonedTime(new Date(at))
  return `${time} ${offset}`
}

/** The state before, and how long it lasted: `was failed for 67 s`. */
function beforeText({ key, before, since }: WatchSubject, beganAt: number): string {
  if (!before || since === undefined) return ''
  const duration = wholeSeconds(since - (before.since ?? beganAt))
  return `was ${wordOf(key, before.state)} for ${before.since === undefined ? 'at least ' : ''}${duration}`
}

/** A change as a line of a log: `2026-11-30 10:52:03 UTC ✗ Batch tcp worker failed: connection refused (was ok for 2 min)`. */
export function changeLine(subject: WatchSubject, { at, beganAt }: Watched, look: Pick<Look, 'marks'>): string {
  const { key, state, text } = subject
  const before = beforeText(subject, beganAt)
  const what = [...(key === 'verdict' ? [] : [titleOf({ key, subjects: [subject] })]), wordOf(key, state)].join(' ')
  const sentence = `${what}${text === '' ? '' : `: ${text}`}${before === '' ? '' : ` (${before})`}`
  return `${humanTime(at)} ${signOf(state, look)} ${sentence}`
}

type Piece = { readonly text: string; readonly style?: Style | undefined }

/** The pieces in one line, which ends at the last column. */
function inOneLine(pieces: readonly Piece[], { width: columns, marks, paint }: Look): string {
  let left = columns
  let line = ''
  for (const { text, style } of pieces) {
    if (left <= 0) break
    const fitting = cut(text, left, left > 3 ? marks.more : '')
    left -= width(fitting)
    line += paint(style, fitting)
    if (fitting !== text) break
  }
  return line
}

export type WatchFrame = {
  /** Undefined before the end of the first round. */
  readonly watched: Watched | undefined
  readonly view: View
  /** Lines of the terminal. */
  readonly height: number
  /** Milliseconds since 1970. */
  readonly now: number
  /** The target, and how it is watched. */
  readonly title: string
  /** The next event: `next in 7 s`, or what a check waits for. */
  readonly next: (columns: number) => string
  /** The report of a monitor, if it is shown. */
  readonly report: readonly string[] | undefined
}

/** The lines of the list, or of a report, beside five others. */
export const listHeight = (height: number): number => Math.max(1, height - 5)

/** The lines of the screen, at most `height`, none longer than the terminal is wide. */
export function frameLines(
  { watched, view, height, now, title, next, report }: WatchFrame,
  look: Look,
): readonly string[] {
  const lines = listHeight(height)
  const list = report?.slice(view.scroll) ?? (watched ? listLines(watched, view, lines, look) : [])
  const body = Array.from({ length: lines }, (_, at) => list[at] ?? '')
  const verdict = watched ? verdictLine(watched, now, look) : ''
  const shows = view.failuresOnly ? 'all' : 'failures'
  const help = `q quit  ${report ? 'enter back' : `f ${shows}  j/k move  enter report  space now`}   `
  const after = next(Math.max(0, look.width - width(help)))
  const foot = inOneLine([{ text: help, style: 'dim' }, { text: after }], look)
  const all = [inOneLine([{ text: title, style: 'dim' }], look), verdict, '', ...body, '', foot]
  // The verdict is the last thing that a low terminal gives up.
  return height >= all.length ? all : [verdict, ...body].slice(0, height)
}

/** `✗ UNHEALTHY 2 s ago · 40 of 300 monitors failed · since 10:52:03 UTC`: no verdict without its age. */
function verdictLine({ verdict, answeredAt, round }: Watched, now: number, look: Look): string {
  const { state, since, text } = verdict
  const age =
    answeredAt === undefined ? 'no answer yet' : `${wholeSeconds(now - answeredAt)} ago`.replace('0 ms ago', 'just now')
  const sinceText = since === undefined ? '' : `since ${clock(since)}`
  const facts = state === 'lost' ? [sinceText, `last answer ${age}`, text] : [age, text, sinceText]
  return inOneLine(
    [
      { text: `${signOf(state, look)} ${faces[state].verdict}`, style: styleOf(state) },
      { text: verdict.round === round && round > 1 ? ' * ' : ' ', style: 'strong' },
      { text: facts.filter(Boolean).join(` ${look.marks.dot} `) },
    ],
    look,
  )
}

/** Columns before the title of a row, at least for its text, and for its time. */
const [before, leastText, timeWidth] = [6, 24, '  since 10:52:03 +01:00'.length]

function listLines(watched: Watched, view: View, lines: number, look: Look): readonly string[] {
  const rows = rowsOf(watched, view, lines)
  const at = selectedIn(view, rows)
  const first = Math.max(0, Math.min(at - Math.floor(lines / 2), rows.length - lines))
  const titles = rows.map((row) => (row.isMember ? `  ${titleOf(row)}` : titleOf(row)))
  const available = look.width - before
  // The title alone on a narrow terminal, then with its text, then also with its time.
  const hasText = available >= 2 * leastText
  const hasTime = available >= 3 * leastText
  const titleWidth = hasText ? Math.min(Math.max(0, ...titles.map(width)), Math.floor(available * 0.4)) : available
  const textWidth = available - titleWidth - 2 - (hasTime ? timeWidth : 0)
  const { more } = look.marks
  return rows.slice(first, first + lines).map((row, index) => {
    const [subject] = row.subjects
    const since = hasTime ? sinceOf(row) : undefined
    const text = cut(subject.state === 'ok' ? beforeText(subject, watched.beganAt) : subject.text, textWidth, more)
    const isNew = row.subjects.some(({ round }) => round === watched.round) && watched.round > 1
    const isSelected = first + index === at
    return inOneLine(
      [
        { text: isSelected ? '> ' : '  ', style: 'strong' },
        { text: `${signOf(subject.state, look)} `, style: styleOf(subject.state) },
        { text: isNew ? '* ' : '  ', style: 'strong' },
        {
          text: padEnd(cut(titles[first + index] ?? '', titleWidth, more), titleWidth),
          style: isSelected || isNew ? 'strong' : undefined,
        },
        { text: hasText ? `  ${padEnd(text, textWidth)}` : '' },
        { text: since === undefined ? '' : `  since ${clock(since)}`, style: 'dim' },
      ],
      look,
    ).trimEnd()
  })
}
