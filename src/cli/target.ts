import { Fault } from '../core/errors.ts'
import { type ProcessEnvironment, variable } from './flags.ts'
import type { ServerProfile, Settings } from './profiles.ts'

export type TargetFlags = {
  readonly server?: string | undefined
  readonly local?: boolean | undefined
  readonly profile?: string | undefined
}
/** What chose the server: a flag or variable of this call, or the settings. */
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
    }

/**
 * Chooses the target: `--server` > `SVC_SERVER` > `--profile` > `SVC_PROFILE` > current profile > this machine.
 * `--local` forces this machine.
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
  if (flags.server !== undefined) return { kind: 'server', url: flags.server, origin: '--server' }
  const url = variable(env, 'SVC_SERVER')
  if (url !== undefined) return { kind: 'server', url, origin: 'SVC_SERVER' }
  const fromEnv = variable(env, 'SVC_PROFILE')
  const settings = await readSettings()
  const profileName = flags.profile ?? fromEnv ?? settings.current
  if (profileName === undefined) return { kind: 'local' }
  const origin = flags.profile !== undefined ? '--profile' : fromEnv !== undefined ? 'SVC_PROFILE' : 'current profile'
  const { profileNamed } = await import('./profiles.ts')
  const profile = await profileNamed(settings, profileName, origin)
  return { kind: 'server', url: profile.server, origin, profile }
}

/**
 * A new correlation id in the form of a UUID. It identifies log lines, so it must be unique but need not be secret.
 * Loading node:crypto would cost every command 6 ms.
 */
export function newCorrelationId(): string {
  const digits = Array.from({ length: 32 }, () => Math.floor(Math.random() * 16).toString(16)).join('')
  return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5')
}
