import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Peer, peer } from '../support/faults/faults.ts'
import { admin, startServe } from '../support/program/serve-command.ts'
import type { Serving } from '../support/program/serving.ts'
import { type Home, type Ran, svcHome } from '../support/program/svc.ts'
import { buildVersion01, everyKind, git, version01, version01Missing } from '../support/program/version-0.1.ts'
import { suiteWith } from '../support/suite/peer.ts'

type Version = '0.1' | 'this version'
/** 0.1 checks its own parts for a type that svc.yaml lacks, where this version answers 503. */
type Server = Version | '0.1 without types'

suiteWith(version01Missing, 'svc 0.1 beside this version', () => {
  let built: ReturnType<typeof buildVersion01>
  /** Reports more busy connections than should be: what Sql warns of. */
  let pool: Peer
  /** One of each, with the home that it runs in. */
  let servers: Readonly<Record<Server, { readonly place: Home; readonly server: Serving }>>
  beforeAll(async () => {
    built = buildVersion01()
    pool = await peer((socket) => void socket.write('<Pool><Busy>7</Busy></Pool>'))
    const withSql = ({ folder }: Home): string => `
types:
  Sql:
    - {kind: sqlite, name: own store, path: '${join(folder, 'server', 'svc.db')}', ownStore: true}
    - kind: tcp
      name: pool
      host: 127.0.0.1
      port: ${pool.port}
      measure: [{name: busy, path: /Pool/Busy, atMost: {warn: 5, limit: 50}}]
`
    const started = async (place: Home, yaml = withSql(place)) => ({ place, server: await startServe(place, yaml) })
    const [old, current, bare] = await Promise.all([
      started(svcHome(built.program)),
      started(svcHome()),
      started(svcHome(built.program), 'types: {}\n'),
    ])
    servers = { '0.1': old, 'this version': current, '0.1 without types': bare }
  })
  afterAll(async () => {
    for (const { place, server } of Object.values(servers ?? {})) {
      await server.stop()
      place.remove()
    }
    await pool?.close()
    built?.remove()
  })

  /** A home of 0.1, or of this version. */
  const home = (which: Version): Home => {
    const made = which === '0.1' ? svcHome(built.program) : svcHome()
    onTestFinished(made.remove)
    return made
  }
  /** This version in a home of 0.1. */
  const upgraded = ({ folder }: Home): Home => svcHome(undefined, folder)
  /** Runs svc, which has to succeed, and gives what it prints. */
  async function done(of: Home, args: readonly string[], more: Parameters<Home['svc']>[1] = {}): Promise<string> {
    const { code, stdout, stderr } = await of.svc(args, more)
    expect([args.join(' '), code, code === 0 ? '' : stdout + stderr]).toEqual([args.join(' '), 0, ''])
    return stdout
  }
  const json = async <T>(of: Home, args: readonly string[], more: Parameters<Home['svc']>[1] = {}): Promise<T> =>
    JSON.parse(await done(of, [...args, '--json'], more)) as T

  const pairs = [
    ['0.1', 'this version'],
    ['this version', '0.1'],
  ] as const
  const reads = [...pairs, ['this version', '0.1 without types']] as const

  test.each(reads)('a client of %s reads the health of a server of %s in each format', async (ofClient, ofServer) => {
    const client = home(ofClient)
    const { url } = servers[ofServer].server
    const health = (...args: readonly string[]): Promise<Ran> =>
      client.svc(['health', '-m', 'Basic', ...args, '--server', url])
    const [table, asJson, csv, prometheus, nagios, failing, several] = await Promise.all([
      health('-t', 'Sql'),
      health('-t', 'Sql', '--json'),
      health('-t', 'Sql', '-o', 'csv'),
      health('-t', 'Sql', '-o', 'prometheus'),
      health('-t', 'Sql', '-o', 'nagios'),
      health('-t', 'Mongo'),
      health('-t', 'Sql', '-t', 'Mongo', '-o', 'nagios'),
    ])
    const all = [table, asJson, csv, prometheus, nagios, failing, several]
    expect(all.map(({ code, stderr }) => (stderr === '' ? code : stderr))).toEqual([0, 0, 0, 0, 1, 3, 2])
    // In a pipe, 0.1 prints records.
    expect(table.stdout).toMatch(ofClient === '0.1' ? /\tSql\tBasic\tsqlite own store\t/ : /✓ Sql +sqlite own store /)
    const answer = JSON.parse(asJson.stdout) as Record<string, unknown>
    expect(answer).toMatchObject({ Status: 'Success', FailedMonitorCount: 0 })
    expect(csv.stdout).toMatch(/^Target,ServerType,ExecutionMode,MonitorName,/)
    expect(csv.stdout).toContain(',sqlite own store,')
    expect(prometheus.stdout).toMatch(/^svc_(?:health_status|type_success)\{[^}]*type="Sql"[^}]*\} 1$/m)
    expect(nagios.stdout).toMatch(/^SVC WARNING - .*\| failed=0;;0;0;/)
    expect(failing.stdout).toContain('Mongo is not configured here')
    expect(several.stdout).toMatch(/^SVC CRITICAL - /)
  })

  test.each(reads)('the kind svc of %s reads a server of %s', async (ofClient, ofServer) => {
    const client = home(ofClient)
    const { url } = servers[ofServer].server
    const file = join(client.folder, 'svc.yaml')
    const monitor = (type: string): string => `      - {kind: svc, name: ${type}, url: "${url}", type: ${type}}\n`
    writeFileSync(file, `types:\n  App:\n    host: false\n    monitors:\n${monitor('Sql')}${monitor('Mongo')}`, {
      mode: 0o600,
    })
    const ran = await client.svc(['health', '-t', 'App', '-m', 'Basic', '--local', '--config', file, '--json'])
    const verdict = ofClient === '0.1' ? '' : expect.stringContaining('1 of 2 monitors failed')
    expect([ran.code, ran.stderr]).toEqual([3, verdict])
    const { MonitorSummaries: summaries } = JSON.parse(ran.stdout) as {
      readonly MonitorSummaries: readonly {
        readonly Status: string
        readonly Results: readonly { readonly MonitoringName: string; readonly StatusMessage: string }[]
      }[]
    }
    const verdicts = summaries.map(({ Status, Results }) => [
      Status,
      Results.find(({ MonitoringName }) => MonitoringName === 'health')?.StatusMessage,
    ])
    const verb = ofClient === '0.1' ? 'says' : 'reports'
    const warning =
      ofServer === '0.1 without types'
        ? 'Configuration configured: Sql: no'
        : `tcp pool measure: 127\\.0\\.0\\.1:${pool.port}: busy: 7 `
    expect(verdicts).toEqual([
      ['Success', expect.stringMatching(new RegExp(`^warning: \\S+ ${verb} Success with 1 warning: "${warning}`))],
      [
        'Failure',
        expect.stringMatching(new RegExp(` ${verb} Failure, 1 failed monitor: .*; failed there: Configuration$`)),
      ],
    ])
  })

  test.each(pairs)('a client of %s signs in to a server of %s, and changes roles there', async (ofClient, ofServer) => {
    const client = home(ofClient)
    const { place, server } = servers[ofServer]
    const store = ['--store', join(place.folder, 'server', 'svc.db')]
    await done(place, ['users', 'add', 'bob', '--no-password', '--role', 'Deploy', ...store])
    const login = ['login', '--server', server.url, '-u', admin.userName, '--password-stdin', '--insecure-storage']
    await done(client, login, { stdin: admin.password })
    expect(await done(client, ['whoami'])).toContain(admin.userName)
    expect(await done(client, ['roles', 'assign', 'bob', '--role', 'Ops', '--role', 'Night'])).toContain('assigned')
    expect(await done(client, ['roles', 'show', 'bob'])).toContain('[Deploy,Ops,Night]')
    expect(await done(client, ['roles', 'unassign', 'bob', '--role', 'Ops'])).toContain('unassigned')
    expect(await done(client, ['roles', 'show', 'bob'])).toContain('[Deploy,Night]')
    expect((await client.svc(['roles', 'assign', 'nobody', '--role', 'Ops'])).code).toBe(9)
    await done(client, ['logout'])
    expect((await client.svc(['roles', 'show', 'bob', '--server', server.url])).code).toBe(4)
    expect((await client.svc(['whoami', '--server', server.url])).code).not.toBe(0)

    // A token is lent to one command, and a key acts without a sign-in.
    const lend = ['login', '--server', server.url, '-u', admin.userName, '--password-stdin', '--']
    const command = [process.execPath, client.program, 'roles', 'show', 'bob']
    expect(await done(client, [...lend, ...command], { stdin: admin.password })).toContain('[Deploy,Night]')
    const key = (await done(place, ['keys', 'create', 'boss', '--user', admin.userName, ...store])).trim()
    const withKey = { env: { SVC_TOKEN: key } }
    expect(await done(client, ['roles', 'show', 'bob', '--server', server.url], withKey)).toContain('[Deploy,Night]')
    expect((await client.svc(login, { stdin: 'wrong' })).code).toBe(4)
  })

  type Listed = {
    readonly MonitorName: string
    readonly Checks: readonly { readonly Name: string; readonly Depth: string }[]
    /** Version 0.1 did not list it. */
    readonly DependsOn?: readonly string[]
  }
  type Verdict = {
    readonly valid: boolean
    readonly file: string
    readonly types: unknown
    readonly warnings: readonly string[]
  }
  type Plan = { readonly type: string; readonly monitors: readonly Listed[] }

  test('O8 a role for a time at a server of 0.1, which knows no ends, is taken back at once, with exit 9', async () => {
    const client = home('this version')
    const { place, server } = servers['0.1']
    const of = ['--store', join(place.folder, 'server', 'svc.db')]
    await done(place, ['users', 'add', 'Dora', '--no-password', '--role', 'Ops', ...of])
    const login = ['login', '--server', server.url, '-u', admin.userName, '--password-stdin', '--insecure-storage']
    await done(client, login, { stdin: admin.password })
    const assign = (...args: readonly string[]) => client.svc(['roles', 'assign', 'Dora', ...args])
    const refused = await assign('--role', 'Deploy', '--role', 'Ops', '--for', '2h')
    expect([refused.code, refused.stderr]).toEqual([
      9,
      expect.stringContaining('did not confirm the end, so svc took "Deploy" back from Dora'),
    ])
    const roles = await done(client, ['roles', 'show', 'Dora'])
    expect(roles).toContain('[Ops]')
    // What was held before stays.
    const nothing = await assign('--role', 'Ops', '--until', '2099-01-01T00:00Z')
    expect([nothing.code, nothing.stderr]).toEqual([9, expect.stringContaining('Dora keeps the roles as they were')])
    expect(await done(client, ['roles', 'show', 'Dora'])).toBe(roles)
    expect((await assign('--role', 'Deploy', '--permanent')).code).toBe(0)
    const back = await client.svc(['roles', 'give-back', 'Ops'])
    expect(back.code).toBe(9)
  })

  test('a svc.yaml of 0.1 with each kind is valid here too, and has the same monitors with at least the same checks', async () => {
    const [before, now] = [home('0.1'), home('this version')]
    const file = join(before.folder, 'svc.yaml')
    // This version refuses a minimum that would fail before it warns, which 0.1 took.
    const content = String(git('show', everyKind)).replace(
      'records: {warn: 4, limit: 8}',
      'records: {warn: 8, limit: 4}',
    )
    writeFileSync(file, content, { mode: 0o600 })
    const at = ['--config', file]
    // Running programs is off here, and this version calls no monitor valid that cannot run.
    const withoutPrograms = join(before.folder, 'without-programs.yaml')
    writeFileSync(withoutPrograms, content.replace(/^ *- \{kind: exec,.*\n/gm, ''), { mode: 0o600 })
    const runnable = ['--config', withoutPrograms]
    const [validBefore, validNow, plansBefore, plansNow] = await Promise.all([
      json<Verdict>(before, ['monitors', 'validate', ...runnable]),
      json<Verdict>(now, ['monitors', 'validate', ...runnable]),
      json<readonly Plan[]>(before, ['monitors', 'list', '-m', 'Advanced', ...at]),
      json<readonly Plan[]>(now, ['monitors', 'list', '-m', 'Advanced', ...at]),
    ])
    expect(validBefore).toMatchObject({ valid: true })
    // The sentences may differ, and this version also warns of files that are missing.
    const places = ({ warnings }: Verdict) => warnings.map((warning) => /:\d+:\d+:/.exec(warning)?.[0])
    const facts = ({ valid, file, types }: Verdict) => ({ valid, file, types })
    expect(facts(validNow)).toEqual(facts(validBefore))
    expect(places(validNow)).toEqual(expect.arrayContaining(places(validBefore)))
    expect(validNow.warnings.length).toBeGreaterThan(10)
    const whole = await now.svc(['monitors', 'validate', ...at])
    expect([whole.code, whole.stderr]).toEqual([12, expect.stringMatching(/ cannot run `exec raid`: /)])
    expect(JSON.stringify(plansBefore)).toContain('sqlserver')
    const withoutChecks = (plans: readonly Plan[]) =>
      plans.map((plan) => ({
        ...plan,
        monitors: plan.monitors.map(({ Checks: _, DependsOn: __, ...monitor }) => monitor),
      }))
    expect(withoutChecks(plansNow)).toEqual(withoutChecks(plansBefore))
    const checks = (plans: readonly Plan[]) =>
      plans.flatMap(({ type, monitors }) =>
        monitors.flatMap(({ MonitorName, Checks }) =>
          Checks.map(({ Name, Depth }) => [type, MonitorName, Name, Depth].join(' / ')),
        ),
      )
    const names = new Set(checks(plansNow))
    expect(checks(plansBefore).length).toBeGreaterThan(300)
    // 0.1 listed these although it never ran them without their threshold.
    const listedOnly = [
      'Qc / process file-qc process / memory / Standard',
      'Qc / process file-qc process / cpu / Standard',
      'Agents / heartbeat backup / backlog / Advanced',
    ]
    // 0.1 listed these also for a URL without TLS.
    const certificates = [
      ...['Batch / http one queue', 'Batch / rabbitmq bus'],
      ...['licence', 'tasks', 'web', 'workers'].map((name) => `Qc / http file-qc ${name}`),
      ...['active jobs', 'failed jobs', 'machines', 'online', 'services', 'stores', 'version'].map(
        (name) => `XcodeV / http west ${name}`,
      ),
    ].map((monitor) => `${monitor} / certificate / Advanced`)
    // 0.1 listed these at their usual depth, whatever `judgeFrom` said.
    const judgedInBasic = [
      ...['content', 'header', 'json', 'measure', 'version', 'xml'].map((name) => `App / http shop / ${name}`),
      'XcodeV / http west online / json',
    ]
    const elsewhereNow = {
      'Batch / redis queue / cluster / Advanced': 'Batch / redis queue / cluster / Standard',
      // Standard warns of a dead address, and Advanced checks each by itself.
      'App / tls shop / addresses / Standard': 'App / tls shop / addresses / Advanced',
      ...Object.fromEntries(judgedInBasic.map((check) => [`${check} / Standard`, `${check} / Basic`])),
    }
    const missing = checks(plansBefore).filter((check) => !names.has(check))
    expect(missing.toSorted()).toEqual([...listedOnly, ...certificates, ...Object.keys(elsewhereNow)].toSorted())
    for (const check of Object.values(elsewhereNow)) expect(names).toContain(check)
  })

  test('each example of the pages of 0.1 is valid here too, and those with mistakes are refused at the same place', async () => {
    const [before, now] = [home('0.1'), home('this version')]
    const pages = ['docs/svc.yaml.md', 'docs/agents.md', 'docs/serve.md'].map((page) =>
      String(git('show', `${version01}:${page}`)),
    )
    const examples = pages
      .flatMap((page) =>
        [...page.matchAll(/^```yaml( wrong)?\n([\s\S]*?)^```$/gm)].map(([, invalid, content = ''], at) => ({
          // Only a file of root may allow programs, so a file of another account is refused with it.
          invalid: invalid !== undefined || content.startsWith('exec:'),
          content,
          name: `${pages.indexOf(page)}-${at}.yaml`,
        })),
      )
      .filter(({ content }) => /^(?:types|serve|profiles|exec):/m.test(content))
    const folder = join(before.folder, 'examples')
    mkdirSync(folder, { mode: 0o700 })
    const verdict = async (of: Home, name: string) => {
      const { code, stdout } = await of.svc(['monitors', 'validate', '--json', '--config', join(folder, name)])
      return { code, answer: JSON.parse(stdout) as unknown }
    }
    for (const { name, content } of examples) writeFileSync(join(folder, name), content, { mode: 0o600 })
    const good = examples.filter(({ invalid }) => !invalid)
    expect(good.length).toBeGreaterThan(14)
    const verdicts: Awaited<ReturnType<typeof verdict>>[] = []
    for (let from = 0; from < good.length; from += 4) {
      const some = good.slice(from, from + 4)
      verdicts.push(...(await Promise.all(some.map(({ name }) => verdict(now, name)))))
    }
    const valid = { code: 0, answer: { valid: true } }
    // Running programs is off here, and this version calls no monitor valid that cannot run.
    const cannotRun = { code: 12, answer: { error: { message: expect.stringContaining(' cannot run `exec ') } } }
    for (const [index, result] of verdicts.entries()) {
      expect(result).toMatchObject(good[index]?.content.includes('kind: exec') ? cannotRun : valid)
    }
    const refused = examples.filter(({ invalid }) => invalid)
    expect(refused).toHaveLength(2)
    for (const { name } of refused) {
      const [then, today] = await Promise.all([verdict(before, name), verdict(now, name)])
      expect(then.code).not.toBe(0)
      expect(today.code).toBe(then.code)
      // The words may become better; the place of the mistake and its class stay.
      const placeOf = ({ answer }: typeof then) => {
        const { error } = answer as { readonly error: { readonly code: string } }
        return [error.code, JSON.stringify(error).match(/:\d+:\d+(?=: )|\b\d+:\d+\b/g)]
      }
      expect(placeOf(today)).toEqual(placeOf(then))
      expect(placeOf(then)[1]).not.toBeNull()
    }
  })

  test('a store of 0.1 is opened without loss, and 0.1 then reports that it belongs to a newer version', async () => {
    const before = home('0.1')
    const first = await startServe(before, 'types: {}\n')
    onTestFinished(async () => void (await first.stop()))
    const file = join(before.folder, 'server', 'svc.db')
    const store = ['--store', file]
    await done(before, ['users', 'add', 'bob', '--password-stdin', '--email', 'bob@example.com', ...store], {
      stdin: 'copper-window-17',
    })
    await done(before, ['users', 'add', 'robot', '--no-password', '--role', 'Deploy', ...store])
    await done(before, ['users', 'disable', 'robot', '--reason', 'not now', ...store])
    await done(before, ['roles', 'assign', 'bob', '--role', 'Ops', '--permission', 'read', '--local', ...store])
    const key = (await done(before, ['keys', 'create', 'boss', '--user', admin.userName, ...store])).trim()
    await done(before, ['heartbeat', 'encoder', '--message', 'busy', '--backlog', '3', '--local', ...store])
    const login = ['login', '--server', first.url, '-u', admin.userName, '--password-stdin', '--insecure-storage']
    await done(before, login, { stdin: admin.password })

    const lists = [
      ['users', 'list'],
      ['keys', 'list'],
      ['heartbeats', 'list'],
      ['audit', 'list'],
      ['roles', 'show', 'bob', '--local'],
      ['roles', 'holders', 'Ops'],
    ]
    const listed = async (of: Home): Promise<unknown> => {
      const texts = await Promise.all(lists.map((list) => done(of, [...list, ...store, '--json'])))
      // Digest secrets and passwords that must be changed are new, and nobody of then has one.
      const changing = /"ageSeconds":\d+,|,"digest":null|,"mustChangePassword":false/g
      return texts.map((text) => JSON.parse(text.replaceAll(changing, '')) as unknown)
    }
    await first.stop()
    const then = await listed(before)
    expect(JSON.stringify(then)).toContain('bob@example.com')
    const now = upgraded(before)
    expect(await listed(now)).toEqual(then)

    // The session goes on, and so do the key and the passwords.
    const second = await startServe(now, 'types: {}\n', [], first.port)
    onTestFinished(async () => void (await second.stop()))
    expect(await done(now, ['roles', 'show', 'bob'])).toContain('[Ops]')
    const withKey = { env: { SVC_TOKEN: key } }
    expect(await done(now, ['roles', 'show', 'bob', '--server', second.url], withKey)).toContain('[Ops]')
    const bob = ['login', '--server', second.url, '-u', 'bob@example.com', '--password-stdin', '--insecure-storage']
    await done(now, bob, { stdin: 'copper-window-17' })
    await second.stop()

    const refused = await before.svc(['users', 'list', ...store])
    expect([refused.code, refused.stderr]).toEqual([
      12,
      expect.stringMatching(/was written by a newer svc \(schema \d+; known here: \d+\)/),
    ])
  }, 60_000)

  test('profiles, settings and the token of 0.1 are used here', async () => {
    const before = home('0.1')
    const { server } = servers['this version']
    const login = ['login', '--server', server.url, '--profile', 'prod', '-u', admin.userName]
    await done(before, [...login, '--password-stdin', '--insecure-storage'], { stdin: admin.password })
    await done(before, ['profile', 'add', 'spare', '--server', 'https://spare.example.com', '--credentials', 'always'])
    await done(before, ['config', 'set', 'credentials', 'always'])
    const now = upgraded(before)
    // 0.1 prints the rows without the document around them.
    const requests = [
      [['profile', 'list'], 'profiles'],
      [['profile', 'show', 'spare'], 'profiles'],
      [['whoami'], 'signIns'],
    ] as const
    for (const [request, things] of requests) {
      const then = await json<unknown>(before, request)
      const today = await json<Readonly<Record<string, unknown>>>(now, request)
      expect(today[things]).toEqual([then].flat())
    }
    type Rows = readonly { readonly key: string }[]
    const then = await json<Rows>(before, ['config', 'list'])
    // 0.1 shows only variables for these; this version shows what is in force without them.
    const isComparable = ({ key }: Rows[number]): boolean => !['store', 'config', 'home'].includes(key)
    expect(then.filter(isComparable).map(({ key }) => key)).toContain('server')
    expect((await json<{ readonly settings: Rows }>(now, ['config', 'list'])).settings).toEqual(
      expect.arrayContaining(then.filter(isComparable).map((row) => expect.objectContaining(row))),
    )
    expect(await done(now, ['roles', 'show', admin.userName])).toContain('[Admin]')
    expect(await done(now, ['health', '-m', 'Basic', '-t', 'Sql'])).toContain(server.url)
    await done(now, ['logout'])
  })
})
