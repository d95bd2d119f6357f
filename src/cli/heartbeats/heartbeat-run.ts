import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../core/base/errors.ts'
import { programProblem } from '../../core/base/file-errors.ts'
import { showDuration } from '../../core/base/format.ts'
import { sanitizeLine, sanitizeText } from '../../core/base/sanitize.ts'
import type { ReportHeartbeat } from '../../core/protocol/index.ts'
import { exitCodeOf, leaveSignalsTo, spawnOn } from '../io/command-child.ts'
import type { Io, OutputStream, ProcessEnvironment } from '../io/io.ts'
import { note } from '../render/note.ts'

/** Bytes of output that are remembered, so that a secret is recognized even if the reported part begins inside it. */
const maxRemembered = 64 * 1024
/** The limits of the reported output: characters and lines. */
const maxReported = 4_000
const maxLines = 50

/** The end of a program's output, in bounded memory. */
export class OutputTail {
  #parts: Buffer[] = []
  #length = 0
  #isCut = false

  add(part: Buffer): void {
    this.#parts.push(part.subarray(-maxRemembered))
    this.#length += Math.min(part.length, maxRemembered)
    this.#isCut ||= part.length > maxRemembered
    while (this.#length - (this.#parts[0]?.length ?? 0) >= maxRemembered) {
      this.#length -= this.#parts.shift()?.length ?? 0
      this.#isCut = true
    }
  }

  /** The last lines, sanitized and with secrets redacted as far as they can be recognized. Empty without output. */
  report(env: ProcessEnvironment): string {
    const text = Buffer.concat(this.#parts).toString('utf8')
    // Its first line may begin inside a secret.
    const whole = this.#isCut ? text.slice(text.indexOf('\n') + 1) : text
    const lines = sanitizeText(redact(whole, env)).split('\n').slice(-maxLines)
    return sanitizeText(lines.join('\n').slice(-maxReported).toWellFormed())
  }
}

const redacted = '[redacted]'
/** Names of variables that hold secrets. */
const secretName = /PASS|SECRET|TOKEN|CREDENTIAL|_KEY$|^KEY$|APIKEY/i
/** A shorter value is also a word of ordinary output. */
const minSecret = 6

const patterns: readonly (readonly [RegExp, string])[] = [
  // Tokens and keys of svc.
  [/svc_(?:at|rt|ss|key)_[\w-]{8,200}/g, redacted],
  [/\b((?:Bearer|Basic)\s{1,4})[\w.~+/=-]{8,8000}/gi, `$1${redacted}`],
  // password=…, "token": "…", --secret …
  [
    /((?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key)["']?\s{0,4}[=:]\s{0,4}["']?)[^\s"',;&]{1,2000}/gi,
    `$1${redacted}`,
  ],
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{0,16000}(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g, redacted],
]

/**
 * Replaces secrets: the values of variables whose names say that they hold one, tokens of svc, credentials of HTTP, and
 * values behind `password=` and its like. A secret of another form is not recognized.
 */
export function redact(text: string, env: ProcessEnvironment): string {
  const values = Object.entries(env)
    .flatMap(([name, value = '']) => (secretName.test(name) && value.trim().length >= minSecret ? [value.trim()] : []))
    .sort((a, b) => b.length - a.length)
  const withoutValues = values.reduce((rest, value) => rest.replaceAll(value, redacted), text)
  return patterns.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), withoutValues)
}

export type JobOptions = {
  /** The contents of both reports: the name, and the values of the flags. */
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
