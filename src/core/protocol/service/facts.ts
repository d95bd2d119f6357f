type Capitalized<T> = { readonly [Name in keyof T as Capitalize<Name & string>]: T[Name] }
export type Uncapitalized<T> = { readonly [Name in keyof T as Uncapitalize<Name & string>]: T[Name] }

const renamed = (value: object, rename: (first: string) => string): object =>
  Object.fromEntries(Object.entries(value).map(([name, each]) => [rename(name.charAt(0)) + name.slice(1), each]))

/**
 * The members of an object under their names in the interface.
 *
 * @example
 * ```ts
 * toEntry({ userName: 'ann' }) // { UserName: 'ann' }
 * ```
 */
export const toEntry = <T extends object>(facts: T): Capitalized<T> =>
  renamed(facts, (first) => first.toUpperCase()) as Capitalized<T>

/**
 * The fields of an object of the interface under their names in documents.
 *
 * @example
 * ```ts
 * fromEntry({ UserName: 'ann' }) // { userName: 'ann' }
 * ```
 */
export const fromEntry = <T extends object>(entry: T): Uncapitalized<T> =>
  renamed(entry, (first) => first.toLowerCase()) as Uncapitalized<T>
