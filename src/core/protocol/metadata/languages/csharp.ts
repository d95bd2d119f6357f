import type { OperationSpec } from '../../index.ts'
import { callerOf, interfaceVersion, usualVerb } from '../schemas.ts'
import { namespace } from '../service-types.ts'
import { blockComment, language } from './language.ts'
import { commonOptions, dottedName, flag, imports, type OptionValues } from './options.ts'
import {
  builtIn,
  errorTypes,
  indented,
  type SourceClass,
  type SourceEnum,
  type TypeMember,
  typeWriter,
} from './source.ts'

const options = {
  GlobalNamespace: dottedName(),
  MakePartial: flag(true),
  MakeVirtual: flag(true),
  MakeInternal: flag(false),
  AddNullableAnnotations: flag(false),
  AddReturnMarker: flag(true),
  AddDataContractAttributes: flag(false),
  AddIndexesToDataMembers: flag(false),
  AddGeneratedCodeAttributes: flag(false),
  ...commonOptions,
  InitializeCollections: flag(true),
  AddNamespaces: imports(),
} as const
type Values = OptionValues<typeof options>

/** Properties have the interface's names at every server, because .NET clients read names in any letter case. */
export const csharp = language({
  title: 'C#',
  client: 'ServiceStack.Client',
  comment: blockComment,
  options,
  library: () => [...builtIn, ...errorTypes],
  write: ({ types, values }) => {
    const parts = types.map((type) => (type.kind === 'enum' ? enumeration(type, values) : declaration(type, values)))
    return `${usings(values)
      .map((name) => `using ${name};\n`)
      .join('')}${values.AddNullableAnnotations ? '\n#nullable enable\n' : ''}
namespace ${values.GlobalNamespace === '' ? namespace : values.GlobalNamespace}
{
${indented(parts.join('\n'))}}
`
  },
})

const usings = (values: Values): readonly string[] => [
  ...new Set([
    'System',
    'System.Collections.Generic',
    ...(values.AddGeneratedCodeAttributes ? ['System.CodeDom.Compiler'] : []),
    ...(values.AddDataContractAttributes ? ['System.Runtime.Serialization'] : []),
    'ServiceStack',
    ...(values.AddNamespaces === '' ? [] : values.AddNamespaces.split(',')),
  ]),
]

/** Values count from 1 (N1). In JSON they are names. */
const enumeration = (
  { name, values }: SourceEnum,
  options: Values,
): string => `${attributes(options, false)}${access(options)} enum ${name}
{
${values.map((value, i) => `    ${value} = ${i + 1},\n`).join('')}}
`

function declaration(type: SourceClass, values: Values): string {
  const { name, members, row } = type
  const markers = row ? [...(values.AddReturnMarker ? [`IReturn<${row.response.name}>`] : []), verbMarker(row)] : []
  return `${row ? heading(row, values.AddDescriptionAsComments) : ''}${attributes(values, true)}${access(values)} ${values.MakePartial ? 'partial ' : ''}class ${name}
${markers.length > 0 ? `    : ${markers.join(', ')}\n` : ''}{
${indented([...constructorOf(type, values), ...members.map((member, i) => property(member, i, values))].join('\n'))}}
`
}

const access = ({ MakeInternal }: Values): string => (MakeInternal ? 'internal' : 'public')

const attributes = (values: Values, isClass: boolean): string =>
  `${values.AddGeneratedCodeAttributes ? `[GeneratedCode("AddServiceStackReference", "${interfaceVersion}")]\n` : ''}${
    isClass && values.AddDataContractAttributes ? '[DataContract]\n' : ''
  }`

/** Sets what a new request contains: empty collections and the version. */
function constructorOf({ name, members, row }: SourceClass, values: Values): readonly string[] {
  if (!row) return []
  const lines = members.flatMap((member) => {
    const { schema, constant } = member
    if (constant !== undefined) return [`    ${nameOf(member)} = ${constant};\n`]
    const isCollection = schema.kind === 'list' || schema.kind === 'map'
    return values.InitializeCollections && isCollection ? [`    ${nameOf(member)} = new ${typeOf(schema)}();\n`] : []
  })
  return lines.length > 0 ? [`public ${name}()\n{\n${lines.join('')}}\n`] : []
}

function property(member: TypeMember, index: number, values: Values): string {
  const { schema, required } = member
  const order = values.AddIndexesToDataMembers ? `(Order=${index + 1})` : ''
  const type = typeOf(schema)
  const isValue = ['flag', 'number', 'date', 'duration', 'choice'].includes(schema.kind)
  const mark = isValue || values.AddNullableAnnotations ? '?' : ''
  return `${required && values.AddDescriptionAsComments ? summary('Required.') : ''}${
    values.AddDataContractAttributes ? `[DataMember${order}]\n` : ''
  }public ${values.MakeVirtual ? 'virtual ' : ''}${type}${mark} ${nameOf(member)} { get; set; }
`
}

const verbMarker = (row: OperationSpec): string => (usualVerb(row) === 'GET' ? 'IGet' : 'IPost')

const heading = (row: OperationSpec, described: boolean): string =>
  `${described ? summary(`${row.summary}. ${callerOf(row)} may call it.`) : ''}${row.routes
    .map(({ path, verbs }) => `[Route("${path}", "${verbs.join(',')}")]\n`)
    .join('')}`

const summary = (text: string): string =>
  `///<summary>\n///${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}\n///</summary>\n`

const nameOf = ({ name }: TypeMember): string => (reserved.has(name) ? `@${name}` : name)

const reserved = new Set(
  `abstract as base bool break byte case catch char checked class const continue decimal default delegate do double else
  enum event explicit extern false finally fixed float for foreach goto if implicit in int interface internal is lock long
  namespace new null object operator out override params private protected public readonly ref return sbyte sealed short
  sizeof stackalloc static string struct switch this throw true try typeof uint ulong unchecked unsafe ushort using virtual
  void volatile while`.split(/\s+/),
)

const typeOf = typeWriter({
  text: 'string',
  flag: 'bool',
  integer: 'long',
  number: 'double',
  date: 'DateTime',
  duration: 'TimeSpan',
  map: 'Dictionary<string, string>',
  list: (item) => `List<${item}>`,
})
