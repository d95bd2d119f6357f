import { storedCredential } from '../../../src/cli/credentials/credentials.ts'
import type { StoredSignIn } from '../../../src/cli/credentials/token-store.ts'
import { openClient } from '../../../src/core/client/index.ts'
import { farMs } from '../suite/until.ts'

/**
 * One of many svc processes: at every `go` it makes a call as a fresh process would, with what is stored, and tells how
 * that went. Its id is in the user agent, so that the server can identify it.
 */
const signIn = JSON.parse(process.argv[2] ?? '') as StoredSignIn
const connection = { baseUrl: signIn.server, userAgent: `svc/${process.pid}`, env: {} }

process.on('message', () => {
  const credential = storedCredential(signIn, process.env, {
    always: false,
    service: () => openClient(connection),
    warn: (text) => process.send?.({ warning: text }),
  })
  const client = openClient({ ...connection, credential })
  const call = {
    caller: { kind: 'local', account: 'test' },
    correlationId: 'c',
    signal: new AbortController().signal,
    timeoutMs: farMs,
  } as const
  client.assignRoles({ UserName: 'bob' }, call).then(
    () => process.send?.({ done: true }),
    (error: unknown) => process.send?.({ done: false, error: String(error) }),
  )
})
// By itself it would wait for its connections, and who is killed leaves no compiled code for the next.
process.once('disconnect', () => process.exit())
process.send?.({ ready: true })
