import type { OperationSpec } from '../../index.ts'
import { annotation, heading, jvmImports, jvmLibrary, nameOf, notes, typeOf, verbMarker } from './java.ts'
import { blockComment, language } from './language.ts'
import { commonOptions, dottedName, flag, imports, type OptionValues, serviceStackTypes } from './options.ts'
import { indented, type SourceClass, type SourceEnum, type TypeMember } from './source.ts'

const options = {
  Package: dottedName(),
  ...serviceStackTypes,
  ...commonOptions,
  InitializeCollections: flag(true),
  DefaultImports: imports(jvmImports),
} as const
type Values = OptionValues<typeof options>

/** For the client library of Java. In Kotlin, comments nest, so that no value may contain the beginning of one. */
export const kotlin = language({
  title: 'Kotlin',
  client: 'net.servicestack:client',
  comment: blockComment,
  options,
  library: () => jvmLibrary,
  write: ({ types, values }) => {
    const parts = types.map((type) => (type.kind === 'enum' ? enumeration(type) : declaration(type, values)))
    return `${values.Package === '' ? '' : `package ${values.Package}\n\n`}${values.DefaultImports.split(',')
      .map((name) => `import ${name}\n`)
      .join('')}\n${parts.join('\n')}`
  },
})

const enumeration = ({ name, values }: SourceEnum): string => `enum class ${name}
{
${values.map((value) => `    ${value},\n`).join('')}}
`

function declaration({ name, members, row }: SourceClass, values: Values): string {
  const body = members.map((member) => property(member, values)).join('') + (row ? responseType(row) : '')
  return `${row ? heading(row, values.AddDescriptionAsComments) : ''}open class ${name}${row ? ` : IReturn<${row.response.name}>, ${verbMarker(row)}` : ''}
{
${indented(body)}}
`
}

const property = (member: TypeMember, values: Values): string =>
  `${values.AddDescriptionAsComments ? notes(member) : ''}${annotation(member)}var ${nameOf(member)}:${typed(member, values.InitializeCollections)}\n`

function typed({ schema, constant }: TypeMember, initialized: boolean): string {
  const type = typeOf(schema)
  if (constant !== undefined) return `${type}? = ${constant}L`
  const isCollection = schema.kind === 'list' || schema.kind === 'map'
  return initialized && isCollection ? `${type} = ${type}()` : `${type}? = null`
}

/** Alone, the name of the value would mean the method itself. */
const responseType = ({ request, response }: OperationSpec): string =>
  `companion object { private val responseType = ${response.name}::class.java }
override fun getResponseType(): Any? = ${request.name}.responseType
`
