import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { readLine } from '../../src/cli/help/completion/complete.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { isQuick } from '../support/suite/tier.ts'

const home = temporaryHome()
beforeAll(async () => {
  mkdirSync(join(home.folder, 'bin'))
  symlinkSync(home.program, join(home.folder, 'bin', 'svc'))
  writeFileSync(
    join(home.folder, 'svc.yaml'),
    `types:
  Sql:
    - {kind: tcp, name: orders, host: 127.0.0.1, port: 1, tags: [network]}
  App:
    - {kind: http, name: web shop, url: 'http://127.0.0.1:1/', token: {keychain: shop-token}}
notify:
  - {name: oncall, webhook: {url: 'http://127.0.0.1:1/'}}
  - {name: ops, webhook: {url: 'http://127.0.0.1:1/'}}
`,
    { mode: 0o600 },
  )
  for (const args of [
    ['users', 'add', 'alice', '--no-password', '--role', 'Ops', '--permission', 'orders:read'],
    ['users', 'add', 'bob', '--no-password'],
    ['keys', 'create', 'robot', '--user', 'bob'],
    ['profile', 'add', 'prod', '--server', 'https://svc.example.com:8443'],
  ]) {
    expect((await home.run(args)).code).toBe(0)
  }
})

const complete = async (line: string, env: Record<string, string> = {}): Promise<readonly string[]> => {
  const { code, stdout, stderr } = await home.run(['__complete', 'fish', line], { env })
  expect([code, stderr]).toEqual([0, ''])
  return stdout.split('\n').flatMap((one) => (one === '' ? [] : [one.split('\t', 1)[0] ?? '']))
}

describe('svc __complete', () => {
  test.each([
    ['svc hea', ['heartbeats', 'health', 'heartbeat']],
    ['svc monitors v', ['validate']],
    ['svc serve re', ['reload']],
    ['svc serve reload --pi', ['--pid']],
    ['svc health --mo', ['--mode']],
    ['svc health -m ', ['Basic', 'Standard', 'Advanced']],
    ['svc health --type=Sq', ['--type=Sql']],
    ['svc health -t Xc', ['XcodeV', 'XcodeC']],
    ['svc health -t Sql,A', ['Sql,App', 'Sql,AsgVast', 'Sql,Agents']],
    ['svc health --type=App,A', ['--type=App,AsgVast', '--type=App,Agents']],
    ['svc health Sq', ['Sql']],
    ['svc health al', ['all']],
    ['svc health App Sq', ['Sql']],
    ['svc health -o nagios --nagios-timeout u', ['unknown']],
    ['svc health -o n', ['ndjson', 'nagios']],
    ['svc health --profile ', ['prod']],
    ['svc health --only ', ['tcp orders', 'http web shop']],
    ['svc monitors test "http', ['http web shop']],
    ['svc impact "tcp', ['tcp orders']],
    ['svc impact tag', ['tag:network']],
    ['svc monitors kinds post', ['postgres']],
    ['svc notify test on', ['oncall']],
    ['svc drill --through on', ['oncall']],
    ['svc users show ', ['alice', 'bob']],
    ['svc roles holders ', ['Ops']],
    ['svc roles assign alice --permission o', ['orders:read']],
    ['svc keys revoke ', ['robot']],
    ['svc profile use ', ['prod']],
    ['svc completion ', ['bash', 'zsh', 'fish']],
    ['svc help e', ['exit-codes', 'environment']],
    ['cd /tmp && SVC_PROFILE=prod svc completion z', ['zsh']],
    ['svc health --ca-file ', [':files']],
    ['svc heartbeat nightly -- ', [':files']],
    ['svc nonsense ', []],
    ['svc users show alice ', []],
  ])('%s → %j', async (line, expected) => {
    const candidates = await complete(line)
    expect(candidates.filter((one) => !one.startsWith('-') || line.includes('-'))).toEqual(expected)
  })

  test('a flag that was given is not proposed again, unless it is repeatable', async () => {
    const flags = await complete('svc health --timeout 5s --type Sql --')
    expect(flags).toContain('--type')
    expect(flags).not.toContain('--timeout')
  })

  test('contacts no server, not even the one of the current profile', async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.destroy()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = server.address() as { readonly port: number }
      const env = { SVC_SERVER: `http://127.0.0.1:${port}`, SVC_TOKEN: 'secret-token' }
      for (const line of ['svc users show ', 'svc roles show ', 'svc health --only ', 'svc health -t ']) {
        expect((await complete(line, env)).length).toBeGreaterThan(0)
      }
      const database = { SVC_STORE: `postgres://svc@127.0.0.1:${port}/svc` }
      expect(await complete('svc users show ', database)).toEqual([])
    } finally {
      server.close()
    }
    expect(connections).toBe(0)
  })

  test('prints nothing and exits with 0 when a file cannot be read', async () => {
    const broken = join(home.folder, 'broken.yaml')
    writeFileSync(broken, 'types: [\n', { mode: 0o600 })
    expect(await complete('svc health --only ', { SVC_CONFIG: broken })).toEqual([])
    expect(await complete('svc users show ', { SVC_STORE: join(home.folder, 'svc.yaml') })).toEqual([])
    expect((await home.run(['__complete', 'ksh', 'svc '])).stdout).toBe('')
  })

  test('makes no store', async () => {
    const store = join(home.folder, 'missing', 'svc.db')
    expect(await complete('svc users show ', { SVC_STORE: store })).toEqual([])
    expect(home.files().some((file) => file.startsWith('missing'))).toBe(false)
  })
})

test.each([
  ['svc health -t S', { words: ['health', '-t'], current: 'S' }],
  ["svc monitors test 'http web", { words: ['monitors', 'test'], current: 'http web' }],
  ['svc monitors test http\\ web', { words: ['monitors', 'test'], current: 'http web' }],
  ['svc health; svc who', { words: [], current: 'who' }],
  ['sudo -u svcuser /usr/bin/svc users ', { words: ['users'], current: '' }],
])('the line %s is read as a shell reads it', (line, expected) => {
  expect(readLine(line)).toEqual(expected)
})

/** Each line that a shell completes starts svc in a process of its own: in the slow tier. */
if (!isQuick()) {
  const has = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0
  const env = (): Record<string, string> => ({
    ...home.env,
    PATH: `${join(home.folder, 'bin')}:${process.env.PATH ?? ''}`,
  })

  describe.skipIf(!has('bash'))('the script for bash', () => {
    /** The completions of a line in bash, by the function that the script registers. */
    const inBash = (line: string): readonly string[] => {
      const words = line.split(' ')
      const script = `source <(svc completion bash)
        COMP_LINE=$1; COMP_POINT=\${#1}; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        complete -p svc >/dev/null || exit 1
        _svc; printf '%s\\n' "\${COMPREPLY[@]}"`
      const text = execFileSync('bash', ['-c', script, 'bash', line, ...words], { env: env(), encoding: 'utf8' })
      return text.split('\n').filter((one) => one !== '')
    }

    test('completes commands, values of flags, and names with blanks and colons', () => {
      expect(inBash('svc monitors v')).toEqual(['validate'])
      expect(inBash('svc health -t S')).toEqual(['Sql'])
      expect(inBash('svc users show a')).toEqual(['alice'])
      expect(inBash('svc monitors test htt')).toEqual(['http\\ web\\ shop'])
      // bash replaces only what follows the colon.
      expect(inBash('svc roles assign alice --permission orders:r')).toEqual(['read'])
      expect(inBash('svc health --type=S')).toEqual(['Sql'])
    })

    test('completes names of files where a flag takes one', () => {
      expect(inBash(`svc health --config ${home.folder}/svc.y`)).toEqual([`${home.folder}/svc.yaml`])
    })

    test('has no mistake that bash can find', () => {
      const { status, stderr } = spawnSync('bash', ['-c', 'svc completion bash | bash -n'], {
        env: env(),
        encoding: 'utf8',
      })
      expect([status, stderr]).toEqual([0, ''])
    })
  })

  describe.each(['zsh', 'fish'])('the script for %s, in the shell', (shell) => {
    test.skipIf(!has(shell))('has no mistake that the shell can find', () => {
      const { status, stderr } = spawnSync('sh', ['-c', `svc completion ${shell} | ${shell} -n`], {
        env: env(),
        encoding: 'utf8',
      })
      expect([status, stderr]).toEqual([0, ''])
    })
  })
}

describe.each(['zsh', 'fish'])('the script for %s', (shell) => {
  test('passes the line up to the cursor to svc', async () => {
    const { code, stdout } = await home.run(['completion', shell])
    expect([code, stdout]).toEqual([0, expect.stringContaining(`svc __complete ${shell}`)])
  })
})

test('an unknown shell is exit 2', async () => {
  const { code, stderr } = await home.run(['completion', 'fihs'])
  expect([code, stderr]).toEqual([2, expect.stringContaining('Did you mean fish?')])
  expect((await home.run(['completion'])).code).toBe(2)
})
