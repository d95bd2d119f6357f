/** Asks the server named first with the CA file named second, in the environment of its own; prints what it met. */

import { Fault } from '../../src/core/base/errors.ts'
import { openClient } from '../../src/core/client/index.ts'
import { farMs } from '../support/suite/until.ts'

const [, , baseUrl = '', caFile] = process.argv
const client = openClient({ baseUrl, userAgent: 'svc/test', ...(caFile ? { caFile } : {}) })
const request = { ExecutionMode: 'Basic', ServerType: 'Sql' } as const
try {
  const { Status } = await client.healthCheck(request, {
    caller: { kind: 'local', account: 'tester' },
    correlationId: 'child',
    signal: new AbortController().signal,
    timeoutMs: farMs,
  })
  process.stdout.write(String(Status))
} catch (error) {
  process.stdout.write(error instanceof Fault ? `${error.fault}: ${error.message}` : String(error))
}
