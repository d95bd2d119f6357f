import { Fault } from '../../core/base/errors.ts'
import { variable } from '../command/flags.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import type { ServerProfile, Settings } from './profiles.ts'

export type TargetFlags = {
  readonly server?: string | undefined
  readonly local?: boolean | undefined
  readonly profile?: string | undefined
}
/** The flags that name a svc.yaml or a store, and with it this machine. */
export type LocalFlags = { readonly config?: string | undefined; readonly store?: string | undefined }
/** The origin of the choice of the server: a flag or variable of this call, or the settings. */
export type Origin = '--server' | 'SVC_SERVER' | '--profile' | 'SVC_PROFILE' | 'current profile'
/** The target of a command: a server, or this machine in process. */
export type CommandTarget =
  | { readonly kind: 'local' }
  | {
      readonly kind: 'server'
      readonly url: string
      readonly origin: Origin
      /** The chosen profile. Absent when a URL selected the server. */
      readonly profile?: ServerProfile | undefined
      /** The variables for other places that a flag overrides: for this machine, and SVC_SERVER for `--profile`. */
      readonly overridden?: readonly string[]
    }

/**
 * Chooses the target: a flag > `SVC_SERVER` > `SVC_PROFILE` > current profile > this machine. `--local` forces this
 * machine. Throws Usage for flags that name different places.
 */
export async function chooseTarget(
  flags: TargetFlags,
  env: ProcessEnvironment,
  readSettings: () => Promise<Settings>,
): Promise<CommandTarget> {
  if (flags.local) {
    const other = flags.server !== undefined ? '--server' : flags.profile !== undefined ? '--profile' : undefined
    if (other === undefined) return { kind: 'local' }
    throw new Fault('Usage', `--local and ${other} cannot be combined`, { hints: ['Omit one of them.'] })
  }
  if (flags.server !== undefined && flags.profile !== undefined) {
    throw new Fault('Usage', '--server and --profile cannot be combined: both choose a server', {
      hints: ['Omit one of them.'],
    })
  }
  if (flags.server !== undefined) return { kind: 'server', url: flags.server, origin: '--server' }
  const url = variable(env, 'SVC_SERVER')
  const overridden = url !== undefined && flags.profile !== undefined ? ['SVC_SERVER'] : []
  if (url !== undefined && flags.profile === undefined) return { kind: 'server', url, origin: 'SVC_SERVER' }
  const fromEnv = variable(env, 'SVC_PROFILE')
  const settings = await readSettings()
  const profileName = flags.profile ?? fromEnv ?? settings.current
  if (profileName === undefined) return { kind: 'local' }
  const origin = flags.profile !== undefined ? '--profile' : fromEnv !== undefined ? 'SVC_PROFILE' : 'current profile'
  const { profileNamed } = await import('./profiles.ts')
  const profile = await profileNamed(settings, profileName, origin)
  return { kind: 'server', url: profile.server, origin, overridden, profile }
}

/**
 * The target of a command that acts at a server or on this machine. `--config` and `--store` mean this machine: they
 * override SVC_SERVER, SVC_PROFILE and the current profile. So do SVC_CONFIG and SVC_STORE over the current profile.
 * Throws Usage where two flags, or two variables, mean different places: guessing would check the wrong one.
 */
export async function chooseEither(
  flags: TargetFlags & LocalFlags,
  env: ProcessEnvironment,
  readSettings: () => Promise<Settings>,
): Promise<CommandTarget> {
  const localFlag = flags.config !== undefined ? '--config' : flags.store !== undefined ? '--store' : undefined
  const localVariable = ['SVC_CONFIG', 'SVC_STORE'].find((name) => variable(env, name) !== undefined)
  const serverFlag = flags.server !== undefined ? '--server' : flags.profile !== undefined ? '--profile' : undefined
  const serverVariable = ['SVC_SERVER', 'SVC_PROFILE'].find((name) => variable(env, name) !== undefined)
  if (localFlag !== undefined && serverFlag !== undefined) {
    throw new Fault('Usage', `${localFlag} and ${serverFlag} cannot be combined: ${localFlag} means this machine`, {
      hints: ['Omit one of them.'],
    })
  }
  if (flags.local || serverFlag !== undefined) {
    const target = await chooseTarget(flags, env, readSettings)
    if (target.kind === 'local' || localVariable === undefined) return target
    return { ...target, overridden: [localVariable, ...(target.overridden ?? [])] }
  }
  if (localFlag !== undefined) return { kind: 'local' }
  if (localVariable !== undefined && serverVariable !== undefined) {
    throw new Fault('Usage', `${localVariable} means this machine, and ${serverVariable} a server: both are set`, {
      hints: [
        `Unset one of them, or choose with ${localVariable === 'SVC_CONFIG' ? '--config' : '--store'}, --local or --server.`,
      ],
    })
  }
  return localVariable === undefined ? await chooseTarget(flags, env, readSettings) : { kind: 'local' }
}
