import fc from 'fast-check'
import { document } from '../support/wire/openapi.ts'
import { inOddCase, mostly, strange, text } from './texts.ts'

export type JsonSchema = {
  readonly $ref?: string
  readonly anyOf?: readonly JsonSchema[]
  /** In requests null means "not given", so a type may be two. */
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly examples?: readonly unknown[]
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
}

/** A schema without its reference. */
export function resolved(schema: JsonSchema): JsonSchema {
  const part =
    schema.$ref === undefined ? schema.anyOf?.[0] : document.components.schemas[schema.$ref.split('/').at(-1) ?? '']
  return part === undefined ? schema : resolved(part as JsonSchema)
}

const userName = fc.constantFrom('Ann', 'ann', 'Ned', 'NED', 'ned@example.com', 'Lou', 'Hal', 'nobody', 'Änn', ' Ann ')
const roleNames = ['Editor', 'editor', 'Ops', 'Rôle', 'a,b', '"quoted"', '[x', '😀', ' padded ', 'Admin']
const fewRoles = fc.array(fc.constantFrom(...roleNames), { maxLength: 4 })

/** Values that mean something here, by the name of the field; `{{…}}` stands for a secret. */
const meaningful: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  UserName: userName,
  Roles: fewRoles,
  Permissions: fc.array(fc.constantFrom('heartbeat', 'read', 'Übung'), { maxLength: 3 }),
  Password: fc.constantFrom('wrong', '', ' '),
  RefreshToken: fc.constantFrom('{{annRefresh}}', '{{nedRefresh}}', '{{annBearer}}', 'svc_rt_garbage', ''),
  provider: fc.constantFrom('credentials', 'login', 'Credentials', 'logout', 'digest', 'openid', 'nope', ''),
  Name: fc.constantFrom('agent-1', 'agent-2', 'agent.three', 'Agent-1', 'ägent'),
  ServerType: fc.constantFrom('Sql', 'Ftp', 'Qc', 'Agents', 'sql', '2', 'App', 'Identity', 'XcodeC'),
  ExecutionMode: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('Basic', 'basic', '1') },
    { weight: 1, arbitrary: fc.constantFrom('Standard', 'Advanced', '3') },
  ),
  Meta: fc.constantFrom({ refresh: 'rotate' }, { reason: 'because' }, {}),
}

/** A value that the schema describes. */
export function validOf(name: string, input: JsonSchema): fc.Arbitrary<unknown> {
  const generator = meaningful[name]
  if (generator) return generator
  const schema = resolved(input)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.examples) return fc.constantFrom(...schema.examples)
  switch (typeof schema.type === 'string' ? schema.type : schema.type?.[0]) {
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.integer()
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'array':
      return fc.array(validOf('', schema.items ?? {}), { maxLength: 3 })
    case 'object':
      return fc.dictionary(text, text, { maxKeys: 3, noNullPrototype: true })
    default:
      return text
  }
}

export type Fields = readonly (readonly [name: string, value: unknown])[]

const unknownName = fc.oneof(
  fc.constantFrom('x', '__proto__', 'constructor', 'toString', 'userName ', 'Ｕser', ''),
  text,
)

/** Fields of a request: most are there and right; some are wrong, in odd letter case, twice, or of no schema at all. */
export function fieldsOf(schema: JsonSchema): fc.Arbitrary<Fields> {
  const signsIn = resolved(schema).properties?.['Password'] !== undefined
  const inPair = (name: string): boolean => signsIn && (name === 'UserName' || name === 'Password')
  const all = Object.entries(resolved(schema).properties ?? {}).map(([name, each]) =>
    fc
      .tuple(
        mostly(fc.constant(name), inOddCase(name)),
        mostly(validOf(name, each), strange, 8),
        // A field without a meaning here is given now and then only, so that the others are not drowned; so is one that
        // the pair of a sign-in adds, because a name that occurs twice is refused before anything else is looked at.
        name in meaningful && !inPair(name) ? fc.constantFrom(true, true, true, false) : fc.nat(3).map((n) => n === 0),
      )
      .map(([written, value, there]) => (there ? [[written, value] as const] : [])),
  )
  const more = mostly(fc.constant<Fields>([]), fc.array(fc.tuple(unknownName, strange), { maxLength: 3 }), 8)
  return fc
    .tuple(fc.tuple(...all), more, signInFields(schema))
    .map(([fields, extra, pair]) => [...fields.flat(), ...extra, ...pair])
}

/** Of a sign-in, a name and a password that belong together, or surely do not: the names that matter must not be locked. */
function signInFields(schema: JsonSchema): fc.Arbitrary<Fields> {
  if (resolved(schema).properties?.['Password'] === undefined) return fc.constant([])
  const pairs: readonly Fields[] = [
    [
      ['UserName', ''],
      ['Password', ''],
    ],
    [
      ['UserName', 'Ann'],
      ['Password', ''],
    ],
    [
      ['UserName', null],
      ['Password', null],
    ],
    [
      ['UserName', ' '],
      ['Password', ' '],
    ],
    [
      ['UserName', 7],
      ['Password', 'x'],
    ],
  ]
  const hashed: readonly Fields[] = [
    [
      ['UserName', 'Ann'],
      ['Password', '{{annPassword}}'],
    ],
    [
      ['UserName', 'Ann'],
      ['Password', '{{annPassword}}'],
      ['RememberMe', true],
    ],
    [
      ['UserName', 'ned@example.com'],
      ['Password', '{{nedPassword}}'],
    ],
    [
      ['UserName', 'Lou'],
      ['Password', '{{louPassword}}'],
    ],
    [
      ['UserName', 'nobody'],
      ['Password', 'x'],
    ],
    [
      ['UserName', '__proto__'],
      ['Password', '\u0000'],
    ],
  ]
  return mostly(fc.constantFrom(...pairs), fc.constantFrom(...hashed), 12)
}

/** JSV, as queries and forms have it. */
export function asText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(asText).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([key, each]) => `${key}:${asText(each)}`)
      .join(',')}}`
  }
  return value === null ? '' : String(value)
}
