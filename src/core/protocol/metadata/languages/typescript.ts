import type { OperationSpec, Schema } from '../../index.ts'
import { callerOf, usualVerb } from '../schemas.ts'
import { blockComment, language } from './language.ts'
import { commonOptions, dottedName, flag, type OptionValues, serviceStackTypes } from './options.ts'
import { indented, type SourceClass, type SourceEnum, type TypeMember, typeWriter } from './source.ts'

const options = {
  GlobalNamespace: dottedName(),
  MakePropertiesOptional: flag(true),
  ...serviceStackTypes,
  ...commonOptions,
} as const
type Values = OptionValues<typeof options>

/** The file imports nothing, and without GlobalNamespace its types can simply be stripped. */
export const typescript = language({
  title: 'TypeScript',
  client: '@servicestack/client',
  comment: blockComment,
  options,
  library: () => [],
  write: ({ types, values }) => {
    const parts = types.map((type) => (type.kind === 'enum' ? enumeration(type) : declaration(type, values)))
    const text = [returns, ...parts].join('\n')
    return values.GlobalNamespace === ''
      ? text
      : `export namespace ${values.GlobalNamespace} {\n${indented(text, '  ')}}\n`
  },
})

const returns = `export interface IReturn<T> {
  createResponse(): T
}
`

/** Allows both `ServerType.Sql` and 'Sql'. */
const enumeration = ({ name, values }: SourceEnum): string => `export const ${name} = {
${values.map((value) => `  ${value}: '${value}',\n`).join('')}} as const
export type ${name} = (typeof ${name})[keyof typeof ${name}]
`

function declaration({ name, members, row }: SourceClass, values: Values): string {
  return `${row ? heading(row, values.AddDescriptionAsComments) : ''}export class ${name}${row ? ` implements IReturn<${row.response.name}>` : ''} {
${members.map((member) => property(member, values)).join('')}
  public constructor(init?: Partial<${name}>) {
    Object.assign(this, init)
  }
${row ? methods(row) : ''}}
`
}

function property(member: TypeMember, values: Values): string {
  const { wire, schema, constant } = member
  const comment = values.AddDescriptionAsComments ? notes(member) : ''
  if (constant !== undefined) return `${comment}  public ${wire}: ${typeOf(schema)} = ${constant}\n`
  return `${comment}  public ${wire}${values.MakePropertiesOptional ? '?' : '!'}: ${typeOf(schema)}\n`
}

/** Comments of an operation, also in declarations. */
export const heading = (row: OperationSpec, described: boolean): string =>
  `${described ? `/** ${row.summary}. ${callerOf(row)} may call it. */\n` : ''}${row.routes
    .map(({ path, verbs }) => `// @Route("${path}", "${verbs.join(',')}")\n`)
    .join('')}`

const methods = (row: OperationSpec): string => `
  public getTypeName() {
    return '${row.name}'
  }
  public getMethod() {
    return '${usualVerb(row)}'
  }
  public createResponse() {
    return new ${row.response.name}()
  }
`

/** A comment for what a type cannot express, also in declarations. */
export function notes({ required, schema }: TypeMember): string {
  const sentences = [...(required ? ['Required.'] : []), ...written(schema)]
  return sentences.length > 0 ? `  /** ${sentences.join(' ')} */\n` : ''
}

function written({ kind }: Schema): readonly string[] {
  if (kind === 'date') return ['A date: /Date(<UTC milliseconds>-0000)/.']
  return kind === 'duration' ? ['A duration as in ISO 8601: PT1.5S.'] : []
}

export const typeOf = typeWriter({
  text: 'string',
  flag: 'boolean',
  integer: 'number',
  number: 'number',
  date: 'string',
  duration: 'string',
  map: '{ [index: string]: string }',
  list: (item) => `${item}[]`,
})
