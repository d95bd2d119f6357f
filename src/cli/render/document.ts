/**
 * The JSON documents of commands: `{store or target, <things>: [...]}` in camelCase, each with its JSON Schema. Only the
 * documents of the interface, of health, of roles and of `monitors list` have other names.
 */

/** Marks an optional member until its object is described. A symbol never reaches JSON. */
const absent = Symbol('absent')

/** A JSON Schema (2020-12). */
export type JsonShape = { readonly [keyword: string]: unknown; readonly [absent]?: true }
export type JsonShapes = Readonly<Record<string, JsonShape>>

export const string: JsonShape = { type: 'string' }
export const integer: JsonShape = { type: 'integer' }
export const number: JsonShape = { type: 'number' }
export const flag: JsonShape = { type: 'boolean' }
/** A `Date`, in UTC. */
export const dateTime: JsonShape = { type: 'string', format: 'date-time' }
export const oneOf = (...values: readonly string[]): JsonShape => ({ enum: values })
export const listOf = (items: JsonShape): JsonShape => ({ type: 'array', items })
export const strings = listOf(string)
/** The value, or null where there is none. */
export const orNull = (shape: JsonShape): JsonShape => ({ anyOf: [shape, { type: 'null' }] })
/** The value, or no member where there is none. */
export const optional = (shape: JsonShape): JsonShape => ({ ...shape, [absent]: true })
/** An object whose members depend on the data. */
export const anyObject: JsonShape = { type: 'object' }

/** An object with these members and no others. */
export function objectOf(members: JsonShapes): JsonShape {
  const required = Object.entries(members).flatMap(([name, shape]) => (shape[absent] ? [] : [name]))
  return { type: 'object', properties: members, required, additionalProperties: false }
}

/** The members of an object, to declare a larger one. */
export function membersOf({ properties, required }: JsonShape): JsonShapes {
  const always = required as readonly string[]
  return Object.fromEntries(
    Object.entries(properties as JsonShapes).map(([name, shape]) => [
      name,
      always.includes(name) ? shape : optional(shape),
    ]),
  )
}

/** The form of the document that a command prints with `--json`. */
export type Answer = {
  /** The JSON Schema of the document. */
  readonly schema: () => JsonShape
  /** The fields of a record in a pipe, in order. Absent for commands that print no records. */
  readonly fields?: readonly string[]
}

/** The one shape of a document: its place and what else all rows share, then the rows. */
export const documentText = (around: object, things: string, rows: readonly object[]): string =>
  JSON.stringify({ ...around, [things]: rows })

export const documentShape = (around: JsonShapes, things: string, row: JsonShape): JsonShape =>
  objectOf({ ...around, [things]: listOf(row) })

/** The members around the rows: the place, and more that all rows share. */
type Around = JsonShapes & ({ readonly store: JsonShape } | { readonly target: JsonShape })

export type JsonDocument<Row, Member extends string> = Answer & {
  readonly text: (around: Readonly<Record<Member, unknown>>, rows: readonly Row[]) => string
}

/**
 * Declares the document of a command that prints sentences or facts instead of records:
 * `document<Facts>()({ around: { target: string }, rows: 'versions', members: { svc: string } })`. A member of the row that
 * the declaration lacks does not compile.
 */
export const document =
  <Row extends object>() =>
  <const Place extends Around>(declaration: {
    readonly around: Place
    /** The member that holds the rows. */
    readonly rows: string
    readonly members: { readonly [Member in keyof Row]-?: JsonShape }
  }): JsonDocument<Row, keyof Place & string> => ({
    schema: () => documentShape(declaration.around, declaration.rows, objectOf(declaration.members)),
    text: (around, rows) => documentText(around, declaration.rows, rows),
  })
