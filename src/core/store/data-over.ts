import type { Data } from './data.ts'
import type { StoreLink } from './link.ts'
import { auditOver } from './rows/audit.ts'
import { failuresOver, type Room } from './rows/failures.ts'
import { heartbeatsOver } from './rows/heartbeats.ts'
import { keysOver } from './rows/keys.ts'
import { readingsOver } from './rows/readings.ts'
import { sessionsOver, tokensOver } from './rows/sessions.ts'
import { sweepOver } from './rows/sweep.ts'
import { usersOver } from './rows/users.ts'

/** The queries on the store, for either database. `now` supplies the times that the store sets itself. */
export function dataOver(link: StoreLink, now: () => number): Data {
  const room: Room = { left: 0 }
  const over = (own: StoreLink): Data => ({
    users: usersOver(own, now),
    sessions: sessionsOver(own, now),
    tokens: tokensOver(own, now),
    keys: keysOver(own, now),
    heartbeats: heartbeatsOver(own, now),
    readings: readingsOver(own),
    failures: failuresOver(own, room),
    audit: auditOver(own, now),
    sweep: sweepOver(own),
    forRequest: () => over(own.forRequest()),
    ping: async (signal) => {
      signal?.throwIfAborted()
      await own.read((db) => db.selectFrom('users').select('id').limit(1).execute())
    },
    close: own.close,
  })
  return over(link)
}
