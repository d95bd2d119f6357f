import { spawnSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Home, Ran } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import {
  type Dialect,
  password,
  type ServerOptions,
  type SignInServer,
  signInServer,
  user,
} from '../support/simulated/sign-in-server.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { isQuick } from '../support/suite/tier.ts'

async function context(dialect: Dialect = 'rotating', more: Partial<ServerOptions> = {}) {
  const server = await signInServer({ dialect, ...more })
  const home = temporaryHome()
  onTestFinished(server.close)
  const name = server.url.replace('http://', '')
  return { server, home, name }
}
const inFile = (server: SignInServer): readonly string[] => [
  ...['login', '--server', server.url, '-u', user, '--password-stdin', '--insecure-storage'],
]
const credentialFile = (home: Home): string => {
  const folder = join(home.folder, 'credentials')
  return join(folder, readdirSync(folder)[0] ?? '')
}
const all = ({ stdout, stderr }: Ran): string => `${stdout}${stderr}`

describe('svc login without a keychain', () => {
  test('K3 refuses with exit 11 before it reads the password, and names three remedies', async () => {
    const { server, home } = await context()
    const ran = await home.run(['login', '--server', server.url, '-u', user, '--password-stdin'], { stdin: password })
    expect(ran.code).toBe(11)
    expect(ran.stderr).toMatch(/SVC_TOKEN=….*\n.*--insecure-storage.*\n.*-- bash/)
    for (const remedy of ['--insecure-storage', '-- bash']) {
      expect(ran.stderr).toContain(`svc login --server ${server.url} --user ${user} ${remedy}`)
    }
    expect(server.requests).toEqual([])
    expect(home.files()).toEqual([])
  })

  test('K3 --insecure-storage stores the token in a 0600 file of a 0700 folder, and reports that', async () => {
    const { server, home, name } = await context()
    const ran = await home.run(inFile(server), { stdin: `${password}\n` })
    expect(ran.code).toBe(0)
    const file = credentialFile(home)
    expect(ran.stdout).toContain(`Token stored in: ${file}`)
    expect(ran.stdout).toContain(
      `Profile ${name} is now the current one.\nAt this server: health, history, impact, silence, ack, nodes, doctor, heartbeat,`,
    )
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(join(home.folder, 'credentials')).mode & 0o777).toBe(0o700)
    expect(statSync(join(home.folder, 'config.json')).mode & 0o777).toBe(0o600)
    const [at] = server.alive()
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ server: server.url, user, at })
    expect(readFileSync(join(home.folder, 'config.json'), 'utf8')).not.toContain(at)
    // Only the sign-in itself was asked, with rotation, and afterwards what the server announces.
    expect(server.requests.map(({ path }) => path)).toEqual(['/auth/credentials', '/metadata/app.json'])
    expect(server.requests[0]?.body).toContain('"Meta":{"refresh":"rotate"}')
    const health = await home.run(['health', '-t', 'App', '--json'])
    expect(health.code).toBe(0)
  })

  test('K3 a file that others can read, a link and a folder that others can access are refused', async () => {
    const { server, home } = await context()
    await home.run(inFile(server), { stdin: password })
    const file = credentialFile(home)
    const refused = async (): Promise<void> => {
      const before = server.requests.length
      for (const args of [['whoami', '--verify'], inFile(server)]) {
        const ran = await home.run(args, { stdin: password })
        expect(ran.code).toBe(12)
        expect(ran.stderr).toMatch(/accessible to other accounts|symbolic link|is not a folder/)
      }
      expect(server.requests).toHaveLength(before)
    }
    chmodSync(file, 0o640)
    await refused()
    chmodSync(file, 0o600)
    chmodSync(join(home.folder, 'credentials'), 0o755)
    await refused()
    chmodSync(join(home.folder, 'credentials'), 0o700)
    renameSync(file, `${file}.real`)
    symlinkSync(`${file}.real`, file)
    await refused()
  })

  test('K5 settings that others can change are refused: they decide where a password goes', async () => {
    const { server, home } = await context()
    await home.run(inFile(server), { stdin: password })
    chmodSync(join(home.folder, 'config.json'), 0o666)
    const ran = await home.run(['health', '-t', 'App'])
    expect(ran.code).toBe(12)
    expect(ran.stderr).toContain('chmod 600')
  })

  test('P7 password and token appear in no output, whatever fails', async () => {
    const { server, home } = await context('old', { echoes: true })
    const invalid = 'Wr0ng-and-secret'
    for (const more of [[], ['--json'], ['--debug']]) {
      const ran = await home.run([...inFile(server), ...more], { stdin: invalid })
      expect(ran.code).toBe(4)
      expect(all(ran)).not.toContain(invalid)
      expect(all(ran)).toContain('rejects the sign-in (401)')
    }
    const variables = { SVC_TOKEN: 'svct_a-token-that-nobody-should-see-0001' }
    const refused = await home.run(['whoami', '--verify', '--json', '--debug', '--server', server.url], {
      env: variables,
    })
    expect(refused.code).toBe(4)
    expect(all(refused)).not.toContain('nobody-should-see')
    const odd = await home.run(['whoami', '--server', server.url, '--json'], { env: { SVC_TOKEN: 'two words' } })
    expect(odd.code).toBe(2)
    expect(all(odd)).not.toContain('two words')
    expect(home.files().filter((file) => file.startsWith('config'))).toEqual([])
  })

  test('C6 a server that returns a session and no token can be signed in to', async () => {
    const { server, home } = await context('session')
    expect((await home.run(inFile(server), { stdin: password })).code).toBe(0)
    const ran = await home.run(['whoami', '--verify', '--json'])
    expect(JSON.parse(ran.stdout)).toMatchObject({ signIns: [{ user, verified: true, roles: ['Admin'] }] })
    expect(server.requests.at(-1)?.headers).toMatchObject({ 'x-ss-id': server.alive()[0] })
    expect((await home.run(['logout'])).stdout).toContain('at the server: the token is revoked')
    expect(server.alive()).toEqual([])
  })

  test.each(['old', 'newer'] as const)(
    'C4 sign-in, renewal and sign-out work at a server of the kind "%s"',
    async (kind) => {
      const { server, home } = await context(kind)
      expect((await home.run(inFile(server), { stdin: password })).code).toBe(0)
      server.expire()
      const health = await home.run(['health', '-t', 'App', '--json'])
      expect(health.code).toBe(0)
      expect(server.rotations()).toBe(1)
      server.expire()
      const out = await home.run(['logout', '--json'])
      // The access token had expired: it was renewed, so that there was something to revoke.
      expect(JSON.parse(out.stdout)).toMatchObject({ signIns: [{ atServer: 'revoked', here: 'forgotten' }] })
      expect(server.alive()).toEqual([])
    },
  )

  test('A8 a second sign-in ends the first, on the server and here', async () => {
    const { server, home } = await context()
    await home.run(inFile(server), { stdin: password })
    const [first] = server.alive()
    await home.run(inFile(server), { stdin: password })
    expect(server.alive()).toHaveLength(1)
    expect(server.alive()).not.toContain(first)
    expect((await home.run(['whoami', '--verify'])).code).toBe(0)
  })
})

describe('missing values', () => {
  test('K7 without a terminal there is no prompt: exit 2 names the flag', async () => {
    const { server, home } = await context()
    const ask = async (...args: string[]) => await home.run(['login', ...args])
    expect(await ask()).toMatchObject({ code: 2, stderr: expect.stringContaining('--server is missing') })
    expect(await ask('--server', server.url)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--user is missing'),
    })
    const noPassword = await ask('--server', server.url, '-u', user, '--insecure-storage')
    expect(noPassword).toMatchObject({ code: 2, stderr: expect.stringContaining('--password-stdin') })
    const empty = await ask('--server', server.url, '-u', user, '--insecure-storage', '--password-stdin')
    expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining('standard input is empty') })
    expect(server.requests).toEqual([])
  })

  test('K5 SVC_TOKEN applies to the server that the call names, and login and logout refuse it', async () => {
    const { server, home, name } = await context()
    await home.run(inFile(server), { stdin: password })
    const [token = ''] = server.alive()
    const env = { SVC_TOKEN: token }
    for (const args of [inFile(server), ['logout']]) {
      const ran = await home.run(args, { stdin: password, env })
      expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('SVC_TOKEN is set') })
    }
    const current = await home.run(['whoami', '--verify'], { env })
    expect(current).toMatchObject({ code: 2, stderr: expect.stringContaining('no server is specified') })
    for (const args of [
      ['--server', server.url],
      ['--profile', name],
    ]) {
      const ran = await home.run(['whoami', '--verify', '--json', ...args], { env })
      expect(JSON.parse(ran.stdout)).toMatchObject({ signIns: [{ user, where: 'SVC_TOKEN' }] })
    }
    server.expire()
    const expired = await home.run(['whoami', '--verify', '--server', server.url], { env })
    expect(expired.code).toBe(4)
    // Neither renewed nor replaced by the stored sign-in.
    expect(server.rotations()).toBe(0)
    const empty = await home.run(['health', '-t', 'App'], { env: { SVC_TOKEN: '' } })
    expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining('SVC_TOKEN is set but empty') })
  })

  test('K5 a stored token goes to no other server, nor to another port', async () => {
    const { server, home } = await context()
    const other = await signInServer({ dialect: 'rotating' })
    onTestFinished(other.close)
    await home.run(inFile(server), { stdin: password })
    const ran = await home.run(['health', '-t', 'App', '--server', other.url])
    expect(ran.code).toBe(4)
    expect(other.requests).toHaveLength(1)
    expect(other.requests[0]?.headers.authorization).toBeUndefined()
    expect(other.requests[0]?.headers['x-ss-id']).toBeUndefined()
  })
})

describe('svc login -- COMMAND', () => {
  test('K3 stores nothing, lends the token to the command, exits with its code, and revokes the token', async () => {
    const { server, home } = await context()
    const line = 'echo "$SVC_TOKEN $SVC_SERVER"; exit 7'
    const args = ['login', '--server', server.url, '-u', user, '--password-stdin', '--', 'sh', '-c', line]
    const ran = await home.run(args, { stdin: password })
    expect(ran.code).toBe(7)
    expect(ran.stdout).toMatch(new RegExp(`^AT\\d+-x+ ${server.url}\n$`))
    expect(server.alive()).toEqual([])
    expect(home.files()).toEqual([])
  })

  test('K3 revokes the token of a command that is killed or cannot be started', async () => {
    const { server, home } = await context()
    const args = ['login', '--server', server.url, '-u', user, '--password-stdin', '--']
    const killed = await home.run([...args, 'sh', '-c', 'kill -9 $$'], { stdin: password })
    expect(killed.code).toBe(137)
    const missing = await home.run([...args, '/no/such/program'], { stdin: password })
    expect(missing.code).toBe(12)
    expect(server.requests.filter(({ path }) => path === '/auth/logout')).toHaveLength(2)
    expect(server.alive()).toEqual([])
  })
})

/** A terminal is a process of its own, and most of its time svc waits there: in the slow tier. */
if (!isQuick()) {
  suiteWith(
    spawnSync('script', ['--version']).status === 0 ? undefined : 'the program script is not installed',
    'on a terminal',
    () => {
      const asks = (server: SignInServer) => ['login', '--server', server.url, '-u', user, '--insecure-storage']

      test('P7 the password prompt does not echo', async () => {
        const { server, home } = await context()
        const ran = await home.terminal(asks(server), (output) =>
          output.includes('Password of') ? `${password}\r` : undefined,
        )
        expect(ran.code).toBe(0)
        expect(all(ran)).toContain('Signed in to')
        expect(all(ran)).not.toContain(password)
        expect(all(ran)).toMatch(/ icanon .* echo /s)
        expect(server.alive()).toHaveLength(1)
      })

      test('K7 the storage is tested before the first prompt', async () => {
        const { server, home } = await context()
        const ran = await home.terminal(['login', '--server', server.url], () => undefined)
        expect(ran.code).toBe(11)
        expect(all(ran)).toContain('the password was not requested')
        expect(all(ran)).not.toMatch(/User at|Password of/)
      })

      test.each([
        ['nothing listens', 'http://127.0.0.1:1', 6, 'refuses connections'],
        ['its name does not exist', 'https://nowhere.invalid', 6, 'nowhere.invalid'],
      ])('P7 no password is requested for a server where %s', async (_, url, code, says) => {
        const { home } = await context()
        const ran = await home.terminal(['login', '--server', url, '-u', user, '--insecure-storage'], () => undefined)
        expect(ran.code).toBe(code)
        expect(all(ran)).toContain(says)
        expect(all(ran)).not.toContain('Password of')
      })

      test.each([
        ['ctrl-C', '\x03'],
        ['ctrl-C after half a password', 'half\x03'],
        ['ctrl-D', '\x04'],
        ['SIGINT', { signal: 'SIGINT' as const }],
      ])('K7 %s at the prompt: exit 130, nothing stored, echo restored', async (_, typed) => {
        const { server, home } = await context()
        const ran = await home.terminal(asks(server), (output) => (output.includes('Password of') ? typed : undefined))
        expect(ran.code).toBe(130)
        expect(server.requests.filter(({ method }) => method !== 'GET')).toEqual([])
        expect(home.files().filter((file) => !/^(?:credentials|pid)$/.test(file))).toEqual([])
        expect(all(ran)).not.toContain('half')
        expect(all(ran)).toMatch(/ icanon .* echo /s)
      })
    },
  )
}

describe('profiles and settings', () => {
  test('a flag overrides the variable, which overrides the profile; an unknown profile is exit 2', async () => {
    const { server, home, name } = await context()
    await home.run(inFile(server), { stdin: password })
    const where = async (args: string[], env: Record<string, string> = {}) => {
      const ran = await home.run(['config', 'get', 'server', '--json', ...args], { env })
      return (JSON.parse(ran.stdout) as { settings: readonly { value: string; origin: string }[] }).settings[0]
    }
    expect(await where([])).toEqual({ key: 'server', value: server.url, origin: `profile ${name}` })
    await home.run(['profile', 'add', 'prod', '--server', 'https://prod.example.com/ops/'])
    expect(await where(['--profile', 'prod'])).toMatchObject({ value: 'https://prod.example.com/ops' })
    expect(await where([], { SVC_PROFILE: 'prod' })).toMatchObject({ value: 'https://prod.example.com/ops' })
    const variable = { SVC_SERVER: 'https://x.example.com' }
    expect(await where([], variable)).toMatchObject({ origin: 'SVC_SERVER' })
    expect(await where(['--profile', 'prod'], variable)).toMatchObject({ value: 'https://prod.example.com/ops' })
    const who = await home.run(['whoami', '--profile', 'prod', '--json'], { env: variable })
    expect(who.stdout).toContain('nobody is signed in at https://prod.example.com/ops')
    // A sign-in at SVC_SERVER names its profile.
    const again = inFile(server).filter((word) => word !== '--server' && word !== server.url)
    const env = { SVC_SERVER: server.url }
    const signedIn = await home.run([...again, '--profile', 'again'], { stdin: password, env })
    expect(signedIn).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Profile again is now the current one.'),
    })
    expect((await home.run(['profile', 'use', name])).code).toBe(0)
    const typo = await home.run(['whoami', '--profile', 'prdo'])
    expect(typo).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean prod?') })
    expect((await home.run(['whoami', '--local', '--json'])).stdout).toContain('"server":null')
    const both = await home.run(['whoami', '--local', '--profile', 'prod'])
    expect(both.code).toBe(2)
    const list = await home.run(['config', 'list', '--profile', 'prod'])
    expect(list.stdout).toMatch(/^server\thttps:\/\/prod\.example\.com\/ops\tprofile prod\t$/m)
    expect(list.stdout).toMatch(/^profile\tprod\t--profile\t$/m)
    await home.run(['config', 'set', 'credentials', 'always', '--profile', 'prod'])
    expect((await home.run(['config', 'get', 'credentials', '--profile', 'prod'])).stdout).toBe('always\n')
    // The token belongs to the server that gave it.
    const moved = await home.run(['config', 'set', 'server', 'https://evil.example.com'])
    expect(moved).toMatchObject({ code: 2, stderr: expect.stringContaining('svc logout') })
    expect((await home.run(['profile', 'remove', name])).code).toBe(2)
    expect((await home.run(['profile', 'remove', 'prod'])).code).toBe(0)
  })

  test('two commands that change the settings concurrently lose nothing', async () => {
    const { home } = await context()
    const names = ['a', 'b', 'c', 'd', 'e']
    await Promise.all(
      names.map((name) => home.run(['profile', 'add', name, '--server', `https://${name}.example.com`])),
    )
    const { profiles } = JSON.parse((await home.run(['profile', 'list', '--json'])).stdout) as {
      profiles: { name: string }[]
    }
    expect(profiles.map(({ name }) => name).sort()).toEqual(names)
    const { stdout } = await home.run(['profile', 'list', '--no-header'])
    expect(stdout.split('\n').sort()[1]).toBe('\ta\thttps://a.example.com\t')
  })

  test('damaged settings are exit 12 with the name of the file, and never count as empty', async () => {
    const { home } = await context()
    const file = join(home.folder, 'config.json')
    for (const text of ['{', '[]', '{"profiles":{"x":{"server":5}}}']) {
      writeFileSync(file, text, { mode: 0o600 })
      const ran = await home.run(['profile', 'list'])
      expect(ran).toMatchObject({ code: 12, stderr: expect.stringContaining(file) })
    }
  })
})
