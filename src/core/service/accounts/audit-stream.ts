import { type FileHandle, open, stat } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../../base/errors.ts'
import { fileMeaning, isFileOutage } from '../../base/file-errors.ts'

/** Milliseconds that a change waits for its line. A request must be answered within 2 s. */
const maxWaitMs = 1_000
/** Of what was written before a start. A transaction in progress has written less. */
const maxTailBytes = 1_048_576

type Waiting = {
  readonly text: string
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * A file to which lines are appended. They are on the disk before `write` resolves. Lines that arrive while others are
 * being written share the next flush. If the file was moved away, as by log rotation, a new one is created.
 */
export class AuditStream {
  readonly #path: string
  #handle: FileHandle | undefined
  #queue: Waiting[] = []
  #running: Promise<void> | undefined
  /** Whether the file may end within a line. */
  #isTorn = false
  #problem: string | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Why the last write failed: the file and its problem. Undefined: it succeeded. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Opens the file. Throws Fault Local if that is impossible; on a full or read-only disk, the next write tries again. */
  async open(): Promise<void> {
    try {
      await this.#reopened()
    } catch (error) {
      if (isFileOutage(error)) {
        this.#problem = this.#reason(error)
        return
      }
      throw new Fault('Local', `The audit stream cannot be written: ${this.#reason(error)}`, {
        hints: ['serve.audit.stream in svc.yaml names its file.'],
        cause: error,
      })
    }
  }

  /** The end of the file, at least the last lines of it; nothing if it could not be made yet. Throws errors of the file system. */
  async tail(): Promise<string> {
    const handle = await open(this.#path, 'r').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    if (handle === undefined) return ''
    try {
      const { size } = await handle.stat()
      const end = Buffer.alloc(Math.min(size, maxTailBytes))
      await handle.read(end, 0, end.length, size - end.length)
      return end.toString()
    } finally {
      await handle.close()
    }
  }

  /** Appends lines in one piece. Rejects with Fault Unavailable if they are not on the disk in time. */
  async write(lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#queue.push({ text: lines.map((line) => `${line}\n`).join(''), resolve, reject })
    this.#running ??= this.#run()
    const late = new AbortController()
    const timeout = wait(maxWaitMs, undefined, { signal: late.signal }).then(() => {
      this.#problem ??= `${this.#path} does not answer`
      throw refused()
    })
    try {
      await Promise.race([promise, timeout])
    } finally {
      late.abort()
      timeout.catch(() => {})
      promise.catch(() => {})
    }
  }

  async close(): Promise<void> {
    await this.#running
    await this.#handle?.close().catch(() => {})
    this.#handle = undefined
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue
      this.#queue = []
      try {
        const handle = await this.#reopened()
        const start = this.#isTorn ? '\n' : ''
        this.#isTorn = true
        await handle.appendFile(start + batch.map(({ text }) => text).join(''))
        await handle.datasync()
        this.#isTorn = false
        this.#problem = undefined
        for (const { resolve } of batch) resolve()
      } catch (error) {
        this.#problem = this.#reason(error)
        for (const { reject } of batch) reject(refused(error))
      }
    }
    this.#running = undefined
  }

  /** The open file, if it still has its name; otherwise another one. */
  async #reopened(): Promise<FileHandle> {
    const there = await stat(this.#path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    if (this.#handle) {
      const own = await this.#handle.stat()
      if (there?.ino === own.ino && there.dev === own.dev) return this.#handle
      await this.#handle.close().catch(() => {})
      this.#handle = undefined
    }
    if (there && !there.isFile()) throw new NotAFile()
    const handle = await open(this.#path, 'a+', 0o600)
    this.#handle = handle
    const { size } = await handle.stat()
    const last = Buffer.alloc(1)
    if (size > 0) await handle.read(last, 0, 1, size - 1)
    this.#isTorn = size > 0 && last[0] !== 10
    return handle
  }

  #reason(error: unknown): string {
    const why = error instanceof NotAFile ? 'is not a regular file' : fileMeaning(error)
    return `${this.#path} ${why ?? String(error)}`
  }
}

class NotAFile extends Error {}

/** Without the path, because the fault goes over HTTP (S6). */
const refused = (cause?: unknown): Fault =>
  new Fault('Unavailable', 'The audit stream cannot be written, so nothing was changed', {
    errorCode: 'AuditStreamUnavailable',
    retryAfter: 5,
    cause,
  })
