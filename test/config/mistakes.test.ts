import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { PlannedMonitor } from '../../src/core/checks/engine/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { faultOf, file, folder, here, load, problemsOf, refused } from './given.ts'

/** The level of a monitor that only reports something about the configuration. */
const levelOf = ({ settings }: PlannedMonitor): unknown => (settings as { readonly level?: unknown }).level

/** The source lines that a Fault shows, with the carets below them. */
const linesFor = async (yaml: string): Promise<readonly string[]> =>
  ((await refused(yaml)).details.hints ?? []).flatMap((hint) =>
    hint.split('\n').filter((line) => /^ *\d* \| /.test(line)),
  )

test.each([
  [
    'in a list of monitors',
    'types:\n  App:\n    - kind: http\n      name: "shop\n      url: http://x\n    - kind: http\n      name: "b"\n',
    '4:13',
  ],
  [
    'in braces, where the next quote closes it',
    "types:\n  App:\n    - {kind: http, name: 'shop, url: http://x}\n    - {kind: 'tcp', name: a}\n",
    '3:26',
  ],
  ['at the end of the file', 'types:\n  App:\n    - kind: http\n      name: "shop\n', '4:13'],
])('K11 a forgotten quote %s is reported where the quote opens', async (_, yaml, place) => {
  expect(problemsOf(await refused(yaml))).toEqual([
    `${place}: the file opens a quote here that is not closed: close it`,
  ])
})

test.each([
  ['types:\n  App: [{kind: http}\n  Sql: []\n', '2:8: the file opens a bracket here that is not closed: add `]`'],
  [
    'types:\n  App:\n    - {kind: http\n    - {kind: tcp}\n',
    '3:7: the file opens a bracket here that is not closed: add `}`',
  ],
  [
    'types:\n  App:\n    - kind: http\n      url http://x\n      name: a\n',
    '4:7: the file lacks the colon and the space of `name: value`',
  ],
])('K11 only the first syntax error is reported: %j', async (yaml, line) => {
  expect(problemsOf(await refused(yaml))).toEqual([line])
})

test('K11 a mistake is shown in its source line, with a caret below the place', async () => {
  expect(await linesFor('types:\n  Sql:\n    - kind: tcp\n      host: db1\n      prot: 5432\n      port: 1\n')).toEqual(
    ['5 |       prot: …', '  |       ^'],
  )
  expect(await linesFor('types:\n  Sql:\n    - kind: tpc\n')).toEqual(['3 |     - kind: tpc', '  |       ^'])
})

test.each([
  ['a secret', 'password: s3cret'],
  ['a secret in quotes that are not closed', 'password: "s3cret'],
  ['a secret behind other settings', '{kind: postgres, port: 1, password: s3cret, host: "x}'],
  ['a header', 'headers: {Authorization: s3cret}'],
  ['a URL with a password', 'url: https://monitor:s3cret@db1/'],
  ['a URL with a token', 'url: https://db1/?token=s3cret'],
  ['a URL whose path is a secret', 'url: https://hooks.example.com/s3cret'],
  ['an unknown key', 'pasword: s3cret'],
  ['a text of its own', '"s3cret'],
  ['what follows a plain value', 'port: 1 s3cret'],
])('K11 the source line of a mistake never shows %s', async (_, setting) => {
  for (const yaml of [
    `types:\n  Sql:\n    - kind: tcp\n      ${setting}\n      @\n`,
    `types:\n  Sql:\n    - ${setting}\n      x y\n`,
  ]) {
    const fault = await refused(yaml)
    expect(JSON.stringify([fault.message, fault.details])).not.toContain('s3cret')
  }
})

test('a key in a text that spans lines is not shown where the syntax is wrong', async () => {
  const fault = await refused('types:\n  Sql:\n    - kind: tcp\n      password: "a\n        s3cret: b" c\n')
  expect(JSON.stringify([fault.message, fault.details])).not.toContain('s3cret')
})

test('K11 a long source line is cut to 100 columns around its place, without characters that control a terminal', async () => {
  const pairs = Array.from({ length: 40 }, (_, i) => `a${i}: {kind: tcp}`).join(', ')
  const lines = await linesFor(`types: {Sql: []}\nserve: {jsonp: true}\n"\u202ekey": {${pairs}}\n`)
  const [source = '', caret = ''] = lines
  expect(source.length).toBeLessThanOrEqual('3 | '.length + 100)
  expect(source).toContain('�')
  expect(caret.indexOf('^')).toBe(4)
})

test('K11 the places of all mistakes are data, for the JSON of the error', async () => {
  const fault = await refused('serve: {jsonp: 1}\ntypes:\n  Sqll: []\n')
  expect(fault.details.places?.map(({ line, column }) => [line, column])).toEqual([
    [1, 9],
    [3, 3],
  ])
  expect(fault.details.places?.[0]?.file).toMatch(/svc\.yaml$/)
  expect(fault.details.places?.[0]?.message).toBe('serve.jsonp must be true or false (without quotes), not 1')
})

async function tolerant(yaml: string) {
  const home = await folder()
  const path = await file(join(home, 'svc.yaml'), yaml)
  return await loadConfig({ ...here({}, home), path, tolerant: true })
}

const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: h, port: 1${more}}`

test('K11 an entry with a mistake becomes a monitor that is not checked, and the others stay', async () => {
  const { types, mistakes } = await tolerant(`types:
  Sql:
    - ${tcp('a')}
    - {kind: tcp, name: b, host: h, prot: 1}
  App: [${tcp('c')}]
`)
  expect(types.App?.monitors.map((monitor) => [monitor.name, levelOf(monitor)])).toEqual([['tcp c', undefined]])
  expect(types.Sql?.monitors.map((monitor) => [monitor.name, levelOf(monitor)])).toEqual([
    ['tcp a', undefined],
    ['tcp b', 'not checked'],
  ])
  expect(types.Sql?.monitors[1]?.settings).toMatchObject({
    level: 'not checked',
    message: expect.stringMatching(
      /^.*svc\.yaml:4:37: types\.Sql\[1\]\.prot is not .*; .*svc\.yaml:4:7: types\.Sql\[1\]\.port is missing/,
    ),
  })
  expect(mistakes).toEqual([])
})

test.each([
  ['without a kind', '{name: x}', 'entry 2'],
  ['that is not a map', 'x', 'entry 2'],
  ['of the host block', '{kind: host}', 'host (entry 2)'],
  ['with the name of another', tcp('a'), 'tcp a (entry 2)'],
  ['that depends on an unknown monitor', tcp('b', ', dependsOn: nobody'), 'tcp b'],
  ['that uses a profile wrongly', '{profile: carbon, nonsense: 1}', 'carbon'],
  ['that uses an unknown profile', '{profile: nobody}', 'nobody'],
  ['that uses a profile with mistakes', '{profile: mine}', 'mine'],
])('K11 an entry %s is never lost', async (_, entry, name) => {
  const { types } = await tolerant(`profiles: {mine: {monitors: []}}
types:
  Sql:
    - ${tcp('a')}
    - ${entry}
`)
  expect(types.Sql?.monitors.map((monitor) => [monitor.name, levelOf(monitor)])).toEqual([
    ['tcp a', undefined],
    [name, 'not checked'],
  ])
})

test('monitors that depend on each other in a circle do not wait for each other', async () => {
  const { types } = await tolerant(`types:
  Sql: [${tcp('a', ', dependsOn: b')}, ${tcp('b', ', dependsOn: a')}]
`)
  const broken = types.Sql?.monitors.find((monitor) => levelOf(monitor) === 'not checked')
  expect(broken?.dependsOn).toEqual([])
})

test('a mistake beside the monitors of a type keeps the type from passing', async () => {
  const { types } = await tolerant(`types:
  Sql: {host: {dsik: 1}, monitors: [${tcp('a')}]}
  App: 5
`)
  expect(types.Sql?.monitors.map((monitor) => [monitor.name, levelOf(monitor)])).toEqual([
    ['tcp a', undefined],
    ['Configuration', 'not checked'],
  ])
  expect(types.App?.monitors.map(levelOf)).toEqual(['not checked'])
})

test('mistakes outside of the server types are returned with their places', async () => {
  const { types, mistakes } = await tolerant(`types:
  Sqll: []
  App: [${tcp('a')}]
serve: {jsonp: 1}
`)
  expect(types.App?.monitors).toHaveLength(1)
  expect(mistakes.map(({ line, column }) => [line, column])).toEqual([
    [2, 3],
    [4, 9],
  ])
})

test('a syntax error is refused even where mistakes are tolerated', async () => {
  expect((await faultOf(tolerant('types: {'))).fault).toBe('Local')
})

test('a type without monitors is a warning with its place', async () => {
  expect((await load(`types:\n  App:\n  Sql: [${tcp('a')}]\n`)).warnings).toEqual([
    expect.stringMatching(/svc\.yaml:2:3: types\.App has no monitors: App is not configured$/),
  ])
})

test('K10 a host block that switches on no check does not configure its type, and the warning says so', async () => {
  for (const host of [
    '{}',
    '{skipDisks: [/srv]}',
    '{disks: []}',
    '{disk: {}}',
    '{memory: {warn: off}}',
    '{cpu: off}',
  ]) {
    const { types, warnings } = await load(`types:\n  App: {host: ${host}}\n`)
    expect([host, types.App?.monitors, warnings]).toEqual([
      host,
      [],
      [expect.stringMatching(/types\.App has no monitors, and its host: switches on no check: App is not configured$/)],
    ])
  }
  const { types, warnings } = await load('types:\n  App: {host: false}\n')
  expect(types.App).toEqual({ monitors: [], host: false })
  expect(warnings).toEqual([expect.stringMatching(/types\.App has no monitors: App is not configured$/)])
})

test.each([
  ['{disk: {warn: 30%}}', 'Standard'],
  ['{disks: [/]}', 'Standard'],
  ['{clock: {reference: 127.0.0.1}}', 'Standard'],
  ['{restarted: 1h}', 'Advanced'],
  ['{restarted: 1h, memory: off}', 'Advanced'],
  ['{restarted: 1h, memory: 5%}', 'Standard'],
])('K10 the host settings %s configure a type without monitors, from %s on', async (host, depth) => {
  const { types, warnings } = await load(`types:\n  App: {host: ${host}}\n`)
  expect(warnings).toEqual([])
  expect(types.App).toMatchObject({ monitors: [{ name: 'host', host: false, depth }], host: false })
})

test('K20 host: at the top is the default of the host block of every type, setting by setting', async () => {
  const { types } = await load(`host: {disk: 5%, cpu: {warn: 95%}}
types:
  App: [${tcp('a')}]
  Sql: {host: {disk: 9%}, monitors: [${tcp('b')}]}
  Ftp: {host: false, monitors: [${tcp('c')}]}
  Batch: {host: {disk: 1%}}
`)
  expect(types.App?.host).toEqual({ disk: '5%', cpu: { warn: '95%' } })
  expect(types.Sql?.host).toEqual({ disk: '9%', cpu: { warn: '95%' } })
  expect(types.Ftp?.host).toBe(false)
  const [batch] = types.Batch?.monitors ?? []
  expect(batch?.settings).toMatchObject({ disk: { limit: 1 }, cpu: { warn: 95 } })
  const off = await load(`host: false\ntypes:\n  App: [${tcp('a')}]\n  Sql: {host: {}, monitors: [${tcp('b')}]}\n`)
  expect([off.types.App?.host, off.types.Sql?.host]).toEqual([false, {}])
})

test('K20 host: at the top configures no type, and its mistakes have their lines', async () => {
  const { types, warnings } = await load('host: {disk: 5%}\ntypes:\n  App: {host: {}}\n  Sql:\n')
  expect([types.App?.monitors, types.Sql?.monitors]).toEqual([[], []])
  expect(warnings).toHaveLength(2)
  await expect(load('host: {dsik: 5%}\ntypes: {}\n')).rejects.toThrow(
    'host.dsik is not a setting here: did you mean `disk`?',
  )
})

test('the host settings of a type with monitors stay those of its host block', async () => {
  const { types } = await load(`types:\n  App: {host: {memory: 5%}, monitors: [${tcp('a')}]}\n`)
  expect(types.App?.monitors.map(({ name }) => name)).toEqual(['tcp a'])
  expect(types.App?.host).toEqual({ memory: '5%' })
  const { types: invalid } = await tolerant('types:\n  App: {host: {memory: 5%}, monitors: [{kind: tcp}]}\n')
  expect(invalid.App?.monitors.map(levelOf)).toEqual(['not checked'])
})
