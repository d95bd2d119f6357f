import { expect, test } from 'vitest'
import { serveDefaults } from '../../src/core/protocol/service/service.ts'
import { load, problemsOf, refused } from './given.ts'

const tcp = (more = ''): string => `types:\n  Sql:\n    - kind: tcp\n      host: db1\n      port: 5432\n${more}`
/** A monitor with more lines of its own, as the only one of Sql. */
const monitorOf = async (more = '') => (await load(tcp(more))).types.Sql?.monitors[0]

test('a monitor accepts the settings of its kind and those of every monitor', async () => {
  const monitor = await monitorOf(`      name: orders
      timeout: 2s
      retries: 2
      depth: Standard
      deployment: true
      latency: {warn: 250ms, limit: 1s}
`)
  expect(monitor).toMatchObject({
    name: 'tcp orders',
    settings: { host: 'db1', port: 5432, latency: { warn: 250, limit: 1_000 } },
    timeoutMs: 2_000,
    retries: 2,
    depth: 'Standard',
    deployment: true,
    host: false,
    dependsOn: [],
  })
  expect(monitor?.kind.name).toBe('tcp')
})

test('a monitor without a name has the name of its kind', async () => {
  expect(await monitorOf()).toMatchObject({ name: 'tcp', retries: 0, depth: 'Basic', deployment: false })
  expect(await monitorOf('      name: tcp\n')).toMatchObject({ name: 'tcp' })
})

test('warn and limit abbreviate the two parts of latency', async () => {
  expect(await monitorOf('      limit: 9s\n')).toMatchObject({ settings: { latency: { warn: 1_000, limit: 9_000 } } })
  expect(await monitorOf('      warn: 50ms\n')).toMatchObject({ settings: { latency: { warn: 50, limit: 3_000 } } })
  expect(await monitorOf('      warn: off\n      limit: 9s\n')).toMatchObject({
    settings: { latency: { limit: 9_000 } },
  })
  expect(problemsOf(await refused(tcp('      limit: 9\n      latency: 2s\n')))).toEqual([
    '6:7: types.Sql[0].limit conflicts with `latency:`: keep one of them',
  ])
  expect(problemsOf(await refused(tcp('      limit: 9\n      warn: 1s\n')))).toEqual([
    '6:7: types.Sql[0].limit is 9, without a unit: write 9s or 9ms',
  ])
})

test('warn and limit are refused where the kind has no latency', async () => {
  const fault = await refused('types:\n  App:\n    - {kind: deployment, marker: /run/deploying, limit: 3s}\n')
  expect(problemsOf(fault)).toEqual(['3:50: types.App[0].limit is not known here: this kind has no latency, remove it'])
})

test('a type is a list of monitors, or a map with the host block and that list', async () => {
  const config = await load(`types:
  Sql:
    host: {disk: {warn: 30%, limit: 15%}}
    monitors:
      - {kind: tcp, host: db1, port: 5432}
  App:
    host: false
  Batch:
  Ftp: []
`)
  expect(config.types.Sql?.monitors.map(({ name }) => name)).toEqual(['tcp'])
  expect(config.types.Sql?.host).toEqual({ disk: { warn: '30%', limit: '15%' } })
  expect(config.types.App).toEqual({ monitors: [], host: false })
  expect(config.types.Batch).toEqual({ monitors: [], host: {} })
  expect(config.types.Ftp).toEqual({ monitors: [], host: {} })
})

test('wrong settings of the host block are reported when the file is read', async () => {
  expect(problemsOf(await refused('types:\n  Sql:\n    host: {dsik: 10%}\n  App: {host: yes}\n'))).toEqual([
    '3:12: types.Sql.host.dsik is not a setting here: did you mean `disk`?',
    '4:9: types.App.host must be settings of the host block, or false to leave it out',
  ])
})

test('each problem is in one Fault, with its line and column, in the order of the file', async () => {
  const fault = await refused(`types:
  Sql:
    - kind: tcp
      host: db1
      prot: 5432
      timeout: 5
    - kind: tpc
    - name: nameless
  Sqll: []
serve:
  maxBody: 1MiB
  jsonp: 'no'
monitors: []
`)
  expect(fault.fault).toBe('Local')
  expect(problemsOf(fault)).toEqual([
    '3:7: types.Sql[0].port is missing: add `port:` (TCP port)',
    '5:7: types.Sql[0].prot is not a setting here: did you mean `port`?',
    '6:7: types.Sql[0].timeout is 5, without a unit: write 5s or 5ms',
    '7:7: types.Sql[1].kind is not a monitor kind: did you mean `tcp`?',
    '8:7: types.Sql[2].kind is missing: add `kind:` (Monitor kind, such as http)',
    '9:3: types.Sqll is not a server type: did you mean `Sql`?',
    '12:3: serve.jsonp must be true or false (without quotes), not "no"',
    '13:1: monitors belongs under a server type: write `types:`, below it `App:`, and this below that',
  ])
  expect(fault.message).toMatch(/svc\.yaml has 8 problems, at 3:7, 5:7, 6:7, 7:7, 8:7, 9:3, 12:3, 13:1$/)
  expect(fault.details.hints?.at(-1)).toBe('Correct the file, then: svc monitors validate')
})

test('a single problem is the message itself', async () => {
  const fault = await refused('serve: {jsonp: 1}')
  expect(fault.message).toMatch(/svc\.yaml:1:9: serve\.jsonp must be true or false \(without quotes\), not 1$/)
  expect(fault.details.hints).toEqual([
    '1 | serve: {jsonp: 1}\n  |         ^',
    'Correct the file, then: svc monitors validate',
  ])
})

test('hundreds of problems are truncated to what fits a screen', async () => {
  const fault = await refused(`types:\n  Sql:\n${'    - kind: nope\n'.repeat(200)}`)
  expect(fault.details.hints).toHaveLength(52)
  expect(problemsOf(fault).at(-1)).toBe('… and 150 more')
})

test.each(['configuration', 'listening', 'self'])('the internal kind %s cannot be configured', async (kind) => {
  const [line] = problemsOf(await refused(`types:\n  Sql:\n    - kind: ${kind}\n`))
  expect(line).toMatch(/^3:7: types\.Sql\[0\]\.kind is not a monitor kind: /)
})

test('the host block cannot be listed as a monitor', async () => {
  expect(problemsOf(await refused('types:\n  Sql:\n    - kind: host\n'))).toEqual([
    '3:7: types.Sql[0].kind runs automatically for every type: configure it under `host:`, beside `monitors:`',
  ])
})

test('monitors of one type have different names', async () => {
  const one = '    - {kind: tcp, name: a, host: h, port: 1}\n'
  expect(problemsOf(await refused(`types:\n  Sql:\n${one}${one}`))).toEqual([
    '4:7: types.Sql[1] has the same name as another monitor, `tcp a`: give it another `name:`',
  ])
  const config = await load(`types:\n  Sql:\n${one}  App:\n${one}`)
  expect(config.types.App?.monitors[0]?.name).toBe('tcp a')
})

test('names contain no terminal control characters', async () => {
  for (const name of ['"a\\eb"', '"a\\u202eb"', "' a'", "'a '", `'${'x'.repeat(101)}'`]) {
    const lines = problemsOf(await refused(tcp(`      name: ${name}\n`)))
    expect(lines[0]).toMatch(/^6:7: types\.Sql\[0\]\.name has the invalid value /)
    expect(lines.join('')).not.toMatch(/\p{C}/u)
  }
  expect(await monitorOf("      name: 'Bestellungen № 1 (Köln)'\n")).toMatchObject({
    name: 'tcp Bestellungen № 1 (Köln)',
  })
})

test('a timeout is long enough to expire', async () => {
  expect(problemsOf(await refused(tcp('      timeout: 0s\n')))).toEqual([
    '6:7: types.Sql[0].timeout must be 1ms to 10m',
  ])
  expect(problemsOf(await refused(tcp('      timeout: 11m\n')))).toEqual([
    '6:7: types.Sql[0].timeout must be 1ms to 10m',
  ])
  const long = ['6:7: types.Sql[0].for must be 1ms to 7d: svc keeps no older values']
  for (const invalid of ['0s', '8d']) expect(problemsOf(await refused(tcp(`      for: ${invalid}\n`)))).toEqual(long)
  expect(problemsOf(await refused(tcp('      retries: 6\n')))).toEqual(['6:7: types.Sql[0].retries is 6: give 0 to 5'])
})

test('a kind without checks in a shallow mode begins in a deeper one', async () => {
  const config = await load('types:\n  App:\n    - {kind: deployment, marker: /run/deploying}\n')
  expect(config.types.App?.monitors[0]?.depth).toBe('Standard')
})

test('dependsOn accepts a MonitorName or a name, one or several', async () => {
  const config = await load(`types:
  Sql:
    - {kind: tcp, name: orders, host: h, port: 1}
    - {kind: tls, name: orders, host: h, port: 1}
    - {kind: tcp, name: stock, host: h, port: 1, dependsOn: tcp orders}
    - {kind: tcp, name: last, host: h, port: 1, dependsOn: [stock, tls orders, tcp stock]}
`)
  expect(config.types.Sql?.monitors.map(({ dependsOn }) => dependsOn)).toEqual([
    [],
    [],
    ['tcp orders'],
    ['tcp stock', 'tls orders'],
  ])
})

test('dependsOn refuses unknown and ambiguous names, and cycles', async () => {
  const monitor = (name: string, kind: string, dependsOn: string): string =>
    `    - {kind: ${kind}, name: ${name}, host: h, port: 1, dependsOn: ${dependsOn}}\n`
  const fault = await refused(
    `types:\n  Sql:\n${monitor('a', 'tcp', 'nobody')}${monitor('a', 'tls', '[]')}${monitor('b', 'tcp', 'a')}`,
  )
  expect(problemsOf(fault)).toEqual([
    '3:46: types.Sql[0].dependsOn names "nobody", which is not a monitor of this type: write `tcp a` or `tls a` or `tcp b`, or remove it',
    '5:46: types.Sql[2].dependsOn names "a", which is ambiguous: write `tcp a` or `tls a`',
  ])
  const circle = await refused(
    `types:\n  Sql:\n${monitor('a', 'tcp', 'b')}${monitor('b', 'tcp', 'c')}${monitor('c', 'tcp', 'a')}${monitor('d', 'tcp', 'd')}`,
  )
  expect(problemsOf(circle)).toEqual([
    '3:46: types.Sql[0].dependsOn forms a cycle (tcp a → tcp b → tcp c → tcp a): remove one of these',
    '6:46: types.Sql[3].dependsOn forms a cycle (tcp d → tcp d): remove one of these',
  ])
})

test('a monitor with another problem can still be a dependency', async () => {
  const fault = await refused(`types:
  Sql:
    - {kind: tcp, name: a, host: h}
    - {kind: tcp, name: b, host: h, port: 1, dependsOn: a}
`)
  expect(problemsOf(fault)).toEqual(['3:7: types.Sql[0].port is missing: add `port:` (TCP port)'])
})

test('serve has the defaults of the Service and reports invalid values', async () => {
  const { debug: _, ...defaults } = serveDefaults
  expect((await load('')).serve).toEqual(defaults)
  expect((await load('serve:\n')).serve).toEqual(defaults)
  expect((await load('serve: {origins: https://ops.example.com, maxBody: 2MiB, details: anyone}')).serve).toEqual({
    ...defaults,
    origins: ['https://ops.example.com'],
    maxBody: 2 * 2 ** 20,
    details: 'anyone',
  })
  expect(
    (await load('serve: {allowedHosts: [svc.example.com, "[::1]", 10.0.0.1], trustProxy: [10.0.0.7, "fd00::/8"]}'))
      .serve,
  ).toMatchObject({ allowedHosts: ['svc.example.com', '[::1]', '10.0.0.1'], trustProxy: ['10.0.0.7', 'fd00::/8'] })
})

test.each([
  ["origins: '*'", 'serve.origins[0] must be one exact origin: wildcards are not supported, list each'],
  ['origins: https://a.example/x', 'serve.origins[0] must be an origin alone: write https://a.example'],
  ['origins: HTTPS://A.example', 'serve.origins[0] must be an origin alone: write https://a.example'],
  ["origins: 'null'", 'serve.origins[0] must be an origin: write it like https://ops.example.com'],
  ["allowedHosts: '*'", 'serve.allowedHosts[0] must be one exact host name: wildcards are not supported, list each'],
  [
    "allowedHosts: ['a:80']",
    'serve.allowedHosts[0] must be a host name alone: without scheme, port or path, like svc.example.com',
  ],
  ['trustProxy: 0.0.0.0/0', 'serve.trustProxy[0] would trust every caller: name the proxy, or its network'],
  [
    'trustProxy: 10.0.0.0/33',
    'serve.trustProxy[0] must be an address or a network: write it like 10.0.0.7 or 10.0.0.0/24',
  ],
  ['trustProxy: proxy', 'serve.trustProxy[0] must be an address or a network: write it like 10.0.0.7 or 10.0.0.0/24'],
  ['maxBody: 1B', 'serve.maxBody is 1B: give 1KiB to 64MiB'],
  ['maxBody: 1TB', 'serve.maxBody is 1TiB: give 1KiB to 64MiB'],
  ['metrics: {maxSeries: 5}', 'serve.metrics.maxSeries is 5: give 100 to 1000000'],
  ['details: everyone', 'serve.details must be one of signed-in, anyone, not "everyone"'],
])('serve: %s is refused', async (written, message) => {
  const [line, ...more] = problemsOf(await refused(`serve: {${written}}`))
  expect(more).toEqual([])
  expect(line?.replace(/^\d+:\d+: /, '')).toBe(message)
})

test('a pattern that backtracks is a warning with its place, not an error', async () => {
  const config = await load(`types:
  App:
    - kind: http
      url: https://app.example.com/
      matches: (?=ready)r
      json:
        $.a: /^(a+)+$/
        $.b: /(.)\\1/s
      links:
        - {name: next, path: $.next, json: {$.c: '/(?<!x)y/'}}
    - kind: tcp
      host: db1
      port: 25
      expect: '/^220 .*ready/m'
`)
  expect(config.types.App?.monitors).toHaveLength(2)
  const why =
    'is matched by backtracking, because it has look-around, a back-reference or another part that RE2 does not support: the check fails if matching takes more than 250 ms'
  expect(config.warnings.map((line) => line.replace(/^.*svc\.yaml:/, ''))).toEqual([
    `5:7: types.App[0].matches ${why}`,
    `8:9: types.App[0].json.$.b ${why}`,
    `10:45: types.App[0].links[0].json.$.c ${why}`,
  ])
})

test('in an entry in braces the excerpt hides each value that may be a secret, and shows the rest and the place', async () => {
  const entry = `  - {kind: http, name: shop, url: 'https://h/?token=s3cret', headers: {X-Key: "s3cret, a"}, statos: s3cret}`
  const fault = await refused(`types:\n  App:\n  ${entry}\n`)
  expect(fault.details.hints?.[0]?.split('\n')).toEqual([
    '3 |     - {kind: http, name: shop, url: …, headers: {X-Key: …}, statos: …}',
    '  |                                                             ^',
  ])
  expect(JSON.stringify([fault.message, fault.details])).not.toContain('s3cret')
})

test('C21 a server type that does not exist says where such monitors belong, for what people call servers', async () => {
  const homes = {
    ...{ Web: 'App', 'web-servers': 'App', HTTP: 'App', Nginx: 'App', Webb: 'App', SMTP: 'App', nats: 'App' },
    ...{ databases: 'Sql', SQLServer: 'Sql', PostgreSQL: 'Sql', Redis: 'Batch', LDAP: 'Identity', SFTP: 'Ftp' },
  }
  for (const [name, type] of Object.entries(homes))
    expect(problemsOf(await refused(`types:\n  ${name}: []\n`))).toEqual([
      `2:3: types.${name} is not a server type: put its monitors under \`${type}\``,
    ])
  for (const [name, type] of Object.entries({ sql: 'Sql', Apps: 'App', Agent: 'Agents', Idendity: 'Identity' }))
    expect(problemsOf(await refused(`types:\n  ${name}: []\n`))).toEqual([
      `2:3: types.${name} is not a server type: did you mean \`${type}\`?`,
    ])
  for (const entry of ['{kind: postgres}', '{postgres: {}}', '{kind: exec}, {kind: mysql}'])
    expect(problemsOf(await refused(`types:\n  Things: [${entry}]\n`))).toEqual([
      '2:3: types.Things is not a server type: put its monitors under `Sql`',
    ])
  expect(problemsOf(await refused('types:\n  Things: []\n'))).toEqual([
    expect.stringMatching(
      /^2:3: types\.Things is not a server type: use one of App, .*; `App` is for what fits no other$/,
    ),
  ])
})

test('a missing secret is a warning with its place, not an error', async () => {
  const yaml = `types:
  App:
    - kind: http
      url: https://app.example.com/
      token: {env: APP_TOKEN}
`
  const config = await load(yaml)
  expect(config.types.App?.monitors).toHaveLength(1)
  expect(config.warnings.map((line) => line.replace(/^.*svc\.yaml:/, ''))).toEqual([
    '5:7: types.App[0].token names the variable APP_TOKEN, which is not set here: checks that need it will fail',
  ])
  expect((await load(yaml, { APP_TOKEN: 'x' })).warnings).toEqual([])
})
