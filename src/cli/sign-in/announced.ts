import { type ClientOptions, openClient } from '../../core/client/index.ts'
import { Fault } from '../../core/errors.ts'
import { changesWanted } from '../../core/protocol/index.ts'
import type { Call } from '../../core/service.ts'
import { isRecord, readJson } from './openid/json.ts'

/** Milliseconds. The sign-in is complete, and the answer only saves a request later. */
const patience = 3_000

/**
 * Whether the server announces in /metadata/app.json that it answers role changes with the lists before them (O8).
 * Undefined when there is no answer. Sends no credential: the document is public.
 */
export async function announcesChanges(connection: ClientOptions, call: Call): Promise<boolean | undefined> {
  const { credential: _, ...options } = connection
  const client = openClient(options)
  try {
    const answer = await client.ask(
      { method: 'GET', path: '/metadata/app.json', headers: [], body: undefined },
      { ...call, timeoutMs: patience },
    )
    const { meta } = (answer.fault ? undefined : readJson(answer.bytes)) ?? {}
    return isRecord(meta) && meta[changesWanted.key] === changesWanted.value
  } catch (error) {
    if (!(error instanceof Fault) || call.signal.aborted) throw error
    return undefined
  } finally {
    client.close()
  }
}
