import { Fault } from '../errors.ts'
import type { ExecutionMode, ServerType } from '../protocol/index.ts'
import { deadlineSignal, orAborted } from './deadline.ts'
import type { Run } from './engine.ts'

/** Milliseconds for which a result serves everyone; a quarter of that for a failure. */
const servesFor: Record<ExecutionMode, number> = { Basic: 2_000, Standard: 10_000, Advanced: 60_000 }
/** A caller that insists on a fresh run gets one, but no sooner than this after the last one ended. */
const freshPauseMs = 1_000

type Entry = {
  running: Promise<Run> | undefined
  /** How many callers wait for the run under way: when the last one leaves, it is cancelled. */
  waiting: number
  cancel: AbortController
  last: { readonly run: Run; readonly endedAt: number; readonly failed: boolean } | undefined
}

type Start = (mode: ExecutionMode, type: ServerType, signal: AbortSignal, forPeer: boolean) => Promise<Run>

export type SharedCall = {
  readonly signal: AbortSignal
  readonly fresh: boolean
  /** Milliseconds that the caller waits at most. */
  readonly patienceMs?: number | undefined
  /**
   * Another svc asks. Such a run asks no further svc, so it is not the run of everyone else; it is
   * shared among peers, or a header would let anybody start runs without end.
   */
  readonly forPeer?: boolean | undefined
}

const keyOf = (mode: ExecutionMode, type: ServerType, forPeer: boolean): string =>
  forPeer ? `${mode} ${type} for peers` : `${mode} ${type}`

export type Shared = { readonly run: Run; readonly ageMs: number }

/**
 * One run per mode and type at a time, joined by everyone who asks meanwhile. An expired result is
 * never served: the caller waits for the fresh run.
 */
export class SharedRuns {
  readonly #entries = new Map<string, Entry>()
  readonly #now: () => number
  readonly #start: Start

  constructor(now: () => number, start: Start) {
    this.#now = now
    this.#start = start
  }

  /**
   * Rejects when the caller's signal aborts; the run goes on while others wait for it. A caller with
   * less time than the run (`patienceMs`) is refused with Unavailable when its time is up, and the run
   * goes on for its next attempt: a stranger's haste must shorten nobody else's run.
   */
  async get(
    mode: ExecutionMode,
    type: ServerType,
    { signal, fresh, patienceMs, forPeer = false }: SharedCall,
  ): Promise<Shared> {
    signal.throwIfAborted()
    const key = keyOf(mode, type, forPeer)
    const entry = this.#entries.get(key) ?? {
      running: undefined,
      waiting: 0,
      cancel: new AbortController(),
      last: undefined,
    }
    this.#entries.set(key, entry)
    const { last } = entry
    if (last && !entry.running) {
      const age = this.#now() - last.endedAt
      const serves = fresh ? freshPauseMs : last.failed ? servesFor[mode] / 4 : servesFor[mode]
      if (age < serves) return { run: last.run, ageMs: age }
    }
    const running = entry.running ?? this.#begin(entry, mode, type, forPeer)
    const leave = this.#enter(entry, running)
    const patience = patienceMs === undefined ? undefined : deadlineSignal(signal, patienceMs)
    try {
      const run = await orAborted(running, patience?.signal ?? signal)
      leave()
      return { run, ageMs: this.#now() - (entry.last?.run === run ? entry.last.endedAt : this.#now()) }
    } catch (error) {
      if (!patience?.signal.aborted || signal.aborted) leave()
      else {
        running.then(leave, leave)
        throw new Fault('Unavailable', 'The run takes longer than the caller waits; its result will be there shortly', {
          retryAfter: 5,
        })
      }
      throw error
    } finally {
      patience?.clear()
    }
  }

  /** Counts a caller in; the function given back counts it out, and cancels a run that nobody waits for. */
  #enter(entry: Entry, running: Promise<Run>): () => void {
    entry.waiting += 1
    return () => {
      entry.waiting -= 1
      if (entry.waiting > 0 || entry.running !== running) return
      // Forgotten before it is cancelled: whoever asks next must not join a run that is ending.
      entry.running = undefined
      entry.cancel.abort(new DOMException('nobody waits', 'AbortError'))
    }
  }

  /** The last finished run, expired or not: for a page that shows its age. Never an answer to a caller. */
  last(mode: ExecutionMode, type: ServerType): Shared | undefined {
    const last = this.#entries.get(keyOf(mode, type, false))?.last
    return last && { run: last.run, ageMs: this.#now() - last.endedAt }
  }

  #begin(entry: Entry, mode: ExecutionMode, type: ServerType, forPeer: boolean): Promise<Run> {
    entry.cancel = new AbortController()
    const running = this.#start(mode, type, entry.cancel.signal, forPeer).then((run) => {
      const failed = run.monitors.some((monitor) => monitor.findings.some((finding) => finding.level === 'fail'))
      entry.last = { run, endedAt: this.#now(), failed }
      return run
    })
    const done = (): void => {
      if (entry.running === running) entry.running = undefined
    }
    entry.running = running
    running.then(done, done)
    return running
  }
}
