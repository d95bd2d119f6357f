import { errorOf, type Task, type TaskEnding, TaskProcess } from '../system/task-process.ts'
import type { TaskName } from './tasks.ts'

/** A mount that may stop answering: its server, or the program behind it, may be gone. */
export type Share = {
  /** Differs from that of every other mount, also of a later one at the same place. */
  readonly key: string
  /** For messages: `/mnt/media (nfs4 from nas:/media)`. */
  readonly name: string
}

/** Tasks of one share that run at once. A long listing must not hold up the reading of a password. */
const perShare = 4
/** Threads of the reader process. Each task that hangs takes one, until the process is replaced. */
const threads = 64
/** Milliseconds without a task after which the process ends. */
const idleMs = 60_000

type Request = Task & {
  readonly share: Share
  readonly task: TaskName
  readonly answered: (value: unknown) => void
  readonly failed: (error: Error) => void
  /** A process that ran it has ended without an answer. */
  isSecondTry: boolean
  /** The process that runs it. */
  process: TaskProcess<Request> | undefined
}

/** The requests of one share. */
type Lane = {
  readonly waiting: Request[]
  /** How many a process has begun and neither answered nor ended with. */
  reading: number
  /** The last one that ended did so without an answer. */
  isSilent: boolean
}

/**
 * Runs tasks on shares in one process beside this one. A share that does not answer blocks threads of that process and
 * none of this one. When the caller of a task gives up, the process is replaced, and killed as soon as it runs nothing
 * that somebody waits for. The next task on that share begins when the one that hung has ended, with its process at the
 * latest: the kernel may keep that until the share answers.
 */
export class Reader {
  readonly #entry: URL
  readonly #lanes = new Map<string, Lane>()
  #process: TaskProcess<Request> | undefined

  /** `entry`: the program of the reader process. */
  constructor(entry: URL) {
    this.#entry = entry
  }

  /** Rejects with the error of the task, and with the reason of the signal when that aborts first. */
  run(share: Share, task: TaskName, input: unknown, signal: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error)
      const done = (): void => signal.removeEventListener('abort', abandon)
      const request: Request = {
        share,
        task,
        input,
        answered: (value) => {
          done()
          resolve(value)
        },
        failed: (error) => {
          done()
          reject(error)
        },
        isAbandoned: false,
        isSecondTry: false,
        process: undefined,
      }
      const abandon = (): void => {
        request.failed(signal.reason as Error)
        this.#abandon(request)
      }
      signal.addEventListener('abort', abandon, { once: true })
      this.#laneOf(share).waiting.push(request)
      this.#begin(share)
    })
  }

  /** Ends the process, unless somebody waits for an answer. */
  close(): void {
    this.#process?.retire()
  }

  #laneOf({ key }: Share): Lane {
    const lane = this.#lanes.get(key) ?? { waiting: [], reading: 0, isSilent: false }
    this.#lanes.set(key, lane)
    return lane
  }

  /** Begins what may begin. On a silent share, one task tries whether it answers again. */
  #begin(share: Share): void {
    const lane = this.#laneOf(share)
    while (lane.reading < (lane.isSilent ? 1 : perShare)) {
      const next = lane.waiting.shift()
      if (next === undefined) break
      lane.reading += 1
      next.process = this.#current()
      next.process.send(next)
    }
    if (lane.reading === 0 && lane.waiting.length === 0) this.#lanes.delete(share.key)
  }

  #current(): TaskProcess<Request> {
    if (this.#process?.isFull) this.#process.retire()
    if (this.#process?.isRetired !== false) {
      this.#process = new TaskProcess(this.#entry, { threads, idleMs }, (request, ending) =>
        this.#ended(request, ending),
      )
    }
    return this.#process
  }

  #abandon(request: Request): void {
    request.isAbandoned = true
    const lane = this.#laneOf(request.share)
    const at = lane.waiting.indexOf(request)
    if (at >= 0) lane.waiting.splice(at, 1)
    else lane.isSilent = true
    request.process?.retire()
  }

  #ended(request: Request, ending: TaskEnding): void {
    const lane = this.#laneOf(request.share)
    lane.reading -= 1
    if ('answer' in ending) {
      lane.isSilent = false
      if ('value' in ending.answer) request.answered(ending.answer.value)
      else request.failed(errorOf(ending.answer.error))
    } else if (!request.isAbandoned) {
      // Killed by somebody else, e.g. because memory ran out: no fault of the share.
      if (request.isSecondTry || ending.why !== undefined) request.failed(notRun(ending.why))
      else lane.waiting.unshift(Object.assign(request, { isSecondTry: true, process: undefined }))
    }
    this.#begin(request.share)
  }
}

const notRun = (why = 'it was ended'): Error =>
  new Error(`cannot be read: the process that reads shares has failed (${why})`)
