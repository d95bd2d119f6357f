import type { Log, LogEntry } from '../core/server/index.ts'
import { LogWriter } from './log-writer.ts'
import { openNonBlocking } from './non-blocking.ts'
import { safeText } from './safe-text.ts'

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
    const said = level === 'info' ? [] : [safeText(msg)]
    const words = [time, ...severity, String(status), method ?? '', safeText(path ?? ''), `${Math.round(ms ?? 0)} ms`]
    return [...words, (correlationId ?? '').slice(0, 8), ...said].filter(Boolean).join(' ') + stacked
  }
  const told = Object.entries(facts).filter(([, value]) => value !== undefined)
  const width = Math.max(0, ...told.map(([name]) => name.length))
  const lines = told.map(([name, value]) => `\n         ${name.padEnd(width)}  ${safeText(String(value))}`)
  return [time, ...severity, safeText(msg)].join(' ') + lines.join('') + stacked
}
