import { Fault } from '../../core/base/errors.ts'
import { nearestHint } from '../../core/base/suggest.ts'
import type { Admin, AdminActor, DigestConsent, UserFacts, ValueProblem } from '../../core/protocol/service/service.ts'
import { custom, localFlag, reasonFlag, text } from '../command/flags.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { packageJson } from '../io/process.ts'
import { commandPatienceMs, localCall, storePath, usedStores } from './session.ts'
import { TargetCommand } from './target-command.ts'

/** Users, keys and the audit belong to a store: these commands have no server as a target. */
export const storeFlags = {
  store: text('store')({ description: "The store's file or postgres:// URL (SVC_STORE)", helpGroup: 'TARGET' }),
  local: localFlag,
  server: custom<never>({
    hidden: true,
    parse: async () => {
      throw new Fault('Usage', '--server is not valid here: this command acts on a store, not on a server', {
        hints: ["Run it on the server's machine, or name the server's store with --store."],
      })
    },
  })(),
} as const

/** The flags of a command that changes the store. */
export const changeFlags = { reason: reasonFlag, ...storeFlags } as const

/** Whether the flags of a command ask for a digest secret (A12). */
export const digestConsent = (flags: {
  readonly digest?: boolean | undefined
  readonly 'digest-for-admin'?: boolean | undefined
}): DigestConsent | undefined => {
  const forAdmin = flags['digest-for-admin'] === true
  return flags.digest || forAdmin ? { forAdmin } : undefined
}

export type StoreSession = {
  readonly admin: Admin
  readonly by: AdminActor
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** Opens the store of this machine, with this account as the administrator (P8). Does not read svc.yaml. */
export async function openAdmin(
  flags: { readonly store?: string | undefined; readonly reason?: string | undefined },
  env: ProcessEnvironment,
  signal: AbortSignal,
): Promise<StoreSession> {
  const [{ openCore }, { withoutFile }] = await Promise.all([
    import('../../core/service/open.ts'),
    import('./without-file.ts'),
  ])
  const { runtime } = await openCore({
    version: packageJson().version,
    config: withoutFile,
    store: await storePath(flags, env),
    env,
    shared: false,
    patienceMs: commandPatienceMs,
    usedStores: usedStores(env),
    details: 'anyone',
  })
  const { caller, correlationId } = localCall(signal)
  const who = caller.kind === 'local' ? `local:${caller.account}` : '-'
  if (!runtime.admin) {
    await runtime.close()
    throw new Fault('Local', 'there is no store to administer', { hints: ['Specify one with --store or SVC_STORE.'] })
  }
  return {
    admin: runtime.admin,
    by: { who, correlationId, reason: flags.reason },
    [Symbol.asyncDispose]: runtime.close,
  }
}

/** Whether the store is a file that exists. */
export async function hasStoreFile(
  flags: { readonly store?: string | undefined },
  env: ProcessEnvironment,
): Promise<boolean> {
  const { existsSync } = await import('node:fs')
  const store = await storePath(flags, env)
  // No file has the name of a postgres:// URL.
  return existsSync(store)
}

type StoreFile = {
  /** A path or a URL, which may contain a password. */
  readonly path: string
  /** The same for people. */
  readonly label: string
} & Pick<typeof import('../../core/store/index.ts'), 'loadBackup' | 'loadRestore'>

/** A command that administers this machine's store. */
export abstract class StoreCommand extends TargetCommand {
  private storeStated = false

  /** States which store is used if other commands act at a server. Call it before the first prompt. */
  protected async sayStore(flags: { readonly store?: string | undefined }): Promise<void> {
    if (this.storeStated) return
    this.storeStated = true
    await this.sayLocal(async () => {
      const { shownStore } = await import('../../core/store/index.ts')
      return `the store ${shownStore(await storePath(flags, this.io.env))}`
    })
  }

  /** The store for a command that works on its file without opening it here. Names it in failures. */
  protected async storeFile(flags: { readonly store?: string | undefined }): Promise<StoreFile> {
    await this.sayStore(flags)
    const path = await storePath(flags, this.io.env)
    const { loadBackup, loadRestore, shownStore } = await import('../../core/store/index.ts')
    const label = shownStore(path)
    this.target = label
    await this.warnOfOtherStore(label)
    return { path, label, loadBackup, loadRestore }
  }

  /** Opens the store for `work`, names it in failures, and closes it. */
  protected async inStore<R>(
    flags: { readonly store?: string | undefined },
    signal: AbortSignal,
    work: (store: StoreSession) => Promise<R>,
  ): Promise<R> {
    await this.sayStore(flags)
    await using session = await openAdmin(flags, this.io.env, signal)
    this.target = session.admin.store
    await this.warnOfOtherStore(session.admin.store)
    try {
      return await work(session)
    } catch (error) {
      throw brokenRules(error) ?? error
    }
  }
}

/** The user's names for the fields of a request: an argument, a flag, or the thing itself. */
const inputs: Readonly<Record<string, string>> = {
  UserName: 'NAME',
  Name: 'NAME',
  Password: 'the password',
  Email: '--email',
  DisplayName: '--display-name',
  Roles: '--role',
  Permissions: '--permission',
  From: '--from',
  Subject: '--subject',
  ExpiresInMs: '--expires',
}

/** The problems as one sentence without its full stop, in words of the command line; undefined if there are none. */
export function inUserWords(problems: readonly ValueProblem[]): string | undefined {
  const sentences = problems.map(({ FieldName, Message }) =>
    Message.replace(/^'[^']*' /, () => `${inputs[FieldName] ?? FieldName} `).replace(/\.$/, ''),
  )
  return sentences.length === 0 ? undefined : sentences.join('; ')
}

/** Throws Usage if there are problems. */
export function refuseProblems(problems: readonly ValueProblem[]): void {
  const sentence = inUserWords(problems)
  if (sentence !== undefined) throw new Fault('Usage', sentence)
}

/** Values that break a rule are a mistake of the command line, not of a request: a Fault Usage. Undefined for others. */
function brokenRules(error: unknown): Fault | undefined {
  if (!(error instanceof Fault) || error.errorCode !== 'ValidationException') return undefined
  const sentence = inUserWords(error.details.fields ?? [])
  return sentence === undefined ? undefined : new Fault('Usage', sentence, { hints: error.details.hints, cause: error })
}

/** Returns the result of `work`. Replaces its Fault `NotFound` by one with `message`, the nearest name and a hint. */
export async function orNearest<R>(
  work: Promise<R>,
  name: string,
  otherwise: {
    readonly message: string
    readonly near: (name: string) => Promise<readonly string[]>
    readonly hint: (candidates: readonly string[]) => string
  },
): Promise<R> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof Fault) || error.fault !== 'NotFound') throw error
    const candidates = await otherwise.near(name)
    throw new Fault('NotFound', otherwise.message, {
      hints: [...nearestHint(name, candidates), otherwise.hint(candidates)],
    })
  }
}

/** A user of the store by name or e-mail. Throws Fault `NotFound` with the nearest name. */
export const userNamed = (admin: Admin, name: string): Promise<UserFacts> =>
  orNearest(admin.users.show(name), name, {
    message: `there is no user "${name}"`,
    near: admin.users.near,
    hint: (candidates) =>
      candidates.length === 0
        ? 'There are no users yet: svc users add NAME --role Admin'
        : 'svc users list shows the users.',
  })
