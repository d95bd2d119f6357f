import {
  type Fields,
  inStyle,
  integer,
  type OperationSpec,
  ResponseStatus,
  type Schema,
  schemaOf,
} from '../../index.ts'
import { type Described, rows, type Shape, shapes } from '../schemas.ts'
import type { Options, OptionValues } from './options.ts'

/** A property of a type. */
export type TypeMember = {
  /** The interface's name. */
  readonly name: string
  /** Its name in the JSON of this server. */
  readonly wire: string
  readonly schema: Schema
  readonly required: boolean
  /** The value that every request carries (AddImplicitVersion). */
  readonly constant: string | undefined
}
export type SourceClass = {
  readonly kind: 'class'
  readonly name: string
  readonly members: readonly TypeMember[]
  /** The operation whose request this is. */
  readonly row: OperationSpec | undefined
}
export type SourceEnum = { readonly kind: 'enum'; readonly name: string; readonly values: readonly string[] }
/** A type to be written, each after those that it consists of, and requests after their answers. */
export type SourceType = SourceClass | SourceEnum

/** The names of the types of values in a language. `integer` is a number without a fraction. */
type TypeNames = Readonly<Record<'text' | 'flag' | 'integer' | 'number' | 'date' | 'duration' | 'map', string>> & {
  /** The list of items of a type. */
  readonly list: (item: string) => string
}

/** Writes the type of a value. Types of the interface keep their names. */
export function typeWriter(names: TypeNames): (schema: Schema) => string {
  const typeOf = (schema: Schema): string => {
    if (schema.kind === 'choice' || schema.kind === 'dto') return schema.name
    if (schema.kind === 'list') return names.list(typeOf(schema.item))
    return names[schema.kind === 'number' && schema.integer ? 'integer' : schema.kind]
  }
  return typeOf
}

/** The requests that ServiceStack itself defines, and their answers. Several client libraries declare them. */
export const builtIn: readonly string[] = [
  'Authenticate',
  'AuthenticateResponse',
  'GetAccessToken',
  'GetAccessTokenResponse',
  'AssignRoles',
  'AssignRolesResponse',
  'UnAssignRoles',
  'UnAssignRolesResponse',
]
/** The types of errors, which every client library declares. */
export const errorTypes: readonly string[] = ['ResponseStatus', 'ResponseError', 'ErrorResponse']

/** The types of the interface that the options select, without those that the client library declares. */
export function typesOf(
  { names }: Pick<Described, 'names'>,
  values: OptionValues<Options>,
  library: readonly string[],
): readonly SourceType[] {
  const all = shapes()
  const included = namesIn(values['IncludeTypes'], all)
  const excluded = namesIn(values['ExcludeTypes'], all)
  if (values['AddServiceStackTypes'] === false) for (const name of builtIn) excluded.add(name)
  for (const name of library) excluded.add(name)
  const answers = new Set<unknown>(rows.map(({ response }) => response))
  const addStatus = values['AddResponseStatus'] === true
  const version = String(values['AddImplicitVersion'] ?? '')
  const types = [...all.values()]
    .filter(({ schema: { name } }) => (included.size === 0 || included.has(name)) && !excluded.has(name))
    .map(({ schema }): SourceType => {
      if (schema.kind === 'choice') return { kind: 'enum', name: schema.name, values: schema.values }
      const row = rows.find(({ request }) => request === schema)
      const fields: Fields = { ...schema.fields, ...(addStatus && answers.has(schema) ? { ResponseStatus } : {}) }
      const members = Object.entries(fields).map(
        ([name, field]): TypeMember => ({
          name,
          wire: inStyle(name, names),
          schema: schemaOf(field),
          required: field.kind === 'required',
          constant: undefined,
        }),
      )
      const hasVersion = row === undefined || version === '' || 'Version' in schema.fields
      return {
        kind: 'class',
        name: schema.name,
        members: hasVersion ? members : [implicit(version, names), ...members],
        row,
      }
    })
  return [...types.filter((type) => !isRequest(type)), ...types.filter(isRequest)]
}

const isRequest = (type: SourceType): boolean => type.kind === 'class' && type.row !== undefined

const implicit = (version: string, names: Described['names']): TypeMember => ({
  name: 'Version',
  wire: inStyle('Version', names),
  schema: integer,
  required: false,
  constant: String(Number(version)),
})

/** The types that a list names. `Name.*` adds all types that a request and its answer use. */
function namesIn(list: boolean | string | undefined, all: ReadonlyMap<string, Shape>): Set<string> {
  const names = new Set<string>()
  if (typeof list !== 'string' || list === '') return names
  for (const entry of new Set(list.split(','))) {
    const name = entry.replace('.*', '')
    names.add(name)
    const schema = all.get(name)?.schema
    if (name === entry || schema?.kind !== 'dto') continue
    addParts(schema, names)
    const row = rows.find(({ request }) => request === schema)
    if (row) addParts(row.response, names)
  }
  return names
}

function addParts(schema: Schema, into: Set<string>): void {
  if (schema.kind === 'list') addParts(schema.item, into)
  if (schema.kind === 'choice') into.add(schema.name)
  if (schema.kind !== 'dto') return
  into.add(schema.name)
  for (const field of Object.values(schema.fields)) addParts(schemaOf(field), into)
}

/** Indents lines that are not empty. */
export const indented = (text: string, by = '    '): string => text.replace(/^(?=.)/gm, by)

/** The first letter in upper case, as in the name of an accessor. */
export const capitalized = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1)
