import { fstatSync, readFileSync, statSync, writeSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { withoutCommands } from '../../core/base/sanitize.ts'
import type { CommandClock, InputStream, Io, OutputStream, ProcessEnvironment, SignalName, Signals } from './io.ts'
import { OutputScreen } from './terminal.ts'

/**
 * The process that svc runs in. This is the only file of the command line that touches it: everything else gets an
 * `Io`, and what is the same for every caller from `machine`.
 */

/** The target of answers about this machine. */
export const thisMachine = 'this machine'

/** The facts and functions that are the same for every command line of this process. */
export const machine = {
  platform: process.platform,
  arch: process.arch,
  pid: process.pid,
  /** The version of Node. */
  node: process.versions.node,
  execPath: process.execPath,
  /** The account whose permissions count. Undefined on Windows. */
  accountId: (): number | undefined => process.geteuid?.(),
  accountName,
  /** Sets which permissions new files lack, and returns those before. Programs that are started inherit it. */
  umask: (mask: number): number => process.umask(mask),
  addressSpaceLimit,
  /** The text of a system error, such as `no space left on device`. */
  errorText: (errno: number): string => process.getBuiltinModule('node:util').getSystemErrorMessage(errno),
} as const

function accountName(): string {
  try {
    return process.getBuiltinModule('node:os').userInfo().username
  } catch {
    // An account without a name in the user database, as in containers.
    return String(process.getuid?.() ?? 'unknown')
  }
}

/** Bytes of address space that this process may use. Undefined where there is no limit, or nothing tells. */
function addressSpaceLimit(): number | undefined {
  try {
    const [, bytes] = /^Max address space +(\d+) /m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return bytes === undefined ? undefined : Number(bytes)
  } catch {
    return undefined
  }
}

/**
 * The home folder of an environment: that of its variable, else the one that the system has for this account. An empty
 * or relative one would be another folder wherever svc starts.
 */
export function homeOf(env: ProcessEnvironment): string {
  const home = env[process.platform === 'win32' ? 'USERPROFILE' : 'HOME']
  if (home !== undefined && isAbsolute(home)) return home
  // Not `homedir()`, which returns the variable of this process, whatever it holds.
  return process.getBuiltinModule('node:os').userInfo().homedir
}

let own: Io | undefined

/**
 * The `Io` of this process. Every call returns the same one, because a process has one standard output. The first one
 * listens for uncaught exceptions until the process ends.
 */
export function processIo(): Io {
  own ??= makeIo()
  return own
}

function makeIo(): Io {
  const { env } = process
  // oclif detects the shell when it loads, and on Windows starts PowerShell for that.
  env.SHELL ??= env.COMSPEC ?? 'unknown'
  guardStandardError()
  const [script = ''] = process.argv.slice(1)
  const io: Io = {
    env,
    program: [process.execPath, ...process.execArgv, script],
    stdin: new StandardInput(),
    stdout: new StandardOutput(env, () => io.colour, outputIsLost),
    stderr: new StandardError(env, () => io.colour),
    clock,
    signals: processSignals(),
    whenIdle: (listener) => {
      process.once('beforeExit', listener)
      return () => void process.off('beforeExit', listener)
    },
    reserveThreads: (count) => {
      env.UV_THREADPOOL_SIZE ??= String(count)
    },
    get exitCode() {
      return process.exitCode === undefined ? undefined : Number(process.exitCode)
    },
    set exitCode(code) {
      process.exitCode = code
    },
    colour: 'auto',
    reportUncaught: async (error) => lastWords(error),
    reportLostOutput: async () => {},
    exitCodeOfLostOutput: undefined,
  }
  function outputIsLost(error: NodeJS.ErrnoException): void {
    // The command may still set its own exit code.
    process.once('exit', () => {
      process.exitCode = io.exitCodeOfLostOutput ?? (process.exitCode || localFault)
    })
    void io.reportLostOutput(error)
  }
  endOnUncaught(io)
  return io
}

const clock: CommandClock = {
  now: () => new Date(),
  elapsed: () => performance.now(),
  pause: async (ms, signal) => {
    await process.getBuiltinModule('node:timers/promises').setTimeout(ms, undefined, { signal })
  },
}

function processSignals(): Signals {
  const listeners = new Map<SignalName, readonly { readonly listener: (name: SignalName) => void }[]>()
  const call = (name: NodeJS.Signals): void =>
    listeners
      .get(name as SignalName)
      ?.at(-1)
      ?.listener(name as SignalName)
  return {
    take: (names, listener) => {
      const entry = { listener }
      for (const name of names) {
        const earlier = listeners.get(name) ?? []
        if (earlier.length === 0) process.on(name, call)
        listeners.set(name, [...earlier, entry])
      }
      return () => {
        for (const name of names) {
          const others = (listeners.get(name) ?? []).filter((one) => one !== entry)
          if (others.length === 0) process.off(name, call)
          listeners.set(name, others)
        }
      }
    },
    end: (name) => {
      process.removeAllListeners(name)
      process.kill(process.pid, name)
    },
    type: (name) => {
      // Windows has no groups of processes, and there a signal that is sent ends the program unheard.
      if (process.platform === 'win32') process.emit(name)
      else process.kill(0, name)
    },
  }
}

class StandardInput implements InputStream {
  readonly descriptor = 0
  get isTTY(): boolean {
    return process.stdin.isTTY === true
  }
  get stream(): NodeJS.ReadStream {
    return process.stdin
  }
}

/** The exit code of a local fault (`svc help exit-codes`). */
const localFault = 12

const descriptors = { stdout: 1, stderr: 2 } as const

/** One of the standard streams. Node's own stream is made only where it is needed, because that takes 4 ms. */
abstract class StandardStream extends OutputScreen {
  readonly #name: keyof typeof descriptors
  #streaming = false

  constructor(name: keyof typeof descriptors, env: ProcessEnvironment, colour: () => Io['colour']) {
    super(env, process.platform, colour)
    this.#name = name
  }

  get descriptor(): number {
    return descriptors[this.#name]
  }

  override get isFile(): boolean {
    try {
      return fstatSync(this.descriptor).isFile()
    } catch {
      return false
    }
  }

  override get isTTY(): boolean {
    return isTerminal(this.#name)
  }

  override get columns(): number | undefined {
    return this.isTTY ? process[this.#name].columns || undefined : undefined
  }

  get rows(): number | undefined {
    return this.isTTY ? process[this.#name].rows || undefined : undefined
  }

  get stream(): NodeJS.WriteStream {
    return process[this.#name]
  }

  /**
   * Writes without the stream, except to a terminal and for a text that a pipe or a socket may not accept at once: a
   * blocking write would keep the process from handling ctrl-C.
   */
  protected override send(bytes: Uint8Array): boolean {
    if (this.#needsStream(bytes)) return this.#writeStream(bytes)
    let at = 0
    try {
      while (at < bytes.length) at += writeSync(this.descriptor, bytes, at)
      return true
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // The pipe is full, and its creator made it non-blocking: the stream waits for it.
      if (code === 'EAGAIN') return this.#writeStream(bytes.subarray(at))
      this.failed(error as NodeJS.ErrnoException)
      return code === 'EPIPE'
    }
  }

  #writeStream(bytes: Uint8Array): boolean {
    this.#streaming = true
    this.writable().write(bytes)
    return true
  }

  #needsStream(bytes: Uint8Array): boolean {
    // Data still in the stream must go first.
    if (this.#streaming) return true
    try {
      const stat = fstatSync(this.descriptor)
      return stat.isFIFO() || stat.isSocket() ? bytes.length > maxAtOnce : isTerminal(this.#name)
    } catch {
      return true
    }
  }

  /** Node's stream, with a listener for its errors. */
  protected writable(): NodeJS.WriteStream {
    return this.stream
  }

  /** Called with the error of a write. */
  protected failed(_error: NodeJS.ErrnoException): void {}
}

/**
 * The only way to write to standard output. Node ends a process that writes to it without listening for errors, and
 * prints the source line of the write. It also reports success when only half of the data fits into a file.
 */
class StandardOutput extends StandardStream implements OutputStream {
  readonly #lost: (error: NodeJS.ErrnoException) => void
  #failed = false

  constructor(env: ProcessEnvironment, colour: () => Io['colour'], lost: (error: NodeJS.ErrnoException) => void) {
    super('stdout', env, colour)
    this.#lost = lost
  }

  protected override send(bytes: Uint8Array): boolean {
    // A reader could not notice the gap before later output.
    return !this.#failed && super.send(bytes)
  }

  protected override writable(): NodeJS.WriteStream {
    // oclif throws every error that its listener receives, except EPIPE.
    return process.stdout.removeAllListeners('error').on('error', (error) => this.failed(error))
  }

  protected override failed(error: NodeJS.ErrnoException): void {
    if (this.#failed) return
    this.#failed = true
    if (error.code !== 'EPIPE') this.#lost(error)
  }
}

/** Bytes that a pipe accepts atomically (PIPE_BUF of Linux). */
const maxAtOnce = 4_096

class StandardError extends StandardStream implements OutputStream {
  constructor(env: ProcessEnvironment, colour: () => Io['colour']) {
    super('stderr', env, colour)
  }
}

/** Whether this stream is a terminal. All else, also /dev/null, is recognized without the stream, which takes 4 ms. */
function isTerminal(name: keyof typeof descriptors): boolean {
  try {
    const stat = fstatSync(descriptors[name])
    if (!stat.isCharacterDevice() || stat.rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev) return false
  } catch {
    // Node's stream may still know.
  }
  return process[name].isTTY === true
}

/**
 * Lets libraries write to standard error safely: without a listener, Node ends a process whose write fails. Node creates
 * the stream on first access, which takes 4 ms, so the listener is attached only then.
 */
function guardStandardError(): void {
  const made = Object.getOwnPropertyDescriptor(process, 'stderr')
  if (!made?.get) {
    process.stderr.on('error', () => {})
    return
  }
  Object.defineProperty(process, 'stderr', {
    ...made,
    get: () => {
      Object.defineProperty(process, 'stderr', made)
      process.stderr.on('error', () => {})
      return process.stderr
    },
  })
}

/** Milliseconds until the process ends, even if the report of its last error is still waiting. */
const maxReportMs = 5_000
/** Milliseconds to flush standard output and standard error. */
const maxFlushMs = 1_000

/**
 * Ends the process on an uncaught exception or an unhandled rejection: the state of the program is unknown then. Node
 * would print the source line, which is the whole bundle.
 */
function endOnUncaught(io: Io): void {
  let ending = false
  process.on('uncaughtException', (error) => {
    if (ending) return
    ending = true
    process.exitCode = 1
    // Open handles must not keep the process alive; only an exit is sure to end it.
    setTimeout(() => process.exit(), maxReportMs)
    void io
      .reportUncaught(error)
      // The report itself may fail, for example because parts of the program are missing.
      .catch(() => lastWords(error))
      .then(flushStandardStreams)
      .then(() => process.exit())
  })
}

function lastWords(error: unknown): void {
  const reason = withoutCommands(JSON.stringify(String(error)), 'json')
  process.stderr.write(`Error: svc failed unexpectedly: ${reason}\n`)
}

async function flushStandardStreams(): Promise<void> {
  await Promise.all([process.stdout, process.stderr].map(flushed))
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, maxFlushMs)
    stream.write('', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

type PackageJson = { readonly name: string; readonly version: string; readonly [key: string]: unknown }

let read: PackageJson | undefined

/** The package's own package.json: three folders up from the sources, one up from the bundle. */
export function packageJson(): PackageJson {
  if (read) return read
  const file = `${import.meta.dirname}${import.meta.filename.endsWith('.ts') ? '/../../..' : '/..'}/package.json`
  read = JSON.parse(readFileSync(file, 'utf8')) as PackageJson
  return read
}

/** The folder that holds package.json. */
export const packageRoot = (): string => {
  const here = import.meta.url
  return decodeURIComponent(new URL(here.endsWith('.ts') ? '../../..' : '..', here).pathname)
}
