import { type Described, interfaceVersion } from '../schemas.ts'
import { asText, type Option, type OptionReading, type Options, type OptionValues, readOptions } from './options.ts'
import { type SourceType, typesOf } from './source.ts'

/** The content of a source file: the selected types of a server. */
export type SourceFile<V> = {
  readonly types: readonly SourceType[]
  readonly values: V
  readonly described: Pick<Described, 'names'>
}

/** How files of a language begin and end the comment with the options. */
export type CommentMarks = { readonly open: string; readonly close: string; readonly line: string }
export const blockComment: CommentMarks = { open: '/*', close: '*/', line: '//' }

export type LanguageSpec<O extends Options> = {
  /** Its name for people. */
  readonly title: string
  /** The client library that the types are for. */
  readonly client: string
  readonly comment: CommentMarks
  /** In the order of the header. */
  readonly options: O
  /** Types that the client library declares, so that the file must not declare them again. */
  readonly library: (described: Pick<Described, 'names'>) => readonly string[]
  /** The source text after the header. */
  readonly write: (file: SourceFile<OptionValues<O>>) => string
}

/** A language of `/types/{name}`. */
export type Language = {
  readonly title: string
  readonly client: string
  readonly read: (query: readonly (readonly [string, string])[]) => OptionReading
  /** The source text of types, without a header. */
  readonly source: (types: readonly SourceType[], reading: OptionReading, described: Pick<Described, 'names'>) => string
  /** The interface as one file. `at` is the time of generation. What is the same for all callers is written once. */
  readonly file: (described: Pick<Described, 'base' | 'names'>, reading: OptionReading, at: Date) => string
}

/** Makes a language from its declaration. */
export function language<const O extends Options>(spec: LanguageSpec<O>): Language {
  const { title, client, options } = spec
  // `readOptions` has read exactly these options.
  const source: Language['source'] = (types, { values }, described) =>
    spec.write({ types, values: values as OptionValues<O>, described })
  /** The source text with the default options, by the style of names. */
  const usual = new Map<string, string>()
  const written = (reading: OptionReading, described: Pick<Described, 'names'>): string => {
    const before = reading.chosen.size === 0 ? usual.get(described.names) : undefined
    if (before !== undefined) return before
    const text = source(typesOf(described, reading.values, spec.library(described)), reading, described)
    if (reading.chosen.size === 0) usual.set(described.names, text)
    return text
  }
  return {
    title,
    client,
    read: (query) => readOptions(options, query),
    source,
    file: (described, reading, at) => `${header(spec, described.base, reading, at)}\n${written(reading, described)}`,
  }
}

/** Tools look for `Options:`, read BaseUrl, and send back the lines after it that have no comment mark. */
function header<O extends Options>(
  { comment, options }: LanguageSpec<O>,
  base: string,
  { values, chosen }: OptionReading,
  at: Date,
): string {
  const lines = Object.entries<Option>(options).map(
    ([name]) => `${chosen.has(name) ? '' : comment.line}${name}: ${asText(values[name] ?? '')}`,
  )
  return `${comment.open} Options:
Date: ${at.toISOString().slice(0, 19).replace('T', ' ')}
Version: ${interfaceVersion}
Tip: To change an option, remove "${comment.line}" before its name and update this file
BaseUrl: ${base}

${lines.join('\n')}
${comment.close}
`
}
