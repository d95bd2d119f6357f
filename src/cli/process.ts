import { fstatSync, readFileSync, writeSync } from 'node:fs'

/**
 * The only way to write to standard output and standard error. Node ends a process that writes to either without
 * listening for errors, and prints the source line of the write. It also reports success when only half of the data
 * fits into a file.
 */

const outputDescriptor = 1
/** The exit code of a local fault (`svc help exit-codes`). */
const localFault = 12

let failed = false
let used = false
let exitWhenLost: number | undefined

/** Sets the exit code of a lost answer for a reader that gives 12 no meaning, whatever the answer was. */
export function exitWhenOutputIsLost(code: number): void {
  exitWhenLost = code
}

/**
 * Writes the answer, and nothing else, to standard output. When that fails, one message goes to standard error and the
 * exit code is that of `exitWhenOutputIsLost`, or 12 unless the command itself fails: its own exit code takes
 * precedence. A reader that leaves early (`svc … | head -1`) is not an error and causes no message.
 *
 * Returns false when the data is known to be lost. Pipes, sockets and terminals report that later.
 */
export function writeOutput(data: string | Uint8Array): boolean {
  used = true
  // A reader could not notice the gap before later output.
  if (failed) return false
  const bytes = typeof data === 'string' ? Buffer.from(data) : data
  if (needsStream(bytes)) return writeStream(bytes)
  let at = 0
  try {
    while (at < bytes.length) at += writeSync(outputDescriptor, bytes, at)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // The pipe is full, and its creator made it non-blocking: the stream waits for it.
    if (code === 'EAGAIN') return writeStream(bytes.subarray(at))
    fail(error as NodeJS.ErrnoException)
    return code === 'EPIPE'
  }
}

let streaming = false

function writeStream(bytes: Uint8Array): boolean {
  streaming = true
  // oclif throws every error that its listener receives, except EPIPE.
  process.stdout.removeAllListeners('error').on('error', fail)
  process.stdout.write(bytes)
  return true
}

/** Writes to standard error. Failures are ignored, because there is no other place to report them. */
export function writeError(text: string | Uint8Array): void {
  guardStandardError()
  process.stderr.write(text)
}

let guarded = false

/**
 * Lets libraries write to standard error safely. Node creates the stream on first access, which takes 4 ms, so the
 * guard is attached only then.
 */
export function guardStandardError(): void {
  if (guarded) return
  guarded = true
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

/** Whether anything has been written to standard output, successfully or not. */
export const outputUsed = (): boolean => used

/** Waits until both streams are flushed, for at most `withinMs` each. */
export async function flushStandardStreams(withinMs: number): Promise<void> {
  guardStandardError()
  await Promise.all([process.stdout, process.stderr].map((stream) => flushed(stream, withinMs)))
}

function flushed(stream: NodeJS.WriteStream, withinMs: number): Promise<void> {
  if (stream.writableLength === 0) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, withinMs)
    stream.write('', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Bytes that a pipe accepts atomically (PIPE_BUF of Linux). */
const maxAtOnce = 4_096

/**
 * Terminals need the stream, and so do pipes and sockets for a text that they may not accept at once: a blocking write
 * would keep the process from handling ctrl-C. Everything else is written without the stream, which takes 4 ms to
 * create.
 */
function needsStream(bytes: Uint8Array): boolean {
  // Data still in the stream must go first.
  if (streaming) return true
  try {
    const stat = fstatSync(outputDescriptor)
    if (stat.isFIFO() || stat.isSocket()) return bytes.length > maxAtOnce
    return stat.isCharacterDevice() && process.stdout.isTTY === true
  } catch {
    return true
  }
}

function fail(error: NodeJS.ErrnoException): void {
  if (failed) return
  failed = true
  if (error.code === 'EPIPE') return
  // The command may still set its own exit code.
  process.once('exit', () => {
    process.exitCode = exitWhenLost ?? (process.exitCode || localFault)
  })
  void report(error)
}

async function report(error: NodeJS.ErrnoException): Promise<void> {
  const [{ Fault }, { renderError }, { useColour }, { getSystemErrorMessage }] = await Promise.all([
    import('../core/errors.ts'),
    import('./render/errors.ts'),
    import('./terminal.ts'),
    import('node:util'),
  ])
  const reason = error.errno === undefined ? error.message : getSystemErrorMessage(error.errno)
  const fault = new Fault('Local', `cannot write to standard output: ${reason}`)
  writeError(
    `${renderError.text(fault, { colour: useColour(process.stderr), width: process.stderr.columns || undefined })}\n`,
  )
}

/** Milliseconds until the process ends, even if the report of its last error is still waiting. */
const maxReportMs = 5_000
/** Milliseconds to flush standard output and standard error. */
const maxFlushMs = 1_000

type Report = (error: unknown) => Promise<void>

let reportOfCommand: Report | undefined

/**
 * Ends the process on an uncaught exception or an unhandled rejection: the state of the program is unknown then. Node
 * would print the source line, which is the whole bundle. `usual` reports the error, unless `reportUncaught` has set
 * another function.
 */
export function endOnUncaught(usual: Report): void {
  let ending = false
  process.on('uncaughtException', (error) => {
    if (ending) return
    ending = true
    process.exitCode = 1
    // Open handles must not keep the process alive; only an exit is sure to end it.
    setTimeout(() => process.exit(), maxReportMs)
    void (reportOfCommand ?? usual)(error)
      // The report itself may fail, for example because parts of the program are missing.
      .catch(() => writeError(`Error: svc failed unexpectedly: ${JSON.stringify(String(error))}\n`))
      .then(() => flushStandardStreams(maxFlushMs))
      .then(() => process.exit())
  })
}

/** Lets a command report such errors in its own way. The function it returns undoes that. */
export function reportUncaught(how: Report): () => void {
  reportOfCommand = how
  return () => {
    reportOfCommand = undefined
  }
}

type PackageJson = { readonly name: string; readonly version: string; readonly [key: string]: unknown }

let read: PackageJson | undefined

/** The package's own package.json: two folders up from the sources, one up from the bundle. */
export function packageJson(): PackageJson {
  if (read) return read
  const file = `${import.meta.dirname}${import.meta.filename.endsWith('.ts') ? '/../..' : '/..'}/package.json`
  read = JSON.parse(readFileSync(file, 'utf8')) as PackageJson
  return read
}

/** The folder that holds package.json. */
export const packageRoot = (): string => {
  const here = import.meta.url
  return decodeURIComponent(new URL(here.endsWith('.ts') ? '../..' : '..', here).pathname)
}
