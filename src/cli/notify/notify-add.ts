import { rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Fault } from '../../core/base/errors.ts'
import { defaultsOf, hostAndPort, type Setting } from '../../core/base/settings/index.ts'
import { type LoadedConfig, loadEdit } from '../../core/config/index.ts'
import { type AnyReceiverKind, receiverKinds } from '../../core/watch/notify/index.ts'
import { rowNamed, unknownName } from '../command/flags.ts'
import { askLine, askSecret, canAsk, secretFromStdin } from '../command/prompt.ts'
import type { Io, ProcessEnvironment } from '../io/io.ts'
import { machine } from '../io/process.ts'
import { type ConfigChange, configurationWith, textToChange } from '../session/config-file.ts'
import { type SessionFlags, storeOfThisMachine } from '../session/session.ts'
import { replaceFile, trouble } from '../settings/private-file.ts'

/** Where `svc notify add` puts secrets: never into svc.yaml. */
export type SecretPlace = 'file' | 'keychain' | 'env'

/** The flags that describe the new receiver. */
export type NewReceiver = {
  readonly name?: string | undefined
  /** `SETTING=VALUE` of settings that are no secrets. */
  readonly set?: readonly string[] | undefined
  readonly secrets: SecretPlace
  /** Whether its only secret comes from standard input. */
  readonly stdin: boolean
}

/** A receiver that is not in svc.yaml yet. */
export type Addition = {
  readonly name: string
  readonly change: ConfigChange
  /** Lines about what is left to do: variables to set. */
  readonly notes: readonly string[]
  /** Stores its secrets, and resolves with a function that removes them. Throws `Fault` Local or NoKeychain. */
  readonly keepSecrets: (signal: AbortSignal) => Promise<() => Promise<void>>
}

type Entry = Record<string, unknown>

/**
 * The change of svc.yaml that adds a receiver. Asks for what its kind requires, on a terminal. Throws `Fault` Usage for an
 * unknown kind, and for what is missing without a terminal, and Conflict for a name that there is already.
 */
export async function addition(
  kindName: string,
  flags: NewReceiver,
  { origin, notify = [] }: LoadedConfig & { readonly origin: string },
  io: Io,
  signal: AbortSignal,
): Promise<Addition> {
  const kind = rowNamed(receiverKinds, kindName, 'kind of receiver', 'Kinds')
  const name = flags.name ?? kindName
  if (notify.some((one) => one.name === name)) {
    throw new Fault('Conflict', `${origin} already has a receiver "${name}"; nothing was written`, {
      hints: ['Give another name: --name NAME'],
    })
  }
  const before = await textToChange(origin)
  const settings: Entry = typedSettings(kind, flags.set ?? [])
  const bySetting = new Map<string, string>()
  const secrets = secretsIn(kind)
  if (flags.stdin && secrets.length !== 1) {
    throw new Fault('Usage', `--stdin is for kinds with one secret; ${kindName} requires ${secrets.length}`, {
      hints: ['Without --stdin, svc prompts for each; --secrets env only names variables'],
    })
  }
  for (const [setting, { doc }] of requiredOf(kind)) {
    if (settings[setting] !== undefined) continue
    if (!secrets.includes(setting)) {
      settings[setting] = settingOf(
        kind,
        setting,
        await ask(`${setting} (${doc})`, `--set ${setting}=VALUE`, io, signal),
      )
      continue
    }
    settings[setting] = referenceTo(name, setting, flags.secrets)
    if (flags.secrets !== 'env') bySetting.set(setting, await secretFor(setting, doc, flags, io, signal))
  }
  const { withItem } = await loadEdit()
  const after = await withItem(before, ['notify'], { name, [kindName]: settings })
  const variables = flags.secrets === 'env' ? secrets.map((setting) => variableOf(name, setting)) : []
  return {
    name,
    change: { path: origin, before, after },
    notes: variables.map((variable) => `Set the variable for svc serve: ${variable}=…`),
    keepSecrets: async (stop) => {
      const undo: (() => Promise<void>)[] = []
      for (const [setting, secret] of bySetting)
        undo.push(await keep(kind, name, setting, secret, flags, origin, io, stop))
      return async () => {
        for (const one of undo) await one()
      }
    },
  }
}

/**
 * The configuration with the new receiver. The file had no mistake before, so that each is in what somebody has typed: throws
 * `Fault` Usage that names the arguments, and repeats no value, which may be a secret in the wrong place.
 */
export async function withAddition(
  change: ConfigChange,
  flags: Pick<SessionFlags, 'config'>,
  env: ProcessEnvironment,
): Promise<LoadedConfig> {
  try {
    return await configurationWith(change, flags, env)
  } catch (error) {
    const places = error instanceof Fault ? (error.details.places ?? []) : []
    const mistakes = places.flatMap(({ message }) => {
      // notify[1].ntfy.topic has the invalid value "…": …
      const [path = '', ...words] = message.split(' ')
      const [section = '', first, second = first] = path.split('.')
      const [setting] = second?.split('[') ?? []
      if (!section.startsWith('notify[') || setting === undefined) return []
      const isKind = receiverKinds.some(({ name }) => name === setting)
      const argument = isKind ? setting : setting === 'name' ? '--name' : `--set ${setting}`
      const sentence = words.join(' ').replace(/^has the invalid value ".*"(?=: )/s, 'is invalid')
      const value = sentence.endsWith('"') ? sentence.indexOf(', not "') : -1
      return [`${argument} ${value === -1 ? sentence : sentence.slice(0, value)}`]
    })
    if (mistakes.length === 0) throw error
    throw new Fault('Usage', mistakes.join('; '), {
      hints: ['Nothing was written. Give another value, and run the command again.'],
    })
  }
}

/** The required settings, the address first: people look for the rest there. */
const requiredOf = (kind: AnyReceiverKind): readonly (readonly [string, Setting])[] =>
  Object.entries(kind.settings)
    .filter(([, { required }]) => required === true)
    .toSorted(([one], [other]) => Number(other === 'server') - Number(one === 'server'))

const secretsIn = (kind: AnyReceiverKind): readonly string[] =>
  requiredOf(kind).flatMap(([name, { type }]) => (type === 'secret' ? [name] : []))

/** The settings of `--set`. Throws `Fault` Usage for one that the kind does not have, and for secrets. */
function typedSettings(kind: AnyReceiverKind, written: readonly string[]): Entry {
  return Object.fromEntries(
    written.map((text) => {
      const [setting = '', ...rest] = text.split('=')
      const spec = kind.settings[setting]
      if (spec === undefined) throw unknownName('setting', setting, Object.keys(kind.settings), 'Settings')
      if (spec.type === 'secret') {
        throw new Fault('Usage', `--set ${setting}: a secret does not belong on a command line`, {
          hints: ['svc prompts for it, or reads it with --stdin'],
        })
      }
      if (rest.length === 0) throw new Fault('Usage', `--set ${setting} has no value: write ${setting}=VALUE`)
      return [setting, settingOf(kind, setting, rest.join('='))]
    }),
  )
}

/** A typed text as svc.yaml has it. */
function settingOf(kind: AnyReceiverKind, setting: string, text: string): unknown {
  const type = kind.settings[setting]?.type
  if (type === 'texts') return text.split(',').map((one) => one.trim())
  if (type === 'integer' || type === 'number') return Number(text)
  return type === 'flag' ? text === 'true' : text
}

async function ask(question: string, flag: string, io: Io, signal: AbortSignal): Promise<string> {
  // In svc.yaml, some texts need quotes: here, they may have some.
  if (canAsk(io)) return (await askLine(`${question}:`, io, signal)).trim().replace(/^(['"])(.*)\1$/, '$2')
  throw new Fault('Usage', `${question} is missing`, { hints: [`There is no terminal to prompt for it: ${flag}`] })
}

async function secretFor(
  setting: string,
  doc: string,
  flags: NewReceiver,
  io: Io,
  signal: AbortSignal,
): Promise<string> {
  if (flags.stdin) return (await secretFromStdin('--stdin', io, signal)).trim()
  if (canAsk(io)) return (await askSecret(`${setting} (${doc}):`, io, signal)).trim()
  throw new Fault('Usage', `${setting} is missing`, {
    hints: ['There is no terminal to prompt for it: use --stdin, or --secrets env to name a variable only'],
  })
}

const variableOf = (name: string, setting: string): string =>
  `${name}_${setting.replaceAll(/[A-Z]/g, '_$&')}`
    .toUpperCase()
    .replaceAll(/[^A-Z0-9_]/g, '_')
    .replace(/^(?=\d)/, '_')
const secretName = (name: string, setting: string): string => `${name}-${setting}`

/** The reference to a secret as svc.yaml has it. */
function referenceTo(name: string, setting: string, place: SecretPlace): object {
  if (place === 'env') return { env: variableOf(name, setting) }
  return place === 'keychain'
    ? { keychain: secretName(name, setting) }
    : { file: `${secretName(name, setting)}.secret` }
}

/** Stores one secret. Resolves with a function that removes it. */
async function keep(
  kind: AnyReceiverKind,
  name: string,
  setting: string,
  secret: string,
  { secrets, set = [] }: NewReceiver,
  config: string,
  { env }: { readonly env: ProcessEnvironment },
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  if (secrets === 'keychain') {
    const { keepSecret, placeOf, proveKeychain, removeSecret } = await import('../keychain/secrets.ts')
    const target = kind.target({ ...defaultsOf(kind.settings), ...typedSettings(kind, set) })
    if (target?.host === undefined || target.port === undefined) {
      throw new Fault('Usage', `a secret of ${kind.name} cannot be bound to a host, as the keychain demands`, {
        hints: ['Use --secrets file, or give its address: --set server=https://HOST'],
      })
    }
    await proveKeychain(env)
    await keepSecret(
      secretName(name, setting),
      { secret, ...placeOf(hostAndPort(target.host, target.port)) },
      env,
      signal,
    )
    return async () => void (await removeSecret(secretName(name, setting), env, signal))
  }
  const path = join(dirname(config), `${secretName(name, setting)}.secret`)
  try {
    replaceFile(path, `${secret}\n`, 0o600, await ownerFor(config))
  } catch (error) {
    throw trouble(path, 'written', error)
  }
  return async () => rmSync(path, { force: true })
}

/** The account that reads the file: that of the service on this machine if root writes it, else that of svc.yaml. */
async function ownerFor(config: string): Promise<{ readonly uid: number; readonly gid: number } | undefined> {
  if (machine.accountId() !== 0) return undefined
  const service = await storeOfThisMachine()
  return statSync(service?.isUsed === true ? service.home : config)
}
