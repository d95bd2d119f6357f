import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../suite/until.ts'
import { compiledCode } from './compiled-code.ts'

/** The built program. */
export const entry = new URL('../../../bin/run.js', import.meta.url).pathname

export type ServeProcess = {
  /** The child process: svc itself, or the program that `command` put before it. */
  readonly child: ChildProcess
  readonly url: string
  /** Sends SIGTERM to svc and waits for its end; gives its exit code, or the signal that ended it. */
  readonly stop: () => Promise<number | NodeJS.Signals | null>
  /** Kills what still runs, and removes the folder. */
  readonly remove: () => Promise<void>
}

type Options = {
  /** Standard error of the child: a descriptor, or a pipe that is unread until the test reads it. */
  readonly stderr: number | 'pipe'
  /** A command that runs svc, with its arguments: it prints the process id of svc as its first line. */
  readonly command?: readonly string[]
  /** A program that runs in the process of svc before svc itself. */
  readonly preload?: string
  readonly args?: readonly string[]
}

/** Starts `svc serve` on a free port without a store, and waits until it listens. */
export async function startServe({ stderr, command = [], preload, args = [] }: Options): Promise<ServeProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-serve-'))
  const portFile = join(folder, 'port')
  const imports = preload === undefined ? [] : ['--import', `data:text/javascript,${encodeURIComponent(preload)}`]
  const svc = [process.execPath, ...imports, entry, 'serve', '--only', 'health', '--port', '0', '--port-file', portFile]
  const [program = '', ...rest] = [...command, ...svc, ...args]
  const child = spawn(program, rest, {
    env: { PATH: process.env.PATH ?? '', HOME: folder, SVC_HOME: folder, ...compiledCode },
    stdio: ['pipe', 'pipe', stderr],
  })
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  const remove = async (): Promise<void> => {
    // A command in between ends svc when its input ends.
    child.stdin?.end()
    if (command.length === 0) child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const first = command.length === 0 ? undefined : await once(child.stdout as NodeJS.ReadableStream, 'data')
    const pid = first === undefined ? Number(child.pid) : Number.parseInt(String(first), 10)
    await until(() => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`svc serve ended: ${child.exitCode}`)
      return existsSync(portFile) && readFileSync(portFile, 'utf8') !== ''
    })
    return {
      child,
      url: `http://127.0.0.1:${readFileSync(portFile, 'utf8').trim()}`,
      stop: async () => {
        process.kill(pid, 'SIGTERM')
        const [code, signal] = await ended
        return code ?? signal
      },
      remove,
    }
  } catch (error) {
    await remove()
    throw error
  }
}
