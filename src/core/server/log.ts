/** One line of the server's log: a plain object; whoever started the server stamps it and writes it out. */
export type LogEntry = {
  readonly level: 'info' | 'warn' | 'error'
  readonly msg: string
  readonly method?: string | undefined
  /** The path; of the query only what a health check asks for: nothing else is sure to hold no secret. */
  readonly path?: string | undefined
  readonly status?: number | undefined
  readonly ms?: number | undefined
  readonly correlationId?: string | undefined
  /** The run behind a health answer; several answers may share one. */
  readonly runId?: string | undefined
  readonly address?: string | undefined
  /** Of a defect. */
  readonly stack?: string | undefined
  /** Facts about the server itself, e.g. where it listens. */
  readonly [fact: string]: unknown
}
export type Log = (entry: LogEntry) => void

const textLimit = 256
const stackLimit = 8_192
/** Control characters, and those that turn or hide text on a screen. */
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu
const unsafeInStack = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
const cut = (text: string, limit: number): string => (text.length > limit ? `${text.slice(0, limit)}…` : text)

/** Text from outside, for a log line or a message: unprintable characters escaped, at most 256 characters. */
export const escapeControls = (text: string): string => cut(cut(text, textLimit).replace(unsafe, escaped), textLimit)

/** The stack of whatever was thrown, with its causes, lines kept. */
export function stackOf(thrown: unknown): string {
  const parts: string[] = []
  let error: unknown = thrown
  for (let depth = 0; depth < 5 && error !== undefined; depth += 1) {
    parts.push(error instanceof Error ? (error.stack ?? error.message) : `thrown: ${typeof error}`)
    error = error instanceof Error ? error.cause : undefined
  }
  return cut(parts.join('\ncaused by ').replace(unsafeInStack, escaped), stackLimit)
}
