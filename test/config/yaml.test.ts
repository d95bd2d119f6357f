import { expect, test } from 'vitest'
import { measureWork } from '../support/suite/processor-time.ts'
import { load, problemsOf, refused } from './given.ts'

const notSvcYaml =
  '1:1: the file is not a svc.yaml: it has none of the sections types, profiles, serve, auth and notify'

test.each([
  ['a tab', 'types:\n\tSql: []\n', '2:1: the file is indented with a tab: use spaces'],
  [
    'a duplicate key',
    'types:\n  Sql: []\n  Sql: []\n',
    '3:3: the file contains `Sql` twice, here and at 2:3: keep one of them',
  ],
  [
    'a duplicate setting of one of many monitors',
    'types:\n  Sql:\n    - {kind: tcp, host: a, port: 1}\n    - {kind: tcp, host: a, port: 1, host: b}\n',
    '4:37: the file contains `host` twice, here and at 4:19: keep one of them',
  ],
  [
    'a duplicate key that may be a secret',
    'types:\n  a:s3cret: 1\n  a:s3cret: 2\n',
    '3:3: the file contains the same key twice, here and at 2:3: keep one of them',
  ],
  [
    'a second merge key',
    'a: &a {b: 1}\nc:\n  <<: *a\n  <<: *a\n',
    '4:3: the file contains `<<` twice, here and at 3:3: merge both with `<<: [*one, *other]`',
  ],
  [
    'a merge of a text',
    'types:\n  <<: s3cret\n',
    '2:7: the file merges something other than settings: write `<<: *name`, with `&name` before those settings',
  ],
  [
    'a tab after spaces',
    'types:\n  Sql:\n    - kind: tcp\n    \thost: a\n      port: 1\n',
    '4:5: the file is indented with a tab: use spaces',
  ],
  [
    'a blank of a web page',
    'types:\n  Sql:\n    - kind: tcp\n\u00a0     host: a\n      port: 1\n',
    '4:1: the file is indented with a blank that is not a space: use spaces',
  ],
  [
    'a line that is indented too far',
    'types:\n  Sql:\n    - kind: tcp\n       host: a\n',
    '3:13: the file has a value here, and the next line is indented too far: begin it in the column of this setting',
  ],
  [
    'two settings on one line',
    'types:\n  Sql:\n    - kind: tcp\n      name: shop: s3cret\n',
    '4:13: the file has two settings on one line: write one on each line, or put a text that contains a colon in quotes',
  ],
  [
    'a backslash in double quotes',
    'types:\n  Sql:\n    - {kind: http, matches: "\\d s3cret"}\n',
    '3:30: the file has a backslash in double quotes, where it stands for a special character: use single quotes',
  ],
  ['a comma too many', 'types: {Sql: [s3cret,,]}\n', '1:22: the file has a comma too many: remove it'],
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
  ['a list', '- types\n', notSvcYaml],
  ['a text', 's3cret\n', notSvcYaml],
  ['a file of passwords', 'root:s3cret:20228:0:99999:7::\nsvc:$y$s3cret:20228::::::\n', notSvcYaml],
  ['a file with a section of another name', 's3cret!: 1\n', notSvcYaml],
])('K11 %s is refused with its place, and the text is not repeated', async (_, yaml, line) => {
  const fault = await refused(yaml)
  expect(problemsOf(fault)).toContain(line)
  expect(JSON.stringify([fault.message, fault.details])).not.toContain('s3cret')
})

test('a few lines of aliases cannot expand to gigabytes', async () => {
  const lines = Array.from({ length: 40 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}, *a${i}]`)
  const spent = measureWork()
  const fault = await refused(['a0: &a0 [x, x]', ...lines].join('\n'))
  expect(spent()).toBeLessThan(5_000)
  expect(problemsOf(fault)).toEqual([
    '1:1: the file expands to too much data: replace its anchors and aliases (`&name`, `*name`) with the text itself',
  ])
})

test('an anchor that contains itself ends in one message', async () => {
  const fault = await refused('types: &a {Sql: *a}\n')
  expect(fault.message).toMatch(/svc\.yaml:1:\d+: /)
})

test.each(['[', '{a: ', '- '])('twenty thousand times %j ends in one message, soon', async (opening) => {
  const spent = measureWork()
  const fault = await refused(`types: ${opening === '- ' ? '\n' : ''}${opening.repeat(20_000)}`)
  expect(spent()).toBeLessThan(10_000)
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

test('K11 a merge key takes over the settings of an anchor, and a problem in them is reported where they are written', async () => {
  const yaml = `types:
  Sql:
    - &db {kind: tcp, name: a, host: h, port: 1}
    - <<: *db
      name: b
    - <<: [*db, {timeout: 2s}]
      name: c
`
  const config = await load(yaml)
  expect(
    config.types.Sql?.monitors.map(({ name, settings }) => [name, (settings as { readonly host?: string }).host]),
  ).toEqual([
    ['tcp a', 'h'],
    ['tcp b', 'h'],
    ['tcp c', 'h'],
  ])
  expect(config.types.Sql?.monitors[2]?.timeoutMs).toBe(2_000)
  const problems = problemsOf(await refused(yaml.replace('port: 1', 'prot: 1')))
  expect(problems).toContain('3:41: types.Sql[1].prot is not a setting here: did you mean `port`?')
  expect(problems).toContain('3:41: types.Sql[2].prot is not a setting here: did you mean `port`?')
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
