import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { HostileReport, HostileRun } from './hostile-child.ts'

export type HostileRunner = {
  /** Runs a kind in the child. Throws when the child cannot, or when it does not answer within `ms`. */
  readonly run: (run: HostileRun, ms: number) => Promise<HostileReport>
  /** The text on the standard output and standard error of the process. */
  readonly output: () => string
  readonly close: () => Promise<void>
}

/** Characters. */
const maxOutput = 4_000

type Answer = { readonly report?: HostileReport; readonly error?: string }

/** A process that runs kinds, one run at a time. */
export function startHostileRunner(): HostileRunner {
  let output = ''
  const start = () => {
    const started = fork(new URL('./hostile-child.ts', import.meta.url), { execArgv: [], silent: true })
    for (const stream of [started.stdout, started.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        if (output.length < maxOutput) output += chunk.toString('utf8')
      })
    }
    return started
  }
  let child = start()
  const close = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  return {
    run: async (run, ms) => {
      if (child.exitCode !== null || child.signalCode !== null) child = start()
      const ended = new AbortController()
      const limit = AbortSignal.any([ended.signal, AbortSignal.timeout(ms)])
      const crashed = (code: number | null): void =>
        ended.abort(new Error(`the process that runs the kind ended: ${code}`))
      child.once('exit', crashed)
      try {
        const answer = once(child, 'message', { signal: limit })
        child.send(run)
        const [{ report, error }] = (await answer) as [Answer]
        if (report === undefined) throw new Error(error)
        return report
      } catch (error) {
        if (!limit.aborted) throw error
        const reason: unknown = ended.signal.aborted
          ? ended.signal.reason
          : new Error(`the run did not end within ${ms} ms: its process was blocked`)
        await close()
        throw reason
      } finally {
        child.off('exit', crashed)
      }
    },
    output: () => output,
    close,
  }
}
