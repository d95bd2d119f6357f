import { expect, test } from 'vitest'
import { load, problemsOf, refused } from './given.ts'

const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: a, port: 1${more}}`
/** A svc.yaml whose `App/tcp shop` depends on this, in its fourth line. */
const yamlOf = (dependsOn: string): string => `types:
  Sql: [${tcp('b')}, ${tcp('c', ', tags: [replica]')}, ${tcp('d', ', tags: [replica]')}]
  App:
    - ${tcp('shop', `, dependsOn: ${dependsOn}`)}
    - ${tcp('a')}
`
const shopOf = async (dependsOn: string) => (await load(yamlOf(dependsOn))).types.App?.monitors[0]
const mistakeIn = async (dependsOn: string): Promise<readonly string[]> => problemsOf(await refused(yamlOf(dependsOn)))

const [a, b, c, d] = [
  { type: 'App', name: 'tcp a' },
  { type: 'Sql', name: 'tcp b' },
  { type: 'Sql', name: 'tcp c' },
  { type: 'Sql', name: 'tcp d' },
]

test('G1 dependsOn takes groups of which any or at least some must be within reach, beside names', async () => {
  expect(await shopOf('[Sql/b, {any: [a, Sql/tcp c]}, {atLeast: 2, of: [a, Sql/b, Sql/c]}]')).toMatchObject({
    dependsOn: [],
    dependsOnElsewhere: [b],
    dependsOnGroups: [
      { atLeast: 1, of: [a, c] },
      { atLeast: 2, of: [a, b, c] },
    ],
  })
})

test('G1 a group may stand alone, and a tag in it means every monitor with the tag, each once', async () => {
  const shop = await shopOf("{atLeast: 2, of: ['tag:replica', Sql/c, Sql/b]}")
  expect(shop).toMatchObject({ dependsOn: [], dependsOnGroups: [{ atLeast: 2, of: [c, d, b] }] })
})

test('G1 a file without groups has none in its monitors', async () => {
  expect(await shopOf('[a]')).not.toHaveProperty('dependsOnGroups')
})

test.each([
  [
    'an empty group',
    '[{any: []}]',
    /^4:\d+: types\.App\[0\]\.dependsOn\[0\]\.any lists no monitor: name those of the group, or remove it$/,
  ],
  ['an empty group of some', '[{atLeast: 1, of: []}]', /\.dependsOn\[0\]\.of lists no monitor/],
  [
    'more than the group has',
    '[a, {atLeast: 3, of: [Sql/b, Sql/c]}]',
    /^4:\d+: types\.App\[0\]\.dependsOn\[1\] needs at least 3 of 2 monitors: lower `atLeast`, or name more$/,
  ],
  ['one monitor twice', '[{atLeast: 2, of: [Sql/b, Sql/tcp b]}]', /needs at least 2 of 1 monitors/],
  ['no number', '[{of: [a]}]', /\.dependsOn\[0\] is incomplete: write \{any: \[NAME, …\]\} or/],
  ['a number below one', '[{atLeast: 0, of: [a]}]', /\.atLeast must be a whole number, 1 or more$/],
  ['another setting', '[{all: [a]}]', /\.dependsOn\[0\]\.all is not a setting of a group: write \{any/],
  ['a list that is none', '[{any: {a: b}}]', /\.dependsOn\[0\]\.any must be a list of monitors$/],
  ['a member that is no text', '[{any: [a, 7]}]', /\.dependsOn\[0\]\.any\[1\] must be text/],
  ['an unknown member', '[{any: [a, Sql/x]}]', /\.dependsOn\[0\]\.any names "Sql\/x", which is not a monitor of Sql/],
])('G1 %s is a mistake with its line', async (_, dependsOn, message) => {
  const problems = await mistakeIn(dependsOn)
  expect(problems).toEqual([expect.stringMatching(message)])
})

test('G1 a cycle through a group is a mistake with the line of each of its members', async () => {
  const fault = await refused(`types:
  App:
    - ${tcp('shop', ', dependsOn: [{any: [Sql/b, Sql/c]}]')}
  Sql:
    - ${tcp('b', ', dependsOn: App/shop')}
    - ${tcp('c')}
`)
  const message = 'forms a cycle (App/tcp shop → Sql/tcp b → App/tcp shop): remove one of these'
  expect(problemsOf(fault)).toEqual([
    expect.stringMatching(/^3:\d+: types\.App\[0\]\.dependsOn forms/),
    expect.stringMatching(/^5:\d+: types\.Sql\[0\]\.dependsOn forms/),
  ])
  expect(problemsOf(fault)[0]).toContain(message)
})
