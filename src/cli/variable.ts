import { Fault } from '../core/errors.ts'

export type Environment = Readonly<Record<string, string | undefined>>

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
