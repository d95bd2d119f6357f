import { Fault } from '../../core/base/errors.ts'
import { isObject } from '../../core/base/json.ts'
import { type ClientOptions, openClient } from '../../core/client/index.ts'
import { changesRequest } from '../../core/protocol/index.ts'
import type { Call } from '../../core/protocol/service/service.ts'
import { readJson } from './openid/json.ts'

/** Milliseconds. The sign-in is complete, and the answer only saves a request later. */
const patience = 3_000

/** Asks the server for /metadata/app.json. Sends no credential: the document is public. `ms`: the time for the request. */
export async function askAppDocument(connection: ClientOptions, call: Call, ms: number) {
  const { credential: _, ...options } = connection
  using client = openClient(options)
  const request = { method: 'GET', path: '/metadata/app.json', headers: [], body: undefined }
  return await client.ask(request, { ...call, timeoutMs: ms })
}

/**
 * Whether the server announces in /metadata/app.json that it answers role changes with the lists before them (O8).
 * Undefined if the server does not answer.
 */
export async function announcesRoleChanges(connection: ClientOptions, call: Call): Promise<boolean | undefined> {
  try {
    const answer = await askAppDocument(connection, call, patience)
    const { meta } = (answer.fault ? undefined : readJson(answer.bytes)) ?? {}
    return isObject(meta) && meta[changesRequest.key] === changesRequest.value
  } catch (error) {
    if (!(error instanceof Fault) || call.signal.aborted) throw error
    return undefined
  }
}
