import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { parseDocument } from '../../src/core/config/document.ts'
import { plainListOf } from '../../src/core/config/plain-list.ts'

const files = [
  `servers:\n  - {name: s0, url: 'http://127.0.0.1:1'}\n  - {name: "s 1", url: http://a:80/x, tags: [a, 'b, c']}\n`,
  `# list\nservers:\n- name: a\n  url: https://a\n\n  tags: [x, y]\n- {name: b, url: https://b}\n  # end\n- name: 'c # d'\n  url: "h"`,
]
const inserted = [
  ...' \n\t:,-#{}[]"\'&*!|>%@`?.~\\<=0e/_\r\u00a0\u2028\ufeff\0é',
  ...['true', 'null', 'NULL', '.inf', '- ', '  ', ': ', ', ', '{}', '[]', "''", '---\n', '...\n', '<<', ' #', '\n  '],
]

/** The file with each text in place of each character, and without some characters. */
const changed = (file: string): readonly string[] =>
  Array.from(file, (_, at) => [
    ...inserted.map((sign) => file.slice(0, at) + sign + file.slice(at + 1)),
    ...[1, 2, 3, 5].map((left) => file.slice(0, at) + file.slice(at + left)),
  ]).flat()

test('a list that is read without the parser of YAML has the value that the parser reads', async () => {
  const read = [...files, ...files.flatMap(changed)].flatMap((file) => {
    const value = plainListOf('servers', file)
    return value ? [{ file, value }] : []
  })
  expect(files.map((file) => plainListOf('servers', file))).not.toContain(undefined)
  // Words, quotes, comments and members in other places, but nothing that is special in YAML.
  expect(read.length).toBeGreaterThan(500)
  const parsed = await Promise.all(read.map(async (one) => ({ ...one, ...(await parseDocument(one.file)) })))
  expect(
    parsed.filter(({ value, problems }, at) => problems.length > 0 || !isDeepStrictEqual(value, read[at]?.value)),
  ).toEqual([])
})

test.each([
  ['a key twice', 'servers:\n  - {name: a, name: b}\n'],
  ['a word for nothing', 'servers:\n  - {name: Null}\n'],
  ['a number', 'servers:\n  - {name: 10}\n'],
  ['an alias', 'servers:\n  - {name: *a}\n'],
  ['an escape', 'servers:\n  - {name: "a\\n"}\n'],
  ['a quote in quotes', "servers:\n  - {name: 'it''s'}\n"],
  ['a line that continues a text', 'servers:\n  - name: a\n    b\n'],
  ['another indentation', 'servers:\n  - name: a\n   url: b\n'],
  ['a second name', 'servers:\n  - {name: a}\ndevices: [b]\n'],
  ['no entry', 'servers:\n'],
])('a file with %s is left to the parser of YAML', (_, file) => {
  expect(plainListOf('servers', file)).toBeUndefined()
})
