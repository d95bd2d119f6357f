import { constants, fstatSync, openSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isatty } from 'node:tty'
import { getSystemErrorMessage } from 'node:util'
import sonicBoom from 'sonic-boom'
import { sanitizeText } from '../core/sanitize.ts'
import type { Log, LogEntry } from '../core/server/index.ts'

/** Bytes of lines that wait while the log cannot be written; what comes then is dropped, and counted. */
const maxWaitingBytes = 1024 * 1024
/** Milliseconds after a failed write until the next attempt, if no line makes one before. */
const retryMs = 1_000

type Options = {
  /** Open for writing. A write that would wait for a reader must fail with EAGAIN: one that blocks keeps the process. */
  readonly descriptor: number
  /** The line that reports a gap, with its line feed. */
  readonly gapLine: (lines: number, reason: string) => string
}

/**
 * Writes lines in the background. It never blocks, never throws and never ends the process, whatever
 * becomes of the place it writes to: lines wait, up to a bound, and go out when that place works again.
 * Where lines were dropped, one line says how many.
 */
export class LogWriter {
  readonly #sink: sonicBoom.SonicBoom
  readonly #gapLine: Options['gapLine']
  #dropped = 0
  /** Of the dropped lines, those that no line has reported yet, and why the first of them was dropped. */
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

  /** Takes a line with its line feed. */
  write(line: string): void {
    if (this.#closing) return
    this.#reportGap()
    // Behind a gap that does not fit no line may go out before it.
    if (this.#gap === undefined && this.#offer(line)) return
    this.#dropped += 1
    if (this.#gap) this.#gap.lines += 1
    else this.#gap = { lines: 1, reason: this.#reason() }
  }

  /** Writes what waits, for at most `withinMs`, and takes no further line. */
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
    // Attempts that went on would keep the process alive.
    this.#over = true
  }

  #reportGap(): void {
    if (this.#gap && this.#offer(this.#gapLine(this.#gap.lines, this.#gap.reason))) this.#gap = undefined
  }

  /** True when there was room. */
  #offer(line: string): boolean {
    this.#accepted = true
    this.#sink.write(line)
    return this.#accepted
  }

  /** A quiet server writes no line that would find the disk free again. */
  #retryLater(): void {
    if (this.#closing || this.#retry) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      if (!this.#closing) this.#sink.write('')
    }, retryMs).unref()
  }

  #reason(): string {
    if (this.#error === undefined) return 'it was not read as fast as it was written'
    return this.#error.errno === undefined ? this.#error.message : getSystemErrorMessage(this.#error.errno)
  }
}

/**
 * Opens the pipe or terminal behind a descriptor once more, so that a write to it fails with EAGAIN
 * where it would wait for the reader. A description of its own, because processes that share one share
 * its mode, and any of them may change that.
 *
 * Undefined for anything else, and where the system does not let it be opened again.
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
    // A terminal that is opened must not become this process's own, whose ctrl-C it would get.
    const mode = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY
    return path === undefined ? undefined : openSync(path, mode)
  } catch {
    return undefined
  }
}

/** Linux has a path for whatever is open; elsewhere a terminal is found among the devices, as ttyname(3) does. */
const pathsOf = (descriptor: number): readonly string[] =>
  process.platform === 'linux'
    ? [`/proc/self/fd/${descriptor}`]
    : readdirSync('/dev')
        .filter((name) => name.startsWith('tty'))
        .map((name) => join('/dev', name))

export type ServeLog = {
  readonly log: Log
  /** Lines dropped since the start, because the log could not be written. */
  readonly droppedLines: () => number
  /** Writes what waits, for at most `withinMs`. What is logged later is lost. */
  readonly close: (withinMs: number) => Promise<void>
}

/**
 * Opens the server's log on standard error: JSON lines for machines, one readable line each on a
 * terminal. A full disk, a reader that stalls or one that is gone never stops the server. Until it is
 * closed, whatever else this process writes to standard error becomes a line of it.
 */
export async function openServeLog(): Promise<ServeLog> {
  const { stderr } = process
  const format = stderr.isTTY ? terminalLine : await jsonLine()
  // The console of Windows takes text in its own encoding, which only Node's stream knows.
  if (stderr.isTTY && process.platform === 'win32') {
    return { log: (entry) => void stderr.write(format(entry)), droppedLines: () => 0, close: async () => {} }
  }
  // A pipe or socket that cannot be opened again is non-blocking since Node has made `process.stderr`
  // of it. A terminal is not (another user's, after sudo): there a stalled write holds one thread.
  const descriptor = openNonBlocking(stderr.fd) ?? stderr.fd
  const writer = new LogWriter({ descriptor, gapLine: (lines, reason) => format(gap(lines, reason)) })
  const log: Log = (entry) => writer.write(format(entry))
  const restore = redirect(stderr, log)
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
  msg: `${lines} log ${lines === 1 ? 'line was' : 'lines were'} dropped because the log could not be written`,
  droppedLines: lines,
  reason,
})

type Format = (entry: LogEntry) => string

async function jsonLine(): Promise<Format> {
  const { pino } = await import('pino')
  let line = ''
  const logger = pino(
    {
      base: { pid: process.pid },
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
    return line
  }
}

const terminalLine: Format = (entry) => `${readable(entry)}\n`

/** Characters of what others write to standard error: no warning comes near it. */
const maxTextLength = 8_192

/**
 * Makes lines of the log of what others write to standard error: Node its warnings, drivers theirs. On
 * a terminal that ctrl-S has stopped they would wait.
 */
function redirect(stream: NodeJS.WriteStream, log: Log): () => void {
  stream.write = (data: string | Uint8Array, ...rest: readonly unknown[]): boolean => {
    const text = (typeof data === 'string' ? data : Buffer.from(data).toString()).trimEnd()
    if (text !== '') log({ level: 'warn', msg: text.slice(0, maxTextLength) })
    const done = rest.at(-1)
    if (typeof done === 'function') process.nextTick(() => done())
    return true
  }
  // What a stream writes with stands on its prototype.
  return () => void Reflect.deleteProperty(stream, 'write')
}

/**
 * `12:03:11 503 GET /healthcheck?… 41 ms 7f3c2a9e`: an answer is one line with the beginning of its
 * correlation id; what the server says of itself has its facts below.
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
