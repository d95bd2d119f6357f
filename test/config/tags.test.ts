import { expect, test } from 'vitest'
import { assemble } from '../../src/core/checks/plan/index.ts'
import { load, problemsOf, refused } from './given.ts'

const mistakesIn = async (yaml: string): Promise<readonly string[]> => problemsOf(await refused(yaml))

const profile = `
profiles:
  pair:
    tags: [pair]
    monitors:
      - {kind: tcp, name: one, host: a, port: 1, tags: [first]}
      - {kind: tcp, name: two, host: a, port: 2, dependsOn: one}
`

test('W21 a monitor has its own tags, those of its type and those of its profile, each once', async () => {
  const { types } = await load(`${profile}
types:
  Sql:
    tags: [shop, nightly]
    monitors:
      - {kind: tcp, name: orders, host: a, port: 1, tags: [critical, shop]}
      - {profile: pair, tags: edge}
  App: [{kind: tcp, name: plain, host: a, port: 1}]
`)
  expect(types.Sql?.monitors.map(({ name, tags }) => [name, tags])).toEqual([
    ['tcp orders', ['critical', 'nightly', 'shop']],
    ['tcp pair one', ['edge', 'first', 'nightly', 'pair', 'shop']],
    ['tcp pair two', ['edge', 'nightly', 'pair', 'shop']],
  ])
  expect(types.App?.monitors[0]).not.toHaveProperty('tags')
})

test('W21 a tag that is more than letters, digits, "-", "_" and "." is refused where it is written', async () => {
  const text = `profiles:
  pair:
    tags: ['a b']
    monitors: [{kind: tcp, name: one, host: a, port: 1}]
types:
  Sql:
    tags: ['a,b']
    monitors:
      - {kind: tcp, host: a, port: 1, tags: ['tag:x', ok]}
`
  const problems = await mistakesIn(text)
  expect(problems.filter((problem) => /tags/.test(problem)).length).toBe(3)
  expect(problems.join('\n')).toMatch(/^3:\d+: profiles\.pair\.tags/m)
  expect(problems.join('\n')).toMatch(/^7:\d+: types\.Sql\.tags/m)
  expect(problems.join('\n')).toMatch(/^9:\d+: types\.Sql\.monitors\[0\]\.tags/m)
})

test('G1 tag:NAME in dependsOn means every other monitor with that tag, of all types', async () => {
  const { types } = await load(`types:
  App:
    - {kind: tcp, name: shop, host: a, port: 1, dependsOn: ['tag:resolver', orders], tags: [resolver]}
    - {kind: tcp, name: orders, host: a, port: 1, tags: [resolver]}
  Sql:
    tags: [resolver]
    monitors: [{kind: tcp, name: db, host: a, port: 1}]
`)
  expect(types.App?.monitors[0]).toMatchObject({
    dependsOn: ['tcp orders'],
    dependsOnElsewhere: [{ type: 'Sql', name: 'tcp db' }],
  })
})

test('G1 a monitor that is named like a reference to a tag comes first', async () => {
  const { types } = await load(`types:
  App:
    - {kind: tcp, name: 'tag:x', host: a, port: 1}
    - {kind: tcp, name: other, host: a, port: 1, tags: [x]}
    - {kind: tcp, name: shop, host: a, port: 1, dependsOn: 'tag:x'}
`)
  expect(types.App?.monitors[2]?.dependsOn).toEqual(['tcp tag:x'])
})

test.each([
  ['that nobody has', 'resolvr', 'names "tag:resolvr", but no monitor has this tag: did you mean `tag:resolver`?'],
  [
    'unlike all others',
    'q',
    'names "tag:q", but no monitor has this tag: write `tag:mine` or `tag:resolver`, or remove it',
  ],
  ['that only the monitor itself has', 'mine', 'names "tag:mine", but no other monitor has this tag: remove it'],
])('G1 a tag %s is a mistake that says what to write', async (_, tag, message) => {
  const problems = await mistakesIn(`types:
  App:
    - {kind: tcp, name: a, host: a, port: 1, tags: [resolver]}
    - {kind: tcp, name: b, host: a, port: 1, tags: [mine], dependsOn: 'tag:${tag}'}
`)
  expect(problems).toHaveLength(1)
  expect(problems[0]).toContain(message)
})

test('G1 a cycle through a tag is a mistake', async () => {
  const problems = await mistakesIn(`types:
  App:
    - {kind: tcp, name: a, host: a, port: 1, tags: [x], dependsOn: b}
    - {kind: tcp, name: b, host: a, port: 1, dependsOn: 'tag:x'}
`)
  expect(problems.join('\n')).toContain('forms a cycle (tcp a → tcp b → tcp a)')
})

test('W21 an entry with another mistake still counts for its tags', async () => {
  const problems = await mistakesIn(`types:
  App:
    - {kind: tcp, name: a, host: a, tags: [x]}
    - {kind: tcp, name: b, host: a, port: 1, dependsOn: 'tag:x'}
`)
  expect(problems).toHaveLength(1)
  expect(problems[0]).toContain('port')
})

test('W21 the monitors of a type are planned with its tags, and the host block has none', async () => {
  const { types } = await load('types: {Sql: {tags: [shop], monitors: [{kind: tcp, host: a, port: 1}]}}')
  const planned = await assemble('Sql', {
    configured: types.Sql?.monitors ?? [],
    host: types.Sql?.host ?? {},
    parts: undefined,
    listening: async () => [],
    signal: new AbortController().signal,
    mode: 'Basic',
  })
  expect(planned.map(({ host, tags }) => [host, tags])).toEqual([
    [true, undefined],
    [false, ['shop']],
  ])
})
