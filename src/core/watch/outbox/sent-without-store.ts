import type { KeyedMonitor, StoredSubject } from '../states/index.ts'
import { isOfReceiver, type NoticeItem, type StoredRow, worksAgain } from './outbox.ts'
import { mostEnds } from './policy.ts'
import { type End, lostEnd, stampOf, type Word } from './row.ts'

/**
 * The file of what a process sends without the store: the next process adds it to the rows of the outbox, so that the
 * receivers get the ends. Pure.
 */

/** Lines and bytes of the file. */
export const [mostLines, mostBytes] = [10_000, 4 * 1_024 * 1_024]
/** Ends are given up after this time. Milliseconds. */
const oldMs = 7 * 86_400_000
const format = 'svc sent without store 1'

/** The line before those of a process. `store`: the id of the store; null while the process has not reached it. */
export const headOf = (store: string | undefined, node: string): string =>
  `${JSON.stringify({ format, store: store ?? null, node })}\n`

/**
 * The lines about the notices of a message that is about to leave, or was accepted. All count before they leave, because
 * they may arrive, and ends once more when the receiver has them.
 */
export const linesOf = (
  receiver: string,
  items: readonly NoticeItem[],
  at: number,
  isAccepted = false,
): readonly string[] =>
  items.flatMap(({ incident, subject, as, what, level, beganAt, lastStamp = 0 }) => {
    const isEnd = what === 'end' || what === 'removed'
    if (isAccepted && !isEnd) return []
    const line = { receiver, incident, subject, as, level: isEnd ? 'ok' : level, beganAt, at, lastStamp }
    return `${JSON.stringify(isEnd && !isAccepted ? { ...line, isTried: true, before: level } : line)}\n`
  })

type SentLine = {
  readonly receiver: string
  readonly incident: string
  readonly subject: StoredSubject
  readonly as?: KeyedMonitor | undefined
  readonly level: 'ok' | 'warning' | 'failed'
  readonly beganAt: number
  readonly at: number
  /** The stamp of the message of the incident before this one. 0: there is none. Absent: a version before wrote it. */
  readonly lastStamp?: number | undefined
  /** An end, of which nobody knows whether it arrived. */
  readonly isTried?: true | undefined
  /** The level of the incident before such an end. */
  readonly before?: 'warning' | 'failed' | undefined
}

/** An incident in the file. `endedAt`: when the next one began for the same process. */
type FileIncident = { readonly word: Word; readonly process: number; readonly endedAt?: number | undefined }

/** The rows to add to those of a store, and how many lines are passed over. */
export function rowsOfSent(
  file: string,
  { store, node, now }: { readonly store: string; readonly node: string; readonly now: number },
): { readonly rows: readonly StoredRow[]; readonly passedOver: number } {
  let isOwn = false
  let passedOver = 0
  let process = 0
  const lines: (SentLine & { readonly process: number })[] = []
  for (const text of file.split('\n')) {
    if (text === '') continue
    const value = parsed(text)
    const isHead = isObject(value) && 'format' in value
    if (isHead) {
      isOwn = isHeadOf(value, store, node)
      process += 1
    } else if (isOwn && isLine(value) && now - value.at <= oldMs) lines.push({ ...value, process })
    else passedOver += 1
  }
  const byRow = new Map<string, { readonly first: SentLine; readonly incidents: Map<string, FileIncident> }>()
  // Under whichever name a monitor had, the last line about an incident says what its receiver knows of it.
  const latest = new Map<string, Word>()
  const idOf = (receiver: string, incident: string): string => JSON.stringify([receiver, incident])
  for (const line of lines) {
    const { receiver, subject: present, incident, process, as, level, isTried } = line
    const word = wordOfLine(line, latest.get(idOf(receiver, incident)))
    latest.set(idOf(receiver, incident), word)
    // An end also for whoever still has the name by which it was told.
    const isTold = level === 'ok' && !isTried && as !== undefined && as.key !== present.key
    for (const subject of isTold ? [present, { ...present, ...as }] : [present]) {
      const id = JSON.stringify([receiver, subject.key, subject.check, subject.item])
      const { incidents } = byRow.get(id) ?? { incidents: new Map<string, FileIncident>() }
      const before = incidents.get(incident)
      // For one process, an incident is over before the next one begins.
      for (const [other, one] of before || level === 'ok' ? [] : incidents)
        if (one.process === process) incidents.set(other, { ...one, endedAt: Math.max(one.word.beganAt, line.beganAt) })
      incidents.set(incident, { ...before, word, process })
      byRow.set(id, { first: { ...line, subject }, incidents })
    }
  }
  // How a receiver is, only the process knew: an end that one of them got is news for the others.
  const over = new Map(lines.flatMap(({ level, incident, at }) => (level === 'ok' ? [[incident, at] as const] : [])))
  const rows = [...byRow.values()].map(({ first: { receiver, subject }, incidents }): StoredRow => {
    const isOwn = isOfReceiver(subject)
    const ends: End[] = []
    const left: Word[] = []
    for (const { word: own, endedAt: nextAt } of [...incidents.values()].reverse()) {
      const word = {
        ...(latest.get(idOf(receiver, own.incident)) ?? own),
        as: own.as?.key === subject.key ? undefined : own.as,
      }
      const worksAt = isOwn ? over.get(word.incident) : undefined
      const endedAt = word.isOver ? undefined : (worksAt ?? nextAt)
      if (endedAt === undefined) left.push(word)
      else
        ends.unshift(
          worksAt === undefined
            ? { ...endOf(word, lostEnd), endedAt, isAssumed: true }
            : { ...endOf(word, worksAgain), endedAt },
        )
    }
    const [last, ...others] = left
    return {
      receiver,
      subject,
      row: { ...(last ? { attempt: last } : {}), ends, ...(others.length > 0 ? { others } : {}) },
    }
  })
  return { rows, passedOver }
}

const endOf = ({ incident, as, level, beganAt }: Word, text: string): Omit<End, 'endedAt'> => ({
  what: 'end',
  incident,
  ...(as === undefined ? {} : { as }),
  level,
  beganAt,
  text,
})

const wordOfLine = ({ incident, as, level, before, beganAt, at, lastStamp, isTried }: SentLine, word?: Word): Word => ({
  incident,
  ...(as === undefined ? {} : { as }),
  level: level === 'ok' ? (word?.level ?? before ?? 'failed') : level,
  isFlapping: false,
  beganAt,
  observedAt: at,
  at,
  ...(lastStamp === undefined ? {} : { after: earlierOf(lastStamp, word) }),
  // Whether the end arrives is not known yet: until then, the message before it is the last one.
  ...(isTried && lastStamp !== undefined ? { stamp: lastStamp } : {}),
  ...(level === 'ok' && !isTried ? { isOver: true } : { isUnsure: true }),
})

/** The stamps of the messages of an incident before one, of which it knows the last. */
const earlierOf = (lastStamp: number, word: Word | undefined): readonly number[] =>
  [...new Set([...(word ? [...(word.after ?? []), stampOf(word)] : []), lastStamp])].slice(-mostEnds)

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

const isHeadOf = (value: Readonly<Record<string, unknown>>, store: string, node: string): boolean =>
  value['format'] === format && value['node'] === node && (value['store'] === store || value['store'] === null)

function isLine(value: unknown): value is SentLine {
  if (!isObject(value) || !isObject(value['subject'])) return false
  const { receiver, incident, subject, as = subject, level, before = 'failed', beganAt, at, lastStamp = 0 } = value
  if (!isObject(as)) return false
  const texts = [receiver, incident, subject['key'], subject['monitor'], subject['check'], as['key'], as['monitor']]
  const isOptional = (one: unknown): boolean => one === undefined || typeof one === 'string'
  return (
    texts.every((one) => typeof one === 'string') &&
    isOptional(subject['item']) &&
    isOptional(subject['type']) &&
    isOptional(as['type']) &&
    (level === 'ok' || level === 'warning' || level === 'failed') &&
    (before === 'warning' || before === 'failed') &&
    Number.isFinite(beganAt) &&
    Number.isFinite(at) &&
    Number.isFinite(lastStamp)
  )
}
