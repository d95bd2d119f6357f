import { setTimeout as wait } from 'node:timers/promises'
import {
  AlteredStore,
  Fault,
  FileStoreOutage,
  isStoreFailure,
  NewerStore,
  StoreOutage,
  shuttingDown,
} from '../base/errors.ts'
import { lazy } from '../base/lazy.ts'
import type { Data } from './data.ts'
import { type DataOptions, openData } from './open-data.ts'
import { shownStore, storeKind } from './path.ts'
import type { KeeperLog } from './upkeep/keeper.ts'

/** Milliseconds between two attempts to open a store that did not answer at the start. */
const tryAgainMs = 2_000
/** Milliseconds that such an attempt may wait for the lock of an embedded store: monitors run in the same process. */
const laterBusyMs = 20
/** Milliseconds between two attempts to write the note about a store. */
const noteAgainMs = 10_000

export type HoldOptions = Pick<DataOptions, 'env' | 'patienceMs' | 'usedStores'> & {
  /** Once it aborts, nothing is opened, and attempts to do so end. An open store can still be used. */
  readonly signal: AbortSignal
  readonly log?: KeeperLog | undefined
}

/** Why `svc serve` does without its store, or without what it keeps of monitors there: it is too old for the schema. */
export type Newer = { readonly what: 'store' | 'history'; readonly fault: NewerStore }

export type StoreHolder = {
  /**
   * In `svc serve`: opens the store, and makes it if it does not exist. With a schema that is too new it is left alone. If
   * it cannot be used at the moment, `begin` opens it later.
   */
  readonly open: () => Promise<Newer | undefined>
  /**
   * In `svc serve`, after `open`: runs what comes before all other use. If the store is not open, this returns at once, and
   * happens as soon as the store can be opened; until then `data` rejects.
   */
  readonly begin: (useFirst: (data: Data) => Promise<void>) => Promise<void>
  /** Opened once, on first use. `create` makes the store if it does not exist. */
  readonly data: (create: boolean) => Promise<Data>
  /** Called after the signal has aborted. Safe to call twice. */
  readonly close: () => Promise<void>
}

/** A store that is opened on first use. */
export function holdStore(
  store: string,
  { env = process.env, patienceMs, signal, usedStores, log = () => {} }: HoldOptions,
): StoreHolder {
  const isEmbedded = storeKind(store) === 'sqlite'
  const opened = lazy((create: boolean) => {
    const busyMs = outage === undefined ? undefined : laterBusyMs
    return openData({ store, create, env, patienceMs, signal, usedStores, busyMs })
  })
  let closed = false
  /** Why the store is not used. */
  let refusal: Fault | undefined
  /** Why it could not be opened at the start, and the attempts to open it since then. */
  let outage: Fault | undefined
  let opening: Promise<void> | undefined
  const data = async (create: boolean): Promise<Data> => {
    if (closed) throw shuttingDown()
    if (refusal) throw refusal
    if (signal.aborted && !opened.peek()) throw shuttingDown()
    return await opened.get(create)
  }
  const warn = ({ message, details }: Fault, effect: string): void =>
    log({ level: 'warn', msg: [`${message}: ${effect}.`, ...(details.hints ?? [])].join(' ') })
  const settle = (newer: Newer | undefined): Newer | undefined => {
    if (newer?.what === 'store') refusal = new Fault('Unavailable', newer.fault.reason)
    if (newer) warn(newer.fault, effectOf[newer.what])
    return newer
  }
  /**
   * Tries again until `attempt` resolves or the signal aborts (W16). Callers are answered until then without the place of
   * the store. The log, which has the first reason, gets each new one: a wrong password, for example, is known only when
   * the server answers, and may be corrected meanwhile.
   */
  const openLater = async (attempt: () => Promise<void>, first: Fault): Promise<void> => {
    let lastReason = reasonOf(first)
    for (;;) {
      try {
        await wait(tryAgainMs, undefined, { signal })
        return await attempt()
      } catch (error) {
        if (signal.aborted) return
        refusal = refusalOf(error)
        const reason = reasonOf(error)
        if (reason !== lastReason) log({ level: 'warn', msg: `The store is still not used: ${reason}` })
        lastReason = reason
      }
    }
  }
  const away = (error: unknown, isOutage: (error: unknown) => error is Fault): Fault => {
    if (signal.aborted || !isOutage(error)) throw error
    outage = error
    refusal = refusalOf(error)
    const isAltered = error instanceof AlteredStore
    warn(
      error,
      `${effectOf.store} until ${isAltered ? 'that is removed' : isEmbedded ? 'that has changed' : 'the store answers'}`,
    )
    return error
  }
  /** Once this server uses a store in a file, none is made in its place. */
  const remember = async (): Promise<void> => {
    if (!isEmbedded || usedStores === undefined) return
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      try {
        return await usedStores.note(store)
      } catch (error) {
        const effect = 'if the file of the store goes missing, the next svc serve makes an empty one'
        if (attempt === 0) log({ level: 'warn', msg: `${reasonOf(error)}: ${effect}` })
      }
      await wait(noteAgainMs, undefined, { signal, ref: false }).catch(() => {})
    }
  }
  return {
    open: async () => {
      try {
        return settle(await newerIn(opened.get, isEmbedded))
      } catch (error) {
        away(error, isAway)
        // Nothing has to be loaded when the store answers.
        await Promise.all([import('./results-link.ts'), import('./rows/nodes.ts')])
        return undefined
      }
    },
    begin: async (useFirst) => {
      const first =
        outage ??
        (await data(false)
          .then(useFirst)
          .then(
            () => undefined,
            // Whatever is unavailable before the first use, such as a stream on a full disk, is tried again too.
            (error: unknown) => away(error, isUnavailable),
          ))
      if (!first) return void remember()
      const attempt = async (): Promise<void> => {
        const newer = await newerIn(opened.get, isEmbedded)
        if (newer?.what !== 'store') {
          await useFirst(await opened.get(false))
          refusal = undefined
          void remember()
          log({ level: 'info', msg: `The store ${shownStore(store)} answers: this server uses it from now on` })
        }
        settle(newer)
      }
      opening = openLater(attempt, first)
    },
    data,
    close: async () => {
      if (closed) return
      closed = true
      await opening
      await (await opened.peek()?.catch(() => undefined))?.close()
    },
  }
}

/** The effect on `svc serve` of a store that cannot be used, or of a history in it that cannot. */
const effectOf: Readonly<Record<Newer['what'], string>> = {
  store: 'this server runs its monitors without it, and has no sign-in, roles, silences or history',
  history: 'this server stores nothing of what its monitors show, and has no history',
}

/** Opens a store. In PostgreSQL, the tables of the history have a version of their own, and nodes coordinate in them. */
async function newerIn(opened: (create: boolean) => Promise<Data>, isEmbedded: boolean): Promise<Newer | undefined> {
  let what: Newer['what'] = 'store'
  try {
    const { history } = await opened(true)
    what = 'history'
    if (!isEmbedded) await history.open()
  } catch (error) {
    if (error instanceof NewerStore) return { what, fault: error }
    // Whoever needs the history opens it again.
    if (what === 'store' || !isStoreFailure(error)) throw error
  }
  return undefined
}

/** Whether a server goes on without the store, and tries again: whatever else it is, it is no mistake in a setting. */
const isAway = (error: unknown): error is Fault =>
  error instanceof StoreOutage || error instanceof FileStoreOutage || error instanceof AlteredStore
const isUnavailable = (error: unknown): error is Fault =>
  isAway(error) || (error instanceof Fault && error.fault === 'Unavailable')

/** The answer to callers while the store is not used. */
const refusalOf = (error: unknown): Fault => {
  const isNamed = error instanceof StoreOutage || error instanceof FileStoreOutage
  return new StoreOutage(isNamed ? error.why : 'is not used: the log of svc serve has the reason', {})
}

function reasonOf(error: unknown): string {
  if (error instanceof Fault) return [error.message, ...(error.details.hints ?? [])].join('. ')
  if (isStoreFailure(error)) return (error as Error).message
  return `svc failed unexpectedly: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
}
