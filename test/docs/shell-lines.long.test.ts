import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Block, blocksOf, commandsOf, screenOf } from '../../tools/pages/page.ts'
import { healthScreen, localized } from '../../tools/pages/screen.ts'
import { openStage, root, type Stage } from '../../tools/pages/stage.ts'
import { onTerminal } from '../../tools/pages/terminal.ts'
import { isInstalled } from '../install/installed.ts'
import { suiteWith } from '../support/suite/peer.ts'

const pages = [
  'README.md',
  'docs/install.md',
  'docs/behavior.md',
  'docs/svc.yaml.md',
  'docs/serve.md',
  'docs/sign-in.md',
  'docs/audit.md',
  'docs/agents.md',
  'docs/clients.md',
  'docs/metrics.md',
  'docs/development.md',
  'docs/for-operators.md',
  'docs/for-pipelines.md',
  'docs/for-administrators.md',
  'docs/testing-alarms.md',
]

/** Blocks that cannot run on a test machine (```sh norun), by page and first line, and why. */
const notRun: Readonly<Record<string, string>> = {
  'docs/clients.md: curl -s --fail http://127.0.0.1:8790/openapi.json > openapi.json':
    'needs a generator from the package registry; test/interop/generators.peers.test.ts runs it',
  'docs/for-operators.md: svc health --server https://web1.example.com --server https://web2.example.com':
    'needs servers of those names; test/cli/fleet.long.test.ts asks real ones',
  'docs/install.md: sudo apt install ./svc_*_amd64.deb':
    'changes the system; test/install/deb.peers.test.ts uses dpkg --root',
  'docs/install.md: svc monitors discover | sudo tee /etc/svc/svc.yaml':
    'changes the system; test/checks/discover/discover.test.ts reads such a file',
  'docs/install.md: sudo systemd-sysusers': 'needs systemd as the first process of the machine',
  'docs/install.md: sudo -u svc svc users add alice --role Admin': 'needs the account that the service has',
  'docs/install.md: sudo systemctl edit svc': 'needs systemd as the first process of the machine',
  'docs/install.md: sudo systemctl daemon-reload': 'needs systemd as the first process of the machine',
  'docs/install.md: sudo svc drivers add sqlserver':
    'changes the system; test/install/drivers.long.test.ts adds one to a folder of its own',
  'docs/install.md: docker build -f deploy/container/Containerfile -t svc .': 'needs a container engine',
  'docs/install.md: docker run -d --name svc --read-only --tmpfs /tmp --cap-drop ALL -p 8790:8790 -v svc:/var/lib/svc \\':
    'needs a container engine',
  'docs/serve.md: sudo install -d -m 700 -o svc -g svc /var/backups/svc':
    'needs the account of the service; test/install/backup-lines.peers.test.ts runs it',
  'docs/serve.md: sudo systemctl stop svc': 'needs the service; test/install/backup-lines.peers.test.ts runs it',
  'docs/metrics.md: curl --unix-socket /run/svc/svc.sock http://localhost/metrics': 'needs the socket of the service',
  'docs/serve.md: curl --unix-socket /run/svc/svc.sock http://localhost/metrics': 'needs the socket of the service',
  'docs/serve.md: pg_dump --format=custom --file=svc.dump --host=db.example.com --username=svc --dbname=svc':
    'needs a server; test/store/dump.peers.test.ts runs these commands',
  'docs/clients.md: npx -p @servicestack/cli java-ref http://127.0.0.1:8790     # writes dtos.java':
    'needs a package index; test/interop/update.peers.test.ts runs the tool',
  'docs/sign-in.md: svc passwd                          # prompts for the current password, and twice for the new one':
    'changes the password that the other blocks need; test/cli/own-account.test.ts runs these commands',
  'docs/sign-in.md: svc users add scanner --digest --permission heartbeat':
    'prompts for two passwords; test/e2e/scripts/digest.txt runs these commands',
  'docs/sign-in.md: curl --digest -u scanner https://svc.example.com/auth               # for one request':
    'needs a server with auth.digest; test/interop/digest.peers.test.ts runs curl',
  'docs/install.md: npm uninstall --global @svc-cli/svc      # the npm package':
    'removes what the machine has installed',
  'docs/sign-in.md: svc login --server https://svc.example.com --provider corp               # in the browser of this machine':
    'needs an identity provider; test/cli/openid-login.long.test.ts runs it with one',
  'docs/svc.yaml.md: svc impact "Sql/postgres orders"     # or orders, or tag:network':
    'needs monitors with these names; test/cli/impact.test.ts runs the command',
  'docs/for-operators.md: svc init': 'proposes whatever listens on the machine; test/cli/init.test.ts runs it',
  'docs/for-operators.md: svc monitors validate && svc serve reload':
    'needs a mail server; test/cli/notify.test.ts has one, and test/cli/serve-reload.test.ts runs the reload',
  'docs/for-pipelines.md: set -o pipefail': 'jq may be missing; test/cli/health-output.test.ts has the document',
  'docs/for-pipelines.md: svc monitors validate --config ci/svc.yaml': 'needs the file of the project',
  'docs/for-pipelines.md: export SVC_TOKEN=…                                    # a key: svc keys create':
    'needs a server with a key; docs/sign-in.md runs these lines with one',
  "docs/for-pipelines.md: curl --fail 'https://svc.example.com/healthcheck?ExecutionMode=Standard&ServerType=App&format=json'":
    'needs a server; docs/serve.md runs the line at one',
  'docs/for-administrators.md: svc serve --host 0.0.0.0 --allowed-host svc.example.com --tls-cert chain.pem --tls-key key.pem':
    'needs a certificate; docs/serve.md makes one and runs the line',
  'docs/for-administrators.md: svc users add bob': 'prompts for his password; docs/sign-in.md runs these lines',
  'docs/for-administrators.md: svc users add viewer --permission health': 'prompts for a password',
  'docs/testing-alarms.md: svc notify test ops': 'needs a receiver; test/cli/notify.test.ts has some',
  'docs/testing-alarms.md: svc drill --through ops': 'needs a receiver; test/cli/drill.test.ts runs these commands',
  'docs/testing-alarms.md: svc serve --rehearse drill.yaml --port 8791':
    'needs a script; test/cli/rehearse.test.ts runs the command',
  'docs/audit.md: svc roles holders Admin --at 7d             # seven days ago; also 2026-11-01, or 2026-11-01T18:00Z':
    'needs a store that is a week old; test/cli/audit.test.ts runs these commands',
}

/** Lines that are meant to end with another code than 0, by the line without its comment. */
const exits: Readonly<Record<string, readonly number[]>> = {
  // The example's worker refuses connections.
  'svc health': [3],
  'svc health --mode Advanced': [3],
  'svc health --server http://127.0.0.1:8790': [3],
  'svc health --only worker -v': [3],
  // 1 is a warning: a test machine is busy.
  'svc health --type App --require-config --output nagios': [0, 1],
  // Without a keychain, as on most test machines.
  'svc secrets set orders-db --for db1.internal:5432': [0, 11],
  'svc secrets remove orders-db': [0, 11],
}

/** The files that a page has its reader type, or another program write, before its lines. */
const files: Readonly<Record<string, string>> = { 'deploy.sh': '#!/bin/sh\n' }

const read = (page: string): string => readFileSync(join(root, page), 'utf8')
const isShell = ({ language }: Block): boolean => language === 'sh'
const missing =
  process.platform === 'linux'
    ? ['script', 'curl', 'jq', 'openssl']
        .filter((name) => !isInstalled(name) && name !== 'openssl')
        .map((name) => `${name} is not installed`)[0]
    : 'the pages name the folders of Linux'

describe('the shell blocks of the pages', () => {
  const blocks = pages.flatMap((page) => blocksOf(read(page)).map((block) => ({ page, ...block })))

  test('each is run, or says that it is not, with a reason here', () => {
    const shells = blocks.filter(({ language }) => /^(?:sh|bash|shell|console)$/.test(language))
    expect(shells.filter(({ language }) => language !== 'sh')).toEqual([])
    const left = shells.filter(({ attribute }) => attribute !== '')
    expect(left.filter(({ attribute }) => attribute !== 'norun')).toEqual([])
    const keys = left.map(({ page, content }) => `${page}: ${content.split('\n')[0]}`)
    expect(keys.toSorted()).toEqual(Object.keys(notRun).toSorted())
  })

  test('each is a script that bash can parse', () => {
    for (const { page, line, content } of blocks.filter(isShell)) {
      const { status, stderr } = spawnSync('bash', ['-n'], { input: content, encoding: 'utf8' })
      expect({ status, stderr }, `${page}:${line}`).toEqual({ status: 0, stderr: '' })
    }
  })
})

suiteWith(missing, 'every shell line of a page works, in order, in a fresh home', () => {
  test.each(pages)('%s', { timeout: 240_000 }, async (page) => {
    const stage = await openStage()
    onTestFinished(() => stage.remove())

    expect(await failuresOf(page, stage)).toEqual([])
  })

  test('a line that fails is found', { timeout: 60_000 }, async () => {
    const stage = await openStage()
    onTestFinished(() => stage.remove())

    const result = await failuresIn('```sh\nsvc --version\nsvc helth\nsvc health --type App --mode Nope\n```\n', stage)
    expect(result.map(({ command, status }) => [command, status])).toEqual([
      ['svc helth', 2],
      ['svc health --type App --mode Nope', 2],
    ])
  })
})

suiteWith(missing, 'the screen of the README', () => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage()
  })
  afterAll(() => stage.remove())

  /** The part of the screen about the two servers that each run shows: not figures, widths and this machine. */
  const shape = (screen: string): readonly string[] =>
    screen
      .split('\n')
      .filter((line) => /\b(?:shop|worker|unhealthy)\b/i.test(line))
      .map((line) =>
        line
          .replace(/ -v shows every check$/gm, '')
          .replace(/ · \d+ warnings?/, '')
          .replaceAll(/\d[\d.]* ?m?s\b/g, '0 s')
          .replaceAll(/\d+/g, '0')
          .replaceAll(/\s+/g, ' ')
          .trimEnd(),
      )

  test('is what svc health prints (npm run screens writes it)', { timeout: 60_000 }, async () => {
    const config = blocksOf(read('README.md')).find(({ language }) => language === 'yaml')?.content ?? ''
    const screen = await healthScreen(stage, localized(config, stage))
    expect(shape(screen).length).toBeGreaterThan(1)
    expect(shape(screenOf(read('README.md')))).toEqual(shape(screen))
  })
})

type Failure = { readonly command: string; readonly line: number; readonly status: number; readonly screen: string }

const failuresOf = (page: string, stage: Stage): Promise<readonly Failure[]> => failuresIn(read(page), stage)

/**
 * Runs the shell blocks of a page in one shell on a terminal, and writes its YAML blocks that begin with the comment
 * `# ~/path` to that path when they come. `svc serve` in the foreground goes on in the background until the next one.
 */
async function failuresIn(page: string, stage: Stage): Promise<readonly Failure[]> {
  for (const [name, content] of Object.entries(files)) stage.write(name, content, 0o700)
  const script: string[] = ['trap "kill %1 2>/dev/null" EXIT', prelude(stage)]
  const commands: { readonly text: string; readonly line: number }[] = []
  for (const block of blocksOf(page)) {
    const path = /^# (~\/\S+)\n/.exec(block.content)?.[1]
    if (block.language === 'yaml' && path !== undefined) {
      const file = `files/${block.line}.yaml`
      stage.write(file, localized(block.content, stage))
      script.push(`install -D -m 600 "$WORK/${file}" ${path}`)
    }
    if (!isShell(block) || block.attribute === 'norun') continue
    for (const command of commandsOf(block)) {
      const text = localized(command.text, stage)
      script.push(`begin ${commands.length}`, isServer(text) ? serving(text) : text, `ended $?`)
      commands.push(command)
    }
  }
  stage.write('page.sh', script.join('\n'))
  const { output: screen } = await onTerminal('source ./page.sh', {
    cwd: stage.work,
    env: { ...stage.env, WORK: stage.work },
    timeoutMs: 200_000,
    answer: passwords(),
  })
  return commands.flatMap(({ text, line }, index) => {
    const [, output = '', status] = new RegExp(`<<<begin ${index}>>>([\\s\\S]*?)<<<ended (\\d+)>>>`).exec(screen) ?? []
    const expected = exits[text.replace(/\s+#.*$/, '')] ?? [0]
    const ran = status === undefined ? -1 : Number(status)
    if (expected.includes(ran)) return []
    return [{ command: text, line, status: ran, screen: status === undefined ? screen.slice(-2_000) : output }]
  })
}

/** Answers each question for a password once: it is drawn again at every key, until a tick shows that it is answered. */
function passwords(): (text: string) => string | undefined {
  let screen = ''
  let answers = 0
  return (text) => {
    screen += text
    const parts = screen.split('✔')
    if (answers === parts.length || !parts.at(-1)?.includes('[input is masked]')) return undefined
    answers = parts.length
    return 'violet harbour 42\n'
  }
}
const isServer = (text: string): boolean => text.startsWith('svc serve ') || /^svc serve(?:\s*#.*)?$/.test(text)

const prelude = (stage: Stage): string => `
begin() { printf '<<<begin %s>>>\\n' "$1"; }
ended() { printf '<<<ended %s>>>\\n' "$1"; }
# Ends the server of the lines before, and waits until the next one is ready.
restart() { kill "$SERVER" 2>/dev/null; wait "$SERVER" 2>/dev/null; rm -f port; }
ready() {
  SERVER=$!
  for _ in $(seq 100); do
    sleep 0.2
    kill -0 "$SERVER" 2>/dev/null || return 1
    node "${root}/deploy/ready.mjs" "$(cat port 2>/dev/null || echo ${stage.servePort})" 2>/dev/null && return 0
  done
  return 1
}
`
const serving = (text: string): string =>
  `restart; ${text.replace(/\s*(?:&\s*)?(?:\s#.*)?$/, '')} > serve.log 2>&1 &\nready || { cat serve.log; false; }`
