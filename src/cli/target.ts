import { Fault } from '../core/errors.ts'

export type Environment = Readonly<Record<string, string | undefined>>
/** Where a command acts: a server, or this machine, in process. */
export type Target =
  | { readonly kind: 'local' }
  | { readonly kind: 'server'; readonly url: string; readonly origin: string }

/**
 * A variable that is set but empty is an error, never "not given": a gate in CI must not turn green
 * by checking its own runner because a secret is missing.
 */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name]
  if (value !== undefined && value.trim() === '') {
    throw new Fault('Usage', `${name} is set but empty`, { hints: [`Give ${name} a value, or unset it.`] })
  }
  return value
}

/** `--server` > `SVC_SERVER` > this machine. `--local` forces this machine. */
export function chooseTarget(
  flags: { readonly server?: string | undefined; readonly local?: boolean },
  env: Environment,
): Target {
  if (flags.local && flags.server !== undefined) {
    throw new Fault('Usage', '--local and --server contradict each other', { hints: ['Leave one of them out.'] })
  }
  if (flags.local) return { kind: 'local' }
  if (flags.server !== undefined) return { kind: 'server', url: flags.server, origin: '--server' }
  const url = variable(env, 'SVC_SERVER')
  return url === undefined ? { kind: 'local' } : { kind: 'server', url, origin: 'SVC_SERVER' }
}
