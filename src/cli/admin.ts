import { custom } from '@oclif/core/flags'
import { Fault } from '../core/errors.ts'
import { type Admin, type AdminActor, serveDefaults } from '../core/service.ts'
import { text } from './flags.ts'
import { localCall, storePath } from './session.ts'
import { type Environment, variable } from './target.ts'
import { packageJson } from './version.ts'

/** Users, keys and the audit are a store's: these commands have no server to ask. */
export const storeFlags = {
  store: text('store')({ description: "The store's file or postgres:// URL (SVC_STORE)", helpGroup: 'TARGET' }),
  server: custom<never>({
    hidden: true,
    parse: async () => {
      throw new Fault('Usage', '--server is not for this command: it acts on a store, not on a server', {
        hints: ["Run it on the server's machine, or name the server's store with --store."],
      })
    },
  })(),
} as const

export type StoreSession = {
  readonly admin: Admin
  readonly by: AdminActor
  readonly close: () => Promise<void>
}

/** The store of this machine, and this account as who administers it (P8). svc.yaml is not read. */
export async function openAdmin(
  flags: { readonly store?: string | undefined; readonly reason?: string | undefined },
  env: Environment,
  signal: AbortSignal,
): Promise<StoreSession> {
  for (const name of ['SVC_STORE', 'SVC_HOME']) variable(env, name)
  const { openCore } = await import('../core/open.ts')
  const { runtime } = await openCore({
    version: packageJson().version,
    config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] },
    store: await storePath(flags, env),
    shared: false,
    details: 'anyone',
  })
  const { caller, correlationId } = localCall(signal)
  const who = caller.kind === 'local' ? `local:${caller.account}` : '-'
  if (!runtime.admin) {
    await runtime.close()
    throw new Fault('Local', 'There is no store to administer', { hints: ['Name one with --store or SVC_STORE.'] })
  }
  return { admin: runtime.admin, by: { who, correlationId, reason: flags.reason }, close: runtime.close }
}
