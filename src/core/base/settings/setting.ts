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
/** The value is an expectation, which may be a negation. */
type Negatable = { readonly negatable?: true }
/** A text, /pattern/ or comparison that a value may not meet. */
export type Negation = { readonly not: string }
/** A text, /pattern/ or comparison that a value has to meet, or a negation. */
export type Expectation = string | Negation
/** `notAbove`: the setting beside it with the maximum of the same figure. */
type Minimum = { readonly notAbove?: string }
/** The use of a secret: a part of a `header` or of a `line` of a protocol, or a `private key`. */
export type SecretForm = 'header' | 'line' | 'private key'
/** The content of a file of which svc.yaml gives the path: `certificates` in PEM, or a `text`. */
export type FileForm = 'certificates' | 'text'
export type Setting =
  | (Base &
      Mistake &
      Negatable & {
        readonly type: 'text'
        readonly default?: string
        readonly pattern?: RegExp
        /** It is a path, and must be absolute. */
        readonly absolute?: true
        /** It is the path of a file that svc reads in each run, and warns of when svc.yaml is read. */
        readonly file?: FileForm
      })
  | (Base & {
      readonly type: 'url'
      readonly protocols: readonly string[]
      readonly default?: string
      /** Whether a reference to a secret may take the place of the URL. */
      readonly orSecret?: true
    })
  | (Base & { readonly type: 'number'; readonly default?: number; readonly min?: number; readonly max?: number })
  | (Base &
      Minimum & { readonly type: 'integer'; readonly default?: number; readonly min?: number; readonly max?: number })
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
  | (Base & {
      readonly type: 'secret'
      /** Where it is sent, if that cannot contain every character, or what else it has to be. */
      readonly form?: SecretForm
    })
  | (Base & { readonly type: 'choice'; readonly values: readonly string[]; readonly default?: string })
  | (Base &
      Mistake & {
        readonly type: 'texts'
        readonly default?: readonly string[]
        readonly pattern?: RegExp
        /** Whether a text of the list may be empty, as an argument of a program may. */
        readonly allowsEmpty?: true
        /** An empty list is a mistake, because nothing could meet it. */
        readonly needsOne?: true
      })
  | (Base &
      Negatable & {
        /** From names to texts, or with `secrets` to references to secrets. */
        readonly type: 'map'
        readonly secrets?: true
        /** Why an entry can never be right, or undefined: the message completes its path. */
        readonly mistake?: (text: string, key: string) => string | undefined
        /** Equal for two keys that mean the same: for names of headers, their lower case. Default: the key itself. */
        readonly sameKey?: (key: string) => string
      })
  | (Base &
      Minimum & {
        readonly type: 'threshold'
        readonly unit: ThresholdUnit
        readonly default?: Threshold
        /** Whether the value must be at least this. Needed only where the default does not have both halves to show it. */
        readonly isMinimum?: true | 'unknown'
      })
  /** Any value of YAML, with references to secrets in the places of texts. */
  | (Base & Mistake & { readonly type: 'template' })
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

type TextOf<T> = T extends { negatable: true } ? Expectation : string

type ValueOf<T> = T extends { type: 'url'; orSecret: true }
  ? string | Secret
  : T extends { type: 'text' | 'url' }
    ? TextOf<T>
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
              : T extends { type: 'template' }
                ? Template
                : T extends { type: 'texts' }
                  ? readonly string[]
                  : T extends { type: 'map'; secrets: true }
                    ? Readonly<Record<string, Secret>>
                    : T extends { type: 'map' }
                      ? Readonly<Record<string, TextOf<T>>>
                      : T extends { type: 'threshold' }
                        ? Threshold
                        : T extends { type: 'every' }
                          ? Every
                          : T extends { type: 'group'; fields: infer F }
                            ? Values<F>
                            : T extends { type: 'groups'; fields: infer F }
                              ? readonly Values<F>[]
                              : never

/** A value of YAML whose texts are filled in later, and whose secrets are read later. */
export type Template =
  | string
  | number
  | boolean
  | null
  | Secret
  | readonly Template[]
  | { readonly [key: string]: Template }

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
