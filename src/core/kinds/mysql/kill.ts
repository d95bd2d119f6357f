import { setTimeout as pause } from 'node:timers/promises'
import type { Connection } from 'mysql2'
import { type PeerSocket, partingMs, within } from '../../database/index.ts'
import { queried, signedIn } from './read.ts'

/** What is to be ended: a session, or only what it runs. */
export type Victim = {
  readonly what: 'CONNECTION' | 'QUERY'
  readonly thread: number
  /** Stands in the statement under way, and in no other. */
  readonly mark: string
  /** Whether it may still come up, where it has just been sent. */
  readonly coming: () => boolean
}

type Second = {
  readonly reach: (limit: AbortSignal) => Promise<PeerSocket>
  readonly connect: (over: PeerSocket) => Connection
}

/** Milliseconds after which a statement that has not yet come up is looked for again. */
const againMs = 40

/**
 * Ends it from a connection of its own. Behind a balancer that may lead to another server, where a
 * stranger has the same id: killed is only what runs the very statement. Never throws; ends after
 * `partingMs`, without an answer where none has come until then.
 */
export async function killed(
  victim: Victim,
  { reach, connect }: Second,
): Promise<'killed' | 'not found' | 'no answer'> {
  const limit = AbortSignal.timeout(partingMs)
  const over = await reach(limit).catch(() => undefined)
  if (!over) return 'no answer'
  let outcome: 'killed' | 'not found' | 'no answer' = 'no answer'
  const ended = async (): Promise<void> => {
    const second = connect(over)
    await signedIn(second)
    while (!(await isOurs(second, victim))) {
      outcome = 'not found'
      if (!victim.coming()) return
      await pause(againMs, undefined, { signal: limit })
    }
    await queried(second, `KILL ${victim.what} ${victim.thread}`)
    outcome = 'killed'
  }
  await within(ended(), partingMs)
  over.destroy()
  return outcome
}

/** Every account may see what it runs itself. This statement holds the mark as well. */
async function isOurs(second: Connection, { thread, mark }: Victim): Promise<boolean> {
  const found = await queried(
    second,
    `SELECT id FROM information_schema.processlist
      WHERE id = ${thread} AND id <> CONNECTION_ID() AND LOCATE('${mark}', info) > 0`,
  )
  return found.length === 1
}
