import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { main } from '../../../src/main.ts'
import { farMs } from '../suite/until.ts'
import { type CapturedOptions, capturedIo } from './captured-io.ts'
import { compiledCode } from './compiled-code.ts'

/** The built program: from its sources every start would cost ten times as much. */
export const entry = new URL('../../../bin/run.js', import.meta.url).pathname

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string }
type More = { readonly stdin?: string; readonly env?: Record<string, string> }
export type Home = {
  readonly folder: string
  /** The svc that runs. */
  readonly program: string
  readonly env: Readonly<Record<string, string>>
  /** Runs svc with this home in a process of its own; `stdin` is all that it can read. */
  readonly svc: (args: readonly string[], more?: More) => Promise<Ran>
  /**
   * Runs svc with this home in this process, from the sources: twenty times as fast. With `columns`, standard output and
   * standard error are a terminal; with `file`, standard output is a file. For everything but signals, real terminals, and what happens when a process ends.
   */
  readonly run: (
    args: readonly string[],
    more?: More & Pick<CapturedOptions, 'columns' | 'file' | 'clock'>,
  ) => Promise<Ran>
  /** Runs a shell line on a terminal of its own, and types what `answer` gives for what it shows. */
  readonly terminal: (
    args: readonly string[],
    answer: (screen: string) => Typed,
    env?: Record<string, string>,
  ) => Promise<Ran>
  /** Every file in it, by its path. */
  readonly files: () => readonly string[]
  readonly remove: () => void
}
/** Keys to type, a signal for svc itself, or nothing yet. */
export type Typed = string | { readonly signal: NodeJS.Signals } | undefined

/** A settings folder of its own, or one that there is, and svc in it: the one that is built here, or another one. */
export function svcHome(program: string = entry, folder: string = mkdtempSync(join(tmpdir(), 'svc-home-'))): Home {
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    SVC_HOME: folder,
    NO_COLOR: '1',
    TERM: 'xterm',
    ...compiledCode,
  }
  return {
    folder,
    program,
    env,
    svc: (args, { stdin = '', env: more = {} } = {}) =>
      run(process.execPath, [program, ...args], { ...env, ...more }, (child) => child.stdin?.end(stdin)),
    run: async (args, { env: more = {}, ...rest } = {}) => {
      const { io, stdout, stderr } = capturedIo({ env: { ...env, ...more }, ...rest })
      await main(io, args)
      return { code: io.exitCode ?? 0, stdout: stdout(), stderr: stderr() }
    },
    terminal: (args, answer, more = {}) => {
      const pidFile = join(folder, 'pid')
      const svc = `sh -c 'echo $$ > ${pidFile}; exec ${[process.execPath, program, ...args].join(' ')}'`
      // What the terminal is left like stands at the end.
      const line = `${svc}; code=$?; stty -a; exit $code`
      return run('script', ['-qec', line, '/dev/null'], { ...env, ...more, SHELL: '/bin/sh' }, (child) => {
        let screen = ''
        let typed = false
        child.stdout?.on('data', (chunk) => {
          screen += String(chunk)
          const next = typed ? undefined : answer(screen)
          if (next === undefined) return
          // Once: a prompt is drawn again at every key.
          typed = true
          if (typeof next === 'string') child.stdin?.write(next)
          else process.kill(Number(readFileSync(pidFile, 'utf8')), next.signal)
        })
      })
    },
    files: () => readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort(),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  feed: (child: ReturnType<typeof spawn>) => void,
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    const timer = setTimeout(() => child.kill('SIGKILL'), farMs)
    child.stdout.on('data', (chunk) => {
      stdout += String(chunk)
    })
    child.stderr.on('data', (chunk) => {
      stderr += String(chunk)
    })
    child.stdin.on('error', () => {})
    child.once('error', reject)
    child.once('close', (code) => {
      clearTimeout(timer)
      resolve({ code, stdout, stderr })
    })
    feed(child)
  })
}
