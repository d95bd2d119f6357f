import { constants } from 'node:os'
import { Readable, Writable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import type { ColourFlag, Io, OutputStream, ProcessEnvironment, SignalName } from '../../../src/cli/io/io.ts'
import { OutputScreen } from '../../../src/cli/io/terminal.ts'

const entry = new URL('../../../bin/run.js', import.meta.url).pathname

export type CapturedOptions = {
  readonly env?: ProcessEnvironment
  /** All that the command can read. A stream need not end. */
  readonly stdin?: string | Buffer | Readable
  /** Makes a terminal of this width of standard output and standard error. Without it they are pipes. */
  readonly columns?: number
  /** Makes a file of standard output. */
  readonly file?: boolean
  readonly clock?: Partial<Io['clock']>
}

export type CapturedIo = {
  readonly io: Io
  readonly stdout: () => string
  readonly stderr: () => string
  /** Sends a signal to the command. The second SIGINT or SIGTERM ends a real process at once; here it is only noted. */
  readonly signal: (name: SignalName) => void
  /** Listeners that the command has not taken back. */
  readonly listening: () => number
}

/** An `Io` without a process: what a command writes is captured, and its exit code stays in `io.exitCode`. */
export function capturedIo({
  env = {},
  stdin = '',
  columns,
  file = false,
  clock = {},
}: CapturedOptions = {}): CapturedIo {
  const colour = (): ColourFlag => io.colour
  const stdout = new CapturedOutput(env, columns, colour, file)
  const stderr = new CapturedOutput(env, columns, colour)
  const { signals, signal, listening } = capturedSignals((code) => {
    io.exitCode = code
  })
  const io: Io = {
    env,
    program: [process.execPath, entry],
    stdin: {
      isTTY: false,
      descriptor: undefined,
      stream: stdin instanceof Readable ? stdin : Readable.from(stdin.length === 0 ? [] : [Buffer.from(stdin)]),
    },
    stdout,
    stderr,
    clock: {
      now: () => new Date(),
      elapsed: () => performance.now(),
      pause: (ms, abort) => setTimeout(ms, undefined, { signal: abort }),
      ...clock,
    },
    signals,
    whenIdle: () => () => {},
    reserveThreads: () => {},
    exitCode: undefined,
    colour: 'auto',
    reportUncaught: async () => {},
    reportLostOutput: async () => {},
    exitCodeOfLostOutput: undefined,
  }
  return { io, stdout: () => stdout.text, stderr: () => stderr.text, signal, listening }
}

class CapturedOutput extends OutputScreen implements OutputStream {
  readonly descriptor = undefined
  readonly isTTY: boolean
  readonly isFile: boolean
  readonly columns: number | undefined
  readonly stream: Writable
  readonly #chunks: Buffer[] = []

  constructor(env: ProcessEnvironment, columns: number | undefined, colour: () => ColourFlag, isFile = false) {
    super(env, process.platform, colour)
    this.isTTY = columns !== undefined
    this.isFile = isFile
    this.columns = columns
    this.stream = new Writable({
      write: (chunk: Buffer, _, done) => {
        this.send(chunk)
        done()
      },
    })
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString()
  }

  protected override send(data: Uint8Array): boolean {
    this.#chunks.push(Buffer.from(data))
    return true
  }
}

function capturedSignals(end: (code: number) => void): Pick<CapturedIo, 'signal' | 'listening'> & Pick<Io, 'signals'> {
  let taken: readonly { readonly names: readonly SignalName[]; readonly listener: (name: SignalName) => void }[] = []
  return {
    signals: {
      take: (names, listener) => {
        const entered = { names, listener }
        taken = [...taken, entered]
        return () => {
          taken = taken.filter((one) => one !== entered)
        }
      },
      end: (name) => end(128 + constants.signals[name]),
      type: (name) => taken.findLast(({ names }) => names.includes(name))?.listener(name),
    },
    signal: (name) => taken.findLast(({ names }) => names.includes(name))?.listener(name),
    listening: () => taken.length,
  }
}
