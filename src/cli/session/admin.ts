import { Fault } from '../../core/base/errors.ts'
import { nearestHint } from '../../core/base/suggest.ts'
import { notCoveredCode, type UserEntry } from '../../core/protocol/index.ts'
import { fromEntry } from '../../core/protocol/service/facts.ts'
import type { Call, Runtime, Service, UserFacts, ValueProblem } from '../../core/protocol/service/service.ts'
import { connectionFlags, custom, localFlag, reasonFlag, text } from '../command/flags.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { packageJson } from '../io/process.ts'
import { type CommandTarget, chooseEither } from '../settings/target.ts'
import {
  commandPatienceMs,
  localCall,
  openSession,
  readSettings,
  type SessionFlags,
  storePath,
  usedStores,
} from './session.ts'
import { TargetCommand } from './target-command.ts'

/** The flags of a command that works on the files of a store: it has no server as a target. */
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

/** The flags of a command that changes users, keys or agents. */
export const changeFlags = { reason: reasonFlag, ...connectionFlags } as const

/** The rules for the values of users, which are checked before anybody types a password. */
export const loadAccountRules = () => import('../../core/accounts/auth/index.ts')

/** The store of this machine, with the Service over it. */
type OwnStore = NonNullable<Runtime['ownStore']> & { readonly service: Service; readonly store: string }

/** Opens the store of this machine, for this account (P8). Does not read svc.yaml. */
export async function openStore(
  flags: { readonly store?: string | undefined },
  env: ProcessEnvironment,
): Promise<OwnStore & AsyncDisposable> {
  const [{ openCore }, { withoutFile }] = await Promise.all([
    import('../../core/service/open.ts'),
    import('./without-file.ts'),
  ])
  const { service, runtime } = await openCore({
    version: packageJson().version,
    config: withoutFile,
    store: await storePath(flags, env),
    env,
    shared: false,
    patienceMs: commandPatienceMs,
    usedStores: usedStores(env),
    details: 'anyone',
  })
  const { ownStore, facts } = runtime
  if (!ownStore || facts.store === undefined) {
    await runtime.close()
    throw new Fault('Local', 'there is no store to administer', { hints: ['Specify one with --store or SVC_STORE.'] })
  }
  return { ...ownStore, service, store: facts.store, [Symbol.asyncDispose]: runtime.close }
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

/** Administration for one command: the operations for Admins, here or at a server. */
export type AdminSession = {
  readonly service: Service
  readonly call: Call
  /** The store of this machine, or the server. */
  readonly store: string
}

/** A command that administers users, keys, the audit or agents at a server, or in the store of this machine. */
export abstract class AdminCommand extends TargetCommand {
  private stated = false

  /** Says which store is used if other commands act at a server. Call it before the first prompt. */
  protected async sayTarget(flags: SessionFlags): Promise<CommandTarget> {
    const { env } = this.io
    const target = await chooseEither(flags, env, () => readSettings(env))
    if (target.kind === 'server' || this.stated) return target
    this.stated = true
    await this.sayLocal(() => storeLabel(flags, env))
    return target
  }

  /** Opens the target for `work`, names it in failures, and closes it. */
  protected async administer<R>(
    flags: SessionFlags,
    signal: AbortSignal,
    work: (admin: AdminSession) => Promise<R>,
  ): Promise<R> {
    const chosen = await this.sayTarget(flags)
    await using session = await openSession(flags, this.io, { chosen, say: (line) => this.say(line) })
    const store = session.runtime?.facts.store ?? session.label
    this.target = store
    await this.warnOfOtherStore(session.runtime?.facts.store)
    try {
      return await work({ service: session.service, call: localCall(signal), store })
    } catch (error) {
      throw inOwnWords(error)
    }
  }
}

const storeLabel = async (flags: { readonly store?: string | undefined }, env: ProcessEnvironment): Promise<string> => {
  const { shownStore } = await import('../../core/store/index.ts')
  return `the store ${shownStore(await storePath(flags, env))}`
}

/** A command that works on the files of a store of this machine. */
export abstract class StoreCommand extends TargetCommand {
  /** The store for a command that works on its file without opening it here. Names it in failures. */
  protected async storeFile(flags: { readonly store?: string | undefined }): Promise<StoreFile> {
    await this.refuseElsewhere(flags)
    const path = await storePath(flags, this.io.env)
    const { loadBackup, loadRestore, shownStore } = await import('../../core/store/index.ts')
    const label = shownStore(path)
    this.target = label
    await this.warnOfOtherStore(label)
    return { path, label, loadBackup, loadRestore }
  }

  /** Opens the store for `work`, names it in failures, and closes it. */
  protected async inStore<R>(
    flags: { readonly store?: string | undefined; readonly local?: boolean },
    work: (own: OwnStore) => Promise<R>,
  ): Promise<R> {
    await this.refuseElsewhere(flags)
    await using own = await openStore(flags, this.io.env)
    this.target = own.store
    await this.warnOfOtherStore(own.store)
    return await work(own)
  }

  /**
   * Throws Usage where other commands act at a server, unless the command line or a variable names this machine or a store: a
   * command must not work on another store than the one that `svc whoami` means.
   */
  protected async refuseElsewhere(flags: {
    readonly store?: string | undefined
    readonly local?: boolean
  }): Promise<void> {
    const { env } = this.io
    const target = await chooseEither(flags, env, () => readSettings(env))
    if (target.kind === 'local') return await this.sayLocal(() => storeLabel(flags, env))
    throw new Fault('Usage', `this command acts on a store of this machine, and other commands at ${target.url}`, {
      hints: ['For the store of this machine: --local', "For another one: --store, on the server's machine"],
    })
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
  Lifetime: '--expires',
  Provider: '--provider',
  Head: '--head',
  Role: 'ROLE',
  Reason: '--reason',
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

/**
 * A refusal in the words of the command, the same from the store of this machine and from a server: values that break a rule
 * are a mistake of the command line. Other errors as they are.
 */
function inOwnWords(error: unknown): unknown {
  if (!(error instanceof Fault)) return error
  const { hints, fields = [], remoteMessage: message = error.message, remoteStatus } = error.details
  const details = { hints, remoteStatus, cause: error }
  if (error.errorCode === 'Usage') return new Fault('Usage', message, details)
  if (error.errorCode === notCoveredCode) return new Fault('Local', message, details)
  const mistakes = error.fault === 'BadRequest' ? inUserWords(fields) : undefined
  if (mistakes !== undefined || error.errorCode === 'ValidationException') {
    return new Fault('Usage', mistakes ?? message, details)
  }
  return error.fault === 'Conflict' ? new Fault('Conflict', message, details) : error
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

/** The names of users that are similar to an unknown one. */
export const usersNear = async (
  service: Service,
  Like: string,
  call = localCall(new AbortController().signal),
): Promise<readonly string[]> =>
  ((await service.getUsers({ Like }, call)).Users ?? []).map(({ UserName = '' }) => UserName)

/** The answer to an operation about a user. Replaces `NotFound` by one with the nearest name. */
export const orUnknown = <R>({ service, call }: AdminSession, name: string, answer: Promise<R>): Promise<R> =>
  orNearest(answer, name, {
    message: `there is no user "${name}"`,
    near: (typed) => usersNear(service, typed, call),
    hint: (candidates) =>
      candidates.length === 0
        ? 'There are no users yet: svc users add NAME --role Admin'
        : 'svc users list shows the users.',
  })

/** A user by name or e-mail. Throws Fault `NotFound` with the nearest name. */
export const userNamed = async (admin: AdminSession, UserName: string): Promise<UserFacts> =>
  userFactsOf((await orUnknown(admin, UserName, admin.service.getUser({ UserName }, admin.call))).User)

const noRights = { roles: [], permissions: [] }
export const userFactsOf = (entry: UserEntry = {}): UserFacts => ({ ...noRights, ...fromEntry(entry) }) as UserFacts
