import { FileStoreOutage } from '../base/errors.ts'
import { lazyMethods, madeOnUse } from '../base/lazy.ts'
import { gated } from './audit-gate.ts'
import type { StoreClock } from './clock.ts'
import type { AuditGate, Data } from './data.ts'
import { guarded, type StoreLink, unavailable, watched } from './link.ts'
import type { SchemaReport } from './own-schema.ts'
import { auditOver } from './rows/audit.ts'
import type { Capacity } from './rows/capacity.ts'
import { digestOver, type NonceKey } from './rows/digest.ts'
import { drillsOver } from './rows/drills.ts'
import { failuresOver } from './rows/failures.ts'
import { type EndMemory, endsOver } from './rows/grants.ts'
import { guessesOver } from './rows/guesses.ts'
import { heartbeatsOver } from './rows/heartbeats.ts'
import { identitiesOver, type SealingKey } from './rows/identities.ts'
import { identityOver } from './rows/identity.ts'
import { keysOver } from './rows/keys.ts'
import { knownPrefixesOver, type PrefixMemory } from './rows/known-prefixes.ts'
import { outboxOver } from './rows/outbox.ts'
import { historyOver, proveHistory } from './rows/periods.ts'
import { proveWrites, readingsOver } from './rows/readings.ts'
import type { SealMemory } from './rows/seals.ts'
import { sessionsOver, settlementsOver, tokensOver } from './rows/sessions.ts'
import { silencesOver } from './rows/silences.ts'
import { statesOver } from './rows/states.ts'
import { sweepOver } from './rows/sweep.ts'
import { usersOver } from './rows/users.ts'
import { WrittenEntries } from './written-entries.ts'

/** The database of the history. */
export type HistoryLink = {
  /** Resolves to undefined if there is none yet and `create` is false. */
  readonly link: (create: boolean) => Promise<StoreLink | undefined>
  /** Closes what only the history uses. Safe to call twice. */
  readonly close: () => Promise<void>
}

/** `isShared`: several nodes may use it. */
type SharedHistory = HistoryLink & { readonly isShared: boolean }

/**
 * The queries on the store, for either database. The clock supplies the times that the store sets itself. A group of
 * queries is made when it is first used.
 */
export function dataOver(opened: StoreLink, clock: StoreClock, openedHistory: SharedHistory): Data {
  let altering: SchemaReport['altering'] = []
  const refusal = () =>
    altering.length === 0 ? undefined : unavailable('is not used: the log of svc serve has the reason')
  const unwatched = guarded(opened, refusal)
  let wrote: (failure: string | undefined) => void = () => {}
  let writesHistory = false
  const history: SharedHistory = {
    ...openedHistory,
    link: async (create) => {
      writesHistory ||= create
      try {
        const link = await openedHistory.link(create)
        return link && watched(guarded(link, refusal), (failure) => wrote(failure))
      } catch (error) {
        if (create && error instanceof FileStoreOutage) wrote(`The store ${error.why}`)
        throw error
      }
    },
  }
  let gate: AuditGate | undefined
  const written = new WrittenEntries()
  const link = gated(
    watched(unwatched, (failure) => wrote(failure)),
    () => gate,
    // Nobody can exchange the files of an embedded store under a process without its noticing that (W10).
    unwatched.files ? undefined : (entries) => written.add(entries),
  )
  const { now } = clock
  const failureCapacity: Capacity = { left: 0 }
  const guessCapacity: Capacity = { left: 0 }
  const prefixes: PrefixMemory = { hex: undefined, recent: new Map() }
  const seals: SealMemory = {
    head: undefined,
    beganAt: undefined,
    floor: 0,
    lookedAt: Number.NEGATIVE_INFINITY,
    limit: undefined,
  }
  const sealingKey: SealingKey = { hex: undefined }
  const nonceKey: NonceKey = { hex: undefined }
  const endMemory: EndMemory = { ends: new Map(), triedAt: Number.NEGATIVE_INFINITY }
  const ends = (own: StoreLink) => endsOver(own, now, endMemory)
  const over: (own: StoreLink) => Data = madeOnUse<StoreLink, Data>({
    users: (own) => usersOver(own, now, ends(own)),
    sessions: (own) => sessionsOver(own, now, prefixes),
    tokens: (own) => tokensOver(own, now),
    keys: (own) => keysOver(own, now, ends(own)),
    heartbeats: (own) => heartbeatsOver(own, now),
    readings: readingsOver,
    failures: (own) => failuresOver(own, failureCapacity),
    guesses: (own) => guessesOver(own, guessCapacity),
    knownPrefixes: (own) => knownPrefixesOver(own, prefixes),
    identities: (own) => identitiesOver(own, sealingKey, now, ends(own)),
    digest: (own) => digestOver(own, now, nonceKey),
    audit: (own) => auditOver(own, now, { forSeals: unwatched, memory: seals, written }),
    silences: (own) => silencesOver(own, now),
    history: () => historyOver(history.link, now),
    states: () => statesOver(history.link, now),
    identity: identityOver,
    outbox: () => outboxOver(history.link),
    drills: () => drillsOver(history.link),
    nodes: (own) =>
      history.isShared
        ? lazyMethods(async () => (await import('./rows/nodes.ts')).nodesOver(history.link, { audited: own, now }))
        : undefined,
    settle: (own) => settlementsOver(own, prefixes),
    sweep: (own) => sweepOver(own, ends(own)),
    clock: () => clock,
    files: ({ files }) => files,
    onWrite: () => (listener) => {
      wrote = listener
    },
    inspect: () => async () => {
      const { inspectSchema } = await import('./inspect-schema.ts')
      const report = await inspectSchema(opened, history.isShared)
      altering = report.altering
      return report
    },
    passAudit: () => (next) => {
      gate = next
    },
    proveWrites: () => async () => {
      await proveWrites(unwatched, now())
      // A file of its own: the log of the store may have room that this one lacks.
      const own = history.isShared ? undefined : await openedHistory.link(writesHistory)
      if (own) await proveHistory(own)
    },
    forRequest: (own) => () => over(own.forRequest()),
    ping: (own) => async (signal) => {
      signal?.throwIfAborted()
      own.checkFiles?.()
      await own.read((db) => db.selectFrom('users').select('id').limit(1).execute())
    },
    close: (own) => async () => {
      await history.close()
      await own.close()
    },
  })
  return over(link)
}
