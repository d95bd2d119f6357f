import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { compiledCode } from '../support/program/compiled-code.ts'
import { farMs } from '../support/suite/until.ts'

/**
 * Runs end-to-end scripts that read like a manual, over the real binary:
 *
 *     ! svc health --type Nope      the line must fail; without `!` it must exit with 0
 *     exit 2                        the exit code of the last svc
 *     stderr 'Did you mean'         a regular expression over its stderr; `! stderr 'x'` must not match
 *     stdout '^svc '                likewise stdout
 *     stdin 'correct horse'         what the next svc reads from standard input, and a line end; else it has none
 *     save KEY                      keeps the last stdout, without its line end, as $KEY
 *     env SVC_SERVER=$URL           for the lines that follow; `env NAME=` sets it empty, `unset NAME` drops it
 *     serve --config svc.yaml       starts svc serve in the background; $URL is its address, $PORT its port
 *     log 'listening'               a regular expression over what svc serve has logged so far
 *     stop                          SIGTERM to it; it must exit with 0
 *     http GET /livez               asks $URL; then `status 200`, `header 'content-type: .*json'`, `body 'ok'`
 *     mode 600 svc.yaml             chmod
 *
 * Lines after `-- name --` are files. Each script has a folder and a home of its own. It stands beside the test of its
 * name, which gives its own address.
 */
const binary = new URL('../../bin/run.js', import.meta.url).pathname

type Last = { code: number | null; stdout: string; stderr: string }
type Answer = { status: number; headers: string; body: string }

export async function runScript(test: string): Promise<void> {
  const file = fileURLToPath(test).replace(/(?:\.\w+)?\.test\.ts$/, '.txt')
  const { lines, files } = parse(readFileSync(file, 'utf8'))
  const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-'))
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    SVC_HOME: join(folder, 'home'),
    ...compiledCode,
  }
  let last: Last = { code: null, stdout: '', stderr: '' }
  let answer: Answer = { status: 0, headers: '', body: '' }
  let server: ChildProcess | undefined
  let input: string | undefined
  let log = ''
  const secrets = new Set<string>()
  for (const [name, content] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true, mode: 0o700 })
    writeFileSync(join(folder, name), content, { mode: 0o600 })
  }
  const stop = async (): Promise<number | null> => {
    if (!server || server.exitCode !== null) return server?.exitCode ?? 0
    server.kill('SIGTERM')
    await once(server, 'exit')
    return server.exitCode
  }
  try {
    for (const { text, number } of lines) {
      const fail = (why: string): never => {
        throw new Error(
          `${file}:${number}: ${text}\n${why}\n--- stdout\n${last.stdout}\n--- stderr\n${last.stderr}\n--- body\n${answer.status} ${answer.body}`,
        )
      }
      const not = text.startsWith('! ')
      const [verb = '', ...words] = split(expand(not ? text.slice(2) : text, env))
      const matches = (subject: string): void => {
        const [pattern = ''] = words
        if (new RegExp(pattern, 'm').test(subject) === not) fail(not ? 'matches, but must not' : 'does not match')
      }
      if (verb === 'svc') {
        last = await run(words, env, folder, input)
        input = undefined
        if ((last.code === 0) === not) fail(`exit code ${last.code}`)
      } else if (verb === 'exit') {
        if (last.code !== Number(words[0])) fail(`exit code ${last.code}`)
      } else if (verb === 'stdout') matches(last.stdout)
      else if (verb === 'stderr') matches(last.stderr)
      else if (verb === 'log') matches(log)
      else if (verb === 'stdin') {
        input = `${words[0] ?? ''}\n`
        secrets.add(words[0] ?? '')
      } else if (verb === 'save') env[words[0] ?? ''] = last.stdout.replace(/\n$/, '')
      else if (verb === 'env') {
        const [, name = '', value = ''] = /^([^=]+)=(.*)$/.exec(words.join(' ')) ?? []
        env[name] = value
      } else if (verb === 'unset') delete env[words[0] ?? '']
      else if (verb === 'mode') {
        const { chmodSync } = await import('node:fs')
        chmodSync(join(folder, words[1] ?? ''), Number.parseInt(words[0] ?? '', 8))
      } else if (verb === 'serve') {
        const portFile = join(folder, 'port')
        rmSync(portFile, { force: true })
        const child = spawn(process.execPath, [binary, 'serve', '--port', '0', '--port-file', portFile, ...words], {
          env,
          cwd: folder,
          stdio: ['ignore', 'ignore', 'pipe'],
        })
        server = child
        child.stderr?.on('data', (chunk) => {
          log += String(chunk)
        })
        const ends = performance.now() + farMs
        while (performance.now() < ends && !existsSync(portFile)) {
          if (child.exitCode !== null) fail(`svc serve exited with ${child.exitCode}:\n${log}`)
          await pause(50)
        }
        if (!existsSync(portFile)) fail(`svc serve did not start:\n${log}`)
        // Written in one go, but read perhaps between its creation and its content.
        while (readFileSync(portFile, 'utf8') === '') await pause(10)
        env.PORT = readFileSync(portFile, 'utf8').trim()
        env.URL = `http://127.0.0.1:${env.PORT}`
      } else if (verb === 'stop') {
        const code = await stop()
        if (code !== 0) fail(`svc serve exited with ${code}`)
      } else if (verb === 'http') {
        const [method = 'GET', path = '/', ...headers] = words
        const response = await fetch(path.startsWith('http') ? path : `${env.URL}${path}`, {
          method,
          redirect: 'manual',
          headers: headers.map((header) => header.split(/:\s*/, 2) as [string, string]),
        })
        answer = {
          status: response.status,
          headers: [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n'),
          body: await response.text(),
        }
      } else if (verb === 'status') {
        if (answer.status !== Number(words[0])) fail(`status ${answer.status}`)
      } else if (verb === 'header') matches(answer.headers)
      else if (verb === 'body') matches(answer.body)
      else fail(`unknown line: ${verb}`)
    }
    await stop()
    refuseLeaks(folder, new Set(files.keys()), log, secrets)
  } finally {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A token or key of ours, whole. */
const token = /svc_(?:at|rt|ss|key)_[A-Za-z0-9_-]{20,}/

/**
 * S7: no file that a script leaves behind contains its credentials (store, settings,
 * state) and in no line of the server's log. The script's own files do not count.
 */
function refuseLeaks(folder: string, own: ReadonlySet<string>, log: string, secrets: ReadonlySet<string>): void {
  const places = new Map([['the log of svc serve', log]])
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const name = relative(folder, path)
    if (entry.isFile() && !own.has(name)) places.set(name, readFileSync(path, 'latin1'))
  }
  for (const [place, content] of places) {
    const match =
      token.exec(content)?.[0] ?? [...secrets].find((secret) => secret.length >= 8 && content.includes(secret))
    if (match !== undefined) throw new Error(`S7 ${place} holds a secret that the script used`)
  }
}

type Line = { readonly text: string; readonly number: number }

function parse(content: string): { readonly lines: readonly Line[]; readonly files: ReadonlyMap<string, string> } {
  const files = new Map<string, string>()
  const lines: Line[] = []
  let name: string | undefined
  for (const [index, text] of content.split('\n').entries()) {
    const [, started] = /^-- (.+) --$/.exec(text) ?? []
    if (started) {
      name = started
      files.set(name, '')
    } else if (name !== undefined) files.set(name, `${files.get(name)}${text}\n`)
    else if (text.trim() !== '' && !text.startsWith('#')) lines.push({ text: text.trim(), number: index + 1 })
  }
  return { lines, files }
}

const expand = (text: string, env: Readonly<Record<string, string>>): string =>
  text.replace(/\$([A-Z_]+)/g, (whole, name: string) => env[name] ?? whole)

/** Words at blanks; single quotes hold words together. */
const split = (text: string): string[] =>
  [...text.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '')

function run(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd: string,
  input: string | undefined,
): Promise<Last> {
  return new Promise((resolve, reject) => {
    const stdin = input === undefined ? 'ignore' : 'pipe'
    const child = spawn(process.execPath, [binary, ...args], {
      env,
      cwd,
      stdio: [stdin, 'pipe', 'pipe'],
      timeout: 60_000,
    })
    // Whoever refuses the line does not read its input.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
    let stdout = ''
    let stderr = ''
    child.stdout?.on('data', (chunk) => {
      stdout += String(chunk)
    })
    child.stderr?.on('data', (chunk) => {
      stderr += String(chunk)
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}
