import { readdirSync, readFileSync } from 'node:fs'
import { Script } from 'node:vm'
import { parseSync } from 'rolldown/utils'
import { describe, expect, test } from 'vitest'
import { compiledEagerly } from '../tools/eager.ts'

const dist = new URL('../dist/', import.meta.url)

const source = `
const table = { later, letters: 'größer …', pattern: /[ä-ö€]/ };
function later(a, b = () => a) { return b() + inner(); function inner() { return 1 } }
async function promised() { return await (async () => 'p')() }
function* counted() { yield 1; yield 2 }
class Shape { #sides = 3; get sides() { return this.#sides } static of() { return new Shape() } double() { return [1].map(() => this.#sides * 2)[0] } }
const arrow = x => y => x + y, object = { method() { return 'm' }, get got() { return 'g' }, called: function () { return 'c' } };
(function () { table.immediately = true })();
({ table, later, promised, counted, Shape, arrow, object })
`

/** The answers of the functions in `code`, and their names. */
async function answersOf(code: string): Promise<unknown> {
  const { table, later, promised, counted, Shape, arrow, object } = new Script(code).runInNewContext()
  const answers = [
    [table.later === later, table.letters, table.pattern.test('ö'), table.pattern.test('x'), table.immediately],
    [later(2), await promised(), [...counted()], Shape.of().sides, Shape.of().double()],
    [arrow(1)(2), object.method(), object.got, object.called()],
    [later.name, promised.name, counted.name, Shape.name, arrow.name, object.called.name],
  ] // Of this realm, so that they can be compared.
  return JSON.parse(JSON.stringify(answers))
}

/** The size of the cache of compiled code that Node writes: before anything is called. */
const cachedBytes = (code: string): number => new Script(code).createCachedData().length

describe('code that is compiled eagerly', () => {
  test('behaves as before, under the same names', async () => {
    const expected = await answersOf(source)
    expect(expected).toMatchObject([
      [true, 'größer …', true, false, true],
      [3, 'p', [1, 2], 3, 6],
      [3, 'm', 'g', 'c'],
      {},
    ])
    expect(await answersOf(compiledEagerly(source))).toEqual(expected)
  })

  test('keeps its directive first', () => {
    const isStrict = `'use strict';function strict() { return this === undefined }\nstrict()`
    expect(new Script(compiledEagerly(isStrict)).runInThisContext()).toBe(true)
  })

  test('is in the cache of compiled code with the bodies of its functions', () => {
    const body = Array.from({ length: 200 }, (_, at) => `total += Math.sqrt(a) * ${at};`).join('\n')
    const lazy = `function sum(a) { let total = 0; ${body} return total }`
    expect(cachedBytes(compiledEagerly(lazy))).toBeGreaterThan(3 * cachedBytes(lazy))
  })

  test('is ASCII', () => {
    expect(compiledEagerly(source)).toMatch(/^[\0-\x7f]*$/)
    expect(() => compiledEagerly('/\\…/')).toThrow('backslash')
  })
})

test.each(['start', 'command', 'client', 'answer'])(
  'the chunk "%s" declares no function that is compiled lazily',
  (name) => {
    const files = readdirSync(dist).filter((file) => new RegExp(`^eager-${name}-[\\w-]{8}\\.cjs$`).test(file))
    expect(files).toHaveLength(1)
    const code = readFileSync(new URL(files[0] ?? '', dist), 'utf8')
    expect(code).toMatch(/^[\0-\x7f]*$/)
    const { program, errors } = parseSync('chunk.cjs', code, { sourceType: 'script' })
    expect(errors).toEqual([])
    expect(program.body.filter(({ type }) => type === 'FunctionDeclaration')).toEqual([])
  },
)
