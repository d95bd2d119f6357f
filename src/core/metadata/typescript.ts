import {
  type Choice,
  type Dto,
  inStyle,
  type NameStyle,
  type OperationSpec,
  type Schema,
  schemaOf,
} from '../protocol/index.ts'
import { callerOf, type Described, interfaceVersion, rows, shapes, usualVerb } from './shapes.ts'

/**
 * The interface as one TypeScript file, for `typescript-ref` and `@servicestack/client`. It imports nothing, and its
 * types can simply be stripped. `at` is the time of generation.
 */
export function typescript({ base, names }: Described, at: Date): string {
  const parts = [...shapes().values()].map(({ schema }) =>
    schema.kind === 'choice'
      ? enumeration(schema)
      : declaration(
          schema,
          rows.find((row) => row.request === schema),
          names,
        ),
  )
  return [header(base, at), returns, ...parts].join('\n')
}

/** Tools look for `Options:` and keep the rest of the comment. */
const header = (base: string, at: Date): string => `/* Options:
Date: ${at.toISOString().slice(0, 19).replace('T', ' ')}
Version: ${interfaceVersion}
BaseUrl: ${base}
*/
`

const returns = `export interface IReturn<T> {
  createResponse(): T
}
`

/** Allows both `ServerType.Sql` and 'Sql'. */
const enumeration = ({ name, values }: Choice): string => `export const ${name} = {
${values.map((value) => `  ${value}: '${value}',\n`).join('')}} as const
export type ${name} = (typeof ${name})[keyof typeof ${name}]
`

function declaration(dto: Dto, row: OperationSpec | undefined, style: NameStyle): string {
  const fields = Object.entries(dto.fields).map(([name, field]) => {
    const schema = schemaOf(field)
    const notes = [...(field.kind === 'required' ? ['Required.'] : []), ...written(schema)]
    return `${notes.length > 0 ? `  /** ${notes.join(' ')} */\n` : ''}  public ${inStyle(name, style)}?: ${typeOf(schema)}\n`
  })
  return `${row ? heading(row) : ''}export class ${dto.name}${row ? ` implements IReturn<${row.response.name}>` : ''} {
${fields.join('')}
  public constructor(init?: Partial<${dto.name}>) {
    Object.assign(this, init)
  }
${row ? methods(row) : ''}}
`
}

const heading = (row: OperationSpec): string =>
  `/** ${row.summary}. ${callerOf(row)} may call it. */\n${row.routes
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

/** Comments for what a type cannot express. */
function written({ kind }: Schema): readonly string[] {
  if (kind === 'date') return ['A date: /Date(<UTC milliseconds>-0000)/.']
  return kind === 'duration' ? ['A duration as in ISO 8601: PT1.5S.'] : []
}

function typeOf(schema: Schema): string {
  switch (schema.kind) {
    case 'text':
    case 'date':
    case 'duration':
      return 'string'
    case 'flag':
      return 'boolean'
    case 'number':
      return 'number'
    case 'map':
      return '{ [index: string]: string }'
    case 'list':
      return `${typeOf(schema.item)}[]`
    case 'choice':
    case 'dto':
      return schema.name
  }
}
