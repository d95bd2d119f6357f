import { fstatSync, readFileSync, writeSync } from 'node:fs'

/**
 * The one way to standard output and standard error. Node ends a process that writes to either without
 * listening for errors, and prints the source line of whoever wrote; it also takes a write of half the
 * data into a file for a whole one.
 */

const outputDescriptor = 1
/** The exit code of a local fault (`svc help exit-codes`). */
const localFault = 12

let failed = false
let used = false

/**
 * Writes to standard output: the answer, and nothing else. When it cannot be written, standard error
 * says so once and the exit code is 12, unless the command itself fails: its own exit code says more.
 * A reader that leaves early (`svc … | head -1`) has what it asked for: nothing is said of it.
 *
 * False when the data is known not to have arrived; pipes, sockets and terminals tell later.
 */
export function writeOutput(data: string | Uint8Array): boolean {
  used = true
  // What follows a gap would be read as if there were none.
  if (failed) return false
  const bytes = typeof data === 'string' ? Buffer.from(data) : data
  if (needsStream(bytes)) return writeStream(bytes)
  let at = 0
  try {
    while (at < bytes.length) at += writeSync(outputDescriptor, bytes, at)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // A pipe that whoever opened it made non-blocking, and that is full: the stream waits for it.
    if (code === 'EAGAIN') return writeStream(bytes.subarray(at))
    fail(error as NodeJS.ErrnoException)
    return code === 'EPIPE'
  }
}

let streaming = false

function writeStream(bytes: Uint8Array): boolean {
  streaming = true
  // oclif throws whatever error it hears here, but EPIPE.
  process.stdout.removeAllListeners('error').on('error', fail)
  process.stdout.write(bytes)
  return true
}

/** Writes to standard error. A failure is ignored: there is no other place to report it. */
export function writeError(text: string): void {
  guardStandardError()
  process.stderr.write(text)
}

let guarded = false

/**
 * Lets libraries that write to standard error do so safely. Node makes the stream when somebody first
 * asks for it, which costs 4 ms: only then is there anything to guard.
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

/** Whether anything has been written to standard output, with or without success. */
export const outputUsed = (): boolean => used

/** Waits until both streams have passed on what was written to them, for at most `withinMs` each. */
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

/** Bytes that a pipe takes as a whole (PIPE_BUF of Linux). */
const maxAtOnce = 4_096

/**
 * Terminals, and pipes and sockets for a text that they may not take at once: a write that blocks would keep the
 * process from hearing ctrl-C. Everything else is written without the stream, which costs 4 ms to make.
 */
function needsStream(bytes: Uint8Array): boolean {
  // What the stream still holds comes first.
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
    process.exitCode ||= localFault
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
  writeError(`${renderError.text(fault, { colour: useColour(process.stderr) })}\n`)
}

/** Milliseconds until the process ends whatever the report of its last error waits for. */
const maxReportMs = 5_000
/** Milliseconds for what was written to standard output and standard error. */
const maxFlushMs = 1_000

type Report = (error: unknown) => Promise<void>

let reportOfCommand: Report | undefined

/**
 * Ends the process when nobody catches an exception or handles a rejection: what holds then is
 * unknown. Node would print the source line with it, which is all of a bundle. `usual` reports it, unless
 * `reportUncaught` has set another way.
 */
export function endOnUncaught(usual: Report): void {
  let ending = false
  process.on('uncaughtException', (error) => {
    if (ending) return
    ending = true
    process.exitCode = 1
    // Whatever is still open must not keep the process: nothing but an exit ends it for sure.
    setTimeout(() => process.exit(), maxReportMs)
    void (reportOfCommand ?? usual)(error)
      // Parts of the program are missing, for instance.
      .catch(() => writeError(`Error: svc failed unexpectedly: ${JSON.stringify(String(error))}\n`))
      .then(() => flushStandardStreams(maxFlushMs))
      .then(() => process.exit())
  })
}

/** Lets a long-running command report such an error in its own way; the function it gives takes that back. */
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
