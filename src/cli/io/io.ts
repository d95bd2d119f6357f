import type { Readable, Writable } from 'node:stream'
import type { TextForm } from '../../core/base/sanitize.ts'

/** The environment variables of one command line. */
export type ProcessEnvironment = Readonly<Record<string, string | undefined>>

/** `--color`. */
export type ColourFlag = 'auto' | 'always' | 'never'

/** The properties of the stream that shows the text of a renderer. */
export type Screen = {
  readonly isTTY: boolean
  /** Undefined where nobody knows it, as in a pipe. */
  readonly columns: number | undefined
  /** Lines, where they are known. */
  readonly rows?: number | undefined
  readonly colour: boolean
  /** Whether it shows `✓`, `✗`, `·` and `…`. */
  readonly unicode: boolean
}

export type OutputStream = Screen & {
  /** The descriptor behind it, if there is one that a child process can inherit. */
  readonly descriptor: number | undefined
  /** Whether it is a regular file, which no CI runner reads as the log of a job. */
  readonly isFile: boolean
  /** Whether anything has been written to it, successfully or not. */
  readonly used: boolean
  /**
   * Writes whole lines, or a whole part of a document, so that no CI runner finds a command in them (K6). The form is
   * `text` by default; records are unchanged in a file. Bytes are those of another program, and unchanged. Returns false
   * when the data is known to be lost. Pipes, sockets and terminals report that later.
   */
  readonly write: (data: string | Uint8Array, form?: TextForm) => boolean
  /** Made on first use, which takes 4 ms in a process. */
  readonly stream: Writable
}

export type InputStream = {
  readonly isTTY: boolean
  readonly descriptor: number | undefined
  /** Made on first use. */
  readonly stream: Readable & { readonly setRawMode?: (raw: boolean) => unknown }
}

export type CommandClock = {
  readonly now: () => Date
  /** Milliseconds from an arbitrary moment. They never go back. */
  readonly elapsed: () => number
  /** Rejects when the signal aborts. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
}

export type SignalName = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGQUIT' | 'SIGTSTP' | 'SIGCONT'
export type Signals = {
  /** Calls `listener` at these signals instead of all earlier listeners, until the returned function is called. */
  readonly take: (names: readonly SignalName[], listener: (name: SignalName) => void) => () => void
  /** Ends the program by a signal, as if nobody listened to it. */
  readonly end: (name: SignalName) => void
  /** Sends a signal to all programs of this command line, as a terminal does for ctrl-C or ctrl-Z. */
  readonly type: (name: SignalName) => void
}

type Report = (error: unknown) => Promise<void>

/**
 * The environment of a command line: everything that it reads, writes and leaves behind. `main` and every command reach
 * the process only through it, so that one process can run several command lines, each with an `Io` of its own.
 */
export type Io = {
  readonly env: ProcessEnvironment
  /** The words that start this svc again: Node with its options, and the script. */
  readonly program: readonly [string, ...(readonly string[])]
  readonly stdin: InputStream
  /** The answer, and nothing else. A reader that leaves early (`svc … | head -1`) is not an error. */
  readonly stdout: OutputStream
  /** Everything else. Failures of it are ignored, because there is no other place to report them. */
  readonly stderr: OutputStream
  readonly clock: CommandClock
  readonly signals: Signals
  /** Calls `listener` when nothing is left that could happen, until the returned function is called. */
  readonly whenIdle: (listener: () => void) => () => void
  /** Sets the number of threads for blocking work. Only effective before the first of it, such as reading a file. */
  readonly reserveThreads: (count: number) => void
  /** Undefined means 0. */
  exitCode: number | undefined
  /** Decides `colour` of the streams. */
  colour: ColourFlag
  /** Reports what nobody catches. The program ends afterwards: its state is unknown. */
  reportUncaught: Report
  /** Reports that standard output cannot be written, before the program ends with 12 or the exit code of the command. */
  reportLostOutput: Report
  /** The exit code of a lost answer for a reader that gives 12 no meaning, whatever the answer was. */
  exitCodeOfLostOutput: number | undefined
}
