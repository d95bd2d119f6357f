import { statSync } from 'node:fs'
import { uniqueId } from '../../core/base/format.ts'
import { lazy, lazyMethods } from '../../core/base/lazy.ts'
import type { Client, CredentialSource } from '../../core/client/index.ts'
import type { LoadedConfig, LoadOptions } from '../../core/config/index.ts'
import type { Call, Runtime, Service } from '../../core/protocol/service/service.ts'
import type { OpenOptions } from '../../core/service/open.ts'
import type { ServiceStore } from '../../core/store/index.ts'
import { variable } from '../command/flags.ts'
import type { Io, ProcessEnvironment } from '../io/io.ts'
import { homeOf, machine, packageJson, thisMachine } from '../io/process.ts'
import type { Settings } from '../settings/profiles.ts'
import { type CommandTarget, chooseEither } from '../settings/target.ts'

export type SessionFlags = {
  readonly server?: string | undefined
  readonly local?: boolean
  readonly profile?: string | undefined
  readonly store?: string | undefined
  readonly config?: string | undefined
  readonly 'ca-file'?: string | undefined
  readonly 'insecure-http'?: boolean
}

export type CommandSession = {
  /** The environment that decided what it is. */
  readonly env: ProcessEnvironment
  readonly target: CommandTarget
  /** The target as answers name it: `this machine` or the server's URL. */
  readonly label: string
  readonly service: Service
  /** Present only in process. */
  readonly runtime: Runtime | undefined
  /** Present only in process. */
  readonly config?: LoadedConfig | undefined
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** The place that an answer names: the target, and in process also the store. */
export function placeOf({ label, runtime }: CommandSession): string {
  const store = runtime?.facts.store
  return store === undefined ? label : `${label} · ${store}`
}

export const readSettings = async (env: ProcessEnvironment): Promise<Settings> =>
  (await import('../settings/profiles.ts')).readSettings(env)

/** Warnings about the sign-in go to standard error. */
type SessionIo = Pick<Io, 'env' | 'stderr'>

export type OpeningOptions = {
  /**
   * Whether the command needs svc.yaml in process. Administration does not: a mistake in the file must not keep anybody
   * from taking a role away.
   */
  readonly readsConfig?: boolean
  readonly tolerant?: boolean
  readonly requireConfig?: boolean
  /** Gets a note for the user about what the command line overrides. */
  readonly say?: (line: string) => void
  /** The target of a command that acts at servers only. */
  readonly chosen?: CommandTarget
}

/**
 * A Service for one command: over HTTP when a server is chosen, otherwise in process. With `tolerant`, entries of
 * svc.yaml with mistakes become monitors that never pass. With `requireConfig`, svc in process does not check itself.
 */
export async function openSession(
  flags: SessionFlags,
  io: SessionIo,
  { readsConfig = false, tolerant = false, requireConfig = false, say, chosen }: OpeningOptions = {},
): Promise<CommandSession> {
  const { env } = io
  const target = chosen ?? (await chooseEither(flags, env, () => readSettings(env)))
  // A variable that is set but empty is refused for every target.
  const token = variable(env, 'SVC_TOKEN')
  if (target.kind === 'server') {
    const { overridden = [], origin } = target
    for (const name of overridden) {
      const meaning = name === 'SVC_SERVER' ? '' : ', which means this machine'
      say?.(`Note: ${origin} takes precedence over ${name}${meaning}`)
    }
    const client = await openClientAt(target, flags, io, token)
    return {
      env,
      target,
      label: shownUrl(target.url),
      service: client,
      runtime: undefined,
      [Symbol.asyncDispose]: async () => client.close(),
    }
  }
  const { openCore } = await import('../../core/service/open.ts')
  const config = readsConfig ? await configuration(flags, env, { tolerant, mustRun: tolerant }) : undefined
  const { service, runtime } = await openCore({
    version: packageJson().version,
    config: config ?? (await import('./without-file.ts')).withoutFile,
    store: await storePath(flags, env),
    env,
    shared: false,
    details: 'anyone',
    requireConfig,
    ...accountFiles(env),
    usedStores: usedStores(env),
    patienceMs: readsConfig ? undefined : commandPatienceMs,
    tryNow: async (...monitor) => {
      const { testCommand } = await import('../render/hints.ts')
      return `try now: ${testCommand(flags, ...monitor)}`
    },
  })
  return { env, target, label: thisMachine, service, runtime, config, [Symbol.asyncDispose]: runtime.close }
}

/** How long a command that administers waits for other processes that write to the embedded store. Milliseconds. */
export const commandPatienceMs = 15_000

/** The client of a server, which sends SVC_TOKEN or the credential of the sign-in there. */
export async function openClientAt(
  target: ServerTarget,
  flags: SessionFlags,
  io: SessionIo,
  token = variable(io.env, 'SVC_TOKEN'),
): Promise<Client> {
  const { openClient } = await import('../../core/client/index.ts')
  const connection = connectionOf(target, flags, io.env)
  const provided =
    token === undefined
      ? undefined
      : (await import('../credentials/credentials.ts')).tokenFromEnvironment(target, io.env)
  return openClient({ ...connection, credential: credentialFor(target, provided, connection, io) })
}

type ServerTarget = Extract<CommandTarget, { kind: 'server' }>
type Connection = {
  readonly baseUrl: string
  readonly caFile: string | undefined
  readonly insecureHttp: boolean
  readonly userAgent: string
  /** Names the proxy. */
  readonly env: ProcessEnvironment
}

/** The settings of the connection to a server: flag > environment > profile. */
export function connectionOf(target: ServerTarget, flags: SessionFlags, env: ProcessEnvironment): Connection {
  return {
    baseUrl: target.url,
    caFile: flags['ca-file'] ?? variable(env, 'SVC_CA_FILE') ?? target.profile?.caFile,
    insecureHttp: flags['insecure-http'] || target.profile?.insecureHttp || false,
    userAgent: `svc/${packageJson().version}`,
    env,
  }
}

/** The credential for a server: SVC_TOKEN, or that of the sign-in there, which is read on demand. */
export function credentialFor(
  target: ServerTarget,
  provided: string | undefined,
  connection: Connection,
  io: SessionIo,
): CredentialSource {
  const always = target.profile?.credentials === 'always'
  const source = lazy(async (): Promise<CredentialSource | undefined> => {
    if (provided !== undefined) return (await import('../credentials/credentials.ts')).fixedCredential(provided, always)
    const { signedInAt } = await import('../credentials/credentials.ts')
    return signedInAt(target, await readSettings(io.env), connection, io)
  })
  return {
    always,
    current: async () => (await source.get())?.current(),
    renew: async (rejected, signal) => (await source.get())?.renew(rejected, signal),
  }
}

/** The svc.yaml that `--config` or `SVC_CONFIG` names, or that of the user's or the system's folder. */
export async function configuration(
  flags: Pick<SessionFlags, 'config'>,
  env: ProcessEnvironment,
  {
    tolerant = false,
    mustRun = false,
    ...reading
  }: Pick<LoadOptions, 'tolerant' | 'mustRun' | 'reload' | 'files'> = {},
): Promise<LoadedConfig> {
  const { loadConfig } = await import('../../core/config/index.ts')
  return await loadConfig({
    ...(flags.config === undefined ? {} : { path: flags.config }),
    tolerant,
    mustRun,
    ...reading,
    env,
    platform: machine.platform,
    home: homeOf(env),
    keychain: async (name) => await (await import('../keychain/secrets.ts')).readSecret(name, env),
  })
}

/** Warnings about what will run: drivers that are missing, and more runs than one process can carry. */
export async function loadWarnings(
  { types, serve }: Pick<LoadedConfig, 'types' | 'serve'>,
  env: ProcessEnvironment,
): Promise<readonly string[]> {
  const { loadDriverNeeds, loadScheduleLoad } = await import('../../core/config/index.ts')
  const [{ driverWarnings }, { scheduleWarnings }] = await Promise.all([loadDriverNeeds(), loadScheduleLoad()])
  return [...driverWarnings(types, { env, home: homeOf(env) }), ...scheduleWarnings(types, serve)]
}

/** The mistakes of a file that was read although it has some, one line each. */
export const mistakesOf = ({ mistakeLines, invalidEntries }: LoadedConfig): readonly string[] => [
  ...mistakeLines,
  ...invalidEntries.flatMap(({ lines }) => lines),
]

/**
 * The notes of this account for its other commands, in private files: refused sign-ins, which they do not repeat, and answers
 * of registries. Commands of an account without a writable folder remember none.
 */
export const accountFiles = (env: ProcessEnvironment) => ({
  refusals: accountFile(env, 'refused-sign-ins'),
  rdapAnswers: accountFile(env, 'rdap-answers'),
})

function accountFile(env: ProcessEnvironment, name: string): NonNullable<OpenOptions['refusals']> {
  const load = () => import('../settings/private-file.ts')
  type ConfiguredFiles = Awaited<ReturnType<typeof load>>
  const folderIn = ({ stateFolder }: ConfiguredFiles): string => stateFolder(env)
  const fileIn = (files: ConfiguredFiles): string => `${folderIn(files)}/${name}.json`
  return {
    read: async () => {
      const files = await load()
      await files.awaitShare(fileIn(files))
      return files.readPrivate(fileIn(files), 'unreadable')
    },
    write: async (text) => {
      const files = await load()
      await files.awaitShare(fileIn(files))
      files.ownFolder(folderIn(files))
      files.writePrivate(fileIn(files), text)
    },
  }
}

/**
 * The store that a command means: `--store`, `SVC_STORE`, `SVC_HOME`; for the account of `svc.service` that of the service
 * (P8); else a file in the platform's folder. Throws Usage for a variable that is set but empty: a missing CI secret must
 * not select another store.
 */
export async function storePath(
  flags: Pick<SessionFlags, 'store'>,
  env: ProcessEnvironment,
  look: LookForService = storeOfThisMachine,
): Promise<string> {
  const { storePathFor } = await import('../../core/store/index.ts')
  const provided = flags.store === undefined ? env : { ...env, SVC_STORE: flags.store }
  for (const name of ['SVC_STORE', 'SVC_HOME']) variable(provided, name)
  const isChosen = ['SVC_STORE', 'SVC_HOME', 'XDG_DATA_HOME'].some((name) => provided[name] !== undefined)
  // The service itself has the environment of its unit, whatever the files of the unit say by now.
  const isService = env['SYSTEMD_EXEC_PID'] === String(machine.pid)
  const service = isChosen || isService ? undefined : await look()
  if (service && service.account === machine.accountName() && !isOtherHome(homeOf(env), service.home))
    return service.place
  return storePathFor(provided, machine.platform, homeOf(env))
}

export type LookForService = () => Promise<ServiceStore | undefined>

/** The store of `svc.service`. Costs next to nothing on a machine without that unit. */
export const storeOfThisMachine: LookForService = async () => {
  const { hasUnit, loadServiceStore } = await import('../../core/store/index.ts')
  return machine.platform === 'linux' && hasUnit() ? await (await loadServiceStore())() : undefined
}

/** Whether HOME chooses another folder of this account. That of another one is left over from `runuser` or `setpriv`. */
function isOtherHome(home: string, ofAccount: string): boolean {
  try {
    return home !== ofAccount && statSync(home).uid === machine.accountId()
  } catch {
    return false
  }
}

/** A call of this account from this terminal. */
export function localCall(signal: AbortSignal, more: Partial<Call> = {}): Call {
  return { caller: localCaller, correlationId: uniqueId(), signal, ...more }
}

/** Servers do not get the account's name, so it is looked up only when read. */
const localCaller: Call['caller'] = {
  kind: 'local',
  get account() {
    return machine.accountName()
  },
}

export const shownUrl = (url: string): string => url.replace(/(?<!\/)\/+$/, '').replace(/\/\/[^/@]*@/, '//')

/** The notes about the stores that `svc serve` of this account uses. Loaded where there is a store. */
export const usedStores = (env: ProcessEnvironment): NonNullable<OpenOptions['usedStores']> =>
  lazyMethods(async () => (await import('../settings/private-file.ts')).usedStores(env))
