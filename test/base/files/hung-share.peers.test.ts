import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type FuseShare, shareMissing, startShare } from '../../support/faults/share.ts'
import { type Home, svcHome } from '../../support/program/svc.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { childrenOf } from '../../support/servers/process-tree.ts'
import { freePort } from '../../support/servers/server.ts'
import { endsByDeadline } from '../../support/suite/deadline.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

/** Milliseconds of a monitor, and what its process may take beyond that and its own start. */
const deadline = 3_000
const grace = 1_000
/** Processes at a time. */
const atOnce = 4
/** Milliseconds after which a process counts as one that does not end: a busy machine may take seconds to start it. */
const patience = 60_000
vi.setConfig({ testTimeout: 5 * patience })

/** Monitors of the type App that read a path. `at` gives a path in the folder that is under test. */
const rows: Readonly<Record<string, (at: (name: string) => string) => string>> = {
  'deployment versionFile': (at) => `{kind: deployment, expected: 1.2.3, versionFile: ${at('version')}}`,
  'deployment expectedFile': (at) =>
    `{kind: deployment, expectedFile: ${at('version')}, versionFile: ${at('version')}}`,
  'deployment marker': (at) => `{kind: deployment, marker: ${at('absent')}}`,
  'tls caFile': (at) => `{kind: tls, host: localhost, port: 9, caFile: ${at('ca.pem')}}`,
  'http caFile': (at) => `{kind: http, url: 'https://localhost:9/', caFile: ${at('ca.pem')}}`,
  'process pidFile': (at) => `{kind: process, pidFile: ${at('pid')}}`,
  'redis password': (at) => `{kind: redis, url: 'redis://localhost:9', password: {file: ${at('password')}}}`,
  'http token': (at) => `{kind: http, url: 'http://localhost:9/', token: {file: ${at('password')}}}`,
  'sftp privateKey': (at) =>
    `{kind: sftp, host: localhost, username: u, hostKey: 'SHA256:${'A'.repeat(43)}', privateKey: {file: ${at('password')}}}`,
  'sqlite path': (at) => `{kind: sqlite, path: ${at('db')}}`,
  'file-age file': (at) => `{kind: file-age, path: ${at('version')}}`,
  'file-age folder': (at) => `{kind: file-age, path: ${at('in')}}`,
  'sqlite path, in Advanced': (at) => `{kind: sqlite, path: ${at('db')}}`,
  'sqlite backup, in Advanced': (at) => `{kind: sqlite, path: LOCAL/db, backup: ${at('version')}}`,
  'sqlite folder of backups, in Advanced': (at) => `{kind: sqlite, path: LOCAL/db, backup: ${at('in')}}`,
  'postgres pgbackrest, in Advanced': (at) => `{kind: postgres, url: 'POSTGRES', pgbackrest: ${at('version')}}`,
}

type Ran = { readonly code: number | null; readonly output: string; readonly ms: number }
/** The outcome of the run with this name. Throws the error of that run. */
type Outcomes = (name: string) => Ran

/** A command line that reads a file of the share, beside those that have a test of their own. */
type Command = {
  readonly args: (at: (name: string) => string, home: string) => readonly string[]
  readonly env?: (at: (name: string) => string) => Home['env']
  /** While the share answers: its exit code, or what it says. Absent: not run. */
  readonly well?: number | RegExp
  /** While it does not: what it says of the time, and its exit code. */
  readonly within?: string
  readonly code?: number
}
const https = ['--server', 'https://localhost:9']
const http = ['--server', 'http://localhost:9']
const basic = ['health', '-t', 'App', '-m', 'Basic']
const serve = ['serve', '--port', '0']
const ofHealth = [...serve, '--only', 'health']
const distant = 'postgres://svc@localhost:9/svc?sslmode=verify-full'
const commands: Readonly<Record<string, Command>> = {
  'svc.yaml': { args: (at) => [...basic, '--config', at('svc.yaml')], well: 3 },
  '--tls-cert of svc serve': {
    args: (at) => [...ofHealth, '--tls-key', '/etc/hostname', '--tls-cert', at('password')],
  },
  '--tls-key of svc serve': { args: (at) => [...ofHealth, '--tls-cert', '/etc/hostname', '--tls-key', at('password')] },
  'the password file of the first Admin': {
    args: (at, home) => [
      ...[...serve, '--store', join(home, 'first', 'svc.db')],
      ...['--bootstrap-admin', 'ann', '--bootstrap-password-file', at('password')],
    ],
  },
  'the store of a command': { args: (at) => ['users', 'list', '--store', at('store/svc.db')], well: /No store exists/ },
  'the store of svc serve': { args: (at) => [...serve, '--store', at('store/svc.db')] },
  '--ca-file of a client': {
    args: (at) => [...basic, ...https, '--ca-file', at('ca.pem')],
    env: (at) => ({ SVC_CA_FILE: at('ca.pem') }),
  },
  'SVC_CA_FILE of a client': { args: () => [...basic, ...https], env: (at) => ({ SVC_CA_FILE: at('ca.pem') }) },
  'the password file of a store in PostgreSQL': {
    args: () => ['users', 'list', '--store', distant],
    env: (at) => ({ SVC_STORE_PASSWORD_FILE: at('password') }),
  },
  'the CA of a store in PostgreSQL': {
    args: (at) => ['users', 'list', '--store', `${distant}&sslrootcert=${at('ca.pem')}`],
  },
  'the file of --data @FILE': { args: (at) => ['api', 'POST', '/x', ...http, '--data', `@${at('password')}`], well: 6 },
  ...Object.fromEntries(
    ['assign', 'unassign'].map((action): [string, Command] => [
      `the table of svc roles ${action} --from-file`,
      { args: (at) => ['roles', action, '--from-file', at('roles.csv'), ...http], well: 6 },
    ]),
  ),
  'the folder of svc heartbeat --disk': { args: (at) => ['heartbeat', 'agent', '--disk', at(''), ...http], well: 6 },
  ...Object.fromEntries(
    ['profile list', 'whoami', 'secrets list', 'logout --all', 'profile use other'].map((line): [string, Command] => [
      `the settings in the home folder, for svc ${line}`,
      { args: () => line.split(' '), env: (at) => ({ SVC_HOME: at('home') }), well: /^/ },
    ]),
  ),
  'the look at svc.yaml by svc config list': {
    args: (at) => ['config', 'list', '--config', at('svc.yaml')],
    within: '0.5 s',
    code: 0,
  },
  'the look at the store by svc config list': {
    args: (at) => ['config', 'list', '--store', at('store/svc.db')],
    within: '0.5 s',
    code: 0,
  },
}

peerSuite(shareMissing, 'H30 a share that does not answer', () => {
  let share: FuseShare
  let home: Home
  let postgres: PostgresServer | undefined
  beforeAll(async () => {
    if (postgresMissing === undefined) postgres = await startPostgres()
    share = await startShare()
    home = svcHome()
    const { real } = share
    mkdirSync(join(real, 'in'))
    mkdirSync(join(home.folder, 'in'))
    symlinkSync(join(share.point, 'version'), join(home.folder, 'in', 'linked'))
    for (const [name, text] of Object.entries({ version: '1.2.3', pid: String(process.pid), password: 'x' })) {
      writeFileSync(join(real, name), text, { mode: 0o600 })
    }
    writeFileSync(join(real, 'ca.pem'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
    writeFileSync(join(real, 'svc.yaml'), 'types: {App: [{kind: tcp, host: localhost, port: 9}]}', { mode: 0o600 })
    mkdirSync(join(real, 'store'), { mode: 0o700 })
    mkdirSync(join(real, 'home'), { mode: 0o700 })
    writeFileSync(join(real, 'roles.csv'), 'UserName,Roles\nann,Viewer\n', { mode: 0o600 })
    chmodSync(real, 0o700)
    const database = new DatabaseSync(join(real, 'db'))
    database.exec('CREATE TABLE t (a)')
    database.close()
    copyFileSync(join(real, 'db'), join(home.folder, 'db'))
    await share.mounts.shell(`mkdir ${share.mounts.folder}/pipes && cd ${share.mounts.folder}/pipes &&
      mkfifo version ca.pem pid password db in svc.yaml absent`)
  })
  afterAll(async () => {
    share.go()
    await share.remove()
    await postgres?.remove()
    home.remove()
  })

  /** Runs svc in these mounts. A process that does not end by itself is killed, and has no exit code. */
  async function svc(args: readonly string[], env: Home['env'] = {}): Promise<Ran> {
    const [file, all] = share.mounts.command(process.execPath, [home.program, ...args])
    const start = performance.now()
    const child = spawn(file, [...all], { env: { ...home.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
    const timer = setTimeout(() => child.kill('SIGKILL'), patience)
    await once(child, 'close')
    clearTimeout(timer)
    return { code: child.exitCode, output, ms: performance.now() - start }
  }
  /**
   * A run that takes at most so many milliseconds beyond what this machine takes for processes at the time: repeated
   * where it takes longer, because other work may begin between the two.
   */
  async function inTime(ms: number, run: () => Promise<Ran>): Promise<Ran> {
    for (let attempt = 1; ; attempt += 1) {
      const before = await svc(['version'])
      const ran = await run()
      const limit = 3 * before.ms + ms + grace
      if (ran.ms >= limit && attempt < 5) continue
      expect(ran.ms).toBeLessThan(limit)
      return ran
    }
  }
  /** Runs so many of them at a time, since nearly all of what one takes is waiting. What fails is left to its test. */
  async function several(runs: ReadonlyMap<string, () => Promise<Ran>>): Promise<Outcomes> {
    const outcomes = new Map<string, PromiseSettledResult<Ran>>()
    const left = runs.entries()
    const work = async (): Promise<void> => {
      for (const [name, run] of left) {
        const [outcome] = await Promise.allSettled([run()])
        outcomes.set(name, outcome)
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    return (name) => {
      const outcome = outcomes.get(name)
      if (outcome?.status === 'fulfilled') return outcome.value
      throw outcome?.reason ?? new Error(`${name} did not run`)
    }
  }
  /** The same while the share does not answer. */
  async function severalStopped(runs: ReadonlyMap<string, () => Promise<Ran>>): Promise<Outcomes> {
    await share.stop()
    try {
      return await several(runs)
    } finally {
      share.go()
    }
  }
  const yaml = (name: string, content: string): string => {
    const path = join(home.folder, `${name.replaceAll(/\W/g, '-')}.yaml`)
    writeFileSync(path, content, { mode: 0o600 })
    return path
  }
  /** A run of one monitor of App. `Standard` reads everything that is read without writing. */
  const health = (name: string, monitor: string) => {
    const mode = name.endsWith(', in Advanced') ? 'Advanced' : 'Standard'
    return svc([
      'health',
      '-t',
      'App',
      '-o',
      'tsv',
      '-m',
      mode,
      '--config',
      yaml(name, `types: {App: [${limited(monitor)}]}`),
    ])
  }
  const limited = (monitor: string): string =>
    monitor
      .replace(/\}$/, `, timeout: ${deadline}ms}`)
      .replace('LOCAL', home.folder)
      .replace('POSTGRES', postgres?.url('postgres') ?? '')
  const silence = (): string => `the share ${share.point} (fuse from ${share.real}) did not answer within`

  const on = (place: string) => (name: string) => () => health(name, rows[name]?.((file) => join(place, file)) ?? '')
  const each = (
    names: readonly string[],
    runOf: (name: string) => () => Promise<Ran>,
  ): ReadonlyMap<string, () => Promise<Ran>> => new Map(names.map((name) => [name, runOf(name)]))

  describe('of a monitor', () => {
    const names = Object.keys(rows)
    let well: Outcomes
    let hung: Outcomes
    let pipe: Outcomes
    beforeAll(async () => {
      const limitedOn = (place: string) => (name: string) => () => inTime(deadline, on(place)(name))
      well = await several(each(names, on(share.point)))
      hung = await severalStopped(each(names, limitedOn(share.point)))
      pipe = await several(each(names, limitedOn(join(share.mounts.folder, 'pipes'))))
    }, 10 * patience)

    test.each(names)('%s names no share while it answers, and the share when it does not, in time', (name) => {
      expect(well(name).output).not.toContain('the share')
      expect(hung(name).code).toBe(3)
      expect(hung(name).output).toContain(`${silence()} ${deadline / 1_000} s`)
    })

    test.each(names)('%s does not wait for a named pipe without a writer', (name) => {
      expect(pipe(name).code).not.toBeNull()
      expect(pipe(name).output).toMatch(/not a regular file|is neither a file nor a folder|is not a file|exists/)
    })
  })

  describe('of a command', () => {
    const names = Object.keys(commands)
    let well: Outcomes
    let hung: Outcomes
    beforeAll(async () => {
      const at = (name: string): string => join(share.point, name)
      const run = (name: string) => (): Promise<Ran> => {
        const { args = () => [], env } = commands[name] ?? {}
        return svc(args(at, home.folder), env?.(at))
      }
      well = await several(
        each(
          names.filter((name) => commands[name]?.well !== undefined),
          run,
        ),
      )
      hung = await severalStopped(each(names, (name) => () => inTime(5_000, run(name))))
    }, 10 * patience)

    test.each(Object.entries(commands))('%s', (name, { well: expected, within = '5 s', code = 12 }) => {
      if (typeof expected === 'number') expect(well(name).code).toBe(expected)
      else if (expected)
        expect(well(name)).toMatchObject({ code: expect.any(Number), output: expect.stringMatching(expected) })
      expect(hung(name).output).toContain(`${silence()} ${within}`)
      // A command that waits for ever is killed, and has no exit code.
      expect(hung(name).code).toBe(code)
    })
  })

  describe('outside of monitors', () => {
    test('svc.yaml as a named pipe', async () => {
      const path = join(share.mounts.folder, 'pipes', 'svc.yaml')
      const ran = await svc(['health', '-t', 'App', '-o', 'tsv', '--config', path])
      expect(ran.output).toContain('is not a regular file')
      expect(ran.code).toBe(12)
    })

    test('ctrl-C ends the wait for the file of --data @FILE', async () => {
      const request = ['api', 'POST', '/x', '--server', 'http://localhost:9']
      const data = ['--data', `@${join(share.point, 'password')}`]
      const [program, args] = share.mounts.command(process.execPath, [home.program, ...request, ...data])
      await share.stop()
      onTestFinished(() => share.go())

      const command = spawn(program, [...args], { env: home.env, stdio: ['ignore', 'ignore', 'pipe'] })
      let output = ''
      command.stderr.on('data', (chunk) => (output += String(chunk)))
      // It waits as soon as its reader process runs.
      await until(() => childrenOf(command.pid ?? 0).length > 0)
      command.kill('SIGINT')
      await once(command, 'close')
      expect(output).not.toContain('did not answer')
      expect(command.exitCode).toBe(130)
    })

    test('the names of the store while a command line is completed', async () => {
      await share.stop()
      onTestFinished(() => share.go())

      const line = `svc users show --store ${join(share.point, 'store', 'svc.db')} `
      const ran = await inTime(2_000, () => svc(['__complete', 'bash', line]))
      expect(ran.code).toBe(0)
    })

    test('caFile of an OpenID provider: its sign-in fails in time, and svc serve answers everything else', async () => {
      const config = yaml(
        'openid',
        `auth: {openid: [{name: idp, issuer: 'https://localhost:9', clientId: svc, caFile: ${join(share.point, 'ca.pem')}}]}`,
      )
      const at = await freePort()
      const [program, args] = share.mounts.command(process.execPath, [
        ...[home.program, 'serve', '--port', String(at), '--config', config],
        ...['--store', join(home.folder, 'openid', 'svc.db')],
      ])
      const serve = spawn(program, [...args], { env: home.env, stdio: ['ignore', 'ignore', 'pipe'] })
      let log = ''
      serve.stderr.on('data', (chunk) => (log += String(chunk)))
      const status = async (path: string): Promise<number> =>
        (await fetch(`http://127.0.0.1:${at}${path}`, { redirect: 'manual' })).status
      onTestFinished(async () => {
        share.go()
        serve.kill('SIGTERM')
        await once(serve, 'exit')
      })

      await until(() => log.includes('listens on'))
      await share.stop()
      const answers: string[] = []
      const signIn = status('/auth/idp').finally(() => answers.push('sign-in'))
      expect(await status('/livez').finally(() => answers.push('livez'))).toBe(200)
      expect(await endsByDeadline(5_000, signIn)).toBeGreaterThanOrEqual(400)
      expect(answers).toEqual(['livez', 'sign-in'])
    })

    test('a plug-in of exec, and the folder of plug-ins that the system allows', async () => {
      const { folder, shell } = share.mounts
      writeFileSync(join(share.real, 'check_it'), '#!/bin/sh\necho OK\n', { mode: 0o755 })
      // The svc.yaml of the system, which nobody else sees.
      await shell(`chmod 755 ${share.real} && cp -a /etc ${folder}/etc && mkdir -p ${folder}/etc/svc &&
        echo 'exec: {allow: [${share.point}]}' > ${folder}/etc/svc/svc.yaml && chmod 644 ${folder}/etc/svc/svc.yaml &&
        mount --bind ${folder}/etc /etc`)
      const monitor = `{kind: exec, command: ${join(share.point, 'check_it')}}`
      const well = await health('exec', monitor)
      expect(well.output).toMatch(/exec\tresult\tSuccess/)
      expect(well.code).toBe(0)
      await share.stop()
      onTestFinished(async () => {
        share.go()
        await shell(`umount /etc && chmod 700 ${share.real}`)
      })

      const hung = await inTime(deadline, () => health('exec', monitor))
      expect(hung.output).toContain(`${silence()} ${deadline / 1_000} s`)
      expect(hung.code).toBe(3)
    })

    test('svc serve and svc doctor warn of a store that may stop svc serve', async () => {
      const store = join(share.point, 'store', 'svc.db')
      const [program, args] = share.mounts.command(process.execPath, [
        home.program,
        'serve',
        '--port',
        '0',
        '--store',
        store,
      ])
      const serve = spawn(program, [...args], { env: home.env, stdio: ['ignore', 'ignore', 'pipe'] })
      let log = ''
      serve.stderr.on('data', (chunk) => (log += String(chunk)))
      onTestFinished(async () => {
        serve.kill('SIGTERM')
        await once(serve, 'exit')
      })

      await until(() => log.includes('listens on'))
      expect(log).toContain(`the store ${store} is on the share ${share.point} (fuse from ${share.real})`)
      const { output } = await svc(['doctor', '--store', store])
      expect(output).toContain(`it is on the share ${share.point} (fuse from ${share.real})`)
    })

    test('a key in a named pipe without a writer', async () => {
      const pipe = join(share.mounts.folder, 'pipes', 'password')
      const ran = await svc([
        'serve',
        '--only',
        'health',
        '--port',
        '0',
        '--tls-cert',
        '/etc/hostname',
        '--tls-key',
        pipe,
      ])
      expect(ran.output).toContain('is a pipe that did not end within 5 s')
      expect(ran.code).toBe(12)
    })

    test('a link in a local folder that leads to the share', async () => {
      const monitor = `{kind: file-age, path: ${join(home.folder, 'in')}}`
      expect((await health('linked', monitor)).code).toBe(0)
      await share.stop()
      onTestFinished(() => share.go())

      const ran = await health('linked', monitor)
      expect(ran.output).toContain(silence())
      expect(ran.code).toBe(3)
    })

    test('the file of a secret costs a run that does not need it half a second at most', async () => {
      const monitor = `{kind: redis, url: 'redis://localhost:9', password: {file: ${join(share.point, 'password')}}}`
      const config = yaml('unused', `types: {Mongo: [${monitor}], App: [{kind: tcp, host: localhost, port: 9}]}`)
      const args = ['health', '-t', 'App', '-m', 'Basic', '--config', config]
      const well = await svc(args)
      await share.stop()
      onTestFinished(() => share.go())

      const ran = await inTime(500, () => svc(args))
      expect(ran.code).toBe(well.code)
    })
  })

  test('in svc serve, a hundred runs lose no thread, and the other types stay healthy', {
    timeout: 900_000,
  }, async () => {
    const open = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    await once(open, 'listening')
    const port = (open.address() as { port: number }).port
    const file = (name: string): string => join(share.point, name)
    const monitors = `    - {kind: deployment, name: d, expected: 1.2.3, versionFile: ${file('version')}, timeout: 100ms}
    - {kind: process, name: p, pidFile: ${file('pid')}, timeout: 100ms}
    - {kind: sqlite, name: s, path: ${file('db')}, timeout: 100ms}
    - {kind: redis, name: r, url: 'redis://localhost:9', password: {file: ${file('password')}}, timeout: 100ms}
`
    // In turn: a stranger's next run of a type waits until the result of the last one is no longer valid.
    const onShare = ['App', 'Ftp', 'Batch', 'Identity', 'Qc', 'Mongo', 'Agents', 'FtpApi'] as const
    const config = yaml(
      'serve',
      `types:
${onShare.map((type) => `  ${type}:\n${monitors}`).join('')}  Sql: [{kind: tcp, host: localhost, port: ${port}}]
`,
    )
    const at = await freePort()
    const [program, args] = share.mounts.command(process.execPath, [
      ...[home.program, 'serve', '--only', 'health', '--port', String(at), '--config', config],
    ])
    const serve = spawn(program, [...args], { env: home.env, stdio: ['ignore', 'ignore', 'pipe'] })
    let log = ''
    serve.stderr.on('data', (chunk) => (log += String(chunk)))
    const ask = async (type: string): Promise<{ readonly status: number; readonly text: string }> => {
      const url = `http://127.0.0.1:${at}/healthcheck?ExecutionMode=Standard&ServerType=${type}`
      const answer = await fetch(url, { headers: { 'cache-control': 'no-cache' } })
      return { status: answer.status, text: await answer.text() }
    }
    onTestFinished(() => {
      share.go()
      serve.kill('SIGKILL')
      open.close()
    })

    await until(() => log.includes('listens on'))
    const pid = serve.pid ?? 0
    const threads = (): number => readdirSync(`/proc/${pid}/task`).length
    expect((await ask('Sql')).status).toBe(200)
    await ask('App')
    const before = threads()
    await share.stop()
    let children = 0
    for (let round = 0; round < 100; round += 1) {
      const { status, text } = await ask(onShare[round % onShare.length] ?? 'App')
      expect(status).toBe(503)
      if (round < onShare.length) expect(text).toContain('the share ')
      if (round % 10 === 0) expect(await ask('Sql')).toMatchObject({ status: 200 })
      children = Math.max(children, childrenOf(pid).length)
    }
    expect(threads()).toBeLessThanOrEqual(before)
    expect(children).toBeLessThanOrEqual(2)
    // None of its own threads waits for the share.
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      expect(readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8')).not.toMatch(/^State:\s+D/m)
    }
    share.go()
    // The reader process that was silent is replaced first.
    await until(async () => (await ask('App')).text.includes('1.2.3, as expected'), 180_000, 500)
    await share.stop()
    const answer = ask('App').catch(() => undefined)
    const exit = once(serve, 'exit')
    serve.kill('SIGTERM')
    await endsByDeadline(5_000, exit)
    expect(serve.exitCode).toBe(0)
    await answer
  })
})
