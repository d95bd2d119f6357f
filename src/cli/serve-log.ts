import type { LogEntry } from '../core/server/index.ts'
import { safeText } from './safe-text.ts'

/** Writes the server's log: JSON lines for machines, one readable line each on a terminal. */
export async function serveLog(stream: NodeJS.WriteStream): Promise<(entry: LogEntry) => void> {
  if (stream.isTTY) {
    return (entry) => {
      stream.write(`${readable(entry)}\n`)
    }
  }
  const { pino } = await import('pino')
  const logger = pino(
    {
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
    },
    pino.destination({ fd: 2, sync: true }),
  )
  return ({ level, msg, ...rest }) => logger[level](rest, msg)
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
