import { hostname } from 'node:os'
import { Fault } from '../../base/errors.ts'
import type { Config } from '../../config/index.ts'
import { isLoadSubject, type NotSilenced } from '../../protocol/index.ts'
import type { Family } from '../../protocol/service/family.ts'
import type { KeeperLog } from '../../store/index.ts'
import type { NodeLease } from '../../watch/nodes/index.ts'
import { isFor, type Mute, type Notice, needsStore, type ReceiverConfig } from '../../watch/notify/index.ts'
import type { NoticeItem, OutboxRows, Present } from '../../watch/outbox/index.ts'
import { mutesOf, renamedAmong } from '../../watch/silences/index.ts'
import { type StoredSubject, subjectId, victimsBySubject } from '../../watch/states/index.ts'
import type { Part } from '../part.ts'
import { type ProcessTime, processTime } from '../process-time.ts'
import type { SilenceKeeper } from '../silences/silence-keeper.ts'
import { noticeSubject } from '../watch/notice-subject.ts'
import type { StatesPart } from '../watch/states.ts'
import { NotifyDriver, type OpenedReceiver, type ReceiverFigures } from './notify-driver.ts'
import { isFolding, openFor } from './open-receiver.ts'
import type { SentWithoutStore } from './sent-without-store.ts'
import type { WatchingPart } from './watching.ts'

/** Victims that a message names. */
const maxVictims = 20
/** A subject that nothing reports is gone after this many intervals of its monitor, and this time at least. */
const goneIntervals = 2
const goneMs = 600_000

export type NotifyPart = Part & {
  /** Brings the silences of receivers up to date. Resolves with the places where that failed. */
  readonly mute: () => Promise<readonly NotSilenced[]>
  /** `NotifyDriver.takeOver`, of monitors that the states have taken over already. */
  readonly takeOver: NotifyDriver['takeOver']
  readonly again: NotifyDriver['again']
}

/** Tells receivers about incidents: opens those of `notify:`, and connects the states with the outbox. */
export function notifyPart({
  config,
  version,
  rows,
  states,
  silences,
  watching,
  lease,
  time = processTime(),
  sentWithoutStore,
  storeStates,
  log = () => {},
}: {
  readonly config: Config
  readonly version: string
  /** `DriverOptions.lease` */
  readonly lease?: NodeLease | undefined
  /** Where rows are stored. Absent without a store. */
  readonly rows: (() => Promise<OutboxRows>) | undefined
  /** `DriverOptions.sentWithoutStore` */
  readonly sentWithoutStore?: SentWithoutStore | undefined
  /** `DriverOptions.storeStates` */
  readonly storeStates?: (() => Promise<void>) | undefined
  readonly states: StatesPart
  readonly silences: SilenceKeeper
  /** Whether svc may say that it watches. Takes what it has to know of the outbox. */
  readonly watching: Pick<WatchingPart, 'isSteady' | 'followBacklog'>
  readonly time?: ProcessTime | undefined
  readonly log?: KeeperLog | undefined
}): NotifyPart {
  const { now, steady } = time
  const startedAt = steady()
  const server = config.serve.name ?? hostname()
  /** When this node took monitors over from another one. */
  const takenAt = new Map<string, number>()

  const tagsOf = ({ key }: StoredSubject): readonly string[] => states.monitors().get(key)?.monitor.tags ?? []

  const lookup = (subject: StoredSubject): Present | 'removed' | 'unknown' => {
    const state = states.stateOf(subject)
    if (state === 'removed') return 'removed'
    if (state) {
      const { silences: own, lapsed, warningAckedAt } = silences.of(subject, state)
      return { subject, state, isSilenced: own.length > 0, warningAckedAt, lapsedAcks: lapsed }
    }
    const { intervals = {} } = states.monitors().get(subject.key) ?? {}
    const every = Object.values(intervals).map((ms) => ms ?? 0)
    const isGone =
      steady() - (takenAt.get(subject.key) ?? startedAt) > Math.max(goneMs, goneIntervals * Math.max(0, ...every))
    return isGone ? 'removed' : 'unknown'
  }

  /** The monitors that fail because of this fault. */
  const victimsOf = (subject: StoredSubject): Notice['victims'] => {
    const victims = victimsBySubject(states.views()).get(subjectId(subject)) ?? []
    return { count: victims.length, names: victims.slice(0, maxVictims).map(({ monitor }) => monitor) }
  }

  const noticeOf = (item: NoticeItem, marks: readonly string[]): Notice => {
    const { subject, as, text, ...facts } = item
    return {
      ...facts,
      subject: noticeSubject(server, subject, as),
      text: marks.length === 0 ? text : `${text} (${marks.join(', ')})`,
      victims: facts.endedAt === undefined ? victimsOf(subject) : { count: 0, names: [] },
      tags: [...tagsOf(subject), ...marks],
      url: config.serve.url,
      timezone: config.serve.timezone,
    }
  }

  /** Throws a Fault for a receiver that must not send without a store. */
  const requireStore = (configs: readonly ReceiverConfig[] = []): void => {
    const refused = rows ? [] : configs.filter(needsStore)
    if (refused.length === 0) return
    const names = refused.map(({ name, kind }) => `${name} (${kind})`).join(', ')
    const sentence =
      refused.length === 1
        ? `The receiver ${names} needs a store, without which each restart repeats its messages`
        : `The receivers ${names} need a store, without which each restart repeats their messages`
    throw new Fault('Local', sentence, {
      hints: ['Start svc serve with a store: without --only health.', 'Or accept repeated messages: volatile: true.'],
    })
  }

  /** Throws a Fault for a receiver whose program cannot run: nothing would ever arrive. */
  const requirePrograms = ({ notify = [], exec }: Config): void => {
    const stopped = exec === undefined || exec.allow.length > 0 ? undefined : notify.find((one) => one.runsProgram)
    if (stopped === undefined) return
    throw new Fault(
      'Local',
      `The receiver ${stopped.name} cannot run its program: ${exec?.off ?? 'no folder is allowed'}`,
      {
        hints: ["Remove it, or allow the folder in the system's svc.yaml: exec: {allow: [FOLDER]}"],
      },
    )
  }

  const opened = async ({ notify: configs = [], exec: programs }: Config): Promise<readonly OpenedReceiver[]> =>
    await Promise.all(
      configs.map(async (one): Promise<OpenedReceiver> => {
        const receiver = await openFor({ server, url: config.serve.url, version, programs, now, log }, one)
        const accepts = ({ type, monitor, ...subject }: StoredSubject, level: 'warning' | 'failed'): boolean =>
          isFor(
            one.only,
            {
              type,
              monitor,
              tags: tagsOf({ type, monitor, ...subject }),
              level,
              isLoad: isLoadSubject({ type, monitor, ...subject }),
            },
            { routes: receiver.mute !== undefined },
          )
        return {
          receiver,
          rules: {
            name: one.name,
            folds: isFolding(receiver),
            remindMs: one.remind ?? Number.POSITIVE_INFINITY,
            // It repeats by itself: silences of its own mute it.
            ignoresSilences: one.silences === 'ignore' || receiver.mute !== undefined,
            accepts,
          },
        }
      }),
    )

  let ignoring: ReadonlySet<string> = new Set()
  const mutes = (receiver: string): readonly Mute[] | undefined => {
    if (ignoring.has(receiver)) return []
    if (!silences.isComplete) return undefined
    const renamed = renamedAmong(states.views().map((view) => ({ subject: view, state: view.state })))
    return mutesOf(silences.rules, (subject) => noticeSubject(server, subject), silences.now, renamed)
  }
  const driver = new NotifyDriver({
    mutes,
    rows,
    storeStates,
    sentWithoutStore,
    lookup,
    lease,
    look: states.look,
    noticeOf,
    now,
    steady,
    isHealthy: watching.isSteady,
    log,
  })
  const withIncidents = (): readonly StoredSubject[] =>
    states.views().flatMap((view) => (view.state.incident ? [view] : []))
  // After the states, which the outbox asks.
  time.onShift((shift) => driver.shift(shift))
  watching.followBacklog(() => driver.backlog())
  states.follow((transition) => driver.transition(transition))
  return {
    open: async () => {
      requireStore(config.notify)
      requirePrograms(config)
    },
    start: async () => {
      // Without receivers the rows of earlier ones are forgotten.
      await driver.restore()
      ignoring = ignoringIn(config)
      driver.use(await opened(config))
    },
    answers: () => driver.begin(withIncidents()),
    reload: async (next) => {
      requireStore(next.notify)
      requirePrograms(next)
      const receivers = await opened(next)
      return () => {
        ignoring = ignoringIn(next)
        for (const before of driver.use(receivers)) void before.close()
        // What has another name from now on is told under it.
        driver.begin(withIncidents())
      }
    },
    metrics: async () => notifyMetrics(driver.figures()),
    mute: () => driver.mute(),
    takeOver: (taken) => {
      for (const key of taken.keys) takenAt.set(key, steady())
      return driver.takeOver(taken)
    },
    again: (stored) => driver.again(stored),
    cancel: () => driver.cancel(),
    close: () => driver.close(),
  }
}

/** The receivers that get everything, silenced or not. */
const ignoringIn = ({ notify = [] }: Config): ReadonlySet<string> =>
  new Set(notify.filter(({ silences }) => silences === 'ignore').map(({ name }) => name))

/** The families of /metrics about notifications. Without receivers there are none. */
function notifyMetrics(figures: readonly ReceiverFigures[]): readonly Family[] {
  if (figures.length === 0) return []
  return [
    {
      name: 'svc_notifications',
      type: 'counter',
      help: 'Messages to receivers by the result of the attempt, and ends of incidents that were given up.',
      samples: figures.flatMap(({ name: receiver, results }) =>
        Object.entries(results).map(([result, value]) => ({ labels: { receiver, result }, value })),
      ),
    },
    {
      name: 'svc_notify_pending',
      type: 'gauge',
      help: 'What a receiver has to know and has not accepted: begins, changes, reminders and ends.',
      samples: figures.map(({ name: receiver, pending }) => ({ labels: { receiver }, value: pending })),
    },
    {
      name: 'svc_notify_last_success_timestamp_seconds',
      type: 'gauge',
      help: 'When a receiver last accepted a message.',
      // One that accepts everything must not hide another one.
      together: 'min',
      samples: figures.flatMap(({ name: receiver, successAt }) =>
        successAt === undefined ? [] : [{ labels: { receiver }, value: Math.floor(successAt / 1_000) }],
      ),
    },
  ]
}
