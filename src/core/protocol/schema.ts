/**
 * The schema kit. A schema is a plain object of few shapes, so a single walk can validate, bind a query, list CSV
 * columns, write OpenAPI or print help. Types are inferred from schemas.
 *
 * In memory a date is a `Date` and a duration is a number of milliseconds.
 */
export type Text = {
  readonly kind: 'text'
  /** The most characters (code points) of a text in a request. */
  readonly max?: number
  /**
   * The pattern that a text in a request must match, with the flag `u`. A function, because making a pattern loads the
   * tables of Unicode, which takes 4 ms.
   */
  readonly pattern?: () => RegExp
  /** The text that a text in a request must not be. The operation checks it. */
  readonly not?: string
  /**
   * The operation itself refuses a request without this field, after it has authorized the caller. A `required` field is
   * refused on arrival.
   */
  readonly needed?: true
  /**
   * It names who or what the request is about: a user, an agent, a role. Sources of a request that differ in it are
   * refused (N7), because a proxy or a log in front of svc may go by another source.
   */
  readonly names?: true
  /** The operation itself checks `max`, after it has authorized the caller. Otherwise it is checked on arrival. */
  readonly late?: true
  /** A password, a key or a code. It is refused in queries (N7), and an operation that has one answers in no batch (R3). */
  readonly secret?: true
}
export type Flag = { readonly kind: 'flag' }
export type Num = { readonly kind: 'number'; readonly integer: boolean } & Range
export type Instant = { readonly kind: 'date' }
/** `min` and `max` are milliseconds. */
export type Duration = { readonly kind: 'duration' } & Range
/** The smallest and the largest value in a request. The operation checks them. */
export type Range = { readonly min?: number; readonly max?: number }
export type Choice<V extends string = string> = {
  readonly kind: 'choice'
  /** The enumeration's name on the wire, e.g. `ServerType`. */
  readonly name: string
  /** In the interface's order. On the wire a value may also be given by number, counted from 1. */
  readonly values: readonly V[]
}
export type ListSchema<I extends Schema = Schema> = { readonly kind: 'list'; readonly item: I }
export type TextMap = {
  readonly kind: 'map'
  /** The keys for which null is a mistake. Elsewhere it means that there is no such entry. */
  readonly neverNull?: (key: string) => boolean
}
export type Dto<F extends Fields = Fields> = {
  readonly kind: 'dto'
  readonly name: string
  /** In the interface's order, which is also the order on the wire, in CSV and in docs. */
  readonly fields: F
}
/** Marks a required field. */
export type Required<S extends Schema = Schema> = { readonly kind: 'required'; readonly of: S }

export type Schema =
  | Text
  | Flag
  | Num
  | Instant
  | Duration
  | Choice
  | { readonly kind: 'list'; readonly item: Schema }
  | TextMap
  | { readonly kind: 'dto'; readonly name: string; readonly fields: Fields }
export type Field = Schema | { readonly kind: 'required'; readonly of: Schema }
export type Fields = { readonly [name: string]: Field }

type InferField<F> = F extends { kind: 'required'; of: infer S } ? Infer<S> : Infer<F>
type RequiredNames<F> = { [N in keyof F]: F[N] extends { kind: 'required' } ? N : never }[keyof F]

/** The TypeScript type of a schema's values. */
export type Infer<S> = S extends { kind: 'text' }
  ? string
  : S extends { kind: 'flag' }
    ? boolean
    : S extends { kind: 'number' } | { kind: 'duration' }
      ? number
      : S extends { kind: 'date' }
        ? Date
        : S extends { kind: 'choice'; values: readonly (infer V)[] }
          ? V
          : S extends { kind: 'list'; item: infer I }
            ? readonly Infer<I>[]
            : S extends { kind: 'map' }
              ? Readonly<Record<string, string>>
              : S extends { kind: 'dto'; fields: infer F }
                ? { readonly [N in RequiredNames<F>]: InferField<F[N]> } & {
                    readonly [N in Exclude<keyof F, RequiredNames<F>>]?: InferField<F[N]> | undefined
                  }
                : never

export const text: Text = { kind: 'text' }
/** A password, a key or a code. */
export const secretText: Text = { kind: 'text', secret: true }
export const flag: Flag = { kind: 'flag' }
export const number: Num = { kind: 'number', integer: false }
export const integer: Num = { kind: 'number', integer: true }
export const date: Instant = { kind: 'date' }
export const duration: Duration = { kind: 'duration' }
export const map: TextMap = { kind: 'map' }
export const choice = <const V extends string>(name: string, values: readonly V[]): Choice<V> => ({
  kind: 'choice',
  name,
  values,
})
export const list = <const I extends Schema>(item: I): ListSchema<I> => ({ kind: 'list', item })
export const dto = <const F extends Fields>(name: string, fields: F): Dto<F> => ({ kind: 'dto', name, fields })
export const required = <const S extends Schema>(of: S): Required<S> => ({ kind: 'required', of })

/**
 * Limits on requests (S4). Answers have none. The readers of the wire apply these and those of the fields, and OpenAPI
 * describes both.
 */
export const limits = {
  /** Levels of a JSON body. */
  depth: 32,
  listItems: 256,
  /** Entries of one page of a list. */
  pageItems: 1000,
  nameCharacters: 128,
  metaEntries: 64,
  metaValueCharacters: 1024,
  /** Parameters of one query or form. */
  parameters: 1024,
  /** Cells of a CSV row. */
  columns: 256,
} as const

/** Keys with a special meaning in JavaScript, refused wherever clients choose the keys. */
export const forbiddenKeys = ['__proto__', 'constructor', 'prototype'] as const

/** A text with constraints. */
export const textOf = (constraints: Omit<Text, 'kind'>): Text => ({ kind: 'text', ...constraints })
/** A text that names who or what a request is about. */
export const name = (constraints: Omit<Text, 'kind' | 'names'>): Text => textOf({ ...constraints, names: true })
/** Of somebody or something new, and of a right that is granted: visible (O2). */
export const newName = name({
  max: limits.nameCharacters,
  pattern: () =>
    /^[^\s\u2800\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}](?:[^\u2800\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]*[^\s\u2800\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}])?$/u,
})
export const numberOf = (range: Range): Num => ({ ...number, ...range })
export const integerOf = (range: Range): Num => ({ ...integer, ...range })
/** Bounds in milliseconds. */
export const durationOf = (range: Range): Duration => ({ ...duration, ...range })

/** Whether a text has more characters (code points) than `max`, without counting those of a long text. */
export const isLonger = (value: string, max: number): boolean =>
  value.length > max && (value.length > 2 * max || Array.from(value).length > max)

/** The schema of a field without its `required` marker. */
export const schemaOf = (field: Field): Schema => (field.kind === 'required' ? field.of : field)
