import { createRequire } from 'node:module'
import { beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { Fault } from '../../src/core/base/errors.ts'
import { readSettings, type Setting, type SettingsSpec } from '../../src/core/base/settings/index.ts'
import { configurableKinds, describeSettings } from '../../src/core/checks/plan/index.ts'
import { commonSettings, configSchema } from '../../src/core/config/index.ts'
import { settingsSchema } from '../../src/core/config/schema.ts'
import { ServerType } from '../../src/core/protocol/index.ts'
import { receiverKinds } from '../../src/core/watch/notify/index.ts'
import { load } from './given.ts'

type Validate = (data: unknown) => boolean
type Ajv = { readonly compile: (schema: object) => Validate }

/** The validator that comes with fastify: not ours, so it cannot share our mistakes. */
const require = createRequire(createRequire(import.meta.url).resolve('fastify'))
const draft = 'ajv/dist/2020'
const { Ajv2020 } = require(draft) as { readonly Ajv2020: new (options: object) => Ajv }
const ajv = (): Ajv => new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, allErrors: true })

let schema: object
let valid: Validate
beforeAll(async () => {
  schema = await configSchema()
  valid = ajv().compile(schema)
})

const accepted = [
  '',
  'types:\nserve:\n',
  'types: {Sql: [], App: , Ftp: {}}',
  'types: {Sql: [{kind: tcp, host: h, port: 1}]}',
  'types: {Sql: [{kind: tcp, name: a, host: h, port: 65535, timeout: 1.5s, retries: 5, depth: Advanced}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, latency: 5s}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, latency: {warn: 250 ms}}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, latency: {warn: off, limit: 2m}}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, warn: 1s, limit: off}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, dependsOn: []}]}',
  'types: {Sql: {host: false, monitors: [{kind: tls, host: h, expiry: {warn: 20, limit: 72h}}]}}',
  'types: {Sql: {host: {disk: {warn: 30%, limit: 15}}}}',
  'types: {App: [{kind: http, url: "https://a.example/", token: {env: A_TOKEN}, status: [200, 2xx]}]}',
  'types: {App: [{kind: http, url: "https://a.example/", username: monitor, password: {file: /run/secret}, headers: {A: b}}]}',
  'types: {XcodeV: [{profile: vantage, host: v1, password: {env: A_TOKEN}, user: u, failedJobs: {limit: 3}}]}',
  'types: {XcodeV: [{profile: vantage, name: v, host: v1, without: [load], change: {online: {warn: 2s}}}]}',
  'types: {MsgVast: [{profile: vast, url: "https://ads.example/tag"}, {kind: tcp, host: h, port: 1}]}',
  'profiles:\n',
  `profiles: {mine: {monitors: [{kind: tcp, name: port, host: "\${host}", port: 1}], parameters: {host: {type: text, doc: H, required: true}}}}\ntypes: {Ftp: [{profile: mine, host: h}]}`,
  `profiles: {vantage: {title: Ours, parameters: {box: {type: text, doc: B, default: v}}, monitors: [{kind: tcp, name: port, host: "\${box}", port: 1}]}}\ntypes: {XcodeV: [{profile: vantage, box: v1}]}`,
  'types: {App: [{kind: http, url: "https://a.example/", xml: {/VAST/@version: "2.0", count(/VAST/Ad): 1}, links: [{name: m, path: /a/b, method: HEAD}]}]}',
  'types: {App: [{kind: http, url: "https://a.example/", measure: [{name: m, path: "$.a[*]", count: {warn: 1}}]}]}',
  'serve: {origins: https://a.example, jsonp: false, maxBody: 2MiB, details: anyone}',
  'notify:\nserve: {name: prod, url: "https://svc.example.com"}',
  'notify: [{name: a, alertmanager: {urls: ["https://am1:9093"], token: {env: A_TOKEN}, ca: am-ca.pem}, only: {severity: failed}}]',
  'notify: [{name: a, webhook: {url: {env: A_TOKEN}, secret: {file: /run/key}}, silences: ignore, details: classes}]',
  'notify: [{name: a, email: {server: "smtps://m", user: u, password: {env: A_TOKEN}, from: a@b.c, to: [d@e.f]}, remind: 4h, volatile: true}]',
  'notify: [{name: a, kind: webhook, url: {env: A_TOKEN}, secret: {file: /run/key}, only: {severity: failed}}]',
  'notify: [{name: a, kind: exec, program: /usr/local/lib/svc/sms}, {name: b, exec: {program: /usr/local/lib/svc/sms}}]',
  'types: {Sql: [{tcp: {host: h, port: 1}}, {name: a, tcp: {host: h, port: 1, warn: 1s}, timeout: 5s, deployment: true}]}',
  'types: {App: [{deployment: {expected: "1", versionFile: /v}}, {name: a, kind: heartbeat, agents: [a], flapping: 3}, {name: b, heartbeat: {agents: [b], flapping: 3}}]}',
  'types: {App: [{service: {service: nginx}}, {name: a, tcp: {host: h, port: 1}, dependsOn: service}]}',
  'profiles: {mine: {monitors: [{tcp: {host: h, port: 1}, name: a}, {name: b, tls: {host: h}, when: []}]}}',
]
const refusedByBoth = [
  'notify: [{kind: webhook, url: "https://a.example"}]',
  'notify: [{name: a, kind: slack, url: "https://a.example"}]',
  'notify: [{name: a, kind: webhook, webhook: {url: "https://a.example"}}]',
  'notify: [{name: a, webhook: {url: "https://a.example", remind: 4h}}]',
  'notify: [{name: a, webhook: {secret: {env: A}}, url: "https://a.example"}]',
  'types: {Sql: [{kind: tcp, host: h, port: 1, tcp: {host: h, port: 1}}]}',
  'types: {Sql: [{tcp: {host: h, port: 1}, ping: {host: h}}]}',
  'types: {Sql: [{tcp: {host: h, port: 1, name: a}}]}',
  'types: {Sql: [{tcp: {host: h, port: 1, kind: tcp}}]}',
  'types: {Sql: [{tcp: {host: h}, port: 1}]}',
  'types: {Sql: [{tcp: {host: h, port: 1}, prot: 2}]}',
  'types: {Sql: [{tcp: {host: h}}, {tcp: }]}',
  'types: {Sql: [{tpc: {host: h, port: 1}}]}',
  'profiles: {mine: {monitors: [{name: a, host: h, port: 1}]}}',
  'notify: {name: a}',
  'notify: [{name: a}]',
  'notify: [{name: a, webhook: {url: "ftp://a.example"}}]',
  'notify: [{name: a, webhook: {url: "https://a.example", secret: abc}}]',
  'notify: [{webhook: {url: "https://a.example"}}]',
  'notify: [{name: a, webhook: {url: "https://a.example"}, email: {server: "smtp://m", from: a@b.c, to: d@e.f}}]',
  '[]',
  'types: []',
  'monitors: []',
  'types: {Sqll: []}',
  'types: {Sql: tcp}',
  'types: {Sql: [tcp]}',
  'types: {Sql: [{host: h, port: 1}]}',
  'types: {Sql: [{kind: tpc, host: h, port: 1}]}',
  'types: {Sql: [{kind: host}]}',
  'types: {Sql: [{kind: self}]}',
  'types: {Sql: [{kind: tcp, host: h}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 0}]}',
  'types: {Sql: [{kind: tcp, host: h, port: "1"}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, prot: 2}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, timeout: 5}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, timeout: 5 weeks}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, retries: 6}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, depth: basic}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, deployment: yes}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, latency: 5}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, latency: {wran: 5s}}]}',
  'types: {Sql: [{kind: tcp, host: h, port: 1, latency: 5s, warn: 1s}]}',
  'types: {Sql: [{kind: tcp, host: "", port: 1}]}',
  'types: {Sql: [{kind: tcp, host: 1.1, port: 1}]}',
  'types: {Sql: [{kind: tcp, name: "a\\eb", host: h, port: 1}]}',
  'types: {App: [{kind: deployment, marker: /m, limit: 5s}]}',
  'types: {App: [{kind: http, url: "ftp://a.example/"}]}',
  'types: {App: [{kind: http, url: "https://a.example/", token: hunter2}]}',
  'types: {App: [{kind: http, url: "https://a.example/", token: {env: "not a name"}}]}',
  'types: {App: [{kind: http, url: "https://a.example/", token: {env: A, file: /b}}]}',
  'types: {App: [{kind: http, url: "https://a.example/", token: {file: ~/b}}]}',
  'types: {App: [{kind: http, url: "https://a.example/", status: [1.5]}]}',
  'types: {Sql: {host: true}}',
  'types: {Sql: {host: {dsik: 1}}}',
  'types: {Sql: {monitor: []}}',
  'profiles: []',
  'profiles: {mine: {}}',
  'profiles: {mine: {monitors: []}}',
  'profiles: {"a b": {monitors: [{kind: tcp, name: p, host: h, port: 1}]}}',
  'profiles: {mine: {monitors: [{kind: tpc, name: p}]}}',
  'profiles: {mine: {monitors: [{kind: tcp, host: h, port: 1}]}}',
  'profiles: {mine: {titel: x, monitors: [{kind: tcp, name: p, host: h, port: 1}]}}',
  'profiles: {mine: {parameters: {host: {type: txt, doc: d}}, monitors: [{kind: tcp, name: p, host: h, port: 1}]}}',
  'profiles: {mine: {parameters: {Host: {type: text, doc: d}}, monitors: [{kind: tcp, name: p, host: h, port: 1}]}}',
  'types: {XcodeV: [{profile: 1, host: h}]}',
  'types: {XcodeV: [{profile: vantage, kind: tcp, host: h}]}',
  'types: {XcodeV: [{profile: vantage, host: h, change: [online]}]}',
  'types: {XcodeV: [{profile: vantage, host: h, change: {online: {kind: tcp}}}]}',
  'types: {App: [{kind: http, url: "https://a.example/", links: [{name: m, path: /a/b, method: POST}]}]}',
  'types: {App: [{kind: http, url: "https://a.example/", links: [{name: m, path: /a/b, levels: 6}]}]}',
  'types: {App: [{kind: http, url: "https://a.example/", links: [{name: m, path: /a/b, most: 51}]}]}',
  'serve: {jsonp: 1}',
  'serve: {maxBody: 1024}',
  'serve: {debug: true}',
]

/** The first problem that the program reports of a text, or nothing. */
const problem = (yaml: string): Promise<string | undefined> =>
  load(yaml, { A_TOKEN: 'x' }).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof Fault) return error.message
      throw error
    },
  )

test.each(accepted)('the schema and the program accept %j', async (yaml) => {
  expect(await problem(yaml)).toBeUndefined()
  expect(valid(parse(yaml))).toBe(true)
})

test.each(refusedByBoth)('the schema and the program refuse %j', async (yaml) => {
  expect(await problem(yaml)).toMatch(/svc\.yaml(:1:\d+: | has \d+ problems, at 1:)/)
  expect(valid(parse(yaml))).toBe(false)
})

test('the schema contains and describes each server type and each kind that can be configured', async () => {
  const { properties, $defs } = schema as {
    properties: { types: { properties: object } }
    $defs: Record<string, { properties: Record<string, { description?: string }> }>
  }
  expect(Object.keys(properties.types.properties)).toEqual(ServerType.values)
  const kinds = await configurableKinds()
  const names = [
    'type',
    'host',
    'use',
    'dependsOn',
    'profile',
    ...['monitor', 'monitor.short', 'monitor.section', 'monitor.own', ...kinds.map(({ name }) => name).sort()],
    ...[
      'receiver',
      'receiver.short',
      'receiver.section',
      'receiver.own',
      ...receiverKinds.map(({ name }) => `receiver.${name}`),
    ],
  ]
  // After them come the shapes that several of them share.
  expect(Object.keys($defs).slice(0, names.length)).toEqual(names)
  for (const { name: kind, settings } of kinds) {
    for (const name of Object.keys({ ...settings, ...commonSettings })) {
      expect($defs[kind]?.properties[name]?.description, `${kind}.${name}`).toMatch(/\S/)
    }
  }
})

test('no kind has a setting that every monitor has, but heartbeat its own `flapping`', async () => {
  for (const { name: kind, settings } of await configurableKinds()) {
    const both = Object.keys(settings).filter((name) => name in commonSettings)
    expect(both, `settings of ${kind}`).toEqual(kind === 'heartbeat' ? ['flapping'] : [])
  }
})

test('each default, written as in the reference, is read back unchanged', async () => {
  for (const { name: kind, settings } of await configurableKinds()) {
    const written = describeSettings(settings).flatMap((row) =>
      row.default === undefined || row.name.includes('.') ? [] : [[row.name, row.default] as const],
    )
    const raw = Object.fromEntries(written.map(([name, text]) => [name, quotedIfText(settings[name], text)]))
    const optional = Object.fromEntries(Object.entries(settings).filter(([, setting]) => !setting.required))
    const read = readSettings(optional, raw, { env: {}, folder: '/' })
    expect(read.problems, kind).toEqual([])
    expect(read.values, kind).toEqual(readSettings(optional, {}, { env: {}, folder: '/' }).values)
  }
})
const quotedIfText = (setting: Setting | undefined, text: string): unknown =>
  setting?.type === 'text' || setting?.type === 'url' || setting?.type === 'choice' ? text : parse(text)

test('a table with settings of each type makes a schema that accepts the same values', () => {
  const inner = { a: { type: 'integer', required: true, doc: 'A' } } as const
  const spec = {
    text: { type: 'text', doc: 'T', pattern: /^[a-z]+$/ },
    number: { type: 'number', min: 0, doc: 'N' },
    bytes: { type: 'bytes', default: 1024, doc: 'B' },
    map: { type: 'map', doc: 'M' },
    percent: { type: 'threshold', unit: 'percent', doc: 'P' },
    size: { type: 'threshold', unit: 'bytes', doc: 'S' },
    count: { type: 'threshold', unit: 'count', doc: 'C' },
    group: { type: 'group', fields: inner, doc: 'G' },
    groups: { type: 'groups', fields: inner, doc: 'GG' },
  } as const satisfies SettingsSpec
  const check = ajv().compile(settingsSchema(spec))
  for (const [raw, good] of [
    [{ text: 'abc', number: 0.5, bytes: '10GB', map: { a: 'b', n: 1, t: true }, percent: '80 %' }, true],
    [{ size: { limit: '10GB' }, count: 5, group: { a: 1 }, groups: [{ a: 1 }, { a: 2 }] }, true],
    [{ text: 'ABC' }, false],
    [{ number: -1 }, false],
    [{ bytes: 5 }, false],
    [{ map: { a: 1.5 } }, false],
    [{ percent: '80' }, false],
    [{ size: 5 }, false],
    [{ count: '5' }, false],
    [{ group: {} }, false],
    [{ groups: { a: 1 } }, false],
    [{ groups: [{ b: 1 }] }, false],
  ] as const) {
    expect(check(raw), JSON.stringify(raw)).toBe(good)
    expect(readSettings(spec, raw, { env: {}, folder: '/' }).problems.length === 0, JSON.stringify(raw)).toBe(good)
  }
})
