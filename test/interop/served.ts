import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { lifetimes, openAccess, Paces, passwordsOfProcess } from '../../src/core/accounts/auth/index.ts'
import { openData } from '../../src/core/store/index.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import { serving } from '../support/program/serving.ts'
import { svcHome } from '../support/program/svc.ts'
import { adminOver } from '../support/store/admin.ts'
import { cheapHash } from '../support/suite/cheap-hash.ts'

export const password = 'violet-harbour-42'

/** `svc serve`, the built program in a process and a home of its own: Ann is Admin, Ned holds no role. */
export async function serveBuilt(): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const home = svcHome()
  for (const [name, ...more] of [['Ann', '--role', 'Admin', '--role', 'Editor'], ['Ned']] as const) {
    const added = await home.svc(['users', 'add', name, ...more, '--password-stdin'], { stdin: password })
    if (added.code !== 0) throw new Error(added.stderr)
  }
  const { folder, env, remove } = home
  const { url, stop } = await serving([], { folder, env, cwd: folder, remove })
  return { url, close: async () => void (await stop()) }
}

/** The same server in this process, with access tokens that really expire after `accessMs`. */
export async function serveShortLived(accessMs: number) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-interop-'))
  const store = join(folder, 'store', 'svc.db')
  const { service, runtime } = await testCore({ store })
  await adminOver(service).users.add(
    { userName: 'Ann', password, roles: ['Admin'] },
    { who: 'local:test', correlationId: 't' },
  )
  const data = await openData({ store, create: false })
  const access = openAccess({
    data,
    passwords: passwordsOfProcess(cheapHash),
    paces: new Paces(),
    now: () => Date.now(),
    lifetimes: { ...lifetimes, access: accessMs },
  })
  let renewals = 0
  const server = await testServer({
    service: {
      ...service,
      authenticate: access.authenticate,
      getAccessToken: (request, call) => {
        renewals += 1
        return access.getAccessToken(request, call)
      },
    },
    runtime,
    limits: { lingerMs: 200 },
  })
  return {
    url: server.url,
    renewals: () => renewals,
    /** Waits until a token is no longer good, by the same clock that the server reads. */
    expiry: async (token: string) => {
      const call = {
        caller: { kind: 'http', address: '127.0.0.1', loopback: true },
        correlationId: 'expiry',
        signal: new AbortController().signal,
      } as const
      for (let waited = 0; waited < 1_000; waited += 1) {
        if (!(await access.identifyCaller({ ...call, credential: { kind: 'bearer', token } }))) return
        await pause(20)
      }
      throw new Error('the token did not expire')
    },
    close: async () => {
      await server.stop()
      await data.close()
      await runtime.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
