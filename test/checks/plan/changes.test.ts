import { expect, test } from 'vitest'
import { loadPlanChanges } from '../../../src/core/checks/plan/index.ts'
import { load } from '../../config/given.ts'

async function changes(before: string, after: string) {
  const { planChanges } = await loadPlanChanges()
  return planChanges((await load(before)).types, (await load(after)).types)
}
const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: a, port: 1${more}}`

test('W9 a reload counts monitors that are added, removed and changed, by type and name', async () => {
  expect(
    await changes(
      `types: {App: [${tcp('a')}, ${tcp('b')}, ${tcp('c')}], Sql: [${tcp('a')}]}`,
      `types: {App: [${tcp('d')}, ${tcp('c', ', retries: 2')}, ${tcp('a')}], Sql: [${tcp('a')}]}`,
    ),
  ).toEqual({ added: ['App/tcp d'], removed: ['App/tcp b'], changed: ['App/tcp c'], types: ['App'] })
})

test.each([
  ['in another order, with comments', `types:\n  # two\n  App:\n    - ${tcp('b')}\n    - ${tcp('a')}\n`],
  ['in the map form of the type', `types: {App: {monitors: [${tcp('a')}, ${tcp('b')}]}}`],
  ['with a former key', `types: {App: [${tcp('a', ', formerly: App/tcp/old')}, ${tcp('b')}]}`],
])('W9 the same monitors %s have not changed', async (_, after) => {
  expect(await changes(`types: {App: [${tcp('a')}, ${tcp('b')}]}`, after)).toEqual({
    added: [],
    removed: [],
    changed: [],
    types: [],
  })
})

test.each([
  ['a secret from another place', ', send: x', ', send: y'],
  ['a tag', '', ', tags: [x]'],
  ['a timeout', '', ', timeout: 3s'],
  ['a depth', '', ', depth: Advanced'],
  ['for', '', ', for: 5m'],
])('W9 %s changes a monitor', async (_, before, after) => {
  const { changed } = await changes(`types: {App: [${tcp('a', before)}]}`, `types: {App: [${tcp('a', after)}]}`)
  expect(changed).toEqual(['App/tcp a'])
})

test('W9 a host block that changes is one change of its type', async () => {
  const { changed, added, types } = await changes(
    `types: {App: {host: {cpu: off}, monitors: [${tcp('a')}]}}`,
    `types: {App: {host: false, monitors: [${tcp('a')}]}}`,
  )
  expect([changed, added, types]).toEqual([['App/host'], [], ['App']])
})

test('W9 a type that depends on a monitor of another type which changed has another plan, too', async () => {
  const { changed, types } = await changes(
    `types: {App: [${tcp('a', ', dependsOn: Sql/a')}], Ftp: [${tcp('a')}], Sql: [${tcp('a')}]}`,
    `types: {App: [${tcp('a', ', dependsOn: Sql/a')}], Ftp: [${tcp('a')}], Sql: [${tcp('a', ', retries: 1')}]}`,
  )
  expect([changed, types]).toEqual([['Sql/tcp a'], ['App', 'Sql']])
})
