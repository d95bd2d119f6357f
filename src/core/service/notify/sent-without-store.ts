import { orLate } from '../../base/pace.ts'
import type { KeeperLog } from '../../store/index.ts'
import {
  headOf,
  linesOf,
  mostBytes,
  mostLines,
  type NoticeItem,
  rowsOfSent,
  type StoredRow,
} from '../../watch/outbox/index.ts'
import type { PrivateFile } from '../part.ts'

/** For how long a message waits for the file. Milliseconds. */
const waitMs = 5_000

/**
 * Keeps what a process sends without the store until a store has it, through SIGTERM and SIGKILL alike. It never keeps a
 * message from leaving: what cannot be written is logged, and kept in memory.
 */
export class SentWithoutStore {
  readonly #file: PrivateFile
  readonly #node: string
  readonly #storeId: () => Promise<string>
  readonly #now: () => number
  readonly #log: KeeperLog
  #store: string | undefined
  /** Whether the file has the head of this process: its last lines may be about another store. */
  #hasHead = false
  /** The size of the file. Undefined: not known yet. */
  #size: { readonly lines: number; readonly bytes: number } | undefined
  #unwritten = ''
  #problem: string | undefined
  #working: Promise<unknown> = Promise.resolve()

  constructor(options: {
    readonly file: PrivateFile
    readonly node: string
    /** Rejects while the store cannot be reached. */
    readonly storeId: () => Promise<string>
    /** Milliseconds since 1970. */
    readonly now?: (() => number) | undefined
    readonly log: KeeperLog
  }) {
    this.#file = options.file
    this.#node = options.node
    this.#storeId = options.storeId
    this.#now = options.now ?? Date.now
    this.#log = options.log
  }

  /** Notes a message that is about to leave, or was accepted. Never rejects. */
  async note(receiver: string, items: readonly NoticeItem[], isAccepted = false): Promise<void> {
    const noted = this.#next(async () => {
      const lines = linesOf(receiver, items, this.#now(), isAccepted)
      if (lines.length === 0) return true
      this.#unwritten = `${this.#unwritten}${lines.join('')}`.slice(-mostBytes)
      const before = this.#size ?? sizeOf((await this.#file.read()) ?? '')
      const text = `${this.#hasHead ? '' : headOf(this.#store, this.#node)}${this.#unwritten}`
      const more = sizeOf(text)
      const size = { lines: before.lines + more.lines, bytes: before.bytes + more.bytes }
      this.#size = before
      if (size.lines > mostLines || size.bytes > mostBytes) throw new Error('it is full')
      await this.#file.append(text)
      this.#size = size
      this.#unwritten = ''
      this.#hasHead = true
      this.#problem = undefined
      return true
    })
    const isNoted = await orLate(
      noted.catch((error: unknown) => this.#failed(error)),
      waitMs,
    )
    if (isNoted === undefined) this.#failed(new Error('it does not answer'))
  }

  /** The rows that the store may lack. Rejects while the store cannot be reached. */
  async rows(): Promise<readonly StoredRow[]> {
    return await this.#next(async () => {
      this.#store ??= await this.#storeId()
      let written = ''
      try {
        written = (await this.#file.read()) ?? ''
      } catch (error) {
        this.#failed(error)
      }
      this.#size = sizeOf(written)
      const text = `${written}${headOf(this.#store, this.#node)}${this.#unwritten}`
      const { rows, passedOver } = rowsOfSent(text, { store: this.#store, node: this.#node, now: this.#now() })
      if (passedOver > 0) this.#warn(`${passedOver} lines are passed over: of another store, too old or damaged`)
      return rows
    })
  }

  /** The store has it. Never rejects. */
  async forget(): Promise<void> {
    await this.#next(async () => {
      this.#unwritten = ''
      if (this.#size?.bytes === 0) return
      await this.#file.remove()
      this.#size = { lines: 0, bytes: 0 }
      this.#hasHead = false
    }).catch((error: unknown) => this.#failed(error))
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#working.then(work)
    this.#working = next.catch(() => {})
    return next
  }

  #failed(error: unknown): false {
    const reason = error instanceof Error ? error.message : String(error)
    if (reason !== this.#problem) this.#warn(`what is sent without the store does not outlive this process: ${reason}`)
    this.#problem = reason
    return false
  }

  #warn(message: string): void {
    this.#log({ level: 'warn', msg: `${this.#file.path}: ${message}` })
  }
}

const sizeOf = (text: string): { readonly lines: number; readonly bytes: number } => ({
  lines: text.split('\n').length - 1,
  bytes: Buffer.byteLength(text),
})
