type Json = Readonly<Record<string, unknown>>

/** A shape is shared if it is longer than this, in characters of JSON, and stands at more than two places. */
const worthwhile = 140

/**
 * The same schema, with each shape that stands at several places once, in `$defs`. What a place says of itself stays there: the
 * description and the default. Definitions have the name of the first setting with this shape: `timeout`, `timeout-2`.
 */
export function withSharedShapes(schema: object): object {
  const places = new Map<string, number>()
  visit(schema, (node) => {
    const key = keyOf(node)
    if (key !== undefined) places.set(key, (places.get(key) ?? 0) + 1)
  })
  const names = new Map<string, string>()
  const definitions: Record<string, unknown> = {}
  const own = (schema as { readonly $defs?: Json }).$defs ?? {}
  const nameFor = (setting: string): string => {
    const taken = { ...own, ...definitions }
    for (let number = 1; ; number += 1) {
      const name = number === 1 ? setting : `${setting}-${number}`
      if (!Object.hasOwn(taken, name)) return name
    }
  }
  const share = (value: unknown, setting: string): unknown => {
    if (Array.isArray(value)) return value.map((item: unknown) => share(item, setting))
    if (!isNode(value)) return value
    const key = keyOf(value)
    if (key === undefined || (places.get(key) ?? 0) <= 2) return shared(value, setting)
    let name = names.get(key)
    if (name === undefined) {
      name = nameFor(setting)
      names.set(key, name)
      // Before what is in it, so that its name is taken.
      definitions[name] = {}
      definitions[name] = shared(shapeOf(value), setting)
    }
    const { description, default: usual } = value
    return { ...pick({ description, default: usual }), $ref: `#/$defs/${name}` }
  }
  const shared = (node: Json, setting: string): Json =>
    Object.fromEntries(
      Object.entries(node).map(([member, value]) => [
        member,
        (member === 'properties' || member === '$defs') && isNode(value)
          ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, share(one, name)]))
          : share(value, setting),
      ]),
    )
  const root = shared(schema as Json, 'shape')
  return { ...root, $defs: { ...(root['$defs'] as Json), ...definitions } }
}

const isNode = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const pick = (members: Json): Json =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
const shapeOf = ({ description, default: usual, ...shape }: Json): Json => shape

/** Undefined for what is not worth a definition, and for what is no schema. */
function keyOf(node: Json): string | undefined {
  if (!('anyOf' in node || 'type' in node || 'properties' in node)) return undefined
  const text = JSON.stringify(shapeOf(node))
  return text.length > worthwhile ? text : undefined
}

function visit(value: unknown, each: (node: Json) => void): void {
  if (Array.isArray(value)) for (const item of value) visit(item, each)
  if (!isNode(value)) return
  each(value)
  for (const member of Object.values(value)) visit(member, each)
}
