import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../core/errors.ts'
import { programProblem } from '../../core/file-errors.ts'
import { showDuration } from '../../core/format.ts'
import type { ReportHeartbeat } from '../../core/protocol/index.ts'
import { sanitizeLine } from '../../core/sanitize.ts'
import { exitCodeOf, leaveSignalsTo, spawnOn } from '../io/command-child.ts'
import type { Io, OutputStream } from '../io/io.ts'
import { note } from '../render/note.ts'
import { OutputTail } from './output-tail.ts'

export type JobOptions = {
  /** What both reports contain: the name, and what the flags say. */
  readonly report: ReportHeartbeat
  /** Milliseconds that the run may take, as the job announces. */
  readonly maxMs: number | undefined
  /** Whether the end of its output is reported. If not, its streams are left alone. */
  readonly output: boolean
  /** Delivers one report. A rejection becomes a warning. */
  readonly deliver: (report: ReportHeartbeat) => Promise<unknown>
}

/** Milliseconds that the streams of an ended program stay open for a program that it has left behind. */
const maxDrainMs = 2_000

/** The exit codes of shells for a program that cannot be run. */
const notFound = 127
const notExecutable = 126

/**
 * Runs a program on this terminal and reports its start and its end. Returns its exit code, whether the reports are
 * delivered or not. The program does not wait for the report of its start.
 */
export async function runReported(command: readonly string[], options: JobOptions, io: Io): Promise<number> {
  const { report, maxMs } = options
  const { clock } = io
  const StartedAt = clock.now()
  const started = clock.elapsed()
  const deliver = async (what: string, more: ReportHeartbeat): Promise<void> => {
    const whole = { ...report, SentAt: clock.now(), StartedAt, MaxDuration: maxMs, ...more }
    await options.deliver(whole).catch((error: unknown) => warn(report.Name, what, error, io.stderr))
  }
  const start = deliver('start', {})
  const tail = new OutputTail()
  const { exitCode, message } = await run(command, options.output ? tail : undefined, io)
  const Duration = Math.round(clock.elapsed() - started)
  // The reports must arrive in this order.
  await start
  const Output = options.output ? tail.report(io.env) : ''
  await deliver('end', {
    Status: exitCode === 0 ? 'Ok' : 'Fail',
    Message: `${message} after ${showDuration(Duration)}`,
    Duration,
    ExitCode: exitCode,
    ...(Output === '' ? {} : { Output }),
  })
  return exitCode
}

function warn(name: string | undefined, what: string, error: unknown, stderr: OutputStream): void {
  const reason = error instanceof Error ? error.message : String(error)
  const hints = error instanceof Fault ? (error.details.hints ?? []) : []
  const lines = [
    `Warning: the ${what} of ${name} could not be reported: ${reason}`,
    ...hints.map((hint) => `  ${hint}`),
  ]
  stderr.write(note(lines.map((line) => line.slice(0, 2) + sanitizeLine(line.slice(2))).join('\n'), stderr))
}

type Ended = { readonly exitCode: number; readonly message: string }

async function run(command: readonly string[], tail: OutputTail | undefined, io: Io): Promise<Ended> {
  const child = spawnOn(io, command, io.env, tail ? { output: 'pipe' } : {})
  const release = leaveSignalsTo(child, io.signals)
  try {
    const streams = tail
      ? [forward(child.stdout, tail, io.stdout), forward(child.stderr, tail, io.stderr)]
      : [closed(child.stdout), closed(child.stderr)]
    const ended = await new Promise<Ended>((resolve) => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        const message = `cannot be run: ${programProblem(error)}`
        io.stderr.write(`Error: ${sanitizeLine(command[0] ?? '')} ${message}\n`)
        resolve({ exitCode: error.code === 'ENOENT' ? notFound : notExecutable, message })
      })
      child.once('exit', (code, signal) => {
        resolve({
          exitCode: exitCodeOf(code, signal),
          message: signal === null ? `exit code ${code ?? 1}` : `ended by ${signal}`,
        })
      })
    })
    await Promise.race([Promise.all(streams), pause(maxDrainMs, undefined, { ref: false })])
    child.stdout?.destroy()
    child.stderr?.destroy()
    return ended
  } finally {
    release()
  }
}

/** Passes a stream on as it is. Resolves at its end. */
async function forward(from: Readable | null, tail: OutputTail, to: OutputStream): Promise<void> {
  from?.on('data', (part: Buffer) => {
    tail.add(part)
    // Nobody reads it any more, so the program learns that by a closed pipe too.
    if (!to.write(part)) from.destroy()
    else holdBack(from, to.stream)
  })
  from?.on('error', () => {})
  await closed(from)
}

const closed = async (stream: Readable | null): Promise<unknown> => stream && (await once(stream, 'close'))

/** Lets the program wait while the reader of its output is slow, instead of buffering what it prints. */
function holdBack(from: Readable, to: Writable): void {
  if (!to.writableNeedDrain) return
  from.pause()
  to.once('drain', () => from.resume())
}
