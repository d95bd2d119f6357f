import { gapMs, stopMs, takeMs } from './policy.ts'

/** A lease as the store has it. */
export type LeaseRow = {
  readonly node: string
  readonly process: string
  readonly epoch: number
  readonly beats: number
  readonly writes: number
  /** The number of writes when this epoch began. */
  readonly base: number
  readonly hasLeft: boolean
  /** For how long nobody had renewed it, by the clock of the store. For people, and for what the next holder tells them. */
  readonly silentMs: number
}

/** A lease as a process knows it. Times are milliseconds of its monotonic clock. */
export type Lease = {
  readonly process: string
  readonly hold: { readonly epoch: number; readonly sentAt: number } | undefined
  /** The row as last read, when that was, and since when it has not changed. */
  readonly view: { readonly row: LeaseRow | undefined; readonly at: number; readonly since: number } | undefined
  /** The last epoch that it has hold, and the highest one that it knows. */
  readonly last: number
  readonly highest: number
  /** The highest epoch in which it perhaps had it: the question that took it had no answer. */
  readonly perhaps: number
}

export type LeaseAsk =
  | { readonly type: 'read' }
  | { readonly type: 'renew'; readonly epoch: number }
  /** Replaces `expected`, if the store still has exactly that, by a row of this process. */
  | { readonly type: 'take'; readonly expected: LeaseRow | undefined; readonly epoch: number }
  | { readonly type: 'leave'; readonly epoch: number }

export const newLease = (process: string): Lease => ({
  process,
  hold: undefined,
  view: undefined,
  last: 0,
  highest: 0,
  perhaps: 0,
})

/** Whether this process may run, write and send now. */
export const holds = ({ hold }: Lease, now: number): boolean => hold !== undefined && now < hold.sentAt + stopMs

/** An epoch that has lapsed is never used again. */
export const lapsed = (lease: Lease, now: number): Lease =>
  lease.hold === undefined || holds(lease, now) ? lease : { ...lease, hold: undefined }

/** Gives the lease up without a word, and reads what the store has before anything else. */
export const unsure = (lease: Lease): Lease => ({ ...lease, hold: undefined, view: undefined })

/** Another process has it, and has had it since this one hold it. */
export const isOthers = ({ process, last, view }: Lease): boolean =>
  view?.row !== undefined && view.row.process !== process && view.row.epoch >= last

/**
 * Another process has taken it from this one. One that has it in an epoch after the one in which this process perhaps had it
 * took it from this process: where that one did not get it, the next one takes it in the same epoch.
 */
export const isTakenAway = (lease: Lease): boolean => {
  const { last, perhaps, view } = lease
  return isOthers(lease) && (last > 0 || (perhaps > 0 && (view?.row?.epoch ?? 0) > perhaps))
}

/** The lease after a question without an answer: the store may have got it. */
export const unanswered = (lease: Lease, question: LeaseAsk): Lease =>
  question.type === 'take' ? { ...lease, perhaps: Math.max(lease.perhaps, question.epoch) } : lease

/**
 * The next question to the store. `isCandidate`: whether this node is to have the lease. `claims`: also from a process that renews
 * it. `extraMs`: for how long it lets others go first.
 */
export function askOf(
  lease: Lease,
  now: number,
  { isCandidate, claims = false, extraMs = 0 }: { isCandidate: boolean; claims?: boolean; extraMs?: number },
): LeaseAsk {
  const { hold, view, process, last, highest } = lease
  if (hold && holds(lease, now)) return { type: isCandidate ? 'renew' : 'leave', epoch: hold.epoch }
  if (!view || !isCandidate) return { type: 'read' }
  const { row, at, since } = view
  // One of a store that went back in time to before this process took it is its own too.
  const isOwn = row !== undefined && (row.process === process ? !row.hasLeft : row.epoch < last)
  const waitMs = row === undefined || row.hasLeft ? extraMs : takeMs + extraMs
  const isFree = now - since >= waitMs && now - at < gapMs
  if (!isOwn && !isFree && !claims) return { type: 'read' }
  return { type: 'take', expected: row, epoch: highest + 1 }
}

/** Takes the answer to a question that was sent at `sentAt`. `row`: the row after it. */
export function answered(
  before: Lease,
  question: LeaseAsk,
  { isOk, row }: { readonly isOk: boolean; readonly row: LeaseRow | undefined },
  { sentAt, now }: { readonly sentAt: number; readonly now: number },
): Lease {
  const lease = lapsed(before, now)
  const isSame = lease.view !== undefined && same(lease.view.row, row) && now - lease.view.at < gapMs
  const view = { row, at: now, since: isSame ? (lease.view?.since ?? now) : now }
  const next = { ...lease, view, highest: Math.max(lease.highest, row?.epoch ?? 0) }
  const { hold } = lease
  if (question.type === 'take' && isOk) {
    const { epoch } = question
    return { ...next, hold: { epoch, sentAt }, last: epoch }
  }
  if (question.type === 'read' || hold?.epoch !== (question.type === 'take' ? 0 : question.epoch)) return next
  if (question.type === 'leave' || !isOk) return { ...next, hold: undefined }
  return { ...next, hold: { ...hold, sentAt: Math.max(hold.sentAt, sentAt) } }
}

const same = (one: LeaseRow | undefined, other: LeaseRow | undefined): boolean =>
  one?.process === other?.process &&
  one?.epoch === other?.epoch &&
  one?.beats === other?.beats &&
  one?.writes === other?.writes &&
  one?.hasLeft === other?.hasLeft
