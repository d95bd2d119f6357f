import type { Data } from './data.ts'
import { type StoreLink, watched } from './link.ts'
import { auditOver } from './rows/audit.ts'
import { digestOver, type NonceKey } from './rows/digest.ts'
import { failuresOver } from './rows/failures.ts'
import { guessesOver } from './rows/guesses.ts'
import { heartbeatsOver } from './rows/heartbeats.ts'
import { identitiesOver, type SealingKey } from './rows/identities.ts'
import { keysOver } from './rows/keys.ts'
import { knownPrefixesOver, type PrefixMemory } from './rows/known-prefixes.ts'
import { proveWrites, readingsOver } from './rows/readings.ts'
import type { Room } from './rows/room.ts'
import { sessionsOver, tokensOver } from './rows/sessions.ts'
import { settlementsOver } from './rows/settlement.ts'
import { sweepOver } from './rows/sweep.ts'
import { usersOver } from './rows/users.ts'
import type { StoreClock } from './store-clock.ts'

/** The queries on the store, for either database. The clock supplies the times that the store sets itself. */
export function dataOver(unwatched: StoreLink, clock: StoreClock): Data {
  let wrote: (failure: string | undefined) => void = () => {}
  const link = watched(unwatched, (failure) => wrote(failure))
  const { now } = clock
  const roomForFailures: Room = { left: 0 }
  const roomForGuesses: Room = { left: 0 }
  const prefixes: PrefixMemory = { hex: undefined, recent: new Map() }
  const sealingKey: SealingKey = { hex: undefined }
  const nonceKey: NonceKey = { hex: undefined }
  const over = (own: StoreLink): Data => ({
    users: usersOver(own, now),
    sessions: sessionsOver(own, now, prefixes),
    tokens: tokensOver(own, now),
    keys: keysOver(own, now),
    heartbeats: heartbeatsOver(own, now),
    readings: readingsOver(own),
    failures: failuresOver(own, roomForFailures),
    guesses: guessesOver(own, roomForGuesses),
    knownPrefixes: knownPrefixesOver(own, prefixes),
    identities: identitiesOver(own, sealingKey, now),
    digest: digestOver(own, now, nonceKey),
    audit: auditOver(own, now),
    settle: settlementsOver(own, prefixes),
    sweep: sweepOver(own),
    clock,
    files: own.files,
    onWrite: (listener) => {
      wrote = listener
    },
    proveWrites: () => proveWrites(unwatched, now()),
    forRequest: () => over(own.forRequest()),
    ping: async (signal) => {
      signal?.throwIfAborted()
      own.checkFiles?.()
      await own.read((db) => db.selectFrom('users').select('id').limit(1).execute())
    },
    close: own.close,
  })
  return over(link)
}
