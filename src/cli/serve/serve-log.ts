import { constants, fstatSync, openSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { isatty } from 'node:tty'
import { getSystemErrorMessage } from 'node:util'
import sonicBoom from 'sonic-boom'
import { count } from '../../core/base/format.ts'
import { sanitizeText, withoutCommands } from '../../core/base/sanitize.ts'
import type { Log, LogEntry } from '../../core/server/index.ts'
import type { Io } from '../io/io.ts'
import { machine } from '../io/process.ts'

/** Bytes of lines that may wait while the log cannot be written. Further lines are dropped and counted. */
const maxWaitingBytes = 1024 * 1024
/** Milliseconds after a failed write until the next attempt, unless a new line triggers one earlier. */
const retryMs = 1_000

type Options = {
  /**
   * Open for writing. A write that would block must fail with EAGAIN: a blocked write keeps the process from ending.
   */
  readonly descriptor: number
  /** The line that reports dropped lines, with its line feed. */
  readonly gapLine: (lines: number, reason: string) => string
}

/**
 * Writes lines in the background. It never blocks, never throws and never ends the process, whatever happens to the
 * destination. Lines wait, up to a limit, and are written when the destination works again. One line reports how many
 * were dropped.
 */
export class LogWriter {
  readonly #sink: sonicBoom.SonicBoom
  readonly #gapLine: Options['gapLine']
  #dropped = 0
  /** The dropped lines that are not reported yet, and why the first of them was dropped. */
  #gap: { lines: number; readonly reason: string } | undefined
  #error: NodeJS.ErrnoException | undefined
  #retry: NodeJS.Timeout | undefined
  #accepted = true
  #closing = false
  #over = false

  constructor({ descriptor, gapLine }: Options) {
    this.#gapLine = gapLine
    this.#sink = new sonicBoom.SonicBoom({ fd: descriptor, maxLength: maxWaitingBytes, retryEAGAIN: () => !this.#over })
    this.#sink.on('drop', () => {
      this.#accepted = false
    })
    this.#sink.on('write', () => {
      this.#error = undefined
    })
    this.#sink.on('drain', () => this.#reportGap())
    this.#sink.on('error', (error: NodeJS.ErrnoException) => {
      this.#error = error
      this.#retryLater()
    })
  }

  /** Lines dropped since the start. */
  get dropped(): number {
    return this.#dropped
  }

  /** Queues a line, which includes its line feed. */
  write(line: string): void {
    if (this.#closing) return
    this.#reportGap()
    // While the report of a gap does not fit, no later line may overtake it.
    if (this.#gap === undefined && this.#offer(line)) return
    this.#dropped += 1
    if (this.#gap) this.#gap.lines += 1
    else this.#gap = { lines: 1, reason: this.#reason() }
  }

  /** Writes the waiting lines, for at most `withinMs`. Further lines are ignored. */
  async close(withinMs: number): Promise<void> {
    if (this.#closing) return
    this.#reportGap()
    this.#closing = true
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    const timer = setTimeout(end, withinMs)
    this.#sink.once('close', end)
    this.#sink.once('error', end)
    this.#sink.end()
    await ended
    clearTimeout(timer)
    // Further attempts would keep the process alive.
    this.#over = true
  }

  #reportGap(): void {
    if (this.#gap && this.#offer(this.#gapLine(this.#gap.lines, this.#gap.reason))) this.#gap = undefined
  }

  /** Returns whether there was room. */
  #offer(line: string): boolean {
    this.#accepted = true
    this.#sink.write(line)
    return this.#accepted
  }

  /** Without a timer, a quiet server would not notice that the disk has room again. */
  #retryLater(): void {
    if (this.#closing || this.#retry) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      if (!this.#closing) this.#sink.write('')
    }, retryMs).unref()
  }

  #reason(): string {
    if (this.#error === undefined) return 'its reader was too slow'
    return this.#error.errno === undefined ? this.#error.message : getSystemErrorMessage(this.#error.errno)
  }
}

/**
 * Opens the pipe or terminal behind a descriptor a second time, so that a write that would block fails with EAGAIN. It
 * needs an open file description of its own: processes that share one share its mode, and any of them may change it.
 *
 * Returns undefined for any other file, and when the system does not allow it to be opened again.
 */
export function openNonBlocking(descriptor: number): number | undefined {
  // Windows has no such mode.
  if (constants.O_NONBLOCK === undefined) return undefined
  try {
    const open = fstatSync(descriptor)
    if (!open.isFIFO() && !isatty(descriptor)) return undefined
    const path = pathsOf(descriptor).find((each) => {
      const { dev, ino } = statSync(each)
      return dev === open.dev && ino === open.ino
    })
    // The terminal must not become this process's controlling terminal, which would send it ctrl-C.
    const mode = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY
    return path === undefined ? undefined : openSync(path, mode)
  } catch {
    return undefined
  }
}

/**
 * Linux has a path for every open descriptor. Elsewhere the terminal is searched among the devices, as ttyname(3) does.
 */
const pathsOf = (descriptor: number): readonly string[] =>
  machine.platform === 'linux'
    ? [`/proc/self/fd/${descriptor}`]
    : readdirSync('/dev')
        .filter((name) => name.startsWith('tty'))
        .map((name) => join('/dev', name))

export type ServeLog = {
  readonly log: Log
  /** Lines dropped since the start, because the log could not be written. */
  readonly droppedLines: () => number
  /** Writes the waiting lines, for at most `withinMs`. Later entries are lost. */
  readonly close: (withinMs: number) => Promise<void>
}

/**
 * Opens the server's log on standard error: JSON lines for machines, readable lines on a terminal. A full disk, a
 * stalled reader or a closed pipe never stops the server. Until the log is closed, everything else that this process
 * writes to standard error becomes a log line.
 */
export async function openServeLog({ stderr }: Pick<Io, 'stderr'>): Promise<ServeLog> {
  const format = stderr.isTTY ? terminalLine : await jsonLine()
  // The Windows console expects its own encoding, which only Node's stream handles.
  if (stderr.descriptor === undefined || (stderr.isTTY && machine.platform === 'win32')) {
    return { log: (entry) => void stderr.write(format(entry)), droppedLines: () => 0, close: async () => {} }
  }
  // A pipe or socket that cannot be opened again is non-blocking since Node made `process.stderr` of it. A terminal
  // that cannot (another user's, after sudo) is blocking: there a stalled write occupies one thread.
  const { stream } = stderr
  const descriptor = openNonBlocking(stderr.descriptor) ?? stderr.descriptor
  const writer = new LogWriter({ descriptor, gapLine: (lines, reason) => format(gap(lines, reason)) })
  const log: Log = (entry) => writer.write(format(entry))
  const restore = redirect(stream, log)
  return {
    log,
    droppedLines: () => writer.dropped,
    close: async (withinMs) => {
      restore()
      await writer.close(withinMs)
    },
  }
}

const gap = (lines: number, reason: string): LogEntry => ({
  level: 'warn',
  msg: `${count(lines, 'log line was', 'log lines were')} dropped because the log could not be written`,
  droppedLines: lines,
  reason,
})

type Format = (entry: LogEntry) => string

async function jsonLine(): Promise<Format> {
  const { pino } = await import('pino')
  let line = ''
  const logger = pino(
    {
      base: { pid: machine.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
    },
    {
      write: (text) => {
        line = text
      },
    },
  )
  return ({ level, msg, ...rest }) => {
    logger[level](rest, msg)
    return withoutCommands(line, 'json')
  }
}

const terminalLine: Format = (entry) => withoutCommands(`${readable(entry)}\n`, 'text')

/** Maximum characters of text that libraries write to standard error. Warnings are far shorter. */
const maxTextLength = 8_192

/**
 * Turns what Node and drivers write to standard error, such as warnings, into log lines. Written directly, they would
 * block on a terminal that ctrl-S has stopped.
 */
function redirect(stream: Writable, log: Log): () => void {
  stream.write = (data: string | Uint8Array, ...rest: readonly unknown[]): boolean => {
    const text = (typeof data === 'string' ? data : Buffer.from(data).toString()).trimEnd()
    if (text !== '') log({ level: 'warn', msg: text.slice(0, maxTextLength) })
    const done = rest.at(-1)
    if (typeof done === 'function') queueMicrotask(() => done())
    return true
  }
  // The stream's own `write` is on its prototype.
  return () => void Reflect.deleteProperty(stream, 'write')
}

/**
 * `12:03:11 503 GET /healthcheck?… 41 ms 7f3c2a9e`: a response is one line that ends with the start of its correlation
 * id. The details of other entries follow below their line.
 */
export function readable(entry: LogEntry, at: Date = new Date()): string {
  const { level, msg, stack, method, path, status, ms, correlationId, runId, address, ...facts } = entry
  const time = at.toTimeString().slice(0, 8)
  const stacked = stack === undefined ? '' : `\n${stack}`
  const severity = level === 'info' ? [] : [level.toUpperCase()]
  if (status !== undefined) {
    const messages = level === 'info' ? [] : [sanitizeText(msg)]
    const words = [
      time,
      ...severity,
      String(status),
      method ?? '',
      sanitizeText(path ?? ''),
      `${Math.round(ms ?? 0)} ms`,
    ]
    return [...words, (correlationId ?? '').slice(0, 8), ...messages].filter(Boolean).join(' ') + stacked
  }
  const entries = Object.entries(facts).filter(([, value]) => value !== undefined)
  const width = Math.max(0, ...entries.map(([name]) => name.length))
  const lines = entries.map(([name, value]) => `\n         ${name.padEnd(width)}  ${sanitizeText(String(value))}`)
  return [time, ...severity, sanitizeText(msg)].join(' ') + lines.join('') + stacked
}
