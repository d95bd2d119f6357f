import { expect, test } from 'vitest'
import { configSchema as sharing } from '../../src/core/config/index.ts'
import { configSchema as whole } from '../../src/core/config/schema.ts'
import { withSharedShapes } from '../../src/core/config/shared-shapes.ts'

type Json = Readonly<Record<string, unknown>>
const isNode = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The schema with each definition that is not in `own` at the places that refer to it. */
function expanded(schema: object, own: Json): unknown {
  const { $defs, ...root } = schema as { readonly $defs: Json }
  const at = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(at)
    if (!isNode(value)) return value
    const { $ref, ...rest } = value
    const name = typeof $ref === 'string' ? $ref.replace('#/$defs/', '') : undefined
    const members = Object.fromEntries(Object.entries(rest).map(([member, one]) => [member, at(one)]))
    if (name === undefined) return members
    return name in own ? { ...members, $ref } : { ...members, ...(at($defs[name]) as Json) }
  }
  const definitions = Object.entries($defs).filter(([name]) => name in own)
  return { ...(at(root) as Json), $defs: Object.fromEntries(definitions.map(([name, one]) => [name, at(one)])) }
}

test('K17 the schema of svc.yaml says the same with its shared shapes as without them, on less than half of the lines', async () => {
  const [short, long] = await Promise.all([sharing(), whole()])
  expect(expanded(short, (long as { readonly $defs: Json }).$defs)).toEqual(long)
  const lines = (schema: object): number => JSON.stringify(schema, null, 2).split('\n').length
  expect(lines(short)).toBeLessThan(lines(long) / 2)
})

test('a shape keeps its description and default at each place, and gets a name of its own', () => {
  const values = ['a', 'b', 'c'].map((one) => one.repeat(50))
  const shape = { type: 'string', enum: values }
  const schema = {
    properties: {
      x: { description: 'one', ...shape },
      y: { default: 'a', ...shape },
      z: shape,
      other: { type: 'string' },
    },
    $defs: { x: { type: 'number' } },
  }
  expect(withSharedShapes(schema)).toEqual({
    properties: {
      x: { description: 'one', $ref: '#/$defs/x-2' },
      y: { default: 'a', $ref: '#/$defs/x-2' },
      z: { $ref: '#/$defs/x-2' },
      other: { type: 'string' },
    },
    $defs: { x: { type: 'number' }, 'x-2': shape },
  })
})
