import { homedir, userInfo } from 'node:os'
import type { Call, Runtime, Service } from '../core/service.ts'
import { newCorrelationId } from './correlation.ts'
import { chooseTarget, type Environment, type Target, variable } from './target.ts'
import { packageJson } from './version.ts'

export type SessionFlags = {
  readonly server?: string | undefined
  readonly local?: boolean
  readonly store?: string | undefined
  readonly config?: string | undefined
  readonly 'ca-file'?: string | undefined
  readonly 'insecure-http'?: boolean
}

export type Session = {
  readonly target: Target
  /** How an answer names its target: `this machine` or the server's URL. */
  readonly label: string
  readonly service: Service
  /** In process only. */
  readonly runtime: Runtime | undefined
  readonly close: () => Promise<void>
}

/** A Service for one command: over HTTP when a server is named, else computed here. */
export async function openSession(flags: SessionFlags, env: Environment): Promise<Session> {
  const target = chooseTarget(flags, env)
  if (target.kind === 'server') {
    const { openClient } = await import('../core/client/index.ts')
    const caFile = flags['ca-file'] ?? variable(env, 'SVC_CA_FILE')
    const client = openClient({
      baseUrl: target.url,
      ...(caFile === undefined ? {} : { caFile }),
      insecureHttp: flags['insecure-http'] ?? false,
      userAgent: `svc/${packageJson().version}`,
    })
    return {
      target,
      label: shownUrl(target.url),
      service: client,
      runtime: undefined,
      close: async () => client.close(),
    }
  }
  const { openCore } = await import('../core/open.ts')
  const { service, runtime } = await openCore({
    version: packageJson().version,
    config: await configuration(flags, env),
    store: await storePath(flags, env),
    shared: false,
    details: 'anyone',
  })
  return { target, label: 'this machine', service, runtime, close: runtime.close }
}

/** svc.yaml as `--config`, `SVC_CONFIG`, the user's or the system's folder has it. */
export async function configuration(flags: Pick<SessionFlags, 'config'>, env: Environment) {
  const { loadConfig } = await import('../core/config/index.ts')
  return await loadConfig({
    ...(flags.config === undefined ? {} : { path: flags.config }),
    env,
    platform: process.platform,
    home: homedir(),
  })
}

/** The embedded store's file: `--store`, `SVC_STORE`, `SVC_HOME`, or the platform's folder. */
export async function storePath(flags: Pick<SessionFlags, 'store'>, env: Environment): Promise<string> {
  const { storePathFor } = await import('../core/store/index.ts')
  const given = flags.store === undefined ? env : { ...env, SVC_STORE: flags.store }
  return storePathFor(given, process.platform, homedir())
}

/** A call of this account from this terminal. */
export function localCall(signal: AbortSignal, more: Partial<Call> = {}): Call {
  return { caller: { kind: 'local', account: account() }, correlationId: newCorrelationId(), signal, ...more }
}

function account(): string {
  try {
    return userInfo().username
  } catch {
    // An account without a name in the user database, as in a container.
    return String(process.getuid?.() ?? 'unknown')
  }
}

const shownUrl = (url: string): string => url.replace(/\/+$/, '').replace(/\/\/[^/@]*@/, '//')
