import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { startServe } from '../support/program/serve-command.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { freePort } from '../support/servers/server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): unknown => parse(readFileSync(join(root, path), 'utf8'))

type Step = {
  readonly name: string
  readonly run?: string
  readonly shell?: string
  readonly env?: Readonly<Record<string, string>>
}
type Action = {
  readonly inputs: Readonly<Record<string, { readonly default: string }>>
  readonly runs: { readonly steps: readonly Step[] }
}
type Job = {
  readonly variables: Readonly<Record<string, string>>
  readonly before_script: readonly string[]
  readonly script: readonly string[]
  readonly artifacts: { readonly when: string; readonly reports: { readonly junit: string } }
}
const action = read('deploy/github/action.yml') as Action
const job = (read('deploy/gitlab/svc-health.yml') as Readonly<Record<string, Job>>)['.svc-health'] as Job

/** The values that a pipeline gives, by the names of the inputs of the action. */
type Values = Readonly<Record<string, string>>
type Outcome = {
  readonly code: number | null
  readonly stdout: string
  /** As the runner stores them. */
  readonly report: string
  readonly summary: string
}

/** A folder of a job, with a svc on its path. */
function workspace(): { readonly folder: string; readonly env: Record<string, string> } {
  const home = temporaryHome()
  const bin = join(home.folder, 'bin')
  mkdirSync(bin)
  const svc = `#!/bin/sh\nexec '${process.execPath}' '${home.program}' "$@"\n`
  writeFileSync(join(bin, 'svc'), svc, { mode: 0o755 })
  return { folder: home.folder, env: { ...home.env, PATH: `${bin}:${home.env['PATH'] ?? ''}` } }
}

async function bash(script: string, cwd: string, env: Record<string, string>) {
  const file = join(cwd, 'step.sh')
  writeFileSync(file, script)
  const child = spawn('bash', ['--noprofile', '--norc', '-e', '-o', 'pipefail', file], { cwd, env })
  let stdout = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
  }
  const code = await new Promise<number | null>((resolve) => {
    child.on('close', resolve)
  })
  return { code, stdout }
}

const textIn = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '')

const places: Readonly<Record<string, (values: Values, files?: Values) => Promise<Outcome>>> = {
  'the GitHub action': async (values, files = {}) => {
    const { folder, env } = workspace()
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o644 })
    const summary = join(folder, 'summary.md')
    const inputs = { ...Object.fromEntries(Object.entries(action.inputs).map(([k, v]) => [k, v.default])), ...values }
    const filled = (text: string): string =>
      text.replaceAll(/\$\{\{ inputs\.(\w+) \}\}/g, (_, name: string) => inputs[name] ?? '')
    let last: { code: number | null; stdout: string } = { code: 0, stdout: '' }
    for (const { run, env: own = {} } of action.runs.steps) {
      if (run === undefined || last.code !== 0) continue
      const variables = Object.fromEntries(Object.entries(own).map(([name, text]) => [name, filled(text)]))
      last = await bash(run, folder, { ...env, ...variables, GITHUB_STEP_SUMMARY: summary, GITHUB_ACTIONS: 'true' })
    }
    return { ...last, report: textIn(join(folder, inputs['report'] ?? '')), summary: textIn(summary) }
  },
  'the GitLab template': async (values, files = {}) => {
    const { folder, env } = workspace()
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(folder, name), text)
      // As its runners check files out.
      chmodSync(join(folder, name), 0o666)
    }
    const { token, ...rest } = values
    const settings = Object.entries(rest).map(([name, value]) => [`SVC_HEALTH_${name.toUpperCase()}`, value])
    const variables = { ...job.variables, ...Object.fromEntries(settings), ...(token ? { SVC_TOKEN: token } : {}) }
    const script = [...job.before_script, ...job.script].join('\n')
    const ran = await bash(script, folder, { ...env, ...variables, GITLAB_CI: 'true' })
    const of = (name: string): string => textIn(join(folder, name))
    return { ...ran, report: of(job.artifacts.reports.junit), summary: of('svc-health.md') }
  },
}

const tcp = (name: string, port: number): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}}`

async function listening(): Promise<number> {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as { port: number }).port
}

describe.each(Object.keys(places))('%s', (name) => {
  const gate = places[name] as (typeof places)[string]

  test('K10 is open where a server finds all healthy, and closed where it does not, with summary and report', async () => {
    const yaml = `types:\n  App: [${tcp('shop', await listening())}]\n  Sql: [${tcp('orders', await freePort())}]\n`
    const serve = await startServe(temporaryHome(), yaml)
    onTestFinished(async () => void (await serve.stop()))
    const good = await gate({ server: serve.url, type: 'App', mode: 'Basic' })
    expect(good).toMatchObject({ code: 0, summary: expect.stringContaining('exit code 0') })
    expect(good.report).toContain('failures="0"')
    expect(good.stdout).not.toContain('::error')

    const bad = await gate({ server: serve.url, type: 'App,Sql', mode: 'Basic' })
    expect(bad.code).toBe(3)
    expect(bad.report).toMatch(/<failure type="refused" message="[^"]*refused/)
    expect(bad.summary).toMatch(/^### svc health: exit code 3\n\n {4}/)
    expect(bad.summary).toContain('UNHEALTHY')
    // Nothing else than the heading is Markdown.
    expect(
      bad.summary
        .split('\n')
        .slice(2)
        .filter((line) => line !== '' && !line.startsWith('    ')),
    ).toEqual([])
    expect(bad.stdout).toContain('tcp orders')
  })

  test('K10 is closed where the server has nothing for a type, where nothing is configured, and at a mistake', async () => {
    const serve = await startServe(temporaryHome(), `types:\n  App: [${tcp('shop', await listening())}]\n`)
    onTestFinished(async () => void (await serve.stop()))
    expect((await gate({ server: serve.url, type: 'Sql' })).code).not.toBe(0)
    expect((await gate({})).code).toBe(12)
    expect((await gate({ type: 'Nope' })).code).toBe(2)
  })

  test('checks by a file of the repository, which the runner may have checked out for all to write', async () => {
    const file = `types:\n  App: [${tcp('shop', await listening())}]\n`
    expect(await gate({ config: 'svc.yaml', mode: 'Basic' }, { 'svc.yaml': file })).toMatchObject({ code: 0 })
  })

  test('a value is no command', async () => {
    const { stdout, code } = await gate({ type: '$(echo zq-ran >&2)"; echo zq-ran; "', config: '' })
    expect(code).toBe(2)
    expect(stdout).not.toMatch(/^zq-ran/m)
  })
})

test('the GitHub action writes one annotation for each failure, and no line of the log is a command', async () => {
  const port = await freePort()
  const file = `types:\n  App: [${tcp("'a: b, 100 % & <c>'", port)}]\n`
  const { stdout } = await (places['the GitHub action'] as (typeof places)[string])(
    { config: 'svc.yaml', mode: 'Basic' },
    { 'svc.yaml': file },
  )
  const errors = stdout.split('\n').filter((line) => line.startsWith('::error'))
  expect(errors).toHaveLength(1)
  expect(errors[0]).toContain('::error title=App Basic.tcp a%3A b%2C 100 %25 & <c> connect::127.0.0.1')
  const [, word = ''] = /^::stop-commands::(\S+)$/m.exec(stdout) ?? []
  const between = stdout.slice(stdout.indexOf(word), stdout.indexOf(`::${word}::`))
  expect(between).toContain('UNHEALTHY')
})

test('both keep the report when the gate is closed, and no step has an input in its text', () => {
  const keep = action.runs.steps.at(-1) as Step & { readonly if: string }
  expect(keep.if).toContain('always()')
  expect(job.artifacts.when).toBe('always')
  for (const { run = '', shell } of action.runs.steps.slice(0, -1)) {
    expect([run.includes('${{'), shell]).toEqual([false, 'bash'])
  }
  for (const text of [JSON.stringify(action), JSON.stringify(job)]) expect(text).toContain('--require-config')
})
