import { entryOf } from '../../base/lazy.ts'
import type { FaultClass } from '../../base/probe-error.ts'
import type { Shift } from '../schedule/index.ts'
import type { Incident, KeyedMonitor, StoredSubject, SubjectState } from '../states/index.ts'
import { freshMs, giveUpMs, mostEnds, wellMs } from './policy.ts'

/** The content of a message about an incident that stands. Instants are milliseconds since 1970. */
export type Word = {
  /** The id of the incident. */
  readonly incident: string
  /** The name by which the receiver knows the monitor. Absent: its present one. */
  readonly as?: KeyedMonitor | undefined
  readonly level: 'warning' | 'failed'
  readonly isFlapping: boolean
  readonly beganAt: number
  /** The verdict on which it rests. */
  readonly observedAt: number
  /** When the attempt began. */
  readonly at: number
  /** The same as it was before any shift of the line: the ids of later messages follow from it. Absent: there was none. */
  readonly stamp?: number | undefined
  /** The acknowledgements that had lapsed by then. Absent: none. */
  readonly lapsedAcks?: readonly string[] | undefined
  /** A node without the store sent it, and the holder has got it from the store. */
  readonly isNews?: true | undefined
  /** Set while nobody knows whether the receiver has accepted it. */
  readonly line?: LineOfMessage | undefined
  /** A process without the store has sent its end. */
  readonly isOver?: true | undefined
  /** A process without the store tried to send it, and nobody knows how that ended. */
  readonly isUnsure?: true | undefined
  /**
   * The stamps of the messages of the incident before this one that its sender knew. Clocks of nodes differ, and so only these are
   * certain to be earlier. Absent: it comes from a version that does not note them.
   */
  readonly after?: readonly number[] | undefined
}

/** A line of a message without an answer: it is sent again as part of the same message. */
export type LineOfMessage = {
  /** The id of the message. */
  readonly message: string
  readonly what: DueMessage['what'] | 'end' | 'removed'
}

/** An incident that is over, which a receiver does not know. */
export type End = {
  readonly what: 'end' | 'removed'
  readonly incident: string
  /** As in a word. */
  readonly as?: KeyedMonitor | undefined
  readonly level: 'warning' | 'failed'
  /** The level that the receiver accepted, if a later one may have arrived. */
  readonly before?: 'warning' | 'failed' | undefined
  readonly beganAt: number
  readonly endedAt: number
  readonly fault?: FaultClass | undefined
  readonly text: string
  /** Nobody recorded it: another incident of the subject has begun since. */
  readonly isAssumed?: true | undefined
  /** Since when the receiver has to know it. Absent until it is first stored. */
  readonly since?: number | undefined
  /** As in a word. */
  readonly isNews?: true | undefined
  /** As in a word. */
  readonly line?: LineOfMessage | undefined
  /** The stamp of the last message that its receiver got, or perhaps got, about the incident. Absent: none. */
  readonly lastStamp?: number | undefined
}

/**
 * The state of one subject at one receiver. It is no queue: the next message follows from the row and from the state of
 * the subject at that time, so that nothing stale waits for a receiver.
 */
export type OutboxRow = {
  /** The last message that the receiver accepted. */
  readonly last?: Word | undefined
  /**
   * The message that it perhaps received since: an attempt without an answer, also one of a process that was killed.
   */
  readonly attempt?: Word | undefined
  /** The incident that it has to know, and since when. */
  readonly need?:
    | (Pick<Word, 'incident' | 'as' | 'level' | 'beganAt'> & {
        readonly since: number
        readonly fault?: FaultClass | undefined
      })
    | undefined
  /** The earliest first. */
  readonly ends: readonly End[]
  /**
   * Other incidents of the same fault: several nodes without the store sent one each, or nodes knew the monitor by different
   * names. They end together.
   */
  readonly others?: readonly Word[] | undefined
  /**
   * The receiver may show the subject as well, or is about to get an end: if it still fails, that is sent, or sent
   * once more, with the ends.
   */
  readonly isInDoubt?: true | undefined
}

/** A subject as it is now. */
export type Present = {
  readonly subject: StoredSubject
  readonly state: Pick<SubjectState, 'level' | 'incident' | 'latest' | 'doubt' | 'depth' | 'fault' | 'message'>
  /** Somebody silenced it: only ends are sent. */
  readonly isSilenced: boolean
  /** When a warning was acknowledged, if nothing else silences it. */
  readonly warningAckedAt?: number | undefined
  /**
   * The acknowledgements, by their ids, that ended because the fault is no longer the same: whoever was told before has to
   * know.
   */
  readonly lapsedAcks?: readonly string[] | undefined
  /** A report of svc about itself, which no run shows. */
  readonly needsNoVerdict?: boolean | undefined
}

/** The rules for messages to a receiver. */
export type ReceiverRules = {
  readonly name: string
  /** Whether messages that are due together become one, and the next one waits. */
  readonly folds: boolean
  /** After this time a fault that goes on is sent again. Infinity: never. */
  readonly remindMs: number
  /** Whether it is told of this subject at this level. What it was told once, it is told to the end. */
  readonly accepts: (subject: StoredSubject, level: 'warning' | 'failed') => boolean
  /** Whether it gets messages about what is silenced. */
  readonly ignoresSilences?: boolean | undefined
}

/** The message about an incident that stands. */
export type DueMessage = {
  readonly what: 'begin' | 'change' | 'reminder' | 'flapping'
  /** Whether it has to rest on a young verdict. */
  readonly needsVerdict: boolean
}

export const emptyRow: OutboxRow = { ends: [] }
export const isEmpty = ({ last, attempt, need, ends }: OutboxRow): boolean =>
  !last && !attempt && !need && ends.length === 0

/** The incident that a row is about, as the receiver knows it at best. */
export const aboutIn = ({
  last,
  attempt,
  need,
}: OutboxRow): Pick<Word, 'incident' | 'as' | 'level' | 'beganAt'> | undefined => attempt ?? last ?? need

/** The instant at which a message was made, whatever the clocks of its sender and its readers did since. */
export const stampOf = ({ at, stamp = at }: Word): number => stamp

/** The name by which receivers know the monitor of an incident. Empty: its present one. */
export const nameIn = ({ formerly }: Pick<Incident, 'formerly'>): Pick<Word, 'as'> =>
  formerly?.[0] === undefined ? {} : { as: formerly[0] }

/** The incident of a row is over. Nothing follows for a receiver that had nothing to know of it. */
export function withEnd(
  row: OutboxRow,
  { incident, what, endedAt, text, isAssumed }: Pick<End, 'incident' | 'what' | 'endedAt' | 'text' | 'isAssumed'>,
): OutboxRow {
  const about = aboutIn(row)
  if (about?.incident !== incident) return row
  const { level, beganAt } = about
  const before = row.last && row.last.level !== level ? row.last.level : undefined
  const fault = row.need?.fault
  const common = { what, endedAt, text, ...(isAssumed ? { isAssumed } : {}) }
  const [word] = wordsIn(row)
  const end: End = {
    ...common,
    incident,
    ...asOf(about),
    level,
    before,
    beganAt,
    ...(fault === undefined ? {} : { fault }),
    ...(word === undefined ? {} : { lastStamp: stampOf(word) }),
  }
  const others = (row.others ?? []).filter(isOpen).map((one): End => {
    return {
      ...common,
      incident: one.incident,
      ...asOf(one),
      level: one.level,
      beganAt: one.beganAt,
      lastStamp: stampOf(one),
    }
  })
  // A node that sent without the store has noted its end already, and nothing has been sent since.
  const isNews = row.last !== undefined || row.attempt !== undefined
  if (!isNews && row.ends.some((one) => one.incident === incident)) return { ends: row.ends }
  // An incident may have gone on under another name. What is certain is that the subject does not exist any more. That is
  // another line than one without an answer, and what follows it in the row stays behind it.
  const firstAssumed = what === 'removed' ? row.ends.findIndex((one) => one.isAssumed) : -1
  const earlier = row.ends.map((one, at) => {
    const own = one.isAssumed && firstAssumed >= 0 ? { ...one, what, endedAt, text, isAssumed: undefined } : one
    return firstAssumed >= 0 && at >= firstAssumed ? { ...own, line: undefined } : own
  })
  // It has that end, unless it perhaps got the incident once more since.
  const isTold = row.last?.isOver === true && row.attempt === undefined
  return { ends: [...earlier, ...others, ...(isTold ? [] : [end])].slice(-mostEnds) }
}

/** The text of an end that nobody recorded. */
export const lostEnd = 'it ended before the next fault began'

/**
 * Another incident stands than the row is about: the end of the earlier one was not recorded, and is sent first. Nobody knows
 * when that end was, only that it was over when the next incident began.
 */
export function withLostEnd(row: OutboxRow, next: Pick<Incident, 'id' | 'beganAt'>): OutboxRow {
  const about = aboutIn(row)
  if (!about || about.incident === next.id) return row
  const other = row.others?.find(({ incident }) => incident === next.id)
  if (other) return aboutAnother(row, other)
  // The clock may have been set back between the two, or the store may have an earlier one that goes on. It stood when it was told.
  const { observedAt = about.beganAt } = row.attempt ?? row.last ?? {}
  const endedAt = Math.max(about.beganAt, next.beganAt, observedAt)
  const end = { incident: about.incident, what: 'end', endedAt, text: lostEnd, isAssumed: true } as const
  return { ...withEnd(row, end), isInDoubt: true }
}

const isSameName = (one: Pick<Word, 'as'>, other: Pick<Word, 'as'>): boolean => one.as?.key === other.as?.key
const asOf = ({ as }: Pick<Word, 'as'>): Pick<Word, 'as'> => (as === undefined ? {} : { as })

/**
 * The receiver knows the incident by another name than svc tells it by from now on: another monitor has that name. Its end
 * under that name is sent first.
 */
export function withLostName(row: OutboxRow, { subject }: Present, incident: Incident, now: number): OutboxRow {
  const word = row.attempt ?? row.last
  if (word?.incident !== incident.id) return row
  const keyOf = ({ as }: Pick<Word, 'as'>): string => as?.key ?? subject.key
  if (keyOf(word) === keyOf(nameIn(incident))) return row
  return withEnd(row, { incident: incident.id, what: 'removed', endedAt: now, text: 'it goes on under another name' })
}

/** A part of a row after its monitor got another name. The same one stays the same in `parts`. */
export const renamedPart = <T extends Pick<Word, 'as'>>(
  part: T,
  { key, type, monitor }: KeyedMonitor,
  parts: Map<object, object>,
): T => entryOf(parts, part, () => (part.as ? part : { ...part, as: { key, type, monitor } })) as T

/** A row after its monitor got another name. */
export function renamedRow(row: OutboxRow, name: KeyedMonitor, parts: Map<object, object>): OutboxRow {
  const { last, attempt, need, ends, others } = row
  const of = <T extends Pick<Word, 'as'>>(part: T): T => renamedPart(part, name, parts)
  return {
    ...row,
    ...(last ? { last: of(last) } : {}),
    ...(attempt ? { attempt: of(attempt) } : {}),
    ...(need ? { need: of(need) } : {}),
    ends: ends.map(of),
    ...(others ? { others: others.map(of) } : {}),
  }
}

/** The row of a subject, with the row about its incident that a former name of its monitor has. */
export function joinedRow(row: OutboxRow, former: OutboxRow, incident: Pick<Incident, 'id' | 'beganAt'>): OutboxRow {
  const own = withLostEnd(row, incident)
  const isTold = former.last !== undefined || former.attempt !== undefined
  return {
    ...(isTold || !aboutIn(own) ? former : own),
    ends: [...own.ends, ...former.ends].slice(-mostEnds),
    ...othersOf([...(former.others ?? []), ...(own.others ?? [])]),
    // While it stands, nobody must believe after the end of another one that it is over.
    ...(own.isInDoubt || former.isInDoubt ? { isInDoubt: true } : {}),
  }
}

/** The row is about one of the other incidents from now on: that is the one that is stored. */
function aboutAnother(row: OutboxRow, word: Word): OutboxRow {
  const rest = (row.others ?? []).filter((one) => one !== word)
  const { ends, isInDoubt } = row
  return { ...firstWord(word), ends, ...othersOf([...rest, ...wordsIn(row)]), ...(isInDoubt ? { isInDoubt } : {}) }
}

/** The message that the receiver got, or perhaps got, about the incident of the row. Empty: none. */
const wordsIn = ({ last, attempt }: OutboxRow): readonly Word[] => {
  const word = attempt ?? last
  return word === undefined ? [] : [word]
}

/** The same about all incidents of the row. */
const allWordsIn = (row: OutboxRow): readonly Word[] => [...wordsIn(row), ...(row.others ?? [])]

/** Whether its end has not been sent without the store. */
const isOpen = ({ isOver }: Word): boolean => isOver !== true

/** Whether a message was sent after one with this stamp. In doubt it was not, so that its receiver rather gets an end twice than never. */
const isAfter = ({ after }: Word, stamp: number | undefined): boolean =>
  after === undefined || stamp === undefined || after.includes(stamp)

const othersOf = (others: readonly Word[]): Pick<OutboxRow, 'others'> =>
  others.length === 0 ? {} : { others: others.slice(-mostEnds) }

/**
 * The stored row of a subject, with the messages that a node without the store sent about it. The store may have
 * another incident of the same fault, from the holder or from a further node. The receiver knows each of them by its id
 * and has to get all ends. `knowsEnds`: that node alone knows whether an incident of the subject is over.
 */
export function withNews(stored: OutboxRow, news: OutboxRow, knowsEnds = false): OutboxRow {
  const sent = withSentWord(withSentEnds(stored, news), news)
  const row = knowsEnds ? news.ends.reduce(withKnownEnd, sent) : sent
  const about = row.attempt ?? row.last
  const isKnown = ({ incident }: Pick<Word, 'incident'>): boolean =>
    [about, ...(row.others ?? []), ...row.ends].some((one) => one?.incident === incident)
  const newOf = <T extends Pick<Word, 'incident'>>(all: readonly T[]): readonly (T & { readonly isNews: true })[] =>
    all.flatMap((one) => (isKnown(one) ? [] : [{ ...one, isNews: true }]))
  const words = newOf(allWordsIn(news).filter(isOpen))
  // Whether the incident of the row is over is known by the holder alone.
  const over = newOf(news.ends.filter(({ incident }) => incident !== row.need?.incident))
  // Whoever goes by subjects takes what stands for over since another process has told an end.
  const isEnded =
    about !== undefined &&
    isOpen(about) &&
    allWordsIn(news).some((one) => !isOpen(one) && one.incident !== about.incident)
  if (words.length === 0 && over.length === 0) return isEnded ? { ...row, isInDoubt: true } : row
  const ends = [...row.ends, ...over].slice(-mostEnds)
  const [first, ...rest] = about ? [] : words
  const others = [...(row.others ?? []), ...(about ? words : rest)]
  // Of several incidents, it shows the level of the one that it was told last.
  const isOther = words.some(({ at, level }) => about !== undefined && at > about.at && level !== about.level)
  const isInDoubt = row.isInDoubt || isEnded || ends.length > 0 || isOther
  return {
    ...row,
    ...firstWord(first),
    ends,
    ...othersOf(others),
    // While it stands, nobody must believe after such an end that it is over.
    ...(isInDoubt ? { isInDoubt } : {}),
  }
}

/**
 * `withNews` for the row in the store, where the holder reads it. It keeps the ends that another process has told as words that
 * are over: the holder may have such an incident, or its end, and would send it.
 */
export function withHandedOver(stored: OutboxRow, news: OutboxRow): OutboxRow {
  const row = withNews(stored, news)
  const over = allWordsIn(news).flatMap((word): readonly Word[] =>
    isOpen(word) || (row.last?.isOver && word.incident === row.last.incident)
      ? []
      : [{ ...word, line: undefined, isNews: true }],
  )
  const [last, ...rest] = over
  if (!last) return row
  const others = row.others ?? []
  return aboutIn(row)
    ? { ...row, ...othersOf([...others, ...over]) }
    : { ...row, last, ...othersOf([...others, ...rest]) }
}

/** The stored row, without what the process of these ends sent of their incidents: it knows when they ended. */
export function withoutEnded(row: OutboxRow, ended: readonly End[]): OutboxRow {
  const isOver = ({ incident }: Word): boolean => ended.some((end) => end.incident === incident)
  const { last, attempt, others = [], ...rest } = row
  const left = others.filter((one) => !isOver(one))
  if (last || !attempt?.isUnsure || !isOver(attempt))
    return left.length === others.length ? row : { ...row, others: undefined, ...othersOf(left) }
  const [first, ...more] = left
  return { ...rest, ...firstWord(first), ...othersOf(more) }
}

/** The messages of a row whose ends another process has told, by their incidents. */
const overIn = (row: OutboxRow): ReadonlyMap<string, Word> =>
  new Map(allWordsIn(row).flatMap((word) => (isOpen(word) ? [] : [[word.incident, word]])))

/** Whether one of these ends follows the last message about an incident, by the stamp of that. */
const isToldIn = (over: ReadonlyMap<string, Word>, incident: string, lastStamp: number | undefined): boolean => {
  const word = over.get(incident)
  return word !== undefined && isAfter(word, lastStamp)
}

/** Whether it says that another process has told an end. */
export const isTellingEnds = (row: OutboxRow): boolean => !allWordsIn(row).every(isOpen)

/**
 * A row of a receiver without the ends that `news`, another row of it, says another process has told: under a former name of the
 * monitor, too.
 */
export function withoutToldEnds(row: OutboxRow, news: OutboxRow): OutboxRow {
  if (row.ends.length === 0) return row
  const over = overIn(news)
  const ends = row.ends.filter(({ incident, lastStamp }) => !isToldIn(over, incident, lastStamp))
  return ends.length === row.ends.length ? row : { ...row, ends }
}

const withKnownEnd = (row: OutboxRow, end: End): OutboxRow => {
  const ended = withEnd(row, end)
  return ended === row ? row : { ...ended, isInDoubt: true }
}

/**
 * The stored row, without the ends that a process without the store has sent. The state of an incident that the store
 * knew is still open: if the subject fails once more, that is sent.
 */
function withSentEnds(row: OutboxRow, news: OutboxRow): OutboxRow {
  const over = overIn(news)
  const isOpenStill = (word: Word): boolean => !isToldIn(over, word.incident, stampOf(word))
  const [latest] = wordsIn(row)
  const about = latest ?? over.get(row.need?.incident ?? '')
  const left = {
    ...row,
    ends: withoutToldEnds(row, news).ends,
    others: undefined,
    ...othersOf((row.others ?? []).filter(isOpenStill)),
  }
  const isSame = left.ends.length === row.ends.length && left.others?.length === row.others?.length
  // The holder has told more of it, perhaps before that end.
  if (latest && over.has(latest.incident) && isOpenStill(latest)) return { ...left, isInDoubt: true }
  if (!about || !over.has(about.incident)) return isSame ? row : left
  return {
    ...left,
    last: { ...about, line: undefined, isUnsure: undefined, isOver: true, isNews: true },
    attempt: undefined,
    isInDoubt: true,
  }
}

/**
 * The stored row of an incident of which a process without the store tried to send more: the receiver perhaps has that, and is
 * told how it is now.
 */
function withSentWord(row: OutboxRow, news: OutboxRow): OutboxRow {
  const { last, attempt } = row
  if (!last || attempt) return row
  const sent = allWordsIn(news).find(
    ({ incident, isUnsure, at }) => isUnsure && incident === last.incident && at > last.at,
  )
  return sent ? { ...row, attempt: sent } : row
}

/** The row of a process without the store, where the store has none: what is over by now needs no more messages. */
export function withoutSentEnds(news: OutboxRow): OutboxRow {
  const words = allWordsIn(news)
  if (words.every(({ isOver, isUnsure }) => !isOver && !isUnsure)) return news
  const [last, ...others] = words.filter(isOpen)
  const isInDoubt = last !== undefined && news.ends.length > 0
  return { ...firstWord(last), ends: news.ends, ...othersOf(others), ...(isInDoubt ? { isInDoubt } : {}) }
}

const firstWord = (word: Word | undefined): Pick<OutboxRow, 'last' | 'attempt'> =>
  word === undefined ? {} : word.isUnsure ? { attempt: word } : { last: word }

/**
 * The part of a row that came from nodes without the store. `own`: the row in the memory of the process. It knows better how a
 * message of an incident ended that its receiver accepted, and what it has sent since.
 */
export const newsIn = (row: OutboxRow, own: OutboxRow): OutboxRow => {
  const [last, ...others] = allWordsIn(row).filter(
    ({ isNews, isUnsure, incident, at, after }) =>
      isNews && !(incident === own.last?.incident && (isUnsure || (after === undefined && at < own.last.at))),
  )
  const ends = row.ends.filter(({ isNews }) => isNews)
  return { ...(last === undefined ? {} : { last }), ends, ...othersOf(others) }
}

/** Ends that are too old to matter are given up. */
export const withoutOldEnds = (row: OutboxRow, now: number): OutboxRow =>
  row.ends.some(({ endedAt }) => now - endedAt > giveUpMs)
    ? { ...row, ends: row.ends.filter(({ endedAt }) => now - endedAt <= giveUpMs) }
    : row

/** The row, whose ends wait from now on, if they did not before. */
export const withWaitingEnds = (row: OutboxRow, now: number): OutboxRow =>
  row.ends.every(({ since }) => since !== undefined)
    ? row
    : { ...row, ends: row.ends.map((end) => ({ ...end, since: end.since ?? now })) }

/** Since when the lines of a row wait to be sent, also before this process began: kills must not put them off. */
export function waitingSince(
  { row, due, ends }: { readonly row: OutboxRow; readonly due: DueMessage | undefined; readonly ends: readonly End[] },
  now: number,
): number {
  const needed = due && row.need ? [row.need.since] : []
  return Math.min(now, ...needed, ...ends.flatMap(({ since }) => since ?? []))
}

/** When its receiver got the last message that the row knows, or perhaps got it. */
export const toldAt = ({ last, attempt, others = [] }: OutboxRow): number =>
  Math.max(...[last, attempt, ...others].map((word) => word?.at ?? Number.NEGATIVE_INFINITY))

/** Whether a subject is well whose incident the states do not have, so that only its verdicts show the end. */
export function isWell({ state: { level, latest, doubt } }: Present, sinceAt: number): boolean {
  if (level !== 'ok' || doubt !== undefined || latest?.level !== 'ok') return false
  return latest.at - Math.max(latest.since, sinceAt) >= wellMs
}

/** The message that a receiver needs about a subject whose incident stands. Undefined: it knows, or need not know. */
export function dueFor(present: Present, row: OutboxRow, receiver: ReceiverRules, now: number): DueMessage | undefined {
  const { incident, latest } = present.state
  if (!incident || incident.cause !== undefined) return undefined
  if (present.isSilenced && !receiver.ignoresSilences && !wasToldWorse(row, present)) return undefined
  const { last, attempt } = row
  if (!last && !attempt && !present.needsNoVerdict && !receiver.accepts(present.subject, incident.level))
    return undefined
  const restsOnVerdict = !present.needsNoVerdict && !incident.isUnobserved
  // On its way back, it either recovers, and then nobody needs to know, or it fails again.
  const isHealing = restsOnVerdict && !incident.isFlapping && latest?.level === 'ok'
  if (!last) {
    if (isHealing) return undefined
    return { what: incident.isFlapping ? 'flapping' : 'begin', needsVerdict: restsOnVerdict }
  }
  if (incident.isFlapping && !last.isFlapping) return { what: 'flapping', needsVerdict: restsOnVerdict }
  const rises = incident.level === 'failed' && last.level === 'warning'
  if (rises && isHealing) return undefined
  const isOther = incident.isFlapping ? rises : incident.level !== last.level || last.isFlapping
  if (isOther) return { what: 'change', needsVerdict: restsOnVerdict && rises }
  // Nobody knows which message arrived last: the present state is told once more.
  if (attempt) return { what: isSameWord(attempt, incident) ? againOf(attempt) : 'change', needsVerdict: false }
  if (isHealing) return undefined
  if (row.isInDoubt) return { what: 'reminder', needsVerdict: restsOnVerdict }
  if (hasLapsedSince(present, last)) return { what: 'change', needsVerdict: restsOnVerdict }
  if (now - last.at < receiver.remindMs) return undefined
  return { what: 'reminder', needsVerdict: restsOnVerdict }
}

/**
 * Whether a process without the store told an acknowledged warning as a failure. If that process was killed, the
 * acknowledgement holds again, and the receiver shows the failure until it is told how it is now.
 */
const wasToldWorse = ({ last, attempt, others = [] }: OutboxRow, { warningAckedAt }: Present): boolean =>
  warningAckedAt !== undefined &&
  [...others, ...(attempt?.isUnsure ? [attempt] : [])].some(
    ({ level, at }) => level === 'failed' && at > Math.max(warningAckedAt, last?.at ?? warningAckedAt),
  )

/** Whether what was sent of an incident still holds. */
const isSameWord = (word: Word, { level, isFlapping }: Pick<Incident, 'level' | 'isFlapping'>): boolean =>
  word.level === level && word.isFlapping === isFlapping

/** The kind of a message that is sent again: the same, so that its line keeps its id. */
const againOf = ({ line }: Word): DueMessage['what'] =>
  line === undefined || line.what === 'end' || line.what === 'removed' ? 'reminder' : line.what

/**
 * The message without an answer that the lines of a row belong to, and those of its lines that still hold. Undefined:
 * all that it has to say is new.
 */
export function unansweredIn(
  { attempt, ends, isInDoubt }: OutboxRow,
  { due, incident }: { readonly due: DueMessage | undefined; readonly incident: Incident | undefined },
): { readonly message: string; readonly ends: readonly End[]; readonly hasWord: boolean } | undefined {
  const holds = attempt !== undefined && due !== undefined && incident?.id === attempt.incident
  const line = holds && isSameWord(attempt, incident) && attempt.line?.what === due.what ? attempt.line : undefined
  const message = ends.find((end) => end.line)?.line?.message ?? line?.message
  const hasWord = line?.message === message
  // If it still fails, its end must not arrive without that message.
  if (message === undefined || (isInDoubt && due !== undefined && !hasWord)) return undefined
  return { message, ends: ends.filter((end) => end.line?.message === message), hasWord }
}

/** The messages without an answer of which the lines of a row are part. */
export const messagesIn = ({ attempt, ends }: OutboxRow = emptyRow): readonly string[] =>
  [attempt, ...ends].flatMap((one) => one?.line?.message ?? [])

/** The row, after its message was sent again without these lines: they are new from then on. */
export const withoutLine = (row: OutboxRow, message: string): OutboxRow => {
  const isOf = ({ line }: { readonly line?: LineOfMessage | undefined }): boolean => line?.message === message
  if (!(row.attempt && isOf(row.attempt)) && !row.ends.some(isOf)) return row
  return {
    ...row,
    attempt: row.attempt && isOf(row.attempt) ? { ...row.attempt, line: undefined } : row.attempt,
    ends: row.ends.map((end) => (isOf(end) ? { ...end, line: undefined } : end)),
  }
}

/** Whether an acknowledgement has lapsed of which a message knew nothing. */
const hasLapsedSince = ({ lapsedAcks = [] }: Present, { lapsedAcks: earlier = [] }: Word): boolean =>
  lapsedAcks.some((id) => !earlier.includes(id))

/** Whether the latest verdict is young enough for a message, and not older than what the receiver knows. */
export function isFresh({ state: { latest } }: Present, { last }: OutboxRow, now: number): boolean {
  if (!latest) return false
  return now - latest.at <= freshMs && latest.at >= (last?.observedAt ?? Number.NEGATIVE_INFINITY)
}

export const wordOf = ({ state: { incident, latest }, lapsedAcks = [] }: Present, at: number): Word | undefined =>
  incident && {
    incident: incident.id,
    ...nameIn(incident),
    level: incident.level,
    isFlapping: incident.isFlapping,
    beganAt: incident.beganAt,
    observedAt: latest?.at ?? incident.beganAt,
    at,
    ...(lapsedAcks.length === 0 ? {} : { lapsedAcks }),
  }

/** The part of one row that was sent. `before`: the row without it. */
export type SentPart = { readonly ends: readonly End[]; readonly word: Word | undefined; readonly before: OutboxRow }

/** The receiver has it. The row may have changed since it was sent. */
export function afterAccepted(row: OutboxRow, { ends, word }: SentPart): OutboxRow {
  const left = row.ends.filter((end) => !ends.some((one) => one.incident === end.incident && isSameName(one, end)))
  // It ended meanwhile.
  if (word === undefined || aboutIn(row)?.incident !== word.incident) return { ...row, ends: left }
  const { line: _, ...last } = word
  // Ends that follow it say that the subject is well.
  const isInDoubt = row.isInDoubt && left.length > 0
  return { last, ends: left, ...othersOf(row.others ?? []), ...(isInDoubt ? { isInDoubt } : {}) }
}

/** The attempt failed. Unless the receiver perhaps has the message, it knows what it knew before. */
export function afterFailure(row: OutboxRow, { ends, word, before }: SentPart, isPerhapsReceived: boolean): OutboxRow {
  if (isPerhapsReceived) return row
  const lineBefore = new Map(ends.map(({ incident, line }) => [incident, line]))
  const left = row.ends.map((end) =>
    lineBefore.has(end.incident) ? { ...end, line: lineBefore.get(end.incident) } : end,
  )
  if (word === undefined || row.attempt !== word) return ends.length === 0 ? row : { ...row, ends: left }
  return { ...row, attempt: before.attempt, ends: left }
}

/** A message after the line that people read has shifted. The same word stays the same in `words`. */
export function shiftedWord(word: Word, { move, correct }: Shifting, words: Map<Word, Word>): Word {
  const { at, observedAt, beganAt, stamp = at } = word
  const shifted = { ...word, at: move(at), observedAt: move(observedAt), beganAt: correct(beganAt) }
  return entryOf(words, word, () => (shifted.at === stamp ? shifted : { ...shifted, stamp }))
}

/** A row after the line that people read has shifted. */
export function shiftedRow(row: OutboxRow, shift: Shifting, words = new Map<Word, Word>()): OutboxRow {
  const { move, correct } = shift
  const { last, attempt, need, ends, others } = row
  const of = (word: Word): Word => shiftedWord(word, shift, words)
  return {
    ...row,
    ...(last ? { last: of(last) } : {}),
    ...(attempt ? { attempt: of(attempt) } : {}),
    ...(need ? { need: { ...need, since: move(need.since), beganAt: correct(need.beganAt) } } : {}),
    ends: ends.map((end) => {
      const beganAt = correct(end.beganAt)
      const endedAt = Math.max(beganAt, correct(end.endedAt))
      return { ...end, beganAt, endedAt, ...(end.since === undefined ? {} : { since: move(end.since) }) }
    }),
    ...(others ? { others: others.map(of) } : {}),
  }
}

type Shifting = Pick<Shift, 'move' | 'correct'>

/**
 * A row as a holder reads it. What another node has handed over is of the clock of that node: only what is observed from now on
 * shows that a fault is over.
 */
export function readRow(row: OutboxRow, now: number): OutboxRow {
  const { last, attempt, others, ...rest } = restoredRow(row, now)
  const of = (word: Word): Word => (word.isNews ? { ...word, observedAt: now } : word)
  return {
    ...rest,
    ...(last ? { last: of(last) } : {}),
    ...(attempt ? { attempt: of(attempt) } : {}),
    ...(others ? { others: others.map(of) } : {}),
  }
}

/** After a restart no instant may lie in the future: the clock of the wall may have been set back meanwhile. */
export function restoredRow(row: OutboxRow, now: number): OutboxRow {
  const past = (at: number): number => Math.min(at, now)
  return shiftedRow(row, { move: past, correct: past })
}
