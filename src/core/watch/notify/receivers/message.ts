import { createHash } from 'node:crypto'
import { count, showDuration } from '../../../base/format.ts'
import { sanitize } from '../../../base/net/text.ts'
import { humanTime } from '../../../base/zone.ts'
import { type Delivery, isOver, type Notice, type NoticeSubject } from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'

/** Characters of a text about a fault. At most 1 KiB of UTF-8 counts, too. */
const maxText = 1_000
const maxTextBytes = 1_024
/** Victims whose names a message lists. */
const maxVictims = 20

/** A text of at most 1 KiB on one line. */
export function boundedText(text: string): string {
  const line = sanitize(text, maxText)
  if (Buffer.byteLength(line) <= maxTextBytes) return line
  const { read } = new TextEncoder().encodeInto(line, new Uint8Array(maxTextBytes - Buffer.byteLength('…')))
  return `${line.slice(0, read)}…`
}

/** The members of a subject that are set, sanitized, in a fixed order: the labels of its identity. */
export function identityOf(subject: NoticeSubject): Readonly<Record<string, string>> {
  const { server, type, monitor, check, item, node } = subject
  const all = { server, type, monitor, check, item, node }
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => {
      const text = value === undefined ? '' : sanitize(value, 256)
      return text === '' ? [] : [[name, text]]
    }),
  )
}

/** Hexadecimal digits that are the same for the same texts. */
export const digest = (length: number, ...texts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, length)

/** The part of the id of a message that is the same in each attempt, so that receivers show a repeated one once. */
export const messageDigest = (receiver: string, notices: readonly Notice[], message: string | undefined): string =>
  digest(32, receiver, ...(message === undefined ? notices.map(({ id }) => id).toSorted() : [message]))

/** The key of a subject, by which receivers recognize what belongs together. */
export const keyOf = (subject: NoticeSubject, length = 16): string =>
  digest(length, ...Object.entries(identityOf(subject)).flat())

/** `Sql/postgres orders`, by the name of the identity. */
export const monitorIn = (subject: NoticeSubject): string => {
  const { type, monitor = '' } = identityOf(subject)
  return type === undefined ? monitor : `${type}/${monitor}`
}

/** The monitor as people read it: `Sql/postgres orders (formerly Sql/postgres orders-old)` after it was renamed. */
export const monitorText = (subject: NoticeSubject): string =>
  subject.now === undefined
    ? monitorIn(subject)
    : `${monitorIn({ ...subject, ...subject.now })} (formerly ${monitorIn(subject)})`

/** `Sql/postgres orders: replication lag (replica 2), on web1` */
export function subjectText(subject: NoticeSubject): string {
  const { check, item, node } = identityOf(subject)
  const of = check === undefined ? '' : `: ${check}`
  return `${monitorText(subject)}${of}${item === undefined ? '' : ` (${item})`}${node === undefined ? '' : `, on ${node}`}`
}

/** The state that a notice reports, in one or a few words. */
export function stateText({ what, level, before }: Pick<Notice, 'what' | 'level' | 'before'>): string {
  if (what === 'end') return 'recovered'
  if (what === 'removed') return 'removed'
  if (what === 'flapping') return 'flapping'
  if (what === 'reminder') return level === 'failed' ? 'still failed' : 'still a warning'
  if (what === 'change' && before !== undefined && before !== level) {
    return level === 'failed' ? 'failed, was a warning' : 'a warning, had failed'
  }
  return level === 'failed' ? 'failed' : 'warning'
}

/**
 * True for messages of a drill (`svc drill`, M14). Every text and label below then says so, and that nothing has failed: a
 * kind of receiver that uses them marks drills without code of its own.
 */
export const isDrill = (...notices: readonly Notice[]): boolean => notices.some(({ drill }) => drill !== undefined)

/** The labels that distinguish a drill from an alert. */
const drillLabels = { alertname: 'SvcDrill', severity: 'info', drill: 'true' } as const

const drillSummary = (notice: Notice): string =>
  isOver(notice) ? 'DRILL of svc: it is over' : 'DRILL of svc: nothing has failed'

/** The URL by which whoever gets the message of a drill confirms it. The end has none. */
export const callbackOf = (notice: Notice): string | undefined => (isOver(notice) ? undefined : notice.drill?.callback)

/** Of a drill, the receipt counts; of an incident, nobody reads it. */
export const withReceipt = (notices: readonly Notice[], delivery: Delivery, receipt: () => string): Delivery =>
  delivery.what === 'accepted' && isDrill(...notices) ? { ...delivery, receipt: receipt() } : delivery

export const severityOf = (notice: Notice): 'critical' | 'warning' | 'info' =>
  isDrill(notice) ? drillLabels.severity : notice.level === 'failed' ? 'critical' : 'warning'

/** The labels of an alert: what it is, and its identity. */
export const labelsOf = (notice: Notice, level = notice.level): Readonly<Record<string, string>> => ({
  ...(isDrill(notice)
    ? drillLabels
    : { alertname: level === 'failed' ? 'SvcFailed' : 'SvcWarning', severity: severityOf({ ...notice, level }) }),
  ...identityOf(notice.subject),
})

/** `Sql/postgres orders: replication lag failed` */
export const summaryOf = (notice: Notice): string => {
  if (isDrill(notice)) return drillSummary(notice)
  const state = stateText(notice)
  return `${subjectText(notice.subject)} ${state === 'warning' ? 'is a warning' : state.startsWith('a ') ? `is ${state}` : state}`
}

/** The text about the fault, as far as `details` lets the receiver have it. Empty when there is nothing to say. */
export const detailOf = ({ text, fault }: Notice, details: ReceiverConfig['details']): string =>
  details === 'full' ? boundedText(text) : fault === undefined ? '' : sanitize(fault, 64)

/** `3 monitors: App/http shop, App/http cart, Batch/process jobs`. Undefined without victims. */
export function victimsText({ victims: { count: all, names } }: Notice): string | undefined {
  if (all === 0) return undefined
  const listed = names.slice(0, maxVictims).map((name) => sanitize(name, 200))
  const more = all - listed.length
  const list = [...listed, ...(more > 0 && listed.length > 0 ? [`and ${more} more`] : [])].join(', ')
  return `${count(all, 'monitor')}${list === '' ? '' : `: ${list}`}`
}

/** Whether a runbook is a link. */
export const isLink = (runbook: string): boolean => /^https?:\/\//.test(runbook)

/** `FAILED: Sql/postgres orders: connect` */
const stateLine = (notice: Notice): string => `${stateText(notice).toUpperCase()}: ${subjectText(notice.subject)}`

/** Failures, warnings, then what is over: the order of the notices of a message. */
const rankOf = (notice: Notice): number => (isOver(notice) ? 2 : notice.level === 'failed' ? 0 : 1)

/** The notices of a message, the worst first; those that are equally bad remain in their order. */
export const worstFirst = (notices: readonly Notice[]): readonly Notice[] =>
  notices.toSorted((one, other) => rankOf(one) - rankOf(other))

/** Characters of the reason in a headline, behind which the counts have to be seen. */
const maxReason = 80

/**
 * The line that names the worst of a message, and how many others there are: a telephone shows no more than 60 characters.
 * `notices`: the worst is the first.
 *
 * The form: `FAILED: Sql/postgres orders: connect: 10.0.0.7:5432 refused the connection (+2 failed, 1 recovered)`.
 */
export function headlineOf([first, ...others]: readonly Notice[], details: ReceiverConfig['details']): string {
  if (first === undefined) return 'nothing to report'
  if (isDrill(first)) return summaryOf(first)
  const reason = isOver(first) ? '' : sanitize(detailOf(first, details), maxReason)
  const counts = [...Map.groupBy(others, groupOf)].map(([group, { length }]) =>
    group === 'warning' ? count(length, group) : `${length} ${group}`,
  )
  return `${stateLine(first)}${reason === '' ? '' : `: ${reason}`}${counts.length === 0 ? '' : ` (+${counts.join(', ')})`}`
}

const groupOf = (notice: Notice): string =>
  isOver(notice)
    ? stateText(notice)
    : notice.level === 'failed'
      ? 'failed'
      : notice.what === 'flapping'
        ? 'flapping'
        : 'warning'

/** Everything that a message says about an incident besides its identity. Members without a value are left out. */
export function annotationsOf(notice: Notice, details: ReceiverConfig['details']): Readonly<Record<string, string>> {
  const { runbook, fault, incident } = notice
  if (isDrill(notice)) {
    const callback = callbackOf(notice)
    return {
      summary: summaryOf(notice),
      description: boundedText(notice.text),
      incident: sanitize(incident, 128),
      ...(callback === undefined ? {} : { callback_url: callback }),
    }
  }
  const isUrl = runbook !== undefined && isLink(runbook)
  const all = {
    summary: summaryOf(notice),
    description: detailOf(notice, details),
    state: stateText(notice),
    fault: fault === undefined ? '' : sanitize(fault, 64),
    incident: sanitize(incident, 128),
    victims: victimsText(notice) ?? '',
    [isUrl ? 'runbook_url' : 'runbook']: runbook === undefined ? '' : boundedText(runbook),
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
}

/** Whether lines begin with the name of the subject and its state, and whether they contain links. */
type Lines = { readonly isTitled?: boolean; readonly hasLinks?: boolean }

/** The lines of a message about one notice. */
export function linesOf(
  notice: Notice,
  details: ReceiverConfig['details'],
  { isTitled = true, hasLinks = true }: Lines = {},
): readonly string[] {
  const { beganAt, endedAt, observedAt, runbook, url, timezone } = notice
  const clock = (ms: number): string => humanTime(ms, { zone: timezone })
  const titled = (title: string): readonly string[] => (isTitled ? [title] : [])
  if (isDrill(notice)) {
    const callback = hasLinks ? callbackOf(notice) : undefined
    const ask = ['', 'Open this link to confirm that this message arrived:']
    const text = `  ${boundedText(notice.text)}`
    return [...titled(summaryOf(notice)), text, ...(callback === undefined ? [] : [...ask, callback])]
  }
  const detail = detailOf(notice, details)
  const victims = victimsText(notice)
  const lasted = endedAt === undefined ? undefined : showDuration(Math.max(0, endedAt - beganAt))
  return [
    ...titled(stateLine(notice)),
    ...(detail === '' ? [] : [`  ${detail}`]),
    endedAt === undefined || !isOver(notice)
      ? `  since ${clock(beganAt)}, last seen ${clock(observedAt)}`
      : `  from ${clock(beganAt)} to ${clock(endedAt)} (${lasted})`,
    ...(victims === undefined ? [] : [`  affects ${victims}`]),
    ...(runbook === undefined || (!hasLinks && isLink(runbook)) ? [] : [`  runbook: ${boundedText(runbook)}`]),
    ...(url === undefined || !hasLinks ? [] : [`  ${sanitize(url, 500)}`]),
  ]
}
