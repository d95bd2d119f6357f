import type { OperationSpec } from '../../index.ts'
import { callerOf, usualVerb } from '../schemas.ts'
import { blockComment, language } from './language.ts'
import {
  commonOptions,
  dottedName,
  flag,
  identifier,
  imports,
  type OptionValues,
  serviceStackTypes,
} from './options.ts'
import {
  capitalized,
  errorTypes,
  indented,
  type SourceClass,
  type SourceEnum,
  type TypeMember,
  typeWriter,
} from './source.ts'

/** The types that the client library for Java and Kotlin declares. */
export const jvmLibrary: readonly string[] = [...errorTypes, 'GetAccessToken', 'GetAccessTokenResponse']
export const jvmImports = 'java.math.*,java.util.*,net.servicestack.client.*,com.google.gson.annotations.*'

const options = {
  Package: dottedName(),
  GlobalNamespace: identifier('dtos'),
  AddPropertyAccessors: flag(true),
  SettersReturnThis: flag(true),
  ...serviceStackTypes,
  ...commonOptions,
  DefaultImports: imports(jvmImports),
} as const
type Values = OptionValues<typeof options>

/** Fields have the names that the server writes, because the client library matches them exactly. */
export const java = language({
  title: 'Java',
  client: 'net.servicestack:client',
  comment: blockComment,
  options,
  library: () => jvmLibrary,
  write: ({ types, values }) => {
    const parts = types.map((type) => (type.kind === 'enum' ? enumeration(type) : declaration(type, values)))
    return `${values.Package === '' ? '' : `package ${values.Package};\n\n`}${values.DefaultImports.split(',')
      .map((name) => `import ${name};\n`)
      .join('')}
public class ${values.GlobalNamespace}
{
${indented(parts.join('\n'))}}
`
  },
})

const enumeration = ({ name, values }: SourceEnum): string => `public static enum ${name}
{
${values.map((value) => `    ${value}`).join(',\n')};
}
`

function declaration({ name, members, row }: SourceClass, values: Values): string {
  const body = [
    members.map((member) => field(member, values.AddDescriptionAsComments)).join(''),
    values.AddPropertyAccessors
      ? members.map((member) => accessors(name, member, values.SettersReturnThis)).join('')
      : '',
    row ? responseType(row) : '',
  ].filter((part) => part !== '')
  return `${row ? heading(row, values.AddDescriptionAsComments) : ''}public static class ${name}${row ? ` implements IReturn<${row.response.name}>, ${verbMarker(row)}` : ''}
{
${indented(body.join('\n'))}}
`
}

const field = (member: TypeMember, described: boolean): string =>
  `${described ? notes(member) : ''}${annotation(member)}public ${typeOf(member.schema)} ${nameOf(member)} = ${initial(member)};\n`

const initial = ({ constant }: TypeMember): string => (constant === undefined ? 'null' : `${constant}L`)

function accessors(type: string, member: TypeMember, chained: boolean): string {
  const name = nameOf(member)
  const of = capitalized(name)
  const value = typeOf(member.schema)
  const [returned, end] = chained ? [type, ' return this;'] : ['void', '']
  return `public ${value} ${member.schema.kind === 'flag' ? 'is' : 'get'}${of}() { return ${name}; }
public ${returned} set${of}(${value} value) { this.${name} = value;${end} }
`
}

const responseType = ({ response }: OperationSpec): string =>
  `private static Object responseType = ${response.name}.class;
public Object getResponseType() { return responseType; }
`

/** The interface that names the verb of a request. */
export const verbMarker = (row: OperationSpec): string => (usualVerb(row) === 'GET' ? 'IGet' : 'IPost')

/** The comment and the annotation of an operation. Annotations cannot be repeated, so further routes are comments. */
export const heading = (row: OperationSpec, described: boolean): string =>
  `${described ? `/** ${row.summary}. ${callerOf(row)} may call it. */\n` : ''}${row.routes
    .map(({ path, verbs }, i) => `${i > 0 ? '// ' : ''}@Route(Path="${path}", Verbs="${verbs.join(',')}")\n`)
    .join('')}`

export const notes = ({ required }: TypeMember): string => (required ? '/** Required. */\n' : '')

/** Connects a field with a reserved name to the name in JSON. */
export const annotation = (member: TypeMember): string =>
  nameOf(member) === member.wire ? '' : `@SerializedName("${member.wire}") `

/** The field's name: that in JSON, with an underscore if Java or Kotlin reserve it. */
export const nameOf = ({ wire }: TypeMember): string => (reserved.has(wire) ? `${wire}_` : wire)

/** Keywords of Java and Kotlin, and names whose accessors exist already. */
const reserved = new Set(
  `abstract assert boolean break byte case catch char class const continue default do double else enum extends final
  finally float for goto if implements import instanceof int interface long native new package private protected public
  return short static strictfp super switch synchronized this throw throws transient try void volatile while true false
  null as fun in is object typealias typeof val var when Class responseType ResponseType`.split(/\s+/),
)

/** The type of a value, which Java and Kotlin write alike. */
export const typeOf = typeWriter({
  text: 'String',
  flag: 'Boolean',
  integer: 'Long',
  number: 'Double',
  date: 'Date',
  duration: 'TimeSpan',
  map: 'HashMap<String,String>',
  list: (item) => `ArrayList<${item}>`,
})
