import type { ConfiguredFiles } from '../files/index.ts'

/**
 * The settings that svc.yaml may contain, with descriptions. One table validates the file, generates its JSON Schema
 * and the output of `svc monitors kinds`, and types the values that a monitor gets.
 */
export type ThresholdUnit = 'duration' | 'percent' | 'bytes' | 'count' | 'ratio' | 'days'
/**
 * Values in base units: milliseconds, percent, bytes, a count, a ratio, days. A value equal to the threshold is "ok".
 */
export type Threshold = { readonly warn?: number | undefined; readonly limit?: number | undefined }
/** How often `svc serve` runs something by itself, in milliseconds by mode, or `off` for never. */
export type Every = 'off' | { readonly [M in 'Basic' | 'Standard' | 'Advanced']?: number | 'off' | undefined }

type Base = {
  readonly doc: string
  readonly required?: true
  /** It only leaves out a part of what its checks look at, so that it demands none of them. */
  readonly narrows?: true
  /**
   * It says what is observed, such as a host, a path or a query: with another value, a monitor observes something else,
   * and the figures of its earlier runs do not count. Every URL does so without this mark. Thresholds, expectations,
   * credentials and trust do not.
   */
  readonly observed?: true
  /** Another word that svc.yaml may use for it. */
  readonly otherWord?: string
  /** The setting of the same table without which it means nothing. */
  readonly needs?: string
}
/** Why a text can never be right, or undefined: the message completes the path of the setting. */
type Mistake = { readonly mistake?: (text: string) => string | undefined }
export type Setting =
  | (Base & Mistake & { readonly type: 'text'; readonly default?: string; readonly pattern?: RegExp })
  | (Base & {
      readonly type: 'url'
      readonly protocols: readonly string[]
      readonly default?: string
      /** Whether a reference to a secret may take the place of the URL. */
      readonly orSecret?: true
    })
  | (Base & { readonly type: 'number'; readonly default?: number; readonly min?: number; readonly max?: number })
  | (Base & { readonly type: 'integer'; readonly default?: number; readonly min?: number; readonly max?: number })
  | (Base & { readonly type: 'flag'; readonly default?: boolean })
  | (Base & { readonly type: 'duration'; readonly default?: number; readonly min?: number; readonly max?: number })
  /** A whole number, or `off` for none. */
  | (Base & {
      readonly type: 'countOrOff'
      readonly default?: number | 'off'
      readonly min: number
      readonly max: number
    })
  | (Base & { readonly type: 'bytes'; readonly default?: number; readonly min?: number; readonly max?: number })
  | (Base & { readonly type: 'secret' })
  | (Base & { readonly type: 'choice'; readonly values: readonly string[]; readonly default?: string })
  | (Base &
      Mistake & {
        readonly type: 'texts'
        readonly default?: readonly string[]
        readonly pattern?: RegExp
        /** Whether a text of the list may be empty, as an argument of a program may. */
        readonly allowsEmpty?: true
      })
  /** From names to texts, or with `secrets` to references to secrets. */
  | (Base & { readonly type: 'map'; readonly secrets?: true })
  | (Base & { readonly type: 'threshold'; readonly unit: ThresholdUnit; readonly default?: Threshold })
  | (Base & {
      readonly type: 'every'
      readonly default?: Every
      /** The shortest intervals, in milliseconds. */
      readonly least: { readonly [M in 'Basic' | 'Standard' | 'Advanced']: number }
    })
  | (Base & {
      readonly type: 'group'
      readonly fields: SettingsSpec
      /** A group that is not given has the defaults of its fields. Without this mark it is undefined. */
      readonly hasDefaults?: true
    })
  | (Base & { readonly type: 'groups'; readonly fields: SettingsSpec })

export type SettingsSpec = { readonly [key: string]: Setting }

type ValueOf<T> = T extends { type: 'url'; orSecret: true }
  ? string | Secret
  : T extends { type: 'text' | 'url' }
    ? string
    : T extends { type: 'number' | 'integer' | 'duration' | 'bytes' }
      ? number
      : T extends { type: 'countOrOff' }
        ? number | 'off'
        : T extends { type: 'flag' }
          ? boolean
          : T extends { type: 'secret' }
            ? Secret
            : T extends { type: 'choice'; values: readonly (infer V)[] }
              ? V
              : T extends { type: 'texts' }
                ? readonly string[]
                : T extends { type: 'map'; secrets: true }
                  ? Readonly<Record<string, Secret>>
                  : T extends { type: 'map' }
                    ? Readonly<Record<string, string>>
                    : T extends { type: 'threshold' }
                      ? Threshold
                      : T extends { type: 'every' }
                        ? Every
                        : T extends { type: 'group'; fields: infer F }
                          ? Values<F>
                          : T extends { type: 'groups'; fields: infer F }
                            ? readonly Values<F>[]
                            : never

type Present<S> = {
  [K in keyof S]: S[K] extends { required: true } | { hasDefaults: true } ? K : 'default' extends keyof S[K] ? K : never
}[keyof S]

/** The values of a table of settings. Those required or with defaults are always present. */
export type Values<S> = { readonly [K in Present<S>]: ValueOf<S[K]> } & {
  readonly [K in Exclude<keyof S, Present<S>>]?: ValueOf<S[K]> | undefined
}

/**
 * A secret that svc.yaml refers to. It is read at each use, so that a rotated file takes effect. It never appears in
 * JSON, in a template string or in an inspection.
 */
export class Secret {
  readonly #read: (files: ConfiguredFiles) => Promise<string>
  readonly #origin: string
  constructor(origin: string, read: (files: ConfiguredFiles) => Promise<string>) {
    this.#origin = origin
    this.#read = read
  }
  /** Where it comes from, e.g. `{env: DB_PASSWORD}`. Safe to print. */
  get origin(): string {
    return this.#origin
  }
  /** Reads the secret. Rejects with an error that names the origin when it cannot be read. */
  reveal(files: ConfiguredFiles): Promise<string> {
    return this.#read(files)
  }
  toString(): string {
    return '[secret]'
  }
  toJSON(): string {
    return '[secret]'
  }
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]'
  }
}

/** One problem of the given settings. `path` leads to the value, from the monitor's own map. */
export type Problem = { readonly path: readonly (string | number)[]; readonly message: string }
