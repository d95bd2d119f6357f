/**
 * The options in the header of a generated file. Tools send the lines without a comment mark back as the query when
 * they update the file. The values are text from strangers that the server writes into source code, so that each kind
 * of option allows a few characters only, none of which can end a comment or a string.
 */

type TextOption = {
  readonly kind: 'text'
  readonly byDefault: string
  readonly maxLength: number
  readonly pattern: RegExp
  /** Completes the sentence `Package must be …`. */
  readonly rule: string
}
type FlagOption = { readonly kind: 'flag'; readonly byDefault: boolean }
export type Option = TextOption | FlagOption
export type Options = Readonly<Record<string, Option>>

/** The value of each option of a language. Text without a value is empty. */
export type OptionValues<O extends Options = Options> = {
  readonly [K in keyof O]: O[K] extends FlagOption ? boolean : O[K] extends TextOption ? string : boolean | string
}

export const flag = (byDefault: boolean): FlagOption => ({ kind: 'flag', byDefault })

/** The name of one type or namespace. */
export const identifier = (byDefault = ''): TextOption => ({
  kind: 'text',
  byDefault,
  maxLength: 100,
  pattern: /^[A-Za-z_][A-Za-z0-9_]*$/,
  rule: 'a name of letters, digits and underscores',
})

/** The name of a namespace or package. */
export const dottedName = (byDefault = ''): TextOption => ({
  kind: 'text',
  byDefault,
  maxLength: 200,
  pattern: /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/,
  rule: 'names of letters, digits and underscores, separated by dots',
})

/** Namespaces or packages to import. Importing them runs nothing. */
export const imports = (byDefault = ''): TextOption => ({
  kind: 'text',
  byDefault,
  maxLength: 1000,
  pattern:
    /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*(?:\.\*)?(?:,[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*(?:\.\*)?)*$/,
  rule: 'a list of packages, separated by commas',
})

/** Types of the interface. `HealthCheckRequest.*` stands for a request and all types that it and its answer use. */
export const typeNames = (): TextOption => ({
  kind: 'text',
  byDefault: '',
  maxLength: 4000,
  pattern: /^[A-Za-z][A-Za-z0-9]*(?:\.\*)?(?:,[A-Za-z][A-Za-z0-9]*(?:\.\*)?)*$/,
  rule: 'a list of type names such as HealthCheckRequest or HealthCheckRequest.*, separated by commas',
})

export const wholeNumber = (): TextOption => ({
  kind: 'text',
  byDefault: '',
  maxLength: 9,
  pattern: /^[0-9]+$/,
  rule: 'a whole number',
})

/** Options of every language, in the order in which headers list them. */
export const commonOptions = {
  AddResponseStatus: flag(false),
  AddImplicitVersion: wholeNumber(),
  AddDescriptionAsComments: flag(true),
  IncludeTypes: typeNames(),
  ExcludeTypes: typeNames(),
} as const

/** Also for languages whose client library does not declare the requests that ServiceStack itself defines. */
export const serviceStackTypes = { AddServiceStackTypes: flag(true) } as const

/** An option value that breaks the rule of its option. */
export type OptionFault = { readonly name: string; readonly message: string }
export type OptionReading = {
  readonly values: OptionValues
  /** The names of options with a value in the query. */
  readonly chosen: ReadonlySet<string>
  readonly faults: readonly OptionFault[]
}

/**
 * Reads the options in a query. Names match in any letter case, and the last value counts. Names that are not an option of
 * the language are ignored; an empty value means the default.
 */
export function readOptions(options: Options, query: readonly (readonly [string, string])[]): OptionReading {
  const texts = new Map<string, string>()
  for (const [name, value] of query) texts.set(name.toLowerCase(), value.replaceAll(' ', ''))
  const chosen = new Set<string>()
  const faults: OptionFault[] = []
  const values = Object.entries(options).map(([name, option]) => {
    const text = texts.get(name.toLowerCase()) ?? ''
    if (text === '') return [name, option.byDefault]
    const rule = option.kind === 'flag' ? flagRule(text) : textRule(option, text)
    if (rule !== undefined) {
      faults.push({ name, message: `${name} must be ${rule}` })
      return [name, option.byDefault]
    }
    chosen.add(name)
    return [name, option.kind === 'flag' ? text.toLowerCase() === 'true' : text]
  })
  return { values: Object.fromEntries(values), chosen, faults }
}

const flagRule = (text: string): string | undefined =>
  text.length <= 5 && /^(?:true|false)$/i.test(text) ? undefined : 'True or False'

function textRule({ maxLength, pattern, rule }: TextOption, text: string): string | undefined {
  if (text.length > maxLength) return `${rule}, with at most ${maxLength} characters`
  return pattern.test(text) ? undefined : rule
}

/** The form in which headers show a value. */
export const asText = (value: boolean | string): string =>
  typeof value === 'boolean' ? (value ? 'True' : 'False') : value
