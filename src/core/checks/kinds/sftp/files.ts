import type { Client, FileEntryWithStats, SFTPWrapper } from 'ssh2'
import { showDuration } from '../../../base/format.ts'
import { quote, type Redact, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { CheckContext } from '../../engine/index.ts'
import type { Files } from '../../folders/index.ts'

/** Bytes of one read or write; every server accepts this size. */
const chunkBytes = 32 * 1024
/** Maximum number of parallel requests, which keeps a connection with high latency busy. */
const inFlight = 16

/** Maximum number of replies without an entry in one listing. */
const maxEmpty = 10

type Done<T> = (error: Error | null | undefined, value: T) => void

/** An SFTP session. Every request is answered within a share of the remaining time, or ends the session. */
export class Sftp {
  readonly #sftp: SFTPWrapper
  readonly #address: string
  readonly #context: CheckContext
  readonly #redact: Redact
  #ended: { readonly cause: unknown } | undefined
  readonly #lost = Promise.withResolvers<never>()

  private constructor(sftp: SFTPWrapper, client: Client, address: string, context: CheckContext, redact: Redact) {
    this.#sftp = sftp
    this.#address = address
    this.#context = context
    this.#redact = redact
    // Prevents an unhandled rejection while no request is pending.
    this.#lost.promise.catch(() => {})
    client.once('close', () => this.#end(new ProbeError('protocol', `${address} closed the connection`)))
    sftp.once('close', () => this.#end(new ProbeError('protocol', `${address} closed the SFTP session`)))
    sftp.on('error', (error: Error) =>
      this.#end(
        error instanceof ProbeError
          ? error
          : new ProbeError('protocol', `${address} violates the SFTP protocol`, [sanitize(redact(error.message))]),
      ),
    )
  }

  /** Starts the subsystem. Throws ProbeError `data` if the server refuses. */
  static async start(client: Client, address: string, context: CheckContext, redact: Redact): Promise<Sftp> {
    const sftp = await new Promise<SFTPWrapper>((resolve, reject) => {
      client.once('close', () =>
        reject(new ProbeError('protocol', `${address} closed the connection before SFTP began`)),
      )
      client.sftp((error, channel) => {
        if (error === undefined || error === null) resolve(channel)
        else
          reject(
            new ProbeError(
              'data',
              `signed in, but ${address} did not start SFTP: ${quote(redact(error.message), 120)}`,
            ),
          )
      })
    })
    return new Sftp(sftp, client, address, context, redact)
  }

  get usable(): boolean {
    return this.#ended === undefined
  }

  realpath(path: string): Promise<string> {
    return this.#ask('realpath', (sftp, done) => sftp.realpath(path, done))
  }

  /** The entries of a folder, up to `most`, because the server could send any number. */
  async list(
    path: string,
    most: number,
  ): Promise<{ readonly entries: readonly FileEntryWithStats[]; readonly more: boolean }> {
    const handle = await this.#ask<Buffer>(`opening ${quote(this.#redact(path), 80)}`, (sftp, done) =>
      sftp.opendir(path, done),
    )
    const entries: FileEntryWithStats[] = []
    let empty = 0
    try {
      while (entries.length <= most) {
        const part = await this.#ask<readonly FileEntryWithStats[] | undefined>('listing', (sftp, done) =>
          sftp.readdir(handle, (error, list) => (isEnd(error) ? done(undefined, undefined) : done(error, list))),
        )
        if (part === undefined) break
        // The driver omits `.` and `..`, so one or two replies may be empty; a hostile server could send empty replies
        // for ever.
        empty += part.length === 0 ? 1 : 0
        if (empty > maxEmpty) throw new ProbeError('protocol', `${this.#address} sent a folder listing without an end`)
        entries.push(...part)
      }
    } finally {
      if (this.usable)
        await this.#ask('closing', (sftp, done) => sftp.close(handle, (error) => done(error, undefined))).catch(
          () => {},
        )
    }
    return { entries: entries.slice(0, most), more: entries.length > most }
  }

  /** The file operations for the round trip in a folder. */
  files(folder: string, most: number): Files {
    const at = (name: string): string => `${folder.replace(/(?<!\/)\/+$/, '')}/${name}`
    const plain = (
      what: string,
      act: (sftp: SFTPWrapper, done: (error?: Error | null) => void) => void,
    ): Promise<void> => this.#ask<undefined>(what, (sftp, done) => act(sftp, (error) => done(error, undefined)))
    return {
      write: (name, bytes) => this.#write(at(name), bytes),
      read: (name, max) => this.#read(at(name), max),
      rename: (from, to) => plain('renaming', (sftp, done) => sftp.rename(at(from), at(to), done)),
      remove: (name) => plain('deleting', (sftp, done) => sftp.unlink(at(name), done)),
      names: async () => (await this.list(folder, most)).entries.map((entry) => entry.filename),
      isListed: async (name) => {
        const { entries, more } = await this.list(folder, most)
        return entries.some((entry) => entry.filename === name) || (more ? undefined : false)
      },
    }
  }

  async #write(path: string, bytes: Uint8Array): Promise<void> {
    const handle = await this.#ask<Buffer>('creating the test file', (sftp, done) => sftp.open(path, 'wx', done))
    const whole = Buffer.from(bytes)
    await this.#chunks(whole.length, (from, length) =>
      this.#ask<undefined>('writing', (sftp, done) =>
        sftp.write(handle, whole, from, length, from, (error) => done(error, undefined)),
      ),
    )
    await this.#ask<undefined>('closing the test file', (sftp, done) =>
      sftp.close(handle, (error) => done(error, undefined)),
    )
  }

  async #read(path: string, max: number): Promise<Uint8Array> {
    const handle = await this.#ask<Buffer>('opening the test file', (sftp, done) => sftp.open(path, 'r', done))
    const whole = Buffer.alloc(max)
    let end = max
    await this.#chunks(max, async (from, length) => {
      for (let at = from; at < from + length; ) {
        const got = await this.#ask<number>('reading', (sftp, done) =>
          sftp.read(handle, whole, at, from + length - at, at, (error, read) =>
            isEnd(error) ? done(undefined, 0) : done(error, read),
          ),
        )
        if (got === 0) {
          end = Math.min(end, at)
          return
        }
        at += got
      }
    })
    await this.#ask<undefined>('closing the test file', (sftp, done) =>
      sftp.close(handle, (error) => done(error, undefined)),
    )
    return whole.subarray(0, end)
  }

  async #chunks(length: number, move: (from: number, length: number) => Promise<unknown>): Promise<void> {
    for (let from = 0; from < length; from += inFlight * chunkBytes) {
      const starts = Array.from({ length: inFlight }, (_, index) => from + index * chunkBytes).filter(
        (at) => at < length,
      )
      await Promise.all(starts.map((at) => move(at, Math.min(chunkBytes, length - at))))
    }
  }

  async #ask<T>(what: string, ask: (sftp: SFTPWrapper, done: Done<T>) => void): Promise<T> {
    if (this.#ended) throw this.#ended.cause
    const ms = Math.max(1, Math.min(5_000, this.#context.msLeft() / 2))
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      const cause = new ProbeError('timeout', `${this.#address} did not answer ${what} within ${showDuration(ms)}`)
      this.#end(cause)
      late.reject(cause)
    }, ms)
    const answer = new Promise<T>((resolve, reject) => {
      ask(this.#sftp, (error, value) => (error ? reject(this.#refused(what, error)) : resolve(value)))
    })
    try {
      return await Promise.race([answer, late.promise, this.#lost.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  #refused(what: string, error: Error): unknown {
    const { code } = error as { readonly code?: unknown }
    const reason = quote(this.#redact(error.message), 120)
    if (typeof code === 'number') {
      // The protocol has no code for a full disk before version 5, and OpenSSH speaks version 3.
      const full = code === failureCode && writes.has(what) ? ': often a full disk or quota' : ''
      return new ProbeError('data', `${this.#address} refused ${what}: ${reason}${full}`)
    }
    return this.#ended?.cause ?? new ProbeError('protocol', `${what} failed: ${reason}`)
  }

  #end(cause: unknown): void {
    if (this.#ended) return
    this.#ended = { cause }
    this.#lost.reject(cause)
  }
}

/** SSH_FX_FAILURE: an error without a code of its own. */
const failureCode = 4
const writes = new Set(['creating the test file', 'writing', 'closing the test file'])

/** SSH_FX_EOF: not an error, but the end. */
const isEnd = (error: Error | null | undefined): boolean =>
  (error as { readonly code?: unknown } | undefined)?.code === 1
