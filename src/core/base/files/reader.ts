import type { ChildProcess } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { childEnvironment } from '../system/child-environment.ts'
import { killTree } from '../system/end-process.ts'
import type { ReaderAnswer, ReaderQuestion } from './serve.ts'
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
const windows = process.platform === 'win32'

type Request = {
  readonly share: Share
  readonly task: TaskName
  readonly input: unknown
  readonly answered: (value: unknown) => void
  readonly failed: (error: Error) => void
  /** Its caller has given up. */
  isAbandoned: boolean
  /** A process that ran it has ended without an answer. */
  isSecondTry: boolean
  /** The process that runs it. */
  process: ReaderProcess | undefined
}

/** How a request ended: with an answer, or with its process. `why`: the process could not be started. */
type Ending = { readonly answer: ReaderAnswer } | { readonly why: string | undefined }

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
  #process: ReaderProcess | undefined

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
      this.#current().send(next)
    }
    if (lane.reading === 0 && lane.waiting.length === 0) this.#lanes.delete(share.key)
  }

  #current(): ReaderProcess {
    if (this.#process?.isFull) this.#process.retire()
    if (this.#process?.isRetired !== false) {
      this.#process = new ReaderProcess(this.#entry, (request, ending) => this.#ended(request, ending))
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

  #ended(request: Request, ending: Ending): void {
    const lane = this.#laneOf(request.share)
    lane.reading -= 1
    if ('answer' in ending) {
      lane.isSilent = false
      if ('value' in ending.answer) request.answered(ending.answer.value)
      else {
        const { message, code } = ending.answer.error
        request.failed(Object.assign(new Error(message), code === undefined ? {} : { code }))
      }
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

/** One reader process, and the requests that it runs. */
class ReaderProcess {
  readonly #child: ChildProcess
  readonly #requests = new Map<number, Request>()
  readonly #ended: (request: Request, ending: Ending) => void
  #count = 0
  #idle: NodeJS.Timeout | undefined
  #rest = ''
  /** It gets no further requests. */
  isRetired = false

  constructor(entry: URL, ended: (request: Request, ending: Ending) => void) {
    this.#ended = ended
    const { spawn } = process.getBuiltinModule('node:child_process')
    const child = spawn(process.execPath, [fileURLToPath(entry)], {
      detached: !windows,
      stdio: ['pipe', 'pipe', 'ignore'],
      env: { ...childEnvironment(), UV_THREADPOOL_SIZE: String(threads) },
      // The working directory of a long-lived process may no longer exist.
      cwd: dirname(process.execPath),
      windowsHide: true,
    })
    this.#child = child
    child.once('error', ({ message }) => this.#close(message))
    child.once('exit', () => this.#close())
    // Without free descriptors the pipes are missing; the error comes later.
    child.stdin?.on('error', () => {})
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk))
    this.#keepAlive()
  }

  get isFull(): boolean {
    return this.#requests.size >= threads
  }

  send(request: Request): void {
    this.#count += 1
    request.process = this
    this.#requests.set(this.#count, request)
    this.#keepAlive()
    const question: ReaderQuestion = { id: this.#count, task: request.task, input: request.input }
    this.#child.stdin?.write(`${JSON.stringify(question)}\n`)
  }

  /** Ends it now, or with the last request that somebody waits for. */
  retire(): void {
    this.isRetired = true
    if ([...this.#requests.values()].every(({ isAbandoned }) => isAbandoned)) killTree(this.#child)
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      const answer = JSON.parse(line) as ReaderAnswer
      const request = this.#requests.get(answer.id)
      this.#requests.delete(answer.id)
      if (request) this.#ended(request, { answer })
    }
    this.#keepAlive()
    if (this.isRetired) this.retire()
  }

  #close(why?: string): void {
    this.isRetired = true
    clearTimeout(this.#idle)
    const requests = [...this.#requests.values()]
    this.#requests.clear()
    for (const request of requests) this.#ended(request, { why })
  }

  /** Keeps this process running only while somebody waits for an answer, and ends the reader when nobody has for long. */
  #keepAlive(): void {
    clearTimeout(this.#idle)
    const isWaitedFor = [...this.#requests.values()].some(({ isAbandoned }) => !isAbandoned)
    for (const handle of [this.#child, this.#child.stdin, this.#child.stdout]) {
      const socket = handle as { ref?: () => void; unref?: () => void } | null
      if (isWaitedFor) socket?.ref?.()
      else socket?.unref?.()
    }
    if (this.#requests.size === 0) this.#idle = setTimeout(() => this.retire(), idleMs).unref()
  }
}
