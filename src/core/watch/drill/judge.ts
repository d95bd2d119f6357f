import type { Delivery, TracedHop } from '../notify/index.ts'

/**
 * - `proven`: an observation shows that it works.
 * - `failed`: an observation shows that it does not work.
 * - `not proven`: nothing shows whether it works.
 * - `waiting`: the drill is not over.
 */
export type HopResult = TracedHop['result']

/** One step on the path of a drill. */
export type Hop = {
  /** Absent for hops that all receivers share. */
  readonly receiver?: string | undefined
  /** `watching`, `confirmation`, `outbox`, `accepted`, `listed`, `routed`, `notified`, `opened`, `end`. */
  readonly hop: string
  /** Which one of several instances. Scheme and host. */
  readonly at?: string | undefined
  readonly result: HopResult
  /** Milliseconds since the previous hop. */
  readonly ms?: number | undefined
  /** One line without secrets. */
  readonly message: string
}

/** Observations of one receiver. Instants are milliseconds of the same clock. */
export type ReceiverFacts = {
  readonly name: string
  /** Whether there is a store for messages that wait. */
  readonly hasStore: boolean
  /** Whether it gets one message for everything that is confirmed together, and at most one a minute. */
  readonly folds: boolean
  /** Why the last write to the store failed. Undefined: it did not fail. */
  readonly storeFailure: string | undefined
  /** When the first message was stored and passed to the receiver. */
  readonly sentAt: number | undefined
  readonly attempts: number
  readonly acceptedAt: number | undefined
  /** The last answer to the begin that was not an acceptance, and the receipt of the one that was. */
  readonly failure: string | undefined
  readonly receipt: string | undefined
  /** The latest state of the hops behind the receiver, and when each was first proven, by hop and instance. */
  readonly traced: readonly TracedHop[]
  readonly provenAt: ReadonlyMap<string, number>
  /** Whether the message had a link, and when its page was used to confirm it. */
  readonly hasCallback: boolean
  readonly openedAt: number | undefined
  readonly endSent: Delivery | undefined
  readonly endedAt: number | undefined
}

/** Observations of a drill. */
export type DrillFacts = {
  readonly beganAt: number
  readonly confirmedAt: number | undefined
  /** When the recovery was confirmed. */
  readonly recoveredAt: number | undefined
  /** Whether the drill waits for nothing more. */
  readonly isOver: boolean
  /** Why the running svc does not monitor as it should. Absent: unknown, because no server runs the drill. */
  readonly watching?: { readonly reason: string | undefined } | undefined
  readonly receivers: readonly ReceiverFacts[]
}

/** The result of each hop from the observations, in the order of the path. */
export function hopsOf(drill: DrillFacts): readonly Hop[] {
  const { beganAt, confirmedAt, watching, isOver } = drill
  const confirmation: Hop =
    confirmedAt === undefined
      ? { hop: 'confirmation', ...open(isOver, 'the fault of the drill is not confirmed') }
      : { hop: 'confirmation', result: 'proven', ms: confirmedAt - beganAt, message: 'the fault is confirmed' }
  const shared = watching === undefined ? [confirmation] : [watchingHop(watching.reason), confirmation]
  return [...shared, ...drill.receivers.flatMap((facts) => receiverHops(drill, facts))]
}

const watchingHop = (reason: string | undefined): Hop =>
  reason === undefined
    ? { hop: 'watching', result: 'proven', message: 'svc watches, stores and sends' }
    : { hop: 'watching', result: 'failed', message: reason }

function receiverHops(drill: DrillFacts, facts: ReceiverFacts): readonly Hop[] {
  const { confirmedAt } = drill
  if (confirmedAt === undefined) return []
  const { name: receiver, sentAt, acceptedAt } = facts
  const outbox = outboxHop(drill, facts, confirmedAt)
  if (sentAt === undefined) return [{ receiver, ...outbox }]
  const accepted = acceptedHop(drill, facts, sentAt)
  if (acceptedAt === undefined) return [outbox, accepted].map((hop) => ({ receiver, ...hop }))
  const traced = facts.traced.map((hop) => tracedHop(drill, facts, hop, acceptedAt))
  return [outbox, accepted, ...traced, openedHop(drill, facts, acceptedAt), ...endHops(drill, facts)].map((hop) => ({
    receiver,
    ...hop,
  }))
}

function outboxHop(
  { isOver }: DrillFacts,
  { sentAt, hasStore, folds, storeFailure }: ReceiverFacts,
  confirmedAt: number,
): Hop {
  const hop = 'outbox'
  const ms = sentAt === undefined ? undefined : sentAt - confirmedAt
  if (storeFailure !== undefined)
    return { hop, result: 'failed', ms, message: `the message is not stored: ${storeFailure}` }
  if (sentAt === undefined) return { hop, ...open(isOver, 'the message was not sent') }
  return hasStore
    ? {
        hop,
        result: 'proven',
        ms,
        message: `the message is stored, and handed to the receiver${folds ? foldsText : ''}`,
      }
    : { hop, result: 'not proven', ms, message: 'there is no store: a restart would lose what waits' }
}

/** Why the outbox takes some time. */
const foldsText = ', which collects messages for 10 s and gets one a minute'

function acceptedHop({ isOver }: DrillFacts, facts: ReceiverFacts, sentAt: number): Hop {
  const { acceptedAt, attempts, failure, receipt = 'accepted' } = facts
  const hop = 'accepted'
  if (acceptedAt === undefined) return { hop, ...open(isOver, failure ?? 'there is no answer', failure !== undefined) }
  const before = failure === undefined ? '' : `, at attempt ${attempts}; before that, ${failure}`
  return { hop, result: 'proven', ms: acceptedAt - sentAt, message: `${receipt}${before}` }
}

function tracedHop({ isOver }: DrillFacts, { provenAt }: ReceiverFacts, traced: TracedHop, acceptedAt: number): Hop {
  const { hop, at, result, message } = traced
  const since = provenAt.get(traceKey(traced))
  const ms = since === undefined ? undefined : Math.max(0, since - acceptedAt)
  // A notification may wait for others of its group, but an accepted alert that is not listed anywhere is a fault.
  const late: HopResult = hop === 'notified' ? 'not proven' : 'failed'
  return { hop, at, result: result === 'waiting' && isOver ? late : result, ms, message }
}

export const traceKey = ({ hop, at }: TracedHop): string => `${hop} ${at ?? ''}`

function openedHop({ isOver }: DrillFacts, { hasCallback, openedAt }: ReceiverFacts, acceptedAt: number): Hop {
  const hop = 'opened'
  if (openedAt !== undefined) {
    const ms = Math.max(0, openedAt - acceptedAt)
    return { hop, result: 'proven', ms, message: 'somebody confirmed the message on the page of its link' }
  }
  if (!hasCallback) {
    const message =
      'nothing shows whether anybody got it: with serve.url and a store, messages have a link that shows it'
    return { hop, result: 'not proven', message }
  }
  return {
    hop,
    result: isOver ? 'not proven' : 'waiting',
    message: 'nobody has confirmed the message on the page of its link',
  }
}

/** The end closes what the drill opened at the receiver. */
function endHops({ recoveredAt, isOver }: DrillFacts, { endSent, endedAt }: ReceiverFacts): readonly Hop[] {
  if (recoveredAt === undefined) return []
  const hop = 'end'
  if (endedAt !== undefined) {
    const ms = Math.max(0, endedAt - recoveredAt)
    return [{ hop, result: 'proven', ms, message: 'the end of the drill was accepted' }]
  }
  const why = endSent !== undefined && 'message' in endSent ? endSent.message : 'there is no answer'
  return [{ hop, ...open(isOver, `the end of the drill was not accepted, and is sent again: ${why}`) }]
}

const open = (isOver: boolean, message: string, isKnown = false): Pick<Hop, 'result' | 'message'> => ({
  result: isOver ? 'failed' : 'waiting',
  message: isOver || isKnown ? message : `${message} yet`,
})

/** The hops of a drill that is over, updated with links that were confirmed since. `opened`: when, by receiver. */
export const withOpened = (hops: readonly Hop[], opened: Readonly<Record<string, number>>): readonly Hop[] =>
  hops.map((hop) => {
    const at = hop.hop === 'opened' && hop.receiver !== undefined ? opened[hop.receiver] : undefined
    if (at === undefined || hop.result === 'proven') return hop
    const message = `somebody confirmed the message on the page of its link on ${new Date(at).toISOString()}`
    return { ...hop, result: 'proven', message }
  })

/** The worst result of the hops, in the order `failed`, `waiting`, `not proven`, `proven`. */
export function resultOf(hops: readonly Pick<Hop, 'result'>[]): HopResult {
  const order: readonly HopResult[] = ['failed', 'waiting', 'not proven']
  return order.find((result) => hops.some((hop) => hop.result === result)) ?? 'proven'
}
