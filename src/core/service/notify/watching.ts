import { filesWithin } from '../../base/files/index.ts'
import type { Config } from '../../config/index.ts'
import type { Family } from '../../protocol/service/family.ts'
import type { KeeperLog } from '../../store/index.ts'
import {
  afterPing,
  afterSample,
  isSteady,
  newPinging,
  newVigil,
  type Pinging,
  pingDue,
  type Vigil,
} from '../../watch/watching/index.ts'
import type { Part } from '../part.ts'
import { type ProcessTime, processTime } from '../process-time.ts'
import type { StatesPart } from '../watch/states.ts'
import type { NotifyDriver } from './notify-driver.ts'

/** How often svc samples its own condition. Milliseconds. */
const tickMs = 1_000
/**
 * How often it tries the witnesses. The states do so only while a monitor cannot be reached, which may be an hour after
 * the connection was lost. Milliseconds.
 */
const witnessEveryMs = 20_000
/** Milliseconds for the file of a secret. */
const maxFileMs = 5_000

type Backlog = ReturnType<NotifyDriver['backlog']>

export type WatchingPart = Part & {
  /** Whether svc confirms that it monitors as it should. */
  readonly isSteady: () => boolean
  /** Why it does not monitor as it should, by the last sample. */
  readonly reason: () => string | undefined
  /** Sets the function that reports the backlog of notifications. */
  readonly followBacklog: (backlog: () => Backlog) => void
}

/**
 * Checks once a second whether svc monitors, stores and sends as it should, and pings a dead man's switch while it
 * does.
 */
export function watchingPart({
  config,
  version,
  schedule,
  states,
  isStored,
  time = processTime(),
  log = () => {},
}: {
  readonly config: Pick<Config, 'serve'>
  readonly version: string
  readonly schedule: { readonly watches: () => boolean; readonly keepsUp: () => boolean }
  readonly states: Pick<StatesPart, 'isIsolated'>
  /** Whether states are stored. True without a store. */
  readonly isStored: () => boolean
  readonly time?: ProcessTime | undefined
  readonly log?: KeeperLog | undefined
}): WatchingPart {
  const now = time.steady
  const stop = new AbortController()
  const { ping: url, witness: witnesses } = config.serve
  const counts = { accepted: 0, failed: 0 }
  let backlogNow: () => Backlog = () => ({ isStored: true, waitingSince: undefined })
  let vigil: Vigil = newVigil(now())
  let pinging: Pinging = newPinging(now())
  let succeededAt: number | undefined
  let failure: string | undefined
  let witnessedAt = Number.NEGATIVE_INFINITY
  let isCutOff = false
  let loggedReason: string | undefined
  let timer: NodeJS.Timeout | undefined

  const tryWitnesses = async (): Promise<void> => {
    witnessedAt = now()
    const { answers } = await import('../watch/witnesses.ts')
    const tries = await Promise.all(witnesses.map(async (witness) => await answers(witness, stop.signal)))
    if (!stop.signal.aborted) isCutOff = !tries.includes(true)
  }

  const tick = (): void => {
    const backlog = backlogNow()
    if (witnesses.length > 0 && now() - witnessedAt >= witnessEveryMs) void tryWitnesses()
    const condition = {
      watches: schedule.watches(),
      keepsUp: schedule.keepsUp(),
      isStored: isStored() && backlog.isStored,
      isIsolated: isCutOff || states.isIsolated() === true,
      waitingSince: backlog.waitingSince === undefined ? undefined : time.steadyAt(backlog.waitingSince),
    }
    vigil = afterSample(vigil, condition, now())
    const { reason } = vigil
    if (url !== undefined && reason !== loggedReason) {
      loggedReason = reason
      const msg = reason === undefined ? 'ping: svc watches again' : `ping: not sent while ${reason}`
      log({ level: reason === undefined ? 'info' : 'warn', msg })
    }
    if (url !== undefined && pingDue(pinging, vigil, now())) void send(url)
  }

  const send = async (secret: NonNullable<typeof url>): Promise<void> => {
    const beganAt = now()
    pinging = { ...pinging, isUnderWay: true }
    const { ping } = await import('../../watch/notify/index.ts')
    const files = filesWithin(maxFileMs)
    const delivery = await ping(secret, { version, files, now: time.now }, stop.signal)
    if (stop.signal.aborted) return
    const isAccepted = delivery.what === 'accepted'
    pinging = afterPing(beganAt, isAccepted)
    counts[isAccepted ? 'accepted' : 'failed'] += 1
    if (isAccepted) succeededAt = now()
    const message = isAccepted ? undefined : delivery.message
    if (message !== failure)
      log(message === undefined ? { level: 'info', msg: 'ping: accepted again' } : { level: 'warn', msg: message })
    failure = message
  }

  return {
    preload: async () => {
      if (url !== undefined) await import('../../watch/notify/index.ts')
      if (witnesses.length > 0) await import('../watch/witnesses.ts')
    },
    answers: () => {
      vigil = newVigil(now())
      timer ??= setInterval(tick, tickMs)
    },
    isSteady: () => isSteady(vigil, now()),
    reason: () => vigil.reason,
    followBacklog: (backlog) => {
      backlogNow = backlog
    },
    metrics: async () => [
      ...(schedule.watches()
        ? [
            {
              name: 'svc_watching',
              type: 'gauge',
              help: '1 after a minute in which the schedule kept up, states and notifications were stored, a witness answered, and no message had waited for more than 10 min: the watchdog and the ping rest on it.',
              samples: [{ value: Number(isSteady(vigil, now())) }],
            } as const,
          ]
        : []),
      ...(url === undefined
        ? []
        : pingFamilies(counts, succeededAt === undefined ? undefined : time.civilAt(succeededAt))),
    ],
    cancel: () => {
      stop.abort(new Error('svc is shutting down'))
      clearInterval(timer)
    },
  }
}

const pingFamilies = (
  counts: { readonly accepted: number; readonly failed: number },
  succeededAt: number | undefined,
): readonly Family[] => [
  {
    name: 'svc_pings',
    type: 'counter',
    help: "Requests of the dead man's switch by their result.",
    samples: Object.entries(counts).map(([result, value]) => ({ labels: { result }, value })),
  },
  {
    name: 'svc_ping_last_success_timestamp_seconds',
    type: 'gauge',
    help: "When the dead man's switch last accepted a request.",
    samples: succeededAt === undefined ? [] : [{ value: Math.floor(succeededAt / 1_000) }],
  },
]
