import { readFileSync } from 'node:fs'
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

const all = (): boolean => true

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
    expect(await answersOf(compiledEagerly(source, all))).toEqual(expected)
  })

  test('keeps its directive first', () => {
    const isStrict = `'use strict';function strict() { return this === undefined }\nstrict()`
    expect(new Script(compiledEagerly(isStrict, all)).runInThisContext()).toBe(true)
  })

  test('is in the cache of compiled code with the bodies of the functions that run, and of no others', () => {
    const body = Array.from({ length: 200 }, (_, at) => `total += Math.sqrt(a) * ${at};`).join('\n')
    const lazy = `function sum(a) { let total = 0; ${body} return total }`
    const bytes = cachedBytes(compiledEagerly(lazy, all))
    expect(bytes).toBeGreaterThan(3 * cachedBytes(lazy))
    const both = `${lazy}\n${lazy.replace('sum', 'other')}`
    expect(cachedBytes(compiledEagerly(both, (start) => start === 0))).toBeLessThan(1.5 * bytes)
  })

  test('is ASCII', () => {
    expect(compiledEagerly(source, all)).toMatch(/^[\0-\x7f]*$/)
    expect(() => compiledEagerly('/\\…/', all)).toThrow('backslash')
  })
})

/** The files of the bundle that contain modules of svc and of no package, with their code. */
const chunks = Object.entries(
  JSON.parse(readFileSync(new URL('modules.json', dist), 'utf8')) as Record<string, string[]>,
)
  .filter(([, modules]) => modules.every((module) => module === '' || module.startsWith('src/')))
  .map(([name]) => ({ name, code: readFileSync(new URL(name, dist), 'utf8') }))

const parsed = (code: string) => {
  const { program, errors } = parseSync('chunk.cjs', code, { sourceType: 'script', preserveParens: true })
  expect(errors).toEqual([])
  return program
}

test.each(['main.cjs', 'eager-command-', 'eager-local-', 'eager-client-', 'eager-answer-', 'eager-http-'])(
  'the chunk "%s" has parentheses around the functions that a health check runs, and around no others',
  (name) => {
    const { code = '' } = chunks.find((chunk) => chunk.name.startsWith(name)) ?? {}
    expect(code).toMatch(/^[\0-\x7f]*$/)
    const { body } = parsed(code)
    expect(body.some(({ type }) => type === 'FunctionDeclaration')).toBe(true)
    const run = body.filter(
      ({ type, start }) =>
        type === 'VariableDeclaration' && /^var \w+=\((?:async )?function/.test(code.slice(start, start + 200)),
    )
    expect(run.length).toBeGreaterThan(3)
  },
)

test('no chunk makes a pattern with a property of Unicode before a function needs it, which takes 4 ms', () => {
  const made: string[] = []
  const search = (node: unknown, name: string): void => {
    if (typeof node !== 'object' || node === null) return
    if ('type' in node && /Function/.test(String(node.type))) return
    if ('regex' in node) {
      const { pattern } = node.regex as { pattern: string }
      if (/\\p\{/i.test(pattern)) made.push(`${name}: ${pattern}`)
    }
    for (const value of Object.values(node)) search(value, name)
  }
  for (const { name, code } of chunks) if (code.includes('\\p{')) search(parsed(code), name)
  expect(made).toEqual([])
})
