import type { ChildProcess } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { childEnvironment } from './child-environment.ts'
import { killTree } from './end-process.ts'
import type { TaskAnswer, TaskQuestion } from './serve-tasks.ts'

const windows = process.platform === 'win32'

/** A task for a process beside this one. */
export type Task = {
  readonly task: string
  /** JSON. */
  readonly input: unknown
  /** Its caller has given up. */
  isAbandoned: boolean
}

/** How a task ended: with an answer, or with its process. `why`: the process could not be started, or ended by itself. */
export type TaskEnding = { readonly answer: TaskAnswer } | { readonly why: string | undefined }

/** The error of a task, as its process reports it. */
export const errorOf = ({ message, code }: Extract<TaskAnswer, { error: unknown }>['error']): Error =>
  Object.assign(new Error(message), code === undefined ? {} : { code })

type ProcessOptions = {
  /** How many tasks it runs at once. */
  readonly threads: number
  /** Milliseconds without a task after which it ends. */
  readonly idleMs: number
  readonly env?: Readonly<Record<string, string>>
}

/** A process beside this one, and the tasks that it runs. */
export class TaskProcess<T extends Task> {
  readonly #child: ChildProcess
  readonly #options: ProcessOptions
  readonly #tasks = new Map<number, T>()
  readonly #ended: (task: T, ending: TaskEnding) => void
  #count = 0
  #idle: NodeJS.Timeout | undefined
  #rest = ''
  /** It gets no further tasks. */
  isRetired = false

  /** `entry`: its program, which calls `serveTasks`. */
  constructor(entry: URL, options: ProcessOptions, ended: (task: T, ending: TaskEnding) => void) {
    this.#options = options
    this.#ended = ended
    const { spawn } = process.getBuiltinModule('node:child_process')
    const child = spawn(process.execPath, [fileURLToPath(entry)], {
      detached: !windows,
      stdio: ['pipe', 'pipe', 'ignore'],
      env: { ...childEnvironment(), UV_THREADPOOL_SIZE: String(options.threads), ...options.env },
      // The working directory of a long-lived process may no longer exist.
      cwd: dirname(process.execPath),
      windowsHide: true,
    })
    this.#child = child
    child.once('error', ({ message }) => this.#close(message))
    // A process that somebody killed could be started.
    child.once('exit', (code) => this.#close(code === null ? undefined : `it ended with ${code}`))
    // Without free descriptors the pipes are missing; the error comes later.
    child.stdin?.on('error', () => {})
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk))
    this.#keepAlive()
  }

  get isFull(): boolean {
    return this.#tasks.size >= this.#options.threads
  }

  send(task: T): void {
    this.#count += 1
    this.#tasks.set(this.#count, task)
    this.#keepAlive()
    const question: TaskQuestion = { id: this.#count, task: task.task, input: task.input }
    this.#child.stdin?.write(`${JSON.stringify(question)}\n`)
  }

  /** Ends it now, or with the last task that somebody waits for. */
  retire(): void {
    this.isRetired = true
    if ([...this.#tasks.values()].every(({ isAbandoned }) => isAbandoned)) killTree(this.#child)
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      const answer = JSON.parse(line) as TaskAnswer
      const task = this.#tasks.get(answer.id)
      this.#tasks.delete(answer.id)
      if (task) this.#ended(task, { answer })
    }
    this.#keepAlive()
    if (this.isRetired) this.retire()
  }

  #close(why?: string): void {
    this.isRetired = true
    clearTimeout(this.#idle)
    const tasks = [...this.#tasks.values()]
    this.#tasks.clear()
    for (const task of tasks) this.#ended(task, { why })
  }

  /** Keeps this process running only while somebody waits for an answer, and ends the other when nobody has for long. */
  #keepAlive(): void {
    clearTimeout(this.#idle)
    const isWaitedFor = [...this.#tasks.values()].some(({ isAbandoned }) => !isAbandoned)
    for (const handle of [this.#child, this.#child.stdin, this.#child.stdout]) {
      const socket = handle as { ref?: () => void; unref?: () => void } | null
      if (isWaitedFor) socket?.ref?.()
      else socket?.unref?.()
    }
    if (this.#tasks.size === 0) this.#idle = setTimeout(() => this.retire(), this.#options.idleMs).unref()
  }
}
