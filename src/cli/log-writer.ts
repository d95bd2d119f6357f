import { getSystemErrorMessage } from 'node:util'
import sonicBoom from 'sonic-boom'

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
