import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { blocksOf, commandsOf } from '../../tools/pages/page.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'svc-clone-'))

/** The files of a clone as they are now, committed or not, without what is ignored. */
function cloneInto(target: string): void {
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const { stdout, status } = spawnSync('git', list, { cwd: root, encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 })
  expect(status).toBe(0)
  for (const name of stdout.split('\0').filter((name) => name !== '' && !name.startsWith('test/'))) {
    mkdirSync(dirname(join(target, name)), { recursive: true })
    cpSync(join(root, name), join(target, name))
  }
}

test('in a fresh clone, with the npm and Node of the machine, the first command of the README works and installs what the second needs', {
  timeout: 600_000,
}, () => {
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))

  const clone = join(folder, 'clone')
  const home = join(folder, 'home')
  mkdirSync(home, { mode: 0o700 })
  cloneInto(clone)
  const [first] = blocksOf(readFileSync(join(root, 'README.md'), 'utf8')).filter(({ language }) => language === 'sh')
  const [command, second] = (first === undefined ? [] : commandsOf(first)).map(({ text }) =>
    text.replace(/\s+#.*$/, ''),
  )
  expect([command, second]).toEqual(['npm ci && npx svc health', 'npm test'])
  // Without the folder that npm run adds: it has the Node of this clone.
  const path = (process.env['PATH'] ?? '').split(':').filter((place) => !place.includes('node_modules'))
  const run = (line: string) =>
    spawnSync('bash', ['-c', line], {
      cwd: clone,
      encoding: 'utf8',
      env: { ...process.env, HOME: home, PATH: path.join(':'), npm_config_prefer_offline: 'true', NO_COLOR: '1' },
    })
  const { status, stdout, stderr } = run(command ?? 'false')
  // 3 is a machine that is not well, and a check all the same.
  expect([0, 3], stderr).toContain(status)
  expect(stdout).toContain('this machine')
  // Each program of the second one runs, without its tests: they are this run.
  const { scripts } = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')) as { scripts: { test: string } }
  const [builds, tests, ...others] = scripts.test.split(' && ')
  expect([builds, tests?.split(' ').slice(0, 2), others]).toEqual(['npm run build', ['vitest', 'run'], []])
  for (const line of [builds ?? 'false', 'npx --no -- vitest --version']) {
    expect(run(line), line).toMatchObject({ status: 0 })
  }
})
