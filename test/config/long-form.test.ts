import { describe, expect, test } from 'vitest'
import type { Problem, Raw, Setting, SettingsSpec } from '../../src/core/base/settings/index.ts'
import { configurableKinds, isKindName } from '../../src/core/checks/plan/index.ts'
import { commonSettings } from '../../src/core/config/index.ts'
import { kindProblem, readMonitor } from '../../src/core/config/monitors.ts'
import { readNotify } from '../../src/core/config/notify.ts'
import { notifySettings, receiverKinds } from '../../src/core/watch/notify/index.ts'
import { receiverRows } from '../support/notify/receiver-rows.ts'
import { load } from './given.ts'

const kinds = await configurableKinds()
const context = { env: {}, folder: '/' }
const configured = { types: {}, invalid: {} }

const samples: Readonly<Record<Exclude<Setting['type'], 'group' | 'groups' | 'choice'>, unknown>> = {
  text: 'db1.internal',
  url: 'https://a.example/',
  number: 1,
  integer: 5_432,
  countOrOff: 'off',
  flag: true,
  duration: '30s',
  bytes: '1MiB',
  secret: { env: 'A_SECRET' },
  texts: ['a'],
  map: { a: 'b' },
  template: { a: ['{summary}'] },
  threshold: { warn: 2 },
  every: '1m',
}
/** A value of each setting, most of which fit: both forms have to agree on those that do not, too. */
const sampleOf = (setting: Setting): unknown => {
  if (setting.type === 'choice') return setting.values[0]
  if (setting.type === 'group') return settingsOf(setting.fields)
  return setting.type === 'groups' ? [settingsOf(setting.fields)] : samples[setting.type]
}
const settingsOf = (spec: SettingsSpec, onlyRequired = false): Raw =>
  Object.fromEntries(
    Object.entries(spec).flatMap(([name, setting]) =>
      onlyRequired && !setting.required ? [] : [[name, sampleOf(setting)]],
    ),
  )

/** Problems in the short form, with the paths that the long form has. */
const unwrapped = (list: readonly Problem[], section: string): readonly Problem[] =>
  list.map(({ path, message }) => ({ path: path[0] === section ? path.slice(1) : path, message }))

const common = {
  name: 'one',
  timeout: '4s',
  retries: 1,
  tags: ['shop'],
  formerly: ['App/tcp/other'],
  depth: 'Standard',
}

describe('K11 both forms of a monitor are the same', () => {
  const tables = kinds.flatMap(({ name, settings }) =>
    [true, false].map((onlyRequired) => [name, settingsOf(settings, onlyRequired)] as const),
  )
  test.for(tables)('of kind %s with %j', async ([kind, settings]) => {
    const long = await readMonitor({ ...common, kind, ...settings }, context, kindProblem)
    const short = await readMonitor({ ...common, [kind]: settings }, context, kindProblem)
    const { problems, warnings, ...rest } = short
    expect(rest).toEqual({ ...long, problems: undefined, warnings: undefined })
    expect(unwrapped(problems, kind)).toEqual(long.problems)
    expect(unwrapped(warnings, kind)).toEqual(long.warnings)
    // A setting that is wrong is below its section.
    expect(problems.filter(({ path: [top = ''] }) => top !== kind && Object.hasOwn(settings, top))).toEqual([])
  })

  test('and most of these monitors have no mistakes', async () => {
    const valid = await Promise.all(
      kinds.map(async ({ name, settings }) => {
        const read = await readMonitor({ name: 'one', [name]: settingsOf(settings, true) }, context, kindProblem)
        return read.monitor ? [name] : []
      }),
    )
    expect(valid.flat().length).toBeGreaterThan(kinds.length / 2)
  })
})

describe('K11 both forms of a receiver are the same', () => {
  const shared = { name: 'one', only: { severity: 'failed' }, details: 'classes', silences: 'ignore', volatile: true }
  test.for(receiverKinds.map(({ name }) => name))('of kind %s', (kind) => {
    const { settings = {} } = receiverRows[kind] ?? {}
    const long = readNotify([{ ...shared, kind, ...settings }], context, configured)
    const short = readNotify([{ ...shared, [kind]: settings }], context, configured)
    expect(long.problems).toEqual([])
    expect(long.values).toHaveLength(1)
    expect(short.values).toEqual(long.values)
    expect(short.warnings.map(({ message }) => message)).toEqual(long.warnings.map(({ message }) => message))
    const mistaken = { ...settings, [Object.keys(settings)[0] ?? '']: {} }
    const [inLong] = readNotify([{ ...shared, kind, ...mistaken }], context, configured).problems
    const [inShort] = readNotify([{ ...shared, [kind]: mistaken }], context, configured).problems
    expect(inShort).toEqual({ ...inLong, path: [0, kind, ...(inLong?.path.slice(1) ?? [])] })
  })
})

test('K11 no name has two meanings: not those of kinds, of their settings and of what every entry has', () => {
  const all = [
    ...receiverKinds.map(({ name, settings }) => ({
      name,
      settings,
      shared: ['kind', ...Object.keys(notifySettings)],
    })),
    ...kinds.map(({ name, settings }) => ({ name, settings, shared: Object.keys(commonSettings) })),
  ]
  const twice = all.flatMap(({ name, settings, shared }) => [
    ...Object.keys(settings).flatMap((key) => (shared.includes(key) || key === name ? [`${name}.${key}`] : [])),
    ...(shared.includes(name) ? [name] : []),
  ])
  // A kind that has a setting has no common one of that name; `deployment: true` is the flag, `deployment: {…}` the kind.
  expect(twice.sort()).toEqual(['deployment', 'domain.domain', 'heartbeat.flapping', 'service.service'])
  expect(Object.keys(notifySettings).filter(isKindName)).toEqual([])
})

test('K11 profiles, `dependsOn` and `change` work with both forms', async () => {
  const file = (form: string, other: string): string => `profiles:
  mine:
    parameters: {host: {type: text, doc: H, required: true}, sub: {type: text, doc: S}}
    monitors:
      - ${form}
      - ${other}
types:
  App: [{profile: mine, host: h, sub: x, change: {port: {timeout: 3s}}}]
`
  const long = await load(
    file(
      `{name: port, kind: tcp, host: "\${host}", port: 1}`,
      `{name: ping, kind: ping, host: "\${host}", when: sub, dependsOn: port}`,
    ),
  )
  const short = await load(
    file(
      `{name: port, tcp: {host: "\${host}", port: 1}}`,
      `{name: ping, ping: {host: "\${host}"}, when: sub, dependsOn: port}`,
    ),
  )
  expect(long.types.App?.monitors).toHaveLength(2)
  expect(short.types).toEqual(long.types)
})

test('K11 anchors and aliases work in sections', async () => {
  const { types } = await load(`types:
  App:
    - {name: a, tcp: &shared {host: h, port: 1}}
    - {name: b, tcp: *shared}
    - {name: c, tcp: {<<: *shared, port: 2}}
`)
  expect(types.App?.monitors.map(({ name, settings }) => `${name} ${(settings as Raw)['port']}`)).toEqual([
    'tcp a 1',
    'tcp b 1',
    'tcp c 2',
  ])
})
