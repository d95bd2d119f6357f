/** One line of the server's log, as a plain object. The caller of `start` adds the time and writes it. */
export type LogEntry = {
  readonly level: 'info' | 'warn' | 'error'
  readonly msg: string
  readonly method?: string | undefined
  /** The path. Of the query it holds only the fields of a health check; other values may be secrets. */
  readonly path?: string | undefined
  readonly status?: number | undefined
  readonly ms?: number | undefined
  readonly correlationId?: string | undefined
  /** The run behind a health answer. Several answers may share it. */
  readonly runId?: string | undefined
  readonly address?: string | undefined
  /** The stack of a defect. */
  readonly stack?: string | undefined
  /** Facts about the server itself, e.g. its address. */
  readonly [fact: string]: unknown
}
export type Log = (entry: LogEntry) => void

/** A function that writes the entry and then calls `then` at its first call, and does nothing at later ones. */
export function logOnce(log: Log, entry: LogEntry, then: () => void = () => {}): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    log(entry)
    then()
  }
}

const textLimit = 256
const stackLimit = 8_192
/** Control characters, and characters that reverse or hide text on a screen. */
const unsafe = () => /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu
const unsafeInStack = () => /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
const cut = (text: string, limit: number): string => (text.length > limit ? `${text.slice(0, limit)}…` : text)

/** External text for a log line or a message: unprintable characters escaped, at most 256 characters. */
export const escapeControls = (text: string): string => cut(cut(text, textLimit).replace(unsafe(), escaped), textLimit)

/** The stack of a thrown value with its causes, line breaks kept. */
export function stackOf(thrown: unknown): string {
  const parts: string[] = []
  let error: unknown = thrown
  for (let depth = 0; depth < 5 && error !== undefined; depth += 1) {
    parts.push(error instanceof Error ? (error.stack ?? error.message) : `thrown: ${typeof error}`)
    error = error instanceof Error ? error.cause : undefined
  }
  return cut(parts.join('\ncaused by ').replace(unsafeInStack(), escaped), stackLimit)
}
