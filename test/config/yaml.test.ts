import { expect, test } from 'vitest'
import { processorMs } from '../support/suite/processor-time.ts'
import { load, problemsOf, refused } from './given.ts'

test.each([
  ['a tab', 'types:\n\tSql: []\n', '2:1: the file is indented with a tab: use spaces'],
  ['a duplicate key', 'types:\n  Sql: []\n  Sql: []\n', '3:3: the file contains the same key twice: keep one of them'],
  ['an open quote', 'types: {Sql: "s3cret}\n', '1:14: the file opens a quote here that is not closed: close it'],
  [
    'a reserved character',
    'types: @s3cret\n',
    '1:8: the file begins a text with a reserved character: put the text in quotes',
  ],
  ['a tag', 'types: !s3cret {}\n', '1:8: the file uses a tag (`!name`): remove it, svc.yaml needs none'],
  [
    'an alias without an anchor',
    'types:\n  Sql: *s3cret\n',
    '2:8: the file uses an alias (`*name`) without an anchor before it: quote texts that begin with * or &',
  ],
  [
    'two documents',
    'types: {}\n---\ntypes: {}\n',
    '2:1: the file contains several documents: keep one, and remove the "---" between them',
  ],
  [
    'a key that is a list',
    'types:\n  ? [s3cret]\n  : 1\n',
    '2:5: the file has a key that is not a simple text: write `name: value`',
  ],
  ['another version', '%YAML 1.1\n---\ntypes: {}\n', '1:1: the file must be YAML 1.2: remove the %YAML line'],
  ['a list', '- types\n', '1:1: the file must contain `types:` and `serve:`'],
  ['a text', 's3cret\n', '1:1: the file must contain `types:` and `serve:`'],
])('%s is refused with its place, and the text is not repeated', async (_, yaml, line) => {
  const fault = await refused(yaml)
  expect(problemsOf(fault)).toContain(line)
  expect(JSON.stringify([fault.message, fault.details])).not.toContain('s3cret')
})

test('a few lines of aliases cannot expand to gigabytes', async () => {
  const lines = Array.from({ length: 40 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}, *a${i}]`)
  const start = processorMs()
  const fault = await refused(['a0: &a0 [x, x]', ...lines].join('\n'))
  expect(processorMs() - start).toBeLessThan(5_000)
  expect(problemsOf(fault)).toEqual([
    '1:1: the file expands to too much data: replace its anchors and aliases (`&name`, `*name`) with the text itself',
  ])
})

test('an anchor that contains itself ends in one message', async () => {
  const fault = await refused('types: &a {Sql: *a}\n')
  expect(fault.message).toMatch(/svc\.yaml:1:\d+: /)
})

test.each(['[', '{a: ', '- '])('a hundred thousand times %j ends in one message, soon', async (opening) => {
  const start = processorMs()
  const fault = await refused(`types: ${opening === '- ' ? '\n' : ''}${opening.repeat(100_000)}`)
  expect(processorMs() - start).toBeLessThan(10_000)
  expect(fault.fault).toBe('Local')
  expect(problemsOf(fault).length).toBeLessThan(60)
})

test('an anchor shares settings, and a problem in them is reported where they are written', async () => {
  const yaml = `types:
  Sql:
    - &db {kind: tcp, name: a, host: h, port: 1}
  App:
    - *db
`
  const config = await load(yaml)
  expect(config.types.App?.monitors[0]?.name).toBe('tcp a')
  expect(problemsOf(await refused(yaml.replace('port: 1', 'prot: 1')))).toContain(
    '3:41: types.App[0].prot is not a setting here: did you mean `port`?',
  )
})

test('an empty file, a comment, and sections without content configure nothing', async () => {
  for (const yaml of ['', '# nothing yet\n', 'types:\nserve:\n', '{}', '---\n...\n']) {
    expect(await load(yaml)).toMatchObject({ types: {}, serve: { hsts: true } })
  }
})

test('keys that each object inherits are ordinary keys', async () => {
  const fault = await refused('__proto__: {polluted: true}\ntypes:\n  constructor: []\n  __proto__: []\n')
  expect(problemsOf(fault).map((line) => line.replace(/ is not.*/, ''))).toEqual([
    '1:1: __proto__',
    '3:3: types.constructor',
    '4:3: types.__proto__',
  ])
  expect('polluted' in {}).toBe(false)
})
