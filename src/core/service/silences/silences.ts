import { hostname } from 'node:os'
import { isStoreFailure } from '../../base/errors.ts'
import { filesWithin } from '../../base/files/index.ts'
import type { Run } from '../../checks/engine/index.ts'
import { documentOf, readMonitor, type SilencedResults } from '../../checks/reports/index.ts'
import { type NotSilenced, type RunSilence, ServerType } from '../../protocol/index.ts'
import type { Data } from '../../store/index.ts'
import {
  type Acknowledgement,
  ackEnding,
  isAbout,
  mutesOf,
  type RenamedSubject,
  type ResultOfRun,
  renamedAmong,
  type Silence,
  type SilenceRules,
  silencesOfResult,
} from '../../watch/silences/index.ts'
import type { StoredStates } from '../../watch/states/index.ts'
import type { SilenceOperations } from '../local.ts'
import type { OpenOptions, Part } from '../part.ts'
import { type ProcessTime, processTime } from '../process-time.ts'
import { noticeSubject } from '../watch/notice-subject.ts'
import type { StatesPart } from '../watch/states.ts'
import { silenceOperations } from './silence-answer.ts'
import { SilenceKeeper } from './silence-keeper.ts'

export type SilencePart = Part & {
  readonly keeper: SilenceKeeper
  /** Absent without a store. */
  readonly operations: SilenceOperations | undefined
  /** Which results of a run are silenced. Undefined: none. Never rejects: health does not need the store. */
  readonly resultsIn: (run: Run, type: ServerType) => SilencedResults | undefined | Promise<SilencedResults | undefined>
  /** Sets the function that updates the silences of receivers. */
  readonly muteBy: (mute: () => Promise<readonly NotSilenced[]>) => void
}

/** Milliseconds for files of secrets and of CAs. */
const maxFileMs = 5_000
/** If states were stored within this time, a `svc serve` watches. Milliseconds. */
const watchedMs = 60_000
/** Milliseconds that a command waits for receivers. */
const maxMuteMs = 15_000

/**
 * The silences in force, and the operations about them. In `svc serve`, `states` are those of its schedule; a command
 * reads what that schedule has stored.
 */
export function silencePart({
  options: { config, version, log },
  store,
  states,
  isStandby = () => false,
  time = processTime(),
}: {
  readonly options: Pick<OpenOptions, 'config' | 'version' | 'log'>
  readonly store: ((create: boolean) => Promise<Data>) | undefined
  readonly states: StatesPart | undefined
  /** Whether another node confirms what is known of the monitors of the network. */
  readonly isStandby?: (() => boolean) | undefined
  readonly time?: ProcessTime | undefined
}): SilencePart {
  const { now } = time
  let current = config
  let opened: Data | undefined
  let muteReceivers = async (): Promise<readonly NotSilenced[]> =>
    await muteOnce(current, keeper, async () => renamedAmong(await subjects()), version)
  const data = store && (async (): Promise<Data> => (opened ??= await store(false)))
  const keeper = new SilenceKeeper({
    config,
    store: data && { rows: async () => (await data()).silences, now: () => opened?.clock.now() ?? now() },
    now,
    stateOf: states?.stateOf,
    log,
    // Never during a decision of the outbox.
    onChange: () => void setImmediate(() => void (states ? muteReceivers() : undefined)),
  })
  const ofSchedule = () => (states?.views() ?? []).map((view) => ({ subject: view, state: view.state }))
  const subjects = async () => {
    const own = ofSchedule()
    if (!data || (states && !isStandby())) return own
    const { states: stored } = await (await data()).states.read()
    const others = stored.filter(({ row }) => typeof states?.stateOf(row) !== 'object')
    return [...own, ...others.map(({ row, state }) => ({ subject: row, state }))]
  }
  const operations =
    data &&
    silenceOperations({
      keeper,
      config: () => current,
      subjects,
      mute: async () => {
        if (!states) await keeper.read()
        return await muteReceivers()
      },
    })
  const resultsIn = (
    run: Run,
    type: ServerType,
    rules = keeper.rules,
    renamed = (): readonly RenamedSubject[] => renamedAmong(ofSchedule()),
  ): SilencedResults | undefined =>
    keeper.isIdle ? undefined : silencedResults(run, type, { rules, renamed, now: keeper.now })
  /** Of what the store has, what a command may rely on. Without the store, only silences by the clock are known. */
  const forCommand = async (
    read: () => Promise<Data>,
  ): Promise<{ readonly rules: SilenceRules; readonly renamed: readonly RenamedSubject[] }> => {
    try {
      await keeper.read()
      if (keeper.isIdle) return { rules: keeper.rules, renamed: [] }
      const stored = await (await read()).states.read()
      const renamed = renamedAmong(stored.states.map(({ row, state }) => ({ subject: row, state })))
      return { rules: withoutStaleAcks(keeper.rules, stored), renamed }
    } catch (error) {
      if (!isStoreFailure(error)) throw error
      const entries = keeper.rules.entries.filter(({ what }) => what === 'silence')
      return { rules: { ...keeper.rules, entries }, renamed: [] }
    }
  }
  return {
    keeper,
    operations,
    resultsIn: (run, type) => {
      if (states || !data) return resultsIn(run, type)
      return forCommand(data).then(({ rules, renamed }) => resultsIn(run, type, rules, () => renamed))
    },
    muteBy: (mute) => {
      muteReceivers = mute
    },
    start: async () => {
      // If the store does not answer now, it is read again later.
      if (data) await keeper.read().catch(() => {})
    },
    answers: () => keeper.begin(),
    reload: async (next) => () => {
      current = next
      keeper.use(next)
    },
    cancel: () => keeper.close(),
  }
}

/**
 * The rules without acknowledgements that nobody watches over: only a `svc serve` ends them when their faults are over. One that
 * runs stores its states at least every 10 s.
 */
function withoutStaleAcks(
  rules: SilenceRules,
  { ageMs = Number.POSITIVE_INFINITY, states }: StoredStates,
): SilenceRules {
  const stateOf = (ack: Acknowledgement) =>
    states.find(({ row, state }) => isAbout(ack, row, state))?.state ?? ('removed' as const)
  const entries = rules.entries.filter(
    (entry) => entry.what === 'silence' || (ageMs <= watchedMs && ackEnding(entry, stateOf(entry)) === undefined),
  )
  return { ...rules, entries }
}

/** For a command: opens the receivers that have their own silences, and updates these. */
async function muteOnce(
  { notify = [], serve }: OpenOptions['config'],
  keeper: SilenceKeeper,
  renamed: () => Promise<readonly RenamedSubject[]>,
  version: string,
): Promise<readonly NotSilenced[]> {
  const server = serve.name ?? hostname()
  if (notify.length === 0) return []
  const mutes = mutesOf(keeper.rules, (subject) => noticeSubject(server, subject), keeper.now, await renamed())
  const { openReceiver, receiverKinds } = await import('../../watch/notify/index.ts')
  const silenced = notify.filter(
    ({ kind, silences }) => silences === 'honor' && receiverKinds.some((one) => one.name === kind && one.silences),
  )
  const signal = AbortSignal.timeout(maxMuteMs)
  const failures = await Promise.all(
    silenced.map(async (config): Promise<readonly NotSilenced[]> => {
      const receiver = await openReceiver(config, {
        server,
        url: serve.url,
        version,
        files: filesWithin(maxFileMs, signal),
        now: Date.now,
        warn: () => {},
      })
      try {
        const failed = (await receiver.mute?.(mutes, signal)) ?? []
        return failed.map(({ place, message }) => ({ Receiver: config.name, Place: place, Message: message }))
      } finally {
        await receiver.close()
      }
    }),
  )
  return failures.flat()
}

/** Why svc sends no notifications about a result of a run. */
function silencedResults(
  { monitors }: Run,
  type: ServerType,
  {
    rules,
    renamed,
    now,
  }: { readonly rules: SilenceRules; readonly renamed: () => readonly RenamedSubject[]; readonly now: number },
): SilencedResults {
  let all: readonly RenamedSubject[] | undefined
  return (at, index) => {
    const report = monitors[at]
    const result = report?.results[index]
    if (!report || !result || result.status === 'ok') return undefined
    const { status, fault, cause, message, check } = result
    const of = report.host ? undefined : type
    const isSkipped = fault === 'dependency' && cause !== undefined && message === `not run: ${cause} failed`
    all ??= renamed()
    const item = readMonitor(documentOf(report, () => true, 'full')).results[index]?.item
    const isOne = ({ subject }: RenamedSubject): boolean =>
      subject.type === of && subject.monitor === report.name && subject.check === check && subject.item === item
    const one: ResultOfRun = {
      type: of,
      monitor: report.name,
      check,
      item,
      formerly: all.find(isOne)?.incident.formerly,
      level: status,
      fault: status === 'failed' ? (fault ?? 'internal') : undefined,
      cause: isSkipped ? monitorNamed(cause, type) : undefined,
    }
    const [silence] = silencesOfResult(one, rules, now)
    return silence && markOf(silence)
  }
}

const markOf = ({ source, until, by, reason }: Silence): RunSilence => ({ source, until: new Date(until), by, reason })

/** A monitor as a result names it: monitors of other types have their type as a prefix. */
function monitorNamed(text: string, here: ServerType): ResultOfRun['cause'] {
  const slash = text.indexOf('/')
  const type = ServerType.values.find((one) => one === text.slice(0, Math.max(0, slash)))
  return type === undefined ? { type: here, monitor: text } : { type, monitor: text.slice(slash + 1) }
}
