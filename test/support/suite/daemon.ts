import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { descendantsOf, killAll } from '../servers/process-tree.ts'
import { farMs, until } from './until.ts'

/** The exit code, or the signal that ended it. */
export type Ending = number | NodeJS.Signals

/** A server that a test runs as a process of its own. It ends with the test at the latest. */
export type Daemon = {
  readonly child: ChildProcess
  /** Of what was spawned: of the server itself, unless a command starts it. */
  readonly pid: number
  /** Everything it has written to the pipes of standard output and standard error. */
  readonly log: () => string
  readonly isRunning: () => boolean
  readonly signal: (name: NodeJS.Signals) => void
  /** The answer to a message over its channel. */
  readonly ask: <T>(message: object | string) => Promise<T>
  readonly ended: Promise<Ending>
  /** Ends it, with SIGTERM unless told otherwise, at the latest after 15 s; a second call only says how it ended. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<Ending>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

export type DaemonOptions = Omit<SpawnOptions, 'timeout'> & {
  readonly ready: (log: string) => boolean | Promise<boolean>
  /** How errors call it. Absent: as its program is called. */
  readonly name?: string
  /** How long it may take to be ready, in milliseconds. */
  readonly maxMs?: number
  /** `close`: its end counts when nobody holds its pipes any longer. Children of a server may hold them for ever. */
  readonly end?: 'exit' | 'close'
  /** Its pipes are left to the test. */
  readonly unread?: boolean
  /** Called once it has ended by `stop`, or has not started. */
  readonly remove?: () => void
}

const endMs = 15_000
const answerMs = 120_000

export class NotStarted extends Error {
  readonly ending: Ending
  readonly log: string
  constructor(why: string, ending: Ending, log: string) {
    super(`${why}: ${log.slice(-4_000)}`)
    this.ending = ending
    this.log = log
  }
}

/** Starts a server, and waits until it is ready. Throws its log when it ends instead. */
export async function daemon(
  [program = '', ...args]: readonly string[],
  { ready, name = basename(program), maxMs = farMs, end = 'close', unread = false, remove, ...how }: DaemonOptions,
): Promise<Daemon> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], ...how })
  const { pid } = child
  if (pid === undefined) throw new Error(`${program} cannot be started: ${String(await once(child, 'error'))}`)
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  let log = ''
  for (const stream of unread ? [] : [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      log += String(chunk)
    })
  }
  const ended = once(child, end).then(([code, signal]) => {
    process.off('exit', kill)
    return (code ?? signal) as Ending
  })
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<Ending> => {
    const timer = setTimeout(kill, endMs)
    child.kill(signal)
    const ending = await ended
    clearTimeout(timer)
    remove?.()
    return ending
  }
  const isReady = await until(async () => !isRunning() || (await ready(log)), maxMs).catch(() => false)
  if (!isReady || !isRunning()) {
    // A script may have started the server itself.
    killAll(descendantsOf(pid))
    const ending = await stop('SIGKILL')
    const why = isReady ? `ended with ${ending}` : `is not ready after ${maxMs / 1_000} s`
    throw new NotStarted(`${name} ${why}`, ending, log)
  }
  return {
    child,
    pid,
    log: () => log,
    isRunning,
    signal: (one) => void child.kill(one),
    ask: async <T>(message: object | string) => {
      const answer = once(child, 'message', { signal: AbortSignal.timeout(answerMs) })
      child.send(message)
      return ((await answer) as [T])[0]
    },
    ended,
    stop,
    [Symbol.asyncDispose]: async () => void (await stop()),
  }
}
