import { hostname } from 'node:os'
import { filesWithin } from '../files/index.ts'
import type { QuietOperations } from '../local.ts'
import { type ReceiverConfig, receiverKinds } from '../notify/index.ts'
import type { NotSilenced } from '../protocol/index.ts'
import { mutesOf } from '../quiet/index.ts'
import { timelineOf } from '../schedule/index.ts'
import type { Data } from '../store/index.ts'
import { noticeSubject } from './notify.ts'
import type { OpenOptions, Part } from './part.ts'
import { quietOperations } from './quiet-answer.ts'
import { QuietKeeper } from './quiet-keeper.ts'
import type { StatesPart } from './states.ts'

export type QuietPart = Part & {
  readonly keeper: QuietKeeper
  /** Absent without a store. */
  readonly operations: QuietOperations | undefined
  /** Takes what brings the silences of receivers up to date. */
  readonly muteBy: (mute: () => Promise<readonly NotSilenced[]>) => void
}

/** Milliseconds for files of secrets and of CAs. */
const maxFileMs = 5_000
/** Milliseconds that a command waits for receivers. */
const maxMuteMs = 15_000

/**
 * What is silent, and the operations about it. In `svc serve`, `states` are those of its schedule; a command reads what that
 * schedule has stored.
 */
export function quietPart({
  options: { config, version, log },
  store,
  states,
}: {
  readonly options: Pick<OpenOptions, 'config' | 'version' | 'log'>
  readonly store: ((create: boolean) => Promise<Data>) | undefined
  readonly states: StatesPart | undefined
}): QuietPart {
  const now = timelineOf({ wall: Date.now, monotonic: () => performance.now() })
  let current = config
  let opened: Data | undefined
  let muteReceivers = async (): Promise<readonly NotSilenced[]> => await muteOnce(current, keeper, version)
  const data = store && (async (): Promise<Data> => (opened ??= await store(false)))
  const keeper = new QuietKeeper({
    config,
    store: data && { rows: async () => (await data()).quiets, now: () => opened?.clock.now() ?? now() },
    now,
    stateOf: states?.stateOf,
    log,
    // Never within a decision of the outbox.
    onChange: () => void setImmediate(() => void (states ? muteReceivers() : undefined)),
  })
  const operations =
    data &&
    quietOperations({
      keeper,
      config: () => current,
      subjects: async () => {
        if (states) return states.views().map((view) => ({ subject: view, state: view.state }))
        const { states: stored } = await (await data()).states.read()
        return stored.map(({ row, state }) => ({ subject: row, state }))
      },
      mute: async () => {
        if (!states) await keeper.read()
        return await muteReceivers()
      },
    })
  return {
    keeper,
    operations,
    muteBy: (mute) => {
      muteReceivers = mute
    },
    start: async () => {
      // A store that does not answer now is read again later.
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

/** For a command: opens the receivers that have silences of their own, and brings these up to date. */
async function muteOnce(
  { notify = [], serve }: OpenOptions['config'],
  keeper: QuietKeeper,
  version: string,
): Promise<readonly NotSilenced[]> {
  const server = serve.name ?? hostname()
  const mutes = mutesOf(keeper.rules, (subject) => noticeSubject(server, subject), keeper.now)
  const silenced = notify.filter(hasSilences)
  if (silenced.length === 0) return []
  const { openReceiver } = await import('../notify/index.ts')
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

const hasSilences = ({ kind, quiet }: ReceiverConfig): boolean =>
  quiet === 'honor' && receiverKinds.some(({ name, silences }) => name === kind && silences === true)
