import type { Data } from './data.ts'
import type { Link } from './link.ts'
import { auditOver } from './rows/audit.ts'
import { failuresOver } from './rows/failures.ts'
import { heartbeatsOver } from './rows/heartbeats.ts'
import { keysOver } from './rows/keys.ts'
import { readingsOver } from './rows/readings.ts'
import { sessionsOver } from './rows/sessions.ts'
import { sweepOver } from './rows/sweep.ts'
import { tokensOver } from './rows/tokens.ts'
import { usersOver } from './rows/users.ts'

/** The questions that are asked of the store, over either database. `now` is for what the store dates itself. */
export function dataOver(link: Link, now: () => number): Data {
  return {
    users: usersOver(link, now),
    sessions: sessionsOver(link, now),
    tokens: tokensOver(link, now),
    keys: keysOver(link, now),
    heartbeats: heartbeatsOver(link, now),
    readings: readingsOver(link),
    failures: failuresOver(link),
    audit: auditOver(link, now),
    sweep: sweepOver(link),
    ping: async (signal) => {
      signal?.throwIfAborted()
      await link.read((db) => db.selectFrom('users').select('id').limit(1).execute())
    },
    close: link.close,
  }
}
