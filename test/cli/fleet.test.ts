import { chmodSync, writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fleetExit } from '../../src/cli/fleet/exit.ts'
import { causesOf, FleetFold, type FleetShape } from '../../src/cli/fleet/fold.ts'
import { type Output, outputs } from '../../src/cli/health/health.ts'
import { painter } from '../../src/cli/io/terminal.ts'
import { marks } from '../../src/cli/render/table.ts'
import { exits } from '../../src/core/base/errors.ts'
import { type Entry, read } from '../../src/core/checks/reports/index.ts'
import { ancestorsOf } from '../../src/core/config/fleet.ts'
import { main } from '../../src/main.ts'
import { manyServers } from '../../tools/gates/rules.ts'
import { refusing, runOf, wellOnes } from '../checks/reports/many.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'

const home = temporaryHome()

/** Answers like a server of the interface whose one monitor is well. */
const healthy =
  (monitor = 'orders'): RequestListener =>
  (_, response) => {
    const results = [{ MonitoringName: 'connect', Status: 'Success', StatusMessage: '1 ms' }]
    const summary = { MonitorName: monitor, Status: 'Success', Results: results }
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ Status: 'Success', FailedMonitorCount: 0, MonitorSummaries: [summary] }))
  }

/** Writes a fleet file, and returns its path. */
function fleetFile(yaml: string, name = 'fleet.yaml'): string {
  const path = join(home.folder, name)
  writeFileSync(path, yaml, { mode: 0o600 })
  chmodSync(path, 0o600)
  return path
}

describe('O53 the exit code of many servers', () => {
  test('O53 is that of the table of gates for all rows of up to three codes', () => {
    const codes = Object.values(exits).map(({ code }) => code)
    const differs = codes.flatMap((a) =>
      codes.flatMap((b) => codes.map((c) => [a, b, c]).filter((rows) => fleetExit(rows) !== manyServers(rows))),
    )
    expect(differs).toEqual([])
  })

  test.each([
    [[], 0],
    [[0, 0], 0],
    [[0, 12, 6], 3],
    [[7], 3],
    [[4, 12, 9], 12],
    [[0, 4, 4], 4],
    [[4, 9], 10],
  ])('O53 of %j is %i', (codes, expected) => {
    expect(fleetExit(codes)).toBe(expected)
  })
})

describe('O53 what explains a server that cannot be reached', () => {
  const shape = (dependsOn: Readonly<Record<string, readonly string[]>>, devices: readonly string[]): FleetShape => ({
    label: '',
    before: new Map(Object.keys(dependsOn).map((name) => [name, ancestorsOf(name, (one) => dependsOn[one])])),
    devices,
  })
  const causes = (of: FleetShape, targets: readonly string[], down: readonly string[]) =>
    Object.fromEntries(causesOf(of, new Set(targets), new Set(down)))

  test('a device is the cause if all servers behind it are down, and there are at least two', () => {
    const of = shape({ a: ['switch'], b: ['switch'], c: ['link'] }, ['switch', 'link'])
    expect(causes(of, ['a', 'b', 'c'], ['a', 'b', 'c'])).toEqual({ a: 'switch', b: 'switch' })
    expect(causes(of, ['a', 'b', 'c'], ['a', 'c'])).toEqual({})
  })

  test('a server is the cause if it is down itself, and the farthest one explains those between', () => {
    const of = shape({ c: ['b'], b: ['a'] }, [])
    expect(causes(of, ['a', 'b', 'c'], ['a', 'b', 'c'])).toEqual({ b: 'a', c: 'a' })
    expect(causes(of, ['a', 'b', 'c'], ['b', 'c'])).toEqual({ c: 'b' })
    expect(causes(of, ['a', 'b', 'c'], ['c'])).toEqual({})
  })

  test('a server that was not asked explains nothing, and what is behind it still has its device', () => {
    const of = shape({ c: ['b'], d: ['b'], b: ['switch'] }, ['switch'])
    expect(causes(of, ['c', 'd'], ['c', 'd'])).toEqual({ c: 'switch', d: 'switch' })
  })
})

describe('O53 the table of many servers', () => {
  const refused = (url: string, exitCode = 6): Entry => ({
    Target: '',
    ServerType: 'all',
    ExecutionMode: 'Standard',
    ExitCode: exitCode,
    Error: { code: 'Unreachable', exitCode, message: `${url} refuses connections (ECONNREFUSED)`, hints: [] },
  })
  const table = (
    answers: Readonly<Record<string, { readonly url?: string; readonly entries?: readonly Entry[] }>>,
    { detail = 'usual', ...shape }: Partial<FleetShape> & { readonly detail?: 'usual' | 'verbose' | 'reasons' } = {},
  ): readonly string[] => {
    const fold = new FleetFold(
      { label: 'fleet.yaml', before: new Map(), devices: [], ...shape },
      {
        listsHealthy: detail === 'verbose',
      },
    )
    for (const [name, { url = `http://${name}`, entries = [refused(url)] }] of Object.entries(answers)) {
      const own = entries.map((entry) => ({ ...entry, Target: name, IsOfMany: true as const }))
      fold.add({ name, url }, own.map(read))
    }
    return fold.render(detail, 1_200, { width: 110, marks: marks(true), paint: painter(false) }).split('\n')
  }
  const well = { entries: [runOf('App', wellOnes(2), 0)] }

  test('40 servers behind one switch are one line with a count, and so are 40 at one address', () => {
    const names = Array.from({ length: 40 }, (_, at) => `web${at}`)
    const behind = table(Object.fromEntries([...names.map((name) => [name, {}]), ['db', well]]), {
      before: new Map(names.map((name) => [name, ['switch-7']])),
      devices: ['switch-7'],
    })
    expect(behind).toEqual([
      '  ✗ exit 6  40 servers  behind switch-7  the server refuses connections (ECONNREFUSED)',
      expect.stringMatching(/^ +servers: web0, web1, /),
      expect.stringMatching(/ web16 and 23 more$/),
      '  ✓ 1 ok',
      '',
      '✗ UNHEALTHY  fleet.yaml · 41 servers · 40 not reached · Standard · 1.2 s',
    ])
    // The remedies of some errors name the port.
    const hinted = (url: string): Entry => {
      const { Error: error, ...entry } = refused(url)
      return {
        ...entry,
        Error: error && { ...error, hints: [`Is ${url} correct? svc serve --port ${new URL(url).port}`] },
      }
    }
    const urls = names.map((name, at) => [name, `http://10.0.0.1:${at + 1}`] as const)
    const address = table(Object.fromEntries(urls.map(([name, url]) => [name, { url, entries: [hinted(url)] }])))
    expect(address.join()).not.toContain('svc serve')
    expect(address[0]).toBe('  ✗ exit 6  40 servers  at 10.0.0.1  the server refuses connections (ECONNREFUSED)')
  })

  test('the worst is first, each row names its own code, and two of one cause stay two', () => {
    const lines = table({
      ok: well,
      stale: { entries: [{ ...refused('http://stale', 12), ServerType: 'App' }] },
      a: {},
      b: {},
      sick: { entries: [runOf('App', [refusing('tcp login')], 3)] },
    })
    const heads = lines.map((line) => line.slice(0, 18).trim().replace(/ +/g, ' ')).filter(Boolean)
    expect(heads.slice(0, 5)).toEqual(['✗ exit 3 sick', '✗ exit 6 a', '✗ exit 6 b', '? exit 12 stale', '✓ 1 ok'])
    expect(lines.at(-1)).toMatch(/^✗ UNHEALTHY {2}fleet.yaml · 5 servers · 1 unhealthy · 2 not reached · 1 not checked/)
  })

  test('servers that fail for the same reason are one line, and -v has a line for each that is ok', () => {
    const sick = { entries: [runOf('App', [refusing('tcp login')], 3)] }
    expect(table({ a: sick, b: sick, c: sick })[0]).toMatch(/^ {2}✗ exit 3 {2}3 servers {2}App tcp login connect/)
    expect(table({ a: well }, { detail: 'verbose' })[0]).toMatch(
      /^ {2}✓ exit 0 {2}a +App is healthy: 2 monitors passed/,
    )
  })

  test('a server that could not be asked has the remedy below, and servers that have the same have it once', () => {
    const closed = (name: string): Entry => ({
      ...refused(`http://${name}`, 4),
      Error: {
        code: 'Unauthorized',
        exitCode: 4,
        message: `http://${name} requires sign-in (401)`,
        hints: [`Sign in: svc login --server http://${name}`],
      },
    })
    const entriesOf = (...names: readonly string[]) =>
      Object.fromEntries(names.map((name) => [name, { entries: [closed(name)] }]))
    expect(table(entriesOf('a')).slice(0, 2)).toEqual([
      '  ? exit 4  a    http://a requires sign-in (401)',
      `${' '.repeat(19)}Sign in: svc login --server http://a`,
    ])
    expect(table(entriesOf('a', 'b', 'c')).slice(0, 2)).toEqual([
      '  ? exit 4  3 servers    the server requires sign-in (401)',
      `${' '.repeat(27)}Sign in: svc login --server URL`,
    ])
    const hint = 'Is the port right?'
    const unreachable = (name: string): Entry => {
      const entry = refused(`http://${name}`)
      return { ...entry, Error: { code: 'Unreachable', exitCode: 6, message: `${name} is silent`, hints: [hint] } }
    }
    const two = table({ a: { entries: [unreachable('a')] }, b: { entries: [unreachable('b')] } })
    expect(two.filter((line) => line.includes(hint))).toHaveLength(1)
  })

  test('without a failure, the table is one line and the verdict', () => {
    expect(table({ a: well, b: well })).toEqual(['  ✓ 2 ok', '✓ HEALTHY  fleet.yaml · 2 servers · Standard · 1.2 s'])
  })
})

describe('O53 a fleet file', () => {
  const load = async (yaml: string, args: readonly string[] = []) => {
    const path = fleetFile(yaml)
    const ran = await home.run(['health', '--fleet', path, ...args])
    return { ...ran, stderr: ran.stderr.replaceAll(`${path}:`, ''), path }
  }
  const one = "{name: a, url: 'https://a.example.com'}"

  test.each([
    ['servers:\n  - {url: https://a}', '2:5: servers[0].name is missing'],
    ['servers:\n  - {name: a, url: ftp://a}', '2:15: servers[0].url begins with ftp:'],
    [`servers:\n  - ${one}\n  - ${one}`, '3:6: servers[1].name is "a", as in entry 1 of the list'],
    ['servers:\n  - {name: a, url: http://a.example.com}', '2:15: servers[0].url is plain http to another machine'],
    ["servers:\n  - {name: a, url: 'https://u@a'}", '2:15: servers[0].url contains a user name'],
    ["servers:\n  - {name: a, url: 'https://a/?x=1'}", '2:15: servers[0].url contains a query or fragment'],
    ['servers:\n  - {name: a, url: https://a, types: [Sqll]}', '2:39: servers[0].types[0] must be one of App'],
    ['servers:\n  - {name: a, url: https://a, mode: Deep}', '2:31: servers[0].mode must be one of Basic'],
    [
      'servers:\n  - {name: a, url: https://a, credential: s3cret}',
      '2:31: servers[0].credential must refer to a secret',
    ],
    ...['proxyUsername: b, proxy: http://p:1', 'proxyPassword: {env: X}, proxy: http://p:1', 'proxyUsername: b'].map(
      (half): [string, string] => [
        `servers:\n  - {name: a, url: https://a, ${half}}`,
        'servers[0] has a part of a sign-in at a proxy: write proxy, proxyUsername and proxyPassword',
      ],
    ),
    [
      'servers:\n  - {name: a, url: https://a, dependsOn: [b]}',
      '2:43: servers[0].dependsOn[0] names "b", which is neither',
    ],
    [
      'servers:\n  - {name: a, url: https://a, dependsOn: [b]}\n  - {name: b, url: https://b, dependsOn: [a]}',
      'servers[0].dependsOn leads back to this server',
    ],
    [`devices: [a]\nservers:\n  - ${one}`, '1:11: devices[0] is also the name of a server'],
    ['servers: []', '1:1: servers lists no server'],
    [
      'servers:\n  - {name: a, url: https://a, tag: x}',
      '2:31: servers[0].tag is not a setting here: did you mean `tags`?',
    ],
    ['servers: [', '1:10: the file opens a bracket here'],
    ['{"servers": [{"name": "a", "url": "ftp://a"}]}', '1:28: servers[0].url begins with ftp:'],
    ['{"servers": [{"name": "a", "url": "https://a", "name": "b"}]}', '1:48: '],
  ])('%j has its mistake named with line and column', async (yaml, message) => {
    const { code, stderr, stdout } = await load(yaml)
    expect([code, stdout]).toEqual([12, ''])
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('s3cret')
  })

  test('one that another account can write is refused, like svc.yaml', async () => {
    const path = fleetFile(`servers: [${one}]`, 'open.yaml')
    chmodSync(path, 0o666)
    const { code, stderr } = await home.run(['health', '--fleet', path])
    expect(code).toBe(12)
    expect(stderr).toContain('The configuration is not trusted')
    expect((await home.run(['health', '--fleet', join(home.folder, 'absent.yaml')])).stderr).toContain('--fleet names')
  })

  test('--tag that no server has is exit 2, with the tags that there are', async () => {
    const { code, stderr } = await load("servers: [{name: a, url: 'https://a', tags: [web]}]", ['--tag', 'wbe'])
    expect(code).toBe(2)
    expect(stderr).toContain('Did you mean web?')
  })
})

describe('O53 flags beside several servers', () => {
  const two = ['--server', 'http://127.0.0.1:1', '--server', 'http://127.0.0.1:2']
  const fleet = ['--fleet', '/nowhere.yaml']
  test.each([
    [[...two, '--profile', 'x'], {}, '--server and --profile cannot be combined'],
    [[...fleet, '--server', 'http://127.0.0.1:1'], {}, '--fleet and --server cannot be combined'],
    [[...fleet, '--profile', 'x'], {}, '--fleet and --profile cannot be combined'],
    [[...fleet, '--config', 'x'], {}, '--fleet and --config cannot be combined'],
    [[...two, '--local'], {}, '--server and --local cannot be combined'],
    [[...two, '--wait', '5s'], {}, '--wait takes one server'],
    [[...two, '--watch'], {}, '--watch takes one server'],
    [[...two, '--watch', '--interval', '5s'], {}, '--watch takes one server'],
    [[...two, '--until', 'healthy', '--within', '5s'], {}, '--until takes one server'],
    [two, { SVC_TOKEN: 'abc' }, 'SVC_TOKEN is set, and several servers would get it'],
    [two, { SVC_CONFIG: '' }, 'SVC_CONFIG is set but empty'],
    [[...two, '--tag', 'x'], {}, '--tag has an effect only with --fleet'],
    [['--tag', 'x'], {}, '--tag has an effect only with --fleet'],
    [['--at-once', '5'], {}, '--at-once has an effect only with several servers'],
    [[...two, '--at-once', '0'], {}, '--at-once "0" is not a number from 1'],
    [[...two, '--at-once', '99999'], {}, /--at-once 99999 needs 200126 open files, and this process may have \d+/],
    [['--profile', 'prod-*'], {}, 'no profile matches "prod-*"'],
    [['--server', 'http://127.0.0.1:1', '--server', 'ftp://x'], {}, 'is not an http or https URL'],
  ] as const)('%j with %j is exit 2', async (args, env, message) => {
    const { code, stderr, stdout } = await home.run(['health', ...args], { env })
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(message)
  })

  test('K5 SVC_TOKEN beside several servers reaches none of them', async () => {
    await using server = await httpPeer(healthy())
    const args = ['--server', server.origin, '--server', `${server.origin}/x`]
    expect((await home.run(['health', '-t', 'Sql', ...args], { env: { SVC_TOKEN: 'abc' } })).code).toBe(2)
    expect(server.requestLines()).toEqual([])
  })
})

describe('O53 the answers of several servers', () => {
  /** Where each format names a server. */
  const places: Readonly<Record<Output, (name: string) => string | RegExp>> = {
    table: (name) => new RegExp(`✗ exit 6 +${name} `),
    json: (name) => `"Target":"${name}"`,
    csv: (name) => `\n${name},Sql,`,
    tsv: (name) => `\n${name}\tSql\t`,
    ndjson: (name) => `{"Target":"${name}",`,
    junit: (name) => new RegExp(`<testsuite name="${name} Sql Standard".*hostname="${name}"`),
    github: (name) => `::error title=${name} Sql not checked::`,
    nagios: (name) => `Sql Standard at ${name}: `,
    prtg: (name) => `${name}: Sql could not be checked`,
    prometheus: (name) => `svc_type_success{server="${name}",type="Sql",depth="Standard"} 0`,
    'health+json': () => '',
  }

  test.each(outputs)('-o %s names each server, also the only one of a file', async (output) => {
    const entries = ['east', 'west'].map((name, at) => `{name: ${name}, url: 'http://127.0.0.1:${at + 1}'}`)
    for (const names of [['east', 'west'], ['east']]) {
      const path = fleetFile(`servers: [${entries.slice(0, names.length).join(', ')}]`)
      const { code, stdout, stderr } = await home.run(['health', '-t', 'Sql', '-o', output, '--fleet', path])
      expect(code).toBe(output === 'nagios' ? 2 : 3)
      for (const name of names) expect(stdout).toMatch(places[output](name))
      expect(stderr.includes('UNHEALTHY')).toBe(!['table', 'github', 'nagios', 'prtg'].includes(output))
    }
  })

  test('a stream writes each answer as it arrives, with one header', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await using server = await httpPeer(async (request, response) => {
      if (request.url?.startsWith('/slow')) await released
      healthy()(request, response)
    })
    const { io, stdout } = capturedIo({ env: home.env })
    const args = ['--server', `${server.origin}/slow`, '--server', `${server.origin}/fast`]
    const ended = main(io, ['health', '-t', 'Sql', '-o', 'csv', ...args])
    await expect.poll(stdout, { interval: 10 }).toContain('/fast,Sql')
    expect(stdout()).not.toContain('/slow')
    release()
    await ended
    expect(stdout().match(/^Target,/gm)).toHaveLength(1)
    expect(stdout()).toContain('/slow,Sql')
    expect(io.exitCode ?? 0).toBe(0)
  })

  test('--at-once is the number of requests at once, whatever the number of types', async () => {
    let [open, most] = [0, 0]
    await using server = await httpPeer((request, response) => {
      open += 1
      most = Math.max(most, open)
      setTimeout(() => {
        open -= 1
        healthy()(request, response)
      }, 5)
    })
    const urls = Array.from({ length: 6 }, (_, at) => ['--server', `${server.origin}/${at}`]).flat()
    const { code } = await home.run(['health', '-t', 'App,Sql,Ftp', '--at-once', '3', ...urls])
    expect([code, most, server.requestLines().length]).toEqual([0, 3, 18])
  })

  test('K5 a credential of the file goes to its own server only, with every request', async () => {
    await using east = await httpPeer(healthy())
    await using west = await httpPeer(healthy())
    const entries = [
      `{name: east, url: '${east.origin}', credential: {env: EAST}}`,
      `{name: west, url: '${west.origin}', types: [Sql, App], mode: Basic}`,
    ]
    const args = ['health', '-t', 'Sql', '--fleet', fleetFile(`servers: [${entries.join(', ')}]`)]
    const { code, stdout, stderr } = await home.run(args, { env: { EAST: 'e4st-t0ken' } })
    expect(code).toBe(0)
    expect(east.requests().map(({ headers }) => headers.authorization)).toEqual(['Bearer e4st-t0ken'])
    expect(west.requests().map(({ headers }) => headers.authorization)).toEqual([undefined])
    expect(west.requestLines()).toEqual([expect.stringMatching(/ExecutionMode=Basic&ServerType=Sql/)])
    expect(stdout + stderr).not.toContain('e4st')
    const unset = await home.run(args)
    expect(unset.code).toBe(12)
    expect(unset.stdout).toMatch(/\? exit 12 +east .*the variable EAST is not set/s)
  })

  test('K5 the proxy of an entry gets the requests to its server only, in place of HTTP_PROXY', async () => {
    // Real proxies for plain http: they get the whole URL, and no look-up of these names succeeds.
    await using own = await httpPeer(healthy())
    await using usual = await httpPeer(healthy())
    const entries = [
      `{name: east, url: 'http://east.test', insecureHttp: true, proxy: '${own.origin}'}`,
      "{name: west, url: 'http://west.test', insecureHttp: true}",
      "{name: north, url: 'http://north.test', insecureHttp: true, proxy: 'http://127.0.0.1:1'}",
    ]
    const args = ['health', '-t', 'Sql', '--fleet', fleetFile(`servers: [${entries.join(', ')}]`)]
    const { code, stdout } = await home.run(args, { env: { HTTP_PROXY: usual.origin, NO_PROXY: 'east.test' } })
    expect(own.requestLines()).toEqual([expect.stringMatching(/^GET http:\/\/east\.test\/healthcheck\?/)])
    expect(usual.requestLines()).toEqual([expect.stringMatching(/^GET http:\/\/west\.test\/healthcheck\?/)])
    expect(code).toBe(3)
    expect(stdout).toMatch(/✗ exit 6 +north +.*the proxy of `proxy:` \(127\.0\.0\.1:1\) refuses connections/)
    expect(stdout).toContain('Is the proxy running? It is set in `proxy:`.')
    expect(stdout).not.toContain('NO_PROXY')
    expect(stdout).toContain('2 ok')
  })

  test('--profile with * checks the profiles with such a name, also where only one has it', async () => {
    await using server = await httpPeer(healthy())
    const own = temporaryHome()
    const profiles = {
      'prod-a': { server: server.origin },
      'prod-b': { server: 'http://127.0.0.1:1' },
      test: { server: 'http://127.0.0.1:2' },
    }
    writeFileSync(join(own.folder, 'config.json'), JSON.stringify({ profiles }), { mode: 0o600 })
    const both = await own.run(['health', '-t', 'Sql', '--json', '--profile', 'prod-*'])
    expect(both.code).toBe(3)
    expect(JSON.parse(both.stdout)).toMatchObject({
      Results: [
        { Target: 'prod-a', ExitCode: 0 },
        { Target: 'prod-b', ExitCode: 6 },
      ],
    })
    const one = await own.run(['health', '-t', 'Sql', '--json', '--profile', '*-a'])
    expect([one.code, JSON.parse(one.stdout)]).toMatchObject([0, { Results: [{ Target: 'prod-a' }] }])
  })

  test('where one server has what --only selects, those that have nothing of it are left out', async () => {
    await using server = await httpPeer((request, response) =>
      healthy(request.url?.startsWith('/b') ? 'mail' : 'orders')(request, response),
    )
    const args = ['--server', `${server.origin}/a`, '--server', `${server.origin}/b`]
    const some = await home.run(['health', '-t', 'Sql', '--only', 'orders', ...args])
    expect(some.code).toBe(0)
    expect(some.stdout).toContain('1 server')
    expect(some.stderr).toContain('Note: --only and --skip select nothing at 1 server')
    expect((await home.run(['health', '-t', 'Sql', '--only', 'nomatch', ...args])).code).toBe(2)
  })
})
