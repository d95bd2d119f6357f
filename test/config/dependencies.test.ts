import { expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { file, folder, here, load, problemsOf, refused } from './given.ts'

/** A monitor `tcp NAME`. */
const tcp = (name: string, dependsOn?: string): string =>
  `{kind: tcp, name: ${name}, host: a, port: 1${dependsOn === undefined ? '' : `, dependsOn: ${dependsOn}`}}`
const yamlOf = (types: Readonly<Record<string, readonly string[]>>): string =>
  `types:\n${Object.entries(types)
    .map(([type, entries]) => `  ${type}:\n${entries.map((entry) => `    - ${entry}\n`).join('')}`)
    .join('')}`

test.each([
  ['the kind and the name', 'Sql/tcp orders'],
  ['the name alone', 'Sql/orders'],
  ['a type that stands later in the file', 'Sql/orders'],
])('H23 dependsOn names a monitor of another type by %s', async (_, written) => {
  const { types } = await load(yamlOf({ App: [tcp('web', written)], Sql: [tcp('orders')] }))
  expect(types.App?.monitors[0]).toMatchObject({
    dependsOn: [],
    dependsOnElsewhere: [{ type: 'Sql', name: 'tcp orders' }],
  })
})

test('H23 a list names monitors of several types, each once, and the own type may be written too', async () => {
  const written = '[Sql/orders, Sql/tcp orders, gateway, App/gateway, Ftp/a/b]'
  const { types } = await load(
    yamlOf({ App: [tcp('gateway'), tcp('web', written)], Sql: [tcp('orders')], Ftp: [tcp('a/b')] }),
  )
  expect(types.App?.monitors[1]).toMatchObject({
    dependsOn: ['tcp gateway'],
    dependsOnElsewhere: [
      { type: 'Sql', name: 'tcp orders' },
      { type: 'Ftp', name: 'tcp a/b' },
    ],
  })
})

test('H23 a monitor of the same type whose name looks like that of another type comes first', async () => {
  const { types } = await load(yamlOf({ App: [tcp('Sql/orders'), tcp('web', 'Sql/orders')], Sql: [tcp('orders')] }))
  expect(types.App?.monitors[1]?.dependsOn).toEqual(['tcp Sql/orders'])
  expect(types.App?.monitors[1]?.dependsOnElsewhere).toBeUndefined()
})

test('H23 a loop across types is a mistake with the line of each of its members', async () => {
  const yaml = yamlOf({
    App: [tcp('free'), tcp('web', 'Sql/orders')],
    Sql: [tcp('orders', 'gateway'), tcp('gateway', 'Ftp/files')],
    Ftp: [tcp('files', '[App/web]')],
  })
  const members = ['App/tcp web', 'Sql/tcp orders', 'Sql/tcp gateway', 'Ftp/tcp files', 'App/tcp web']
  const message = `forms a cycle (${members.join(' → ')}): remove one of these`
  expect(problemsOf(await refused(yaml))).toEqual([
    `4:48: types.App[1].dependsOn ${message}`,
    `6:51: types.Sql[0].dependsOn ${message}`,
    `7:52: types.Sql[1].dependsOn ${message}`,
    `9:50: types.Ftp[0].dependsOn ${message}`,
  ])
})

test('H23 svc starts with a loop across types, and none of its members depends on another', async () => {
  const home = await folder()
  const yaml = yamlOf({ App: [tcp('web', 'Sql/orders')], Sql: [tcp('orders', 'App/web'), tcp('free')] })
  const path = await file(`${home}/svc.yaml`, yaml)
  const { types, invalidEntries } = await loadConfig({ ...here({}, home), path, tolerant: 'entries' })
  expect(invalidEntries.map(({ type, name }) => `${type}/${name}`)).toEqual(['App/tcp web', 'Sql/tcp orders'])
  const monitors = [...(types.App?.monitors ?? []), ...(types.Sql?.monitors ?? [])]
  expect(monitors.map(({ name, kind }) => [name, kind.name])).toEqual([
    ['tcp web', 'configuration'],
    ['tcp free', 'tcp'],
    ['tcp orders', 'configuration'],
  ])
  for (const { dependsOn, dependsOnElsewhere } of monitors)
    expect([dependsOn, dependsOnElsewhere]).toEqual([[], undefined])
})

test('H23 monitors of two types may depend on each other’s types without a loop', async () => {
  const { types } = await load(
    yamlOf({ App: [tcp('web', 'Sql/orders'), tcp('gateway')], Sql: [tcp('orders', 'App/gateway')] }),
  )
  expect(types.Sql?.monitors[0]?.dependsOnElsewhere).toEqual([{ type: 'App', name: 'tcp gateway' }])
})
