import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { onTerminal } from '../../tools/pages/terminal.ts'
import { isInstalled } from '../install/installed.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { peerSuite } from '../support/suite/peer.ts'

const prompt = 'READY> '

/** How an interactive shell starts with the completion of svc and this prompt, and the file that it reads then. */
const shells = {
  bash: {
    start: 'bash --noprofile --rcfile .rc -i',
    file: '.rc',
    lines: [`PS1='${prompt}'`, '. <(svc completion bash)'],
  },
  zsh: {
    start: 'zsh -i',
    file: '.zshrc',
    lines: ['autoload -Uz compinit', 'compinit -D -u', `PS1='${prompt}'`, '. <(svc completion zsh)'],
  },
  fish: {
    start: 'fish -i',
    file: '.config/fish/config.fish',
    lines: [`function fish_prompt; echo -n '${prompt}'; end`, 'set fish_greeting', 'svc completion fish | source'],
  },
} as const
type Shell = keyof typeof shells

const home = temporaryHome()
beforeAll(async () => {
  writeFileSync(
    join(home.folder, 'svc.yaml'),
    `types:
  Sql:
    - {kind: tcp, name: orders, host: 127.0.0.1, port: 1}
  App:
    - {kind: http, name: web shop, url: 'http://127.0.0.1:1/'}
`,
    { mode: 0o600 },
  )
  for (const args of [
    ['users', 'add', 'alice', '--no-password', '--role', 'Ops', '--permission', 'orders:read'],
    ['users', 'add', 'bob', '--no-password'],
    ['profile', 'add', 'prod', '--server', 'https://svc.example.com:8443'],
  ]) {
    expect((await home.svc(args)).code).toBe(0)
  }
  // Completes as svc does, and shows the words of every other command line.
  mkdirSync(join(home.folder, 'bin'))
  const script = `#!/bin/sh
case $1 in __complete | completion) exec '${process.execPath}' '${home.program}' "$@" ;; esac
# One write: the terminal would otherwise echo the next keys between the words.
words=$(printf '<%s>' "$@")
echo "WORDS$words"
`
  writeFileSync(join(home.folder, 'bin', 'svc'), script)
  chmodSync(join(home.folder, 'bin', 'svc'), 0o755)
})

/** The output of an interactive shell for these keys, each typed once the shell has shown the text before it. */
async function typed(shell: Shell, keys: readonly (readonly [after: string, keys: string])[]): Promise<string> {
  const { start, file, lines } = shells[shell]
  const folder = join(home.folder, shell)
  mkdirSync(join(folder, '.config', 'fish'), { recursive: true })
  writeFileSync(join(folder, file), `${lines.join('\n')}\n`)
  let screen = ''
  let next = 0
  const { output } = await onTerminal(start, {
    cwd: folder,
    env: {
      ...home.env,
      HOME: folder,
      ZDOTDIR: folder,
      PATH: `${join(home.folder, 'bin')}:${home.env['PATH'] ?? ''}`,
      LC_ALL: 'C.UTF-8',
    },
    timeoutMs: 20_000,
    answer: (text) => {
      screen += text
      const step = keys[next]
      if (step === undefined || !screen.includes(step[0])) return undefined
      next += 1
      screen = ''
      return step[1]
    },
  })
  return output
}

/** The words that the command has after the line was completed with Tab and entered. */
async function completed(shell: Shell, line: string): Promise<string | undefined> {
  const output = await typed(shell, [
    [prompt, `${line}\t\r`],
    ['WORDS', 'exit\r'],
  ])
  return /WORDS((?:<[^>\n]*>)+)/.exec(output)?.[1]
}

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  peerSuite(isInstalled(shell) ? undefined : `${shell} is not installed`, `Tab in an interactive ${shell}`, () => {
    test.each([
      ['svc monitors vali', '<monitors><validate>'],
      ['svc health Sq', '<health><Sql>'],
      ['svc health -t Sql,Ap', '<health><-t><Sql,App>'],
      ['svc health --type=Sq', '<health><--type=Sql>'],
      ['svc health -m Adv', '<health><-m><Advanced>'],
      ['svc health --profile pr', '<health><--profile><prod>'],
      ['svc health --only tcp', '<health><--only><tcp orders>'],
      ['svc monitors test htt', '<monitors><test><http web shop>'],
      ['svc users show ali', '<users><show><alice>'],
      ['svc roles assign alice --permission orders:r', '<roles><assign><alice><--permission><orders:read>'],
      ['svc health --config ../svc.ya', '<health><--config><../svc.yaml>'],
      ['svc health --config=../svc.ya', '<health><--config=../svc.yaml>'],
    ])('completes %j to the words %s', { timeout: 30_000 }, async (line, words) => {
      expect(await completed(shell, line)).toBe(words)
    })

    test('lists the users, and no description where there is none', { timeout: 30_000 }, async () => {
      const output = await typed(shell, [
        // bash lists at the second Tab.
        [prompt, `svc users show ${shell === 'bash' ? '\t\t' : '\t'}`],
        // Ctrl-U clears the line. Ctrl-C would make the terminal drop the keys behind it.
        ['bob', '\u0015exit\r'],
      ])
      expect(output).toMatch(/alice +bob/)
      expect(output).not.toMatch(/bob +--/)
    })
  })
}
