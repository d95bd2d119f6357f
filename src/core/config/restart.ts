import { isDeepStrictEqual } from 'node:util'
import { Secret } from '../base/settings/index.ts'
import type { Config } from './load.ts'

/** The settings of `serve:` that a reload may change. All others have effect at the start only. */
const liveSettings: readonly string[] = ['every']

/** The settings that differ in two configurations and have effect at the start only: `serve.origins`, `auth`. */
export function restartSettings(before: Config, after: Config): readonly string[] {
  const [old, next]: readonly Readonly<Record<string, unknown>>[] = [before.serve, after.serve]
  const names = [...new Set([...Object.keys(old ?? {}), ...Object.keys(next ?? {})])]
  const changed = names.filter((name) => !liveSettings.includes(name) && !isDeepStrictEqual(old?.[name], next?.[name]))
  const auth = written(before.auth) === written(after.auth) ? [] : ['auth']
  return [...changed.map((name) => `serve.${name}`), ...auth]
}

/** A secret as its origin: where it comes from is what the file says. */
const written = (value: unknown): string =>
  JSON.stringify(value ?? null, function (this: Readonly<Record<string, unknown>>, key, now: unknown) {
    const secret = this[key]
    return secret instanceof Secret ? `secret ${secret.origin}` : now
  })
