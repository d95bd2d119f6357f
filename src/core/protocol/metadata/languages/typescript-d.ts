import { blockComment, language } from './language.ts'
import { commonOptions, dottedName, flag, serviceStackTypes } from './options.ts'
import { indented, type SourceClass, type SourceEnum, type TypeMember } from './source.ts'
import { heading, notes, typeOf } from './typescript.ts'

/** Ambient declarations, which programs use as `dtos.HealthCheckRequest` without importing anything. */
export const typescriptD = language({
  title: 'TypeScript declarations',
  client: 'programs without a client library',
  comment: blockComment,
  options: {
    GlobalNamespace: dottedName('dtos'),
    MakePropertiesOptional: flag(true),
    ...serviceStackTypes,
    ...commonOptions,
  } as const,
  library: () => [],
  write: ({ types, values }) => {
    const { MakePropertiesOptional: optional, AddDescriptionAsComments: described } = values
    const parts = types.map((type) =>
      type.kind === 'enum' ? enumeration(type) : declaration(type, optional, described),
    )
    return `declare namespace ${values.GlobalNamespace} {\n${indented([returns, ...parts].join('\n'), '  ')}}\n`
  },
})

const returns = `interface IReturn<T> {
  createResponse?(): T
}
`

const enumeration = ({ name, values }: SourceEnum): string =>
  `type ${name} = ${values.map((value) => `'${value}'`).join(' | ')}\n`

const declaration = ({ name, members, row }: SourceClass, optional: boolean, described: boolean): string =>
  `${row ? heading(row, described) : ''}interface ${name}${row ? ` extends IReturn<${row.response.name}>` : ''} {
${members.map((member) => property(member, optional, described)).join('')}}
`

const property = (member: TypeMember, optional: boolean, described: boolean): string =>
  `${described ? notes(member) : ''}  ${member.wire}${optional ? '?' : ''}: ${member.constant ?? typeOf(member.schema)}\n`
