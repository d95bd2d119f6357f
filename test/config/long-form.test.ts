import { describe, expect, test } from 'vitest'
import type { Problem, Raw, Setting, SettingsSpec } from '../../src/core/base/settings/index.ts'
import { configurableKinds, isKindName } from '../../src/core/checks/plan/index.ts'
import { commonSettings } from '../../src/core/config/index.ts'
import { kindProblem, readMonitor } from '../../src/core/config/monitors.ts'
import { readNotify } from '../../src/core/config/notify.ts'
import { notifySettings, receiverKinds } from '../../src/core/watch/notify/index.ts'
import { receiverRows } from '../support/notify/receiver-rows.ts'
import { load, problemsOf, refused } from './given.ts'

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
  expect(twice.sort()).toEqual(['deployment', 'heartbeat.flapping', 'service.service'])
  expect(Object.keys(notifySettings).filter(isKindName)).toEqual([])
})

const monitors = (...entries: readonly string[]): string =>
  `types:\n  App:\n${entries.map((one) => `    - ${one}\n`).join('')}`
const receivers = (...entries: readonly string[]): string => `notify:\n${entries.map((one) => `  - ${one}\n`).join('')}`

test.for([
  [
    'in a section',
    monitors('{name: a, tcp: {host: h, port: no}}'),
    ['3:32: types.App[0].tcp.port must be a number, not "no"'],
  ],
  [
    'beside a section',
    monitors('{tcp: {host: h, port: 1}, timeout: 5}'),
    ['3:33: types.App[0].timeout is 5, without a unit'],
  ],
  ['that is missing', monitors('{tcp: {host: h}}'), ['3:8: types.App[0].tcp.port is missing: add `port:`']],
  [
    'of both forms',
    monitors('{kind: tcp, tcp: {host: h, port: 1}, host: h, port: 1}'),
    ['3:19: types.App[0].tcp is there beside `kind: tcp`: write its settings beside `kind:`, or remove `kind:`'],
  ],
  [
    'of two kinds in the long form',
    monitors('{kind: tcp, host: h, port: 1, http: {url: "https://a.example"}}'),
    ['3:37: types.App[0].http is there beside `kind: tcp`: make it a monitor of its own'],
  ],
  [
    'of two kinds in the short form',
    monitors('{tcp: {host: h, port: 1}, http: {url: "https://a.example"}}'),
    ['3:33: types.App[0].http is there beside tcp: make it a monitor of its own'],
  ],
  [
    'that belongs into the section',
    monitors('{tcp: {host: h}, port: 1}'),
    [
      '3:8: types.App[0].tcp.port is missing',
      '3:24: types.App[0].port is not a setting of every monitor: write it under `tcp:`, or remove it',
    ],
  ],
  [
    'that is misspelt beside the section',
    monitors('{tcp: {host: h, port: 1}, timeuot: 5s}'),
    ['3:33: types.App[0].timeuot is not a setting here: did you mean `timeout`?'],
  ],
  [
    'that belongs beside the section',
    monitors('{tcp: {host: h, port: 1, name: a, timeout: 5s}}'),
    [
      '3:32: types.App[0].tcp.name is a setting of every monitor: write it beside `tcp:`',
      '3:41: types.App[0].tcp.timeout is a setting of every monitor: write it beside `tcp:`',
    ],
  ],
  [
    'of an unknown kind',
    monitors('{tpc: {host: h}}'),
    ['3:8: types.App[0].tpc is not a monitor kind: did you mean `tcp`?'],
  ],
  [
    'of the name of a member of every object',
    monitors('{constructor: {host: h}}', '{__proto__: {host: h}}'),
    [
      'types.App[0].constructor is not a monitor kind: use one of',
      'types.App[1].__proto__ is not a monitor kind: use one of',
    ],
  ],
  ['of an empty section', monitors('tcp:'), ['3:7: types.App[0].tcp has no value: write `name: value` under it']],
  ['of a text for a section', monitors('tcp: h'), ['3:7: types.App[0].tcp must be the settings of the monitor']],
  ['of a block', monitors('host: {disk: 1}'), ['3:7: types.App[0].host runs automatically for every type']],
  [
    'of the name of a setting, which is that of a kind too',
    monitors('{host: h, port: 1, tls: off}'),
    ['3:7: types.App[0].kind is missing: add `kind:`'],
  ],
  [
    'of two monitors of one name in both forms',
    monitors('{kind: tcp, host: h, port: 1}', '{tcp: {host: h, port: 2}}'),
    ['4:7: types.App[1] has the same name as another monitor, `tcp`'],
  ],
  [
    'of a former key that exists',
    monitors('{tcp: {host: h, port: 1}, formerly: [App/tcp/b]}', '{name: b, tcp: {host: h, port: 1}}'),
    ['3:44: types.App[0].formerly[0] is the key of a monitor that exists, in line 4'],
  ],
  [
    'in the definition of a profile',
    'profiles:\n  mine:\n    monitors:\n      - {name: a, tcp: {host: h, port: no}}\n',
    ['4:34: profiles.mine.monitors[0].tcp.port must be a number, not "no"'],
  ],
  [
    'of a receiver',
    receivers('{name: a, webhook: {url: "ftp://x"}}'),
    ['2:25: notify[0].webhook.url begins with ftp:'],
  ],
  [
    'of a receiver, too',
    receivers('{name: a, kind: webhook, url: "ftp://x"}'),
    ['2:30: notify[0].url begins with ftp:'],
  ],
  [
    'of a receiver in both forms',
    receivers('{name: a, kind: webhook, webhook: {url: "https://a.example"}, url: "https://a.example"}'),
    ['2:30: notify[0].webhook is there beside `kind: webhook`: write its settings beside `kind:`, or remove `kind:`'],
  ],
  [
    'of an unknown kind of receiver',
    receivers('{name: a, kind: webhok, url: "https://a.example"}'),
    ['2:15: notify[0].kind is not a kind of receiver: did you mean `webhook`?'],
  ],
  [
    'of an unknown kind of receiver in the short form',
    receivers('{name: a, webhok: {url: "https://a.example"}}'),
    ['2:15: notify[0].webhok is not a kind of receiver: did you mean `webhook`?'],
  ],
  [
    'of the remark of a kind',
    receivers('{name: a, kind: alertmanager, urls: ["https://am1"], remind: 4h}'),
    ['2:5: notify[0] repeats by itself: remove remind'],
  ],
] as const)('K11 a mistake %s is where it was written', async ([, text, expected]) => {
  const problems = problemsOf(await refused(text))
  expect(problems).toEqual(expected.map((one) => expect.stringContaining(one)))
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
