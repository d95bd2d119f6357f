/**
 * What svc.yaml may say: small described settings. One table validates the file, writes its JSON
 * Schema, prints `svc monitors kinds` and types the values that a monitor reads.
 */
export type ThresholdUnit = 'duration' | 'percent' | 'bytes' | 'count' | 'ratio' | 'days'
/** Values in base units: milliseconds, percent, bytes, a count, a ratio, days. Inclusive of "ok". */
export type Threshold = { readonly warn?: number | undefined; readonly limit?: number | undefined }

type Base = { readonly doc: string; readonly required?: true }
export type Setting =
  | (Base & { readonly type: 'text'; readonly default?: string; readonly pattern?: RegExp })
  | (Base & { readonly type: 'url'; readonly protocols: readonly string[]; readonly default?: string })
  | (Base & { readonly type: 'number'; readonly default?: number; readonly min?: number; readonly max?: number })
  | (Base & { readonly type: 'integer'; readonly default?: number; readonly min?: number; readonly max?: number })
  | (Base & { readonly type: 'flag'; readonly default?: boolean })
  | (Base & { readonly type: 'duration'; readonly default?: number })
  | (Base & { readonly type: 'bytes'; readonly default?: number })
  | (Base & { readonly type: 'secret' })
  | (Base & { readonly type: 'choice'; readonly values: readonly string[]; readonly default?: string })
  | (Base & { readonly type: 'texts'; readonly default?: readonly string[] })
  | (Base & { readonly type: 'map' })
  | (Base & { readonly type: 'threshold'; readonly unit: ThresholdUnit; readonly default?: Threshold })
  | (Base & { readonly type: 'group'; readonly fields: SettingsSpec })
  | (Base & { readonly type: 'groups'; readonly fields: SettingsSpec })

export type SettingsSpec = { readonly [key: string]: Setting }

type ValueOf<T> = T extends { type: 'text' | 'url' }
  ? string
  : T extends { type: 'number' | 'integer' | 'duration' | 'bytes' }
    ? number
    : T extends { type: 'flag' }
      ? boolean
      : T extends { type: 'secret' }
        ? Secret
        : T extends { type: 'choice'; values: readonly (infer V)[] }
          ? V
          : T extends { type: 'texts' }
            ? readonly string[]
            : T extends { type: 'map' }
              ? Readonly<Record<string, string>>
              : T extends { type: 'threshold' }
                ? Threshold
                : T extends { type: 'group'; fields: infer F }
                  ? Values<F>
                  : T extends { type: 'groups'; fields: infer F }
                    ? readonly Values<F>[]
                    : never

type Present<S> = {
  [K in keyof S]: S[K] extends { required: true } ? K : 'default' extends keyof S[K] ? K : never
}[keyof S]

/** The values of a table of settings: those required or with a default are there. */
export type Values<S> = { readonly [K in Present<S>]: ValueOf<S[K]> } & {
  readonly [K in Exclude<keyof S, Present<S>>]?: ValueOf<S[K]> | undefined
}

/**
 * A secret that svc.yaml points at. It is read when it is used, so a rotated file is picked up, and
 * it shows itself nowhere: not in JSON, not in a template string, not in an inspection.
 */
export class Secret {
  readonly #read: () => Promise<string>
  readonly #origin: string
  constructor(origin: string, read: () => Promise<string>) {
    this.#origin = origin
    this.#read = read
  }
  /** Where it comes from, e.g. `{env: DB_PASSWORD}`: safe to print. */
  get origin(): string {
    return this.#origin
  }
  /** Throws a ProbeError-like Error naming the origin when it cannot be read. */
  reveal(): Promise<string> {
    return this.#read()
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

/** One thing wrong with given settings. `path` leads to the value, from the monitor's own map. */
export type Problem = { readonly path: readonly (string | number)[]; readonly message: string }
