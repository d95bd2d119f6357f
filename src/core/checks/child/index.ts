import type { ChildProcess } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type FaultClass, ProbeError } from '../../base/probe-error.ts'
import { childEnvironment } from '../../base/system/child-environment.ts'
import { killGroup, killTree, reaped } from '../../base/system/end-process.ts'
import type { ProbeAnswer, ProbeQuestion } from './serve.ts'

/**
 * Runs one registered probe in a child process of this same Node and returns its reply. For work that JavaScript cannot
 * cancel: when the signal aborts, the child and its children are killed by SIGKILL, and the promise rejects with the
 * signal's reason. Throws the probe's error: a ProbeError stays one, and other errors keep their code.
 */
export const runInChild = (probe: string, input: unknown, signal: AbortSignal): Promise<unknown> =>
  spawnProbe(entry(), { probe, input }, signal)

/** The file that the child runs: beside this file in the sources, beside the bundle in a build. */
const entry = (): URL =>
  new URL(import.meta.url.endsWith('.ts') ? './child-main.ts' : './probe-child.cjs', import.meta.url)

/** Bytes: maximum of a probe's reply, and of the part kept of its standard error. */
const maxAnswer = 1024 * 1024
const maxErrorText = 2_048
const windows = process.platform === 'win32'

/** Starts `entry` with this same Node, sends one request and reads one line as the reply. */
export async function spawnProbe(entry: URL, question: ProbeQuestion, signal: AbortSignal): Promise<unknown> {
  signal.throwIfAborted()
  const { spawn } = process.getBuiltinModule('node:child_process')
  const child = spawn(process.execPath, [fileURLToPath(entry)], {
    // A process group of its own, so that the probe's children are killed with it.
    detached: !windows,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: childEnvironment(),
    // The working directory of a long-lived process may no longer exist.
    cwd: dirname(process.execPath),
    windowsHide: true,
  })
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  // When a probe ends by itself, its children are killed too.
  child.once('exit', () => killGroup(child))
  try {
    return read(await answerLine(child, question, signal), question.probe)
  } finally {
    killTree(child)
    await reaped(child, gone)
  }
}

/** Resolves with the first line on standard output. Rejects on abort, and when the child ends or sends too much. */
function answerLine(child: ChildProcess, question: ProbeQuestion, signal: AbortSignal): Promise<string> {
  return new Promise<string>((resolve, reject) => {
    // Listen first: without free descriptors the pipes are missing too, and the error comes later.
    child.once('error', (error) => reject(broken(question.probe, 'could not be started', error.message)))
    const { stdin, stdout, stderr } = child
    if (!stdin || !stdout || !stderr) return
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    child.once('close', () => signal.removeEventListener('abort', abort))
    const answer: Buffer[] = []
    let size = 0
    let output = ''
    stdout.on('data', (chunk: Buffer) => {
      const end = chunk.indexOf(0x0a)
      const piece = end < 0 ? chunk : chunk.subarray(0, end)
      size += piece.length
      if (size > maxAnswer) return reject(broken(question.probe, 'answered more than 1 MiB'))
      answer.push(piece)
      if (end >= 0) resolve(Buffer.concat(answer).toString('utf8'))
    })
    stderr.on('data', (chunk: Buffer) => {
      if (output.length < maxErrorText) output += chunk.toString('utf8')
    })
    child.once('close', (code, killed) => {
      reject(broken(question.probe, `ended without an answer (${killed ?? `exit ${code}`})`, output))
    })
    // The child may die before it has read its request; `close` reports that.
    stdin.on('error', () => {})
    // Keep the input open: the child takes its end for the end of its parent.
    stdin.write(`${JSON.stringify(question)}\n`)
  })
}

function read(line: string, probe: string): unknown {
  let answer: ProbeAnswer
  try {
    answer = JSON.parse(line) as ProbeAnswer
  } catch {
    throw broken(probe, 'returned a reply that cannot be read')
  }
  if (!('error' in answer)) return answer.value
  const { message, code, fault, details } = answer.error
  if (fault !== undefined) throw new ProbeError(fault as FaultClass, message, details)
  throw Object.assign(new Error(message), code === undefined ? {} : { code })
}

function broken(probe: string, what: string, stderr = ''): ProbeError {
  const details = stderr
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .slice(0, 5)
  return new ProbeError('internal', `the child process for ${probe} ${what}`, details)
}
