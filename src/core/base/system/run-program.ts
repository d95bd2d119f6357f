import type { ChildProcess } from 'node:child_process'
import { programProblem } from '../file-errors.ts'
import { ProbeError } from '../probe-error.ts'
import { killAll, reaped, system32File } from './end-process.ts'

export type Ended = {
  /** Undefined when a signal ended the program. */
  readonly code: number | undefined
  readonly signal: NodeJS.Signals | undefined
  /** Up to the number of bytes kept. */
  readonly stdout: string
  readonly stderr: string
  /** True when there was more output than was kept. */
  readonly more: boolean
}

export type Program = {
  /** An absolute path: there is no lookup and no shell. */
  readonly file: string
  readonly args: readonly string[]
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>
  /** The standard input of the program. Absent: nothing. The program may end without reading it. */
  readonly input?: string | undefined
  /** Bytes kept of stdout and of stderr. The rest is read and discarded. */
  readonly keep: number
  /**
   * Whether it lies on a share. Node waits until the system has begun a program, which a share that does not answer keeps
   * it from. So a shell, in a process of its own, becomes that program. It interprets nothing.
   */
  readonly isOnShare?: boolean
}

/** Maximum bytes of output before the program is ended: endless output must not use up the whole deadline. */
const maxOutput = 16 * 1024 * 1024
const windows = process.platform === 'win32'

/**
 * Runs a program to its end, without a shell. When the signal aborts, the program and its children
 * are killed, and the promise rejects with the signal's reason. Throws ProbeError `internal` when it cannot be started,
 * and `data` when its output does not end.
 */
export async function runProgram(
  { file, args, env, keep, input, isOnShare = false }: Program,
  signal: AbortSignal,
): Promise<Ended> {
  signal.throwIfAborted()
  const { spawn } = process.getBuiltinModule('node:child_process')
  const [program, all] =
    isOnShare && !windows ? ['/bin/sh', ['-c', 'exec "$0" "$@"', file, ...args]] : [file, [...args]]
  const child = spawn(program, all, {
    // A process group of its own, so that its children are killed with it.
    detached: !windows,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env: { ...env },
    cwd: windows ? undefined : '/',
    windowsHide: true,
    shell: false,
  })
  // A program that ends without reading breaks the pipe: its exit code says what that means.
  child.stdin?.on('error', () => {}).end(input)
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  try {
    return await ended(child, file, keep, signal)
  } finally {
    // Also after success: children left in its group must not outlive the run.
    killAll(child)
    await reaped(child, gone)
  }
}

/** Milliseconds that stdout and stderr may stay open after the program has ended, held by a child. */
const drainMs = 200

function ended(child: ChildProcess, file: string, keep: number, signal: AbortSignal): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    const [out, err] = [boundedOutput(keep), boundedOutput(keep)]
    let bytes = 0
    const listen = (stream: ChildProcess['stdout'], into: ReturnType<typeof boundedOutput>): void => {
      stream?.on('error', () => {})
      stream?.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        into.take(chunk)
        if (bytes > maxOutput) reject(new ProbeError('data', `${file} does not stop writing output: it was ended`))
      })
    }
    listen(child.stdout, out)
    listen(child.stderr, err)
    let drain: NodeJS.Timeout | undefined
    const finish = (code: number | null, killed: NodeJS.Signals | null): void => {
      clearTimeout(drain)
      signal.removeEventListener('abort', abort)
      resolve({
        code: code ?? undefined,
        signal: killed ?? undefined,
        stdout: out.text(),
        stderr: err.text(),
        more: out.more() || err.more(),
      })
    }
    child.once('error', (error: NodeJS.ErrnoException) => {
      signal.removeEventListener('abort', abort)
      reject(new ProbeError('internal', `${file} cannot be started: ${programProblem(error)}`))
    })
    child.once('exit', (code, killed) => {
      drain = setTimeout(() => finish(code, killed), drainMs)
    })
    child.once('close', finish)
  })
}

function boundedOutput(most: number) {
  const chunks: Buffer[] = []
  let size = 0
  let cut = false
  return {
    take: (chunk: Buffer): void => {
      const left = most - size
      if (chunk.length > left) cut = true
      if (left <= 0) return
      chunks.push(chunk.subarray(0, left))
      size += Math.min(left, chunk.length)
    },
    text: (): string => Buffer.concat(chunks).toString('utf8'),
    more: (): boolean => cut,
  }
}

/** The environment of every program: where programs are, and that a program reads the output. */
export const plainEnvironment = (): Readonly<Record<string, string>> =>
  windows
    ? { SystemRoot: process.env['SystemRoot'] ?? 'C:\\Windows', PATH: system32File('').replace(/\\$/, '') }
    : { PATH: '/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', LANG: 'C' }
