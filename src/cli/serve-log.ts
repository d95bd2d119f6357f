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

/** `12:03:11 GET /healthcheck 503 41 ms  7f3c2a9e` */
function readable(entry: LogEntry): string {
  const { level, msg, ...rest } = entry
  const time = new Date().toTimeString().slice(0, 8)
  const facts = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => (name === 'stack' ? `\n${String(value)}` : `${name}=${safeText(String(value))}`))
  return [time, level === 'info' ? '' : level.toUpperCase(), safeText(msg), ...facts].filter(Boolean).join(' ')
}
