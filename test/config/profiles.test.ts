import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { describePlan } from '../../src/core/checks/plan/index.ts'
import { loadProfile, profileNames } from '../../src/core/checks/profiles/index.ts'
import { writtenAt } from '../../src/core/config/placeholders.ts'
import { load, problemsOf, refused } from './given.ts'

const use = (more = '', host = 'v1.internal'): string => `types:
  XcodeV:
    - profile: vantage
      host: ${host}
${more}`
const monitors = async (yaml: string, env = {}) => (await load(yaml, env)).types.XcodeV?.monitors ?? []
const monitorNamed = async (name: string, yaml: string) => (await monitors(yaml)).find((one) => one.name === name)

/** A profile of the file's own. `${…}` is escaped for this language only. */
const own = (more = '', entry = 'host: h1'): string => `profiles:
  mine:
    title: Ours
    parameters:
      host: {type: text, required: true, doc: Host name}
      port: {type: integer, default: 80, min: 1, max: 65535, doc: Port}
      slow: {type: duration, doc: How long}
      token: {type: secret, doc: A token}
    monitors:
      - {kind: tcp, name: port, host: "\${host}", port: "\${port}", timeout: "\${slow}"}
      - {kind: http, name: web, url: "http://\${host}:\${port}/up", token: "\${token}", dependsOn: port}
${more}types:
  App:
    - profile: mine
      ${entry}
`

describe('a profile in svc.yaml', () => {
  test('becomes monitors with its name as a prefix and its parameters in their settings', async () => {
    const results = await monitors(use('      name: west\n      port: 99\n'))
    expect(results.map(({ name }) => name).slice(0, 3)).toEqual([
      'tcp west port',
      'http west online',
      'http west version',
    ])
    expect(results[0]).toMatchObject({ settings: { host: 'v1.internal', port: 99 }, depth: 'Basic', dependsOn: [] })
    expect(results[1]).toMatchObject({
      settings: { url: 'http://v1.internal:99/Rest/Domain/Online', json: { '$.Online': 'true' } },
      dependsOn: ['tcp west port'],
    })
    expect(results[2]?.depth).toBe('Standard')
  })

  test('an IPv6 address gets brackets in a URL, and nowhere else', async () => {
    const results = await monitors(use('', '"2001:db8::7"'))
    expect(results[0]?.settings).toMatchObject({ host: '2001:db8::7' })
    expect(results[1]?.settings).toMatchObject({ url: 'http://[2001:db8::7]:8676/Rest/Domain/Online' })
  })

  test('an omitted parameter omits its settings, and its monitor where that requires it', async () => {
    const without = await monitors(use())
    expect(without.map(({ name }) => name)).not.toContain('file-age vantage watch folder')
    expect(without[1]?.settings).not.toHaveProperty('password')
    const all = await monitors(use('      folder: /srv/in\n      folderAge: {limit: 1h}\n'))
    expect(all.at(-1)).toMatchObject({
      name: 'file-age vantage watch folder',
      settings: { path: '/srv/in', age: { limit: 3_600_000 } },
    })
  })

  test('`change` sets single settings, `without` omits monitors, and further entries add some', async () => {
    const yaml = use(`      change:
        online: {warn: 2s, depth: Standard, retries: 1}
        stores: {dependsOn: online}
      without: [load, port]
    - {kind: tcp, name: extra, host: h, port: 1, dependsOn: vantage online}
`).replace('dependsOn: online', 'dependsOn: vantage online')
    const results = await monitors(yaml)
    expect(results.map(({ name }) => name)).not.toContain('tcp vantage port')
    expect(results.map(({ name }) => name)).not.toContain('http vantage load')
    expect(results[0]).toMatchObject({
      name: 'http vantage online',
      depth: 'Standard',
      retries: 1,
      dependsOn: [],
      settings: { latency: { warn: 2_000, limit: 5_000 } },
    })
    expect(results.find(({ name }) => name === 'http vantage stores')?.dependsOn).toEqual(['http vantage online'])
    expect(results.at(-1)).toMatchObject({ name: 'tcp extra', dependsOn: ['http vantage online'] })
  })

  test('dependsOn of the entry applies to its first monitors', async () => {
    const yaml = use('      dependsOn: gate\n    - {kind: tcp, name: gate, host: h, port: 1}\n')
    expect((await monitorNamed('tcp vantage port', yaml))?.dependsOn).toEqual(['tcp gate'])
    expect((await monitorNamed('http vantage online', yaml))?.dependsOn).toEqual(['tcp vantage port'])
  })

  test('a secret is a parameter that refers to the value and never contains it', async () => {
    const yaml = use('      user: u\n      password: {env: V_PW}\n')
    const config = await load(yaml)
    expect(config.warnings.map((line) => line.replace(/^.*svc\.yaml:/, ''))).toEqual([
      '6:7: types.XcodeV[0].password names the variable V_PW, which is not set here: checks that need it will fail',
    ])
    expect(JSON.stringify(await monitors(yaml, { V_PW: 'hunter2-hunter2' }))).not.toContain('hunter2')
    expect(problemsOf(await refused(use('      password: hunter2\n'))).join()).toMatch(
      /^5:7: types\.XcodeV\[0\]\.password must refer to a secret, not contain it/,
    )
  })

  test('its monitors are listed like any others', async () => {
    const rows = describePlan(await monitors(use()), 'Basic')
    expect(rows.map(({ MonitorName, Kind }) => [MonitorName, Kind])).toEqual([
      ['tcp vantage port', 'tcp'],
      ['http vantage online', 'http'],
    ])
  })
})

describe('profiles of the file', () => {
  test('are used like those of svc', async () => {
    const config = await load(own('', '{host: h1, slow: 3s}').replace('- profile: mine\n      {', '- {profile: mine, '))
    expect(config.types.App?.monitors).toMatchObject([
      { name: 'tcp mine port', settings: { host: 'h1', port: 80 }, timeoutMs: 3_000 },
      { name: 'http mine web', settings: { url: 'http://h1:80/up' }, dependsOn: ['tcp mine port'] },
    ])
    const without = await load(own())
    expect(without.types.App?.monitors[0]?.timeoutMs).toBeUndefined()
  })

  test('a profile with the name of a built-in one replaces it', async () => {
    const yaml = `profiles:
  vantage:
    monitors:
      - {kind: tcp, name: other, host: fixed.internal, port: 7}
${use().replace('      host: v1.internal\n', '')}`
    expect((await monitors(yaml)).map(({ name }) => name)).toEqual(['tcp vantage other'])
  })

  test('a placeholder has no meaning elsewhere, and its escape is the literal text', async () => {
    const plain = await load('types: {App: [{kind: tcp, host: h, port: 1, send: "\x24{host}"}]}')
    expect(plain.types.App?.monitors[0]?.settings).toMatchObject({ send: '\x24{host}' })
    const escaped = await load(
      own('      - {kind: tcp, name: literal, host: "\x24{host}", port: 1, send: "$\x24{host} \x24{port}"}\n'),
    )
    expect(escaped.types.App?.monitors.at(-1)?.settings).toMatchObject({ send: '\x24{host} 80' })
  })

  /** Steps with a cleanup that only who gives `slow` gets; `$${…}` is what a step captured. */
  const withSteps = (condition: string): string => `      - kind: http-steps
        name: job
        url: http://\x24{host}:\x24{port}/
        allowWrites: true
        steps:
          - {name: make, method: POST, path: /jobs, capture: {job: $.id}}
        cleanup:
          - {when: ${condition}, name: remove, method: DELETE, path: '/jobs/$\x24{job}', undoes: make}
`

  test('an item of a list is omitted like a monitor, and the list with its last item; captures of a step are local', async () => {
    const cleanup = async (inputs: string, condition = 'slow') => {
      const config = await load(own(withSteps(condition), inputs))
      const settings = config.types.App?.monitors.at(-1)?.settings as { cleanup?: { path: string }[] } | undefined
      return settings?.cleanup
    }
    expect(await cleanup('host: h1')).toBeUndefined()
    expect(await cleanup('host: h1\n      slow: 1s')).toMatchObject([{ path: '/jobs/\x24{job}' }])
    expect((await cleanup('host: h1\n      slow: 1s'))?.[0]).not.toHaveProperty('when')
    expect(await cleanup('host: h1\n      slow: 1s', '[slow, token]')).toBeUndefined()
    expect(await cleanup('host: h1\n      slow: 1s\n      token: {env: T}', '[slow, token]')).toHaveLength(1)
  })

  /** Steps of which the first is left out unless `extra` is given. */
  const twoSteps = (inputs: string, second = '{name: b, path: "\x24{second}"}'): string => `profiles:
  mine:
    parameters:
      first: {type: text, default: /a, doc: Path}
      second: {type: text, default: /b, doc: Path}
      extra: {type: flag, default: false, doc: Whether}
    monitors:
      - kind: http-steps
        name: job
        url: http://h/
        steps:
          - {when: extra, name: a, path: "\x24{first}"}
          - ${second}
types:
  App:
    - profile: mine
      ${inputs}
`

  test('after an omitted item, a problem is reported for the correct parameter', async () => {
    expect(problemsOf(await refused(twoSteps('first: /a\n      second: bad')))).toEqual([
      expect.stringMatching(/^18:7: types\.App\[0\]\.second has the invalid value "bad"/),
    ])
    expect(problemsOf(await refused(twoSteps('first: bad\n      second: /b\n      extra: true')))).toEqual([
      expect.stringMatching(/^17:7: types\.App\[0\]\.first has the invalid value "bad"/),
    ])
    const pause = '{name: b, path: /b, until: {expect: {$.a: x}, every: "\x24{second}"}}'
    expect(problemsOf(await refused(twoSteps('first: /a\n      second: never', pause)))).toEqual([
      expect.stringMatching(/^18:7: types\.App\[0\]\.second must be written like/),
    ])
    const texts = { list: ['\x24{one}', '\x24{two}', 'x'] }
    const replaced = new Map([['two', '404']])
    expect(writtenAt(texts, ['list', 0], replaced)).toEqual({ path: ['list', 1], value: '\x24{two}' })
    expect(writtenAt(texts, ['list', 1], replaced)).toEqual({ path: ['list', 2], value: 'x' })
    expect(writtenAt(texts, ['list', 7, 'a'], replaced)).toEqual({ path: ['list', 7, 'a'], value: undefined })
  })

  test('an invalid definition after an omitted item is reported at its place', async () => {
    const invalid = twoSteps('first: /a', '{name: b, path: bad}').replace(/types:[\s\S]*/, '')
    expect(problemsOf(await refused(invalid))).toEqual([
      expect.stringMatching(/^13:\d+: profiles\.mine\.monitors\[0\]\.steps\[1\]\.path has the invalid value "bad"/),
    ])
  })

  test('a parameter may require others, and a flag that it requires must be on', async () => {
    const needing = (all: string): string =>
      own('', all).replace(
        '      slow: {type: duration, doc: How long}',
        '      slow: {type: duration, doc: How long, needs: [token, sure]}\n      sure: {type: flag, default: false, doc: Sure}',
      )
    expect(
      problemsOf(
        await refused(needing('{host: h1, slow: 3s}').replace('- profile: mine\n      {', '- {profile: mine, ')),
      ),
    ).toEqual([expect.stringMatching(/types\.App\[0\]\.slow requires `token:` and `sure: true`$/)])
    expect(
      problemsOf(await refused(needing('host: h1\n      slow: 3s\n      token: {env: T}\n      sure: false'))),
    ).toEqual([expect.stringMatching(/types\.App\[0\]\.slow requires `sure: true`$/)])
    await load(needing('host: h1\n      slow: 3s\n      token: {env: T}\n      sure: true'))
    await load(needing('host: h1'))
  })
})

test.each(profileNames)('the profile %s is valid in a svc.yaml, and is marked as an inference', async (name) => {
  const { title, doc, parameters, monitors: defined } = await loadProfile(name)
  expect(doc).toMatch(/inference/)
  expect(doc).toMatch(/simulated/)
  const config = await load(JSON.stringify({ profiles: { copy: { title, doc, parameters, monitors: defined } } }))
  expect(config.types).toEqual({})
})

test.each(profileNames)('the file of the profile %s can be pasted below `profiles:` of a svc.yaml', async (name) => {
  const file = readFileSync(new URL(`../../src/core/checks/profiles/${name}.yaml`, import.meta.url), 'utf8')
  const config = await load(`profiles:\n  copy:\n${file.replace(/^(?=.)/gm, '    ')}`)
  expect(config.types).toEqual({})
  const broken = file.replace('kind: tcp', 'kind: tpc').replace('kind: http,', 'kind: htpt,')
  await expect(load(`profiles:\n  copy:\n${broken.replace(/^(?=.)/gm, '    ')}`)).rejects.toThrow()
})
