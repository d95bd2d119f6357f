import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { repeatTargetFlags, targetFlagsOf } from '../../src/cli/render/hints.ts'
import { commands } from '../../src/registry.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { password, signInServer, user } from '../support/simulated/sign-in-server.ts'

const url = 'https://svc.example.com'

/** A home with a store that has an Admin, and with the current profile `prod`. */
async function homeWithProfile(): Promise<Home> {
  const home = temporaryHome()
  await home.run(['users', 'add', 'root', '--no-password', '--role', 'Admin'])
  await home.run(['profile', 'add', 'prod', '--server', url])
  await home.run(['profile', 'use', 'prod'])
  return home
}

const firstLine = (text: string): string => text.split('\n')[0] ?? ''

/** Every command that administers, with arguments that it accepts. */
const adminCommands: Readonly<Record<string, readonly string[]>> = {
  'users:list': ['users', 'list'],
  'users:show': ['users', 'show', 'root'],
  'users:add': ['users', 'add', 'bob', '--no-password'],
  'users:passwd': ['users', 'passwd', 'root', '--password-stdin'],
  'users:disable': ['users', 'disable', 'bob'],
  'users:enable': ['users', 'enable', 'bob'],
  'users:remove': ['users', 'remove', 'bob', '--yes'],
  'keys:create': ['keys', 'create', 'ci', '--user', 'root'],
  'keys:list': ['keys', 'list'],
  'keys:revoke': ['keys', 'revoke', 'ci'],
  'users:unlock': ['users', 'unlock', 'root'],
  'users:link': ['users', 'link', 'root', '--provider', 'https://login.example.com', '--subject', '1'],
  'users:unlink': ['users', 'unlink', 'root', '--provider', 'https://login.example.com'],
  'audit:list': ['audit', 'list'],
  'audit:head': ['audit', 'head'],
  'audit:verify': ['audit', 'verify'],
  'heartbeats:list': ['heartbeats', 'list'],
  'heartbeats:remove': ['heartbeats', 'remove', 'agent-7'],
  'roles:holders': ['roles', 'holders', 'Admin'],
  'roles:history': ['roles', 'history', 'root'],
}
const secretCommands: Readonly<Record<string, readonly string[]>> = {
  'secrets:list': ['secrets', 'list'],
  'secrets:set': ['secrets', 'set', 'orders', '--for', 'db1.internal:5432', '--stdin'],
  'secrets:remove': ['secrets', 'remove', 'orders'],
}

describe('a command that acts on this machine while a profile is current', () => {
  test('P70 a command that administers acts at the server, and at the store only if something names that', async () => {
    const home = await homeWithProfile()
    const label = join(home.folder, 'store', 'svc.db')
    const note = `On this machine, not at prod (${url}): the store ${label}`
    for (const args of Object.values(adminCommands)) {
      const there = await home.run(args, { stdin: 'correct horse battery' })
      expect([args.join(' '), there.stderr]).toEqual([args.join(' '), expect.stringContaining(`at ${url}`)])
      expect(there.stderr).not.toContain(label)
      const here = await home.run([...args, '--store', label], { stdin: 'correct horse battery' })
      expect([args.join(' '), firstLine(here.stderr)]).toEqual([args.join(' '), note])
    }
  })

  test('names the keychain when it uses secrets', async () => {
    const home = await homeWithProfile()
    for (const args of Object.values(secretCommands)) {
      const ran = await home.run(args, { stdin: 'correct horse battery' })
      expect(firstLine(ran.stderr)).toBe(`On this machine, not at prod (${url}): the OS keychain`)
    }
  })

  test('is one of the commands tested here', async () => {
    const acting = ['users', 'keys', 'audit', 'heartbeats', 'secrets']
    const ids = Object.keys(commands).filter(
      (id) => acting.includes(id.split(':')[0] ?? '') || /^roles:hol|^roles:his/.test(id),
    )
    expect(Object.keys({ ...adminCommands, 'audit:export': [], ...secretCommands }).sort()).toEqual(ids.sort())
  })

  test('prints no such line with --local, --quiet or --json', async () => {
    const home = await homeWithProfile()
    for (const flag of ['--local', '--quiet', '-q', '--json']) {
      for (const args of [
        ['users', 'list', '--store', join(home.folder, 'store', 'svc.db'), flag],
        ['secrets', 'list', flag],
      ]) {
        const ran = await home.run(args)
        expect([args, ran.code, ran.stderr]).toEqual([args, 0, ''])
      }
    }
  })

  test('names SVC_SERVER when that chose the server, without the password in its URL', async () => {
    const home = temporaryHome()
    await home.run(['users', 'add', 'root', '--no-password', '--role', 'Admin'])
    const store = join(home.folder, 'store', 'svc.db')
    const ran = await home.run(['users', 'list', '--store', store], {
      env: { SVC_SERVER: 'https://me:s3cret@svc.example.com' },
    })
    expect(firstLine(ran.stderr)).toMatch(/^On this machine, not at https:\/\/svc\.example\.com: the store \//)
    expect(ran.stderr).not.toContain('s3cret')
  })

  test('prints no such line without a profile, and still works with a damaged settings file', async () => {
    const home = temporaryHome()
    await home.run(['users', 'add', 'root', '--no-password', '--role', 'Admin'])
    expect((await home.run(['users', 'list'])).stderr).toBe('')
    const unknown = await home.run(['users', 'list', '--local'], { env: { SVC_PROFILE: 'nowhere' } })
    expect([unknown.code, unknown.stderr]).toEqual([0, ''])
  })
})

describe('svc login', () => {
  test('lists the commands that act at the server and those that never do', async () => {
    const server = await signInServer({ dialect: 'rotating' })
    const home = temporaryHome()
    onTestFinished(server.close)
    const args = ['login', '--server', server.url, '-u', user, '--password-stdin', '--insecure-storage']
    const { stdout } = await home.run(args, { stdin: password })
    expect(stdout).not.toContain('commands act there')
    const [, there = '', here = ''] = /^At this server: (.*)\nOn this machine: (.*)$/m.exec(stdout) ?? []
    const commandsOf = (list: string): readonly string[] => list.replace(/\..*/, '').split(', ').sort()
    const withServer: string[] = []
    for (const [id, load] of Object.entries(commands)) {
      const { flags } = await load()
      if (flags['server'] && !flags['server'].hidden) withServer.push(id.replace(':', ' '))
    }
    const expanded = commandsOf(there).flatMap((name) =>
      withServer.filter((one) => one === name || one.startsWith(`${name} `)),
    )
    // Signing in names its server itself, and profiles are kept here.
    expect(expanded.sort()).toEqual(withServer.filter((name) => !['login', 'profile add'].includes(name)).sort())
    for (const name of ['secrets', 'monitors', 'notify', 'serve']) {
      expect(commandsOf(here)).toContain(name)
    }
  })
})

describe('svc profile use', () => {
  test('lists the commands that act at the server and those that never do', async () => {
    const home = temporaryHome()
    await home.run(['profile', 'add', 'prod', '--server', url])
    const { stdout } = await home.run(['profile', 'use', 'prod'])
    expect(stdout).toMatch(
      /^Profile prod is now the current one: .*\nAt this server: health, .*users, .*\nOn this machine: secrets, /,
    )
  })
})

describe('a hint that suggests a command', () => {
  test('repeats --store, quoted for a shell', async () => {
    const home = temporaryHome()
    const store = join(home.folder, 'other store.db')
    await home.run(['users', 'add', 'root', '--no-password', '--store', store])
    const ran = await home.run(['users', 'show', 'rot', '--store', store])
    expect(ran.stderr).toContain(`svc users list --store '${store}' shows the users.`)
    const equals = await home.run(['keys', 'revoke', 'ci', `--store=${store}`])
    expect(equals.stderr).toContain(`svc keys list --store '${store}' shows the keys.`)
  })

  test('repeats --server and --ca-file, and --profile, for commands that have these flags', async () => {
    const home = temporaryHome()
    const one = await home.run(['roles', 'assign', 'bob', '--server', url, '--ca-file', 'a b.pem'])
    expect(one.stderr).toContain(`svc roles assign --server ${url} --ca-file 'a b.pem' bob --role ROLE`)
    expect(one.stderr).toContain(`svc roles show --server ${url} --ca-file 'a b.pem' bob`)
    const two = await home.run(['roles', 'unassign', 'bob', '--profile', 'prod'])
    expect(two.stderr).toContain('svc roles unassign --profile prod bob --role ROLE')
  })

  test('repeats exactly the flags that the suggested command has', async () => {
    for (const [id, load] of Object.entries(commands)) {
      const { flags } = await load()
      const declared = ['server', 'profile', 'local', 'store', 'config', 'ca-file', 'insecure-http'].filter(
        (name) => flags[name] && !flags[name].hidden,
      )
      // Elsewhere, --user names whom a command changes, not as whom it acts.
      if (id === 'login') declared.push('user')
      const expected = targetFlagsOf[id.replace(':', ' ')]
      if (expected) expect([id, [...expected].sort()]).toEqual([id, declared.sort()])
    }
    expect(Object.keys(targetFlagsOf).filter((id) => !(id.replace(' ', ':') in commands))).toEqual([])
  })

  test('P82 a remedy that a server sends names only commands that act at a server', async () => {
    const files = ['service', 'accounts', 'store/rows'].flatMap((wing) =>
      globSync(`src/core/${wing}/**/*.ts`).map((file) => readFileSync(file, 'utf8')),
    )
    const texts = files.flatMap((text) => text.match(/hints[:=\s][^;]*?\]/g) ?? [])
    const suggested = texts.flatMap((text) =>
      // svc serve is what answers.
      [...text.matchAll(/\bsvc (?!serve\b)([a-z]+)(?: ([a-z]+))?/g)].map(([, topic = '', name = '']) =>
        `${topic}:${name}` in commands ? `${topic}:${name}` : topic,
      ),
    )
    expect(suggested).toEqual(expect.arrayContaining(['heartbeats:remove', 'silence:end', 'history', 'users:passwd']))
    for (const id of new Set(suggested)) {
      expect([id, targetFlagsOf[id.replace(':', ' ')]?.includes('server')]).toEqual([id, true])
    }
  })

  test('repeats the --user of svc login alone, because elsewhere it names somebody else', () => {
    const hintOf = (command: string) => repeatTargetFlags('svc login', ['--user', 'deploy'], command)
    expect(['login', 'audit list', 'sessions list'].map(hintOf)).toEqual([
      'svc login --user deploy',
      'svc login',
      'svc login',
    ])
  })

  test('keeps a destination that the suggestion names', () => {
    const argv = ['--profile', 'prod', '--local', '--ca-file', 'ca.pem']
    expect(repeatTargetFlags('svc login --server https://a.example', argv)).toBe(
      'svc login --ca-file ca.pem --server https://a.example',
    )
    expect(repeatTargetFlags('svc roles and svc users show', ['--', '--store', 'x'])).toBe(
      'svc roles and svc users show',
    )
  })

  test('repeats --config for monitors', async () => {
    const home = temporaryHome()
    const config = join(home.folder, 'two types.yaml')
    const monitor = '[{kind: tcp, name: a, host: 127.0.0.1, port: 1}]'
    writeFileSync(config, `types:\n  App: ${monitor}\n  Sql: ${monitor}\n`, { mode: 0o600 })
    const ran = await home.run(['monitors', 'test', 'tcp a', '--config', config])
    expect(ran.code).toBe(2)
    expect(ran.stderr).toContain(`svc monitors test --config '${config}' "TYPE/KIND NAME"`)
  })

  test('never repeats a password of a URL', async () => {
    const home = temporaryHome()
    const server = await home.run(['roles', 'assign', 'bob', '--server', 'https://me:s3cret@svc.example.com/x'])
    expect(server.stderr).toContain('svc roles assign --server https://svc.example.com/x bob')
    const store = 'postgres://me:s3cret@127.0.0.1:1/svc?password=s3cret2'
    const refused = await home.run(['users', 'remove', 'bob', '--store', store])
    expect(refused.stderr).toContain('svc users remove --store postgres://127.0.0.1:1/svc bob --yes')
    expect(`${server.stderr}${refused.stderr}`).not.toContain('s3cret')
  })

  test('is the same with --json', async () => {
    const home = temporaryHome()
    const ran = await home.run(['roles', 'assign', 'bob', '--server', url, '--json'])
    expect(JSON.parse(ran.stdout).error.hints[0]).toBe(`svc roles assign --server ${url} bob --role ROLE`)
  })
})

describe('svc roles assign with a role that nobody holds', () => {
  test('assigns it and notes the nearest role, and notes nothing for a role that somebody holds', async () => {
    const home = temporaryHome()
    await home.run(['users', 'add', 'root', '--no-password', '--role', 'Admin'])
    await home.run(['users', 'add', 'bob', '--no-password'])
    const mistyped = await home.run(['roles', 'assign', 'bob', '--role', 'Admn'])
    expect(mistyped.code).toBe(0)
    expect(mistyped.stdout).toContain('Admn')
    expect(mistyped.stderr).toBe('Note: "Admn" is not a role of any user; did you mean "Admin"?\n')
    await home.run(['users', 'add', 'carol', '--no-password'])
    const assignment = await home.run(['roles', 'assign', 'carol', '--role', 'Admn', '--role', 'Admin'])
    expect(assignment.stderr).toBe('')
    const unlike = await home.run(['roles', 'assign', 'carol', '--role', 'Warehouse'])
    expect(unlike.stderr).toBe('')
    const near = await home.run(['roles', 'assign', 'bob', '--role', 'Warehuose'])
    expect(near.stderr).toContain('did you mean "Warehouse"?')
  })
})
