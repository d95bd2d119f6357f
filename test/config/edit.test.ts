import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { listOfType, pathOfMonitor, withItem, withoutItem } from '../../src/core/config/edit.ts'

const item = { kind: 'http', name: 'shop', url: 'https://shop.example' }
const written = (column: number): string =>
  ['- kind: http', '  name: shop', '  url: https://shop.example']
    .map((line) => `${' '.repeat(column)}${line}\n`)
    .join('')

test.each<[string, string, string]>([
  [
    'a list',
    'types:\n  App:\n    - kind: tcp\n      port: 1\n',
    `types:\n  App:\n    - kind: tcp\n      port: 1\n${written(4)}`,
  ],
  [
    'a list in the column of its key',
    'types:\n  App:\n  - kind: tcp\n',
    `types:\n  App:\n  - kind: tcp\n${written(2)}`,
  ],
  [
    'the map form of a type',
    'types:\n  App:\n    monitors:\n      - kind: tcp\n    host: false\n',
    `types:\n  App:\n    monitors:\n      - kind: tcp\n${written(6)}    host: false\n`,
  ],
  [
    'a list with comments, odd blanks and quotes',
    '# head\ntypes:\n   App:\n     # one\n     -   kind:   tcp  # why\n         name: "a"\n\n     # two\n     - {kind: tcp, name: b}   # end\n\n# foot\n',
    `# head\ntypes:\n   App:\n     # one\n     -   kind:   tcp  # why\n         name: "a"\n\n     # two\n     - {kind: tcp, name: b}   # end\n${written(5)}\n# foot\n`,
  ],
  ['a file without a line end', 'types:\n  App:\n    - kind: tcp', `types:\n  App:\n    - kind: tcp\n${written(4)}`],
  [
    'a text of several lines at the end',
    'types:\n  App:\n    - kind: http\n      body: |\n        one\n\n        two\n\n# foot\n',
    `types:\n  App:\n    - kind: http\n      body: |\n        one\n\n        two\n${written(4)}\n# foot\n`,
  ],
  [
    'a file without its type',
    'types:\n  # two\n  Sql:\n  -   kind: tcp\n\nserve: {every: off}\n',
    `types:\n  # two\n  Sql:\n  -   kind: tcp\n  App:\n${written(4)}\nserve: {every: off}\n`,
  ],
  ['a file without types', 'serve:   {every: off}\n', `serve:   {every: off}\ntypes:\n  App:\n${written(4)}`],
])('C20 an entry is added to %s, and every other line stays as it is', async (_, text, expected) => {
  expect(await withItem(text, await listOfType(text, 'App'), item)).toBe(expected)
})

test.each<[string, string, string]>([
  [
    'of the first item',
    'types:\n  App:\n    - kind: tcp # a\n    # b\n    - kind: ping\n      host: x\n',
    'types:\n  App:\n    # b\n    - kind: ping\n      host: x\n',
  ],
  [
    'of the last item',
    'types:\n  App:\n    - kind: ping\n      host: x\n\n    - kind: tcp\n      port: 1\n\n# foot\n',
    'types:\n  App:\n    - kind: ping\n      host: x\n\n\n# foot\n',
  ],
  [
    'of the only one of a type',
    'types:\n  Sql:\n    - kind: ping\n  App:\n    - kind: tcp\nserve: {}\n',
    'types:\n  Sql:\n    - kind: ping\nserve: {}\n',
  ],
  [
    'of the only one',
    '# head\ntypes:\n  App:\n    - kind: tcp\nserve: {every: off}\n',
    '# head\nserve: {every: off}\n',
  ],
])('C20 an entry is removed with its lines and no others: those %s', async (_, text, expected) => {
  const path = (await pathOfMonitor(text, 'App', 'tcp')) ?? []
  expect(await withoutItem(text, path)).toBe(expected)
})

test.each([
  'types: {App: [{kind: tcp, name: a}, {kind: tcp, name: b}], Sql: []} # why\n',
  'types:\n  App: [{kind: tcp, name: a}, {kind: tcp, name: b}] # why\n',
  'types: {App: {monitors: [{kind: tcp, name: a}, {kind: tcp, name: b}], host: false}} # why\n',
  'x: &m {kind: tcp, name: a}\ntypes:\n  App: [*m, {kind: tcp, name: b}] # why\n',
])('C20 in brackets, an entry is added and removed with the comments and all other values: %j', async (text) => {
  const value = parse(text)
  const added = await withItem(text, await listOfType(text, 'App'), item)
  expect(added).toContain('# why')
  const path = (await pathOfMonitor(added, 'App', 'http shop')) ?? []
  expect(path.at(-1)).toBe(2)
  expect(parse(await withoutItem(added, path))).toEqual(value)
  const without = await withoutItem(added, (await pathOfMonitor(added, 'App', 'tcp b')) ?? [])
  expect(await pathOfMonitor(without, 'App', 'tcp b')).toBeUndefined()
  expect(await pathOfMonitor(without, 'App', 'http shop')).toBeDefined()
})

test.each(['', '# only a comment\n', 'serve: {every: off} # why\n', 'types:\n', 'types: {}\n', 'types:\n  Sql: []\n'])(
  'C20 the first entry of a type makes its list, and keeps the rest: %j',
  async (text) => {
    const added = await withItem(text, await listOfType(text, 'App'), item)
    expect(parse(added).types.App).toEqual([item])
    expect(parse(added).serve).toEqual(parse(text)?.serve)
    for (const [comment] of text.matchAll(/#.*/g)) expect(added).toContain(comment)
  },
)
