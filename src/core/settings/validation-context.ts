import { didYouMean } from '../suggest.ts'
import type { SecretSources } from './secret.ts'
import type { Problem, Setting } from './setting.ts'

export type SettingsContext = SecretSources & {
  /** Tells whether a secret's file is there, for a warning; left out, files are not looked for. */
  readonly exists?: ((path: string) => boolean) | undefined
}

export type Reading = { readonly problems: Problem[]; readonly warnings: Problem[]; readonly context: SettingsContext }
/** Where in the settings a value stands, and how to say what is wrong with it. */
export type At = {
  readonly reading: Reading
  readonly in: (step: string | number) => At
  /** Gives undefined, so that a reader can return what it reports. */
  readonly wrong: (message: string) => undefined
  readonly warn: (message: string) => void
}

export const place = (path: readonly (string | number)[], reading: Reading): At => ({
  reading,
  in: (step) => place([...path, step], reading),
  wrong: (message) => {
    reading.problems.push({ path, message })
    return undefined
  },
  warn: (message) => {
    reading.warnings.push({ path, message })
  },
})

/** What YAML gives for a map. */
export type Raw = Readonly<Record<string, unknown>>
export const isMap = (value: unknown): value is Raw =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A setting of one type. */
export type Of<T extends Setting['type']> = Extract<Setting, { readonly type: T }>

/** The sentence for a key that nobody knows. */
export function unknownKey(key: string, known: readonly string[]): string {
  const meant = didYouMean(key, known)
  if (meant !== undefined) return `is not a setting here: did you mean \`${meant}\`?`
  return known.length === 0
    ? 'is not a setting here: there are none, so remove it'
    : `is not a setting here: remove it, or use one of ${[...known].sort().join(', ')}`
}

/** A wrong value as a sentence may repeat it. */
export function told(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  const shown = typeof value === 'string' ? JSON.stringify(value) : String(value as number | boolean)
  return shown.length > 42 ? `${shown.slice(0, 40)}…` : shown
}
