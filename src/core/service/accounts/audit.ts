import { readFile, rename, writeFile } from 'node:fs/promises'
import { Fault } from '../../base/errors.ts'
import type { Family } from '../../protocol/service/family.ts'
import {
  type ChainEntry,
  type ChainHead,
  entryHash,
  entryLine,
  headText,
  noteLine,
  readHead,
  sealLine,
  sealsWithEntries,
  unsealedIn,
  withdrawalLine,
} from '../../store/audit/index.ts'
import { type AuditGate, type Data, type KeeperLog, loadSeals } from '../../store/index.ts'
import type { Part } from '../part.ts'
import { AuditStream } from './audit-stream.ts'

/** Milliseconds between two seals. */
const sealEveryMs = 1_000
/** A node seals unless another one has just done so. Timers are not exact. */
const unlessNewerThanMs = 900
/** How many seals of 1,000 entries one tick makes, so that sealing an upgraded store leaves time for other work. */
const maxSealsPerTick = 5
const headEveryMs = 3_600_000
/** How often a stream that failed is tried again. Milliseconds. */
const tryAgainMs = 5_000

type Options = {
  /** The file of the stream. Undefined: none. */
  readonly stream: string | undefined
  readonly log: KeeperLog
}

/**
 * Seals the audit entries of all nodes in `svc serve`, writes the head to its log (S13), and streams the entries (S14).
 */
export function auditPart(store: () => Promise<Data>, { stream: path, log }: Options): Part {
  const stream = path === undefined ? undefined : new Follower(path, log)
  let head: ChainHead | undefined
  let headLoggedAt = Number.NEGATIVE_INFINITY
  let failures = 0
  let fault: string | undefined
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined

  const tick = async (): Promise<void> => {
    const { audit } = await store()
    try {
      ;({ head } = await audit.seal({ unlessNewerThanMs, maxSeals: maxSealsPerTick }))
      if (fault !== undefined) log({ level: 'info', msg: 'the audit is sealed again' })
      fault = undefined
    } catch (error) {
      failures += 1
      const reason = error instanceof Error ? error.message : String(error)
      if (reason !== fault) log({ level: 'warn', msg: `the audit cannot be sealed: ${reason}` })
      fault = reason
    }
    const now = performance.now()
    if (head && now - headLoggedAt >= headEveryMs) {
      headLoggedAt = now
      log({ level: 'info', msg: `audit head ${headText(head)}` })
    }
    await stream?.follow(audit)
  }
  return {
    preload: loadSeals,
    open: async () => await stream?.open(),
    firstUse: async (data) => {
      if (!stream) return
      await stream.begin(data.audit)
      data.passAudit(stream.gate)
    },
    start: async () => {
      timer = setInterval(() => {
        // The tick logs its failures, and a store that is being closed needs no seal.
        running ??= tick()
          .catch(() => {})
          .finally(() => {
            running = undefined
          })
      }, sealEveryMs)
      timer.unref()
    },
    ready: async () => {
      if (stream?.problem !== undefined) {
        throw new Fault('Unavailable', 'The audit stream cannot be written', { retryAfter: 5 })
      }
    },
    metrics: async () => [
      family('svc_audit_seals', 'counter', 'Seals of the audit since its first one.', head?.number),
      family('svc_audit_seal_failures', 'counter', 'Attempts to seal the audit that failed.', failures),
      ...(stream
        ? [
            family(
              'svc_audit_stream_writable',
              'gauge',
              '1 if the audit stream can be written, 0 if not.',
              Number(stream.problem === undefined),
            ),
          ]
        : []),
    ],
    close: async () => {
      clearInterval(timer)
      await running
      await stream?.close()
    },
  }
}

const family = (name: string, type: 'counter' | 'gauge', help: string, value: number | undefined): Family => ({
  name,
  type,
  help,
  samples: value === undefined ? [] : [{ value }],
})

/** How many entries are remembered that this process has streamed and no seal has listed. Others are streamed again. */
const maxOwn = 100_000

/**
 * The stream of one server: its own entries before their changes commit, all others once they are sealed, and the
 * seals. The file `.position` beside it has the last seal of the stream, after which a restarted server continues.
 */
class Follower {
  readonly #stream: AuditStream
  readonly #path: string
  readonly #log: KeeperLog
  readonly #own = new Set<string>()
  /** Lines that precede whatever is written next. One that is written twice says nothing else. */
  readonly #withdrawn = new Set<string>()
  #position: ChainHead | undefined
  #reported: string | undefined
  #triedAt = Number.NEGATIVE_INFINITY

  constructor(path: string, log: KeeperLog) {
    this.#stream = new AuditStream(path)
    this.#path = `${path}.position`
    this.#log = log
  }

  get problem(): string | undefined {
    return this.#stream.problem
  }

  /** Throws Fault Local if the file cannot be written, unless that is for lack of room. */
  async open(): Promise<void> {
    await this.#stream.open()
    this.#report()
  }

  /** Finds where the stream continues. */
  async begin(audit: Data['audit']): Promise<void> {
    const written = unsealedIn(await this.#stream.tail())
    const stored = await audit.entries(written.map(({ id }) => id))
    const hashes = new Set(stored.map((entry) => `${entry.id} ${entryHash(entry)}`))
    // A process that was killed has not committed them.
    this.#withdraw(written.filter((entry) => !hashes.has(`${entry.id} ${entryHash(entry)}`)))
    await this.#begin(audit)
  }

  async #begin(audit: Data['audit']): Promise<void> {
    const written = readHead(await readFile(this.#path, 'utf8').catch(() => ''))
    const [seal] = written ? await audit.seals(written.number - 1) : []
    if (written && seal?.number === written.number && seal.hash === written.hash) {
      this.#position = written
      return
    }
    this.#position = await audit.head()
    const { number = 0 } = this.#position ?? {}
    const why = written ? 'its last seal is not in the store, as after a restore' : 'it has no position'
    this.#log({ level: written ? 'warn' : 'info', msg: `the audit stream begins after seal ${number}: ${why}` })
  }

  readonly gate: AuditGate = {
    pass: async (entries) => {
      await this.#write(entries.map(entryLine))
      for (const entry of entries) this.#own.add(`${entry.id} ${entryHash(entry)}`)
      for (const oldest of this.#own) {
        if (this.#own.size <= maxOwn) break
        this.#own.delete(oldest)
      }
    },
    withdraw: (entries) => this.#withdraw(entries),
  }

  #withdraw(entries: readonly ChainEntry[]): void {
    for (const entry of entries) {
      const hash = entryHash(entry)
      // If it was committed all the same, it follows with its seal.
      this.#own.delete(`${entry.id} ${hash}`)
      this.#withdrawn.add(withdrawalLine(entry.id, hash))
    }
  }

  /** Streams what was sealed since the last call. After a failure, the next call tries again. */
  async follow(audit: Data['audit']): Promise<void> {
    const before = this.#position
    try {
      await this.#probe()
      for await (const { seal, entries } of sealsWithEntries(audit, this.#position?.number)) {
        const others = entries.filter((entry) => !this.#own.delete(`${entry.id} ${entryHash(entry)}`))
        await this.#write([...others.map(entryLine), sealLine(seal, this.#position?.hash)])
        this.#position = seal
      }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
    }
    if (this.#position && this.#position !== before) await this.#notePosition(this.#position)
  }

  /** Writes a line that is neither an entry nor a seal, to find out whether a stream that failed works again. */
  async #probe(): Promise<void> {
    if (this.problem === undefined) return
    const now = performance.now()
    if (now - this.#triedAt < tryAgainMs) throw new Fault('Unavailable', this.problem)
    this.#triedAt = now
    await this.#write([noteLine(Date.now())])
  }

  async #write(lines: readonly string[]): Promise<void> {
    try {
      const withdrawn = [...this.#withdrawn]
      await this.#stream.write([...withdrawn, ...lines])
      for (const line of withdrawn) this.#withdrawn.delete(line)
    } finally {
      this.#report()
    }
  }

  #report(): void {
    const { problem } = this.#stream
    if (problem === this.#reported) return
    this.#reported = problem
    this.#log(
      problem === undefined
        ? { level: 'info', msg: 'the audit stream can be written again' }
        : { level: 'warn', msg: `${problem}: changes are refused until the audit stream can be written` },
    )
  }

  async #notePosition(head: ChainHead): Promise<void> {
    try {
      const made = `${this.#path}.new`
      await writeFile(made, `${headText(head)}\n`, { mode: 0o600 })
      await rename(made, this.#path)
    } catch {
      // After a restart, the stream repeats entries.
    }
  }

  close(): Promise<void> {
    return this.#stream.close()
  }
}
